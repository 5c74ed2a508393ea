/* SPDX-License-Identifier: MIT */
/*
 * Writes the node stream of a frozen transaction: one gapless ascending run per zone and copy, in
 * large vectored writes straight from the nodes' buffers. Holes are written from a buffer of
 * zeroes. Several writes are in flight, submitted in pointer order.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/stream.h"
#include "base/bits.h"
#include "txn/txn_internal.h"

#define WRITE_MAX (UINT64_C(1) << 20)
/* With two, the device always has the next write; a read waits behind no more than these. */
#define IN_FLIGHT 2u

static const uint8_t zeroes[ZF_NODE_SIZE_MAX] __attribute__((aligned(ZF_BLOCK_SIZE)));

struct zf_chunk {
	struct zf_io io;
	struct stream *stream;
	struct iovec iov[ZF_IO_IOV_MAX];
	bool busy;
};

struct stream {
	struct zf_txn *txn;
	unsigned int copy;
	struct zf_mutex lock; /* ZF_RANK_DEV: the fields below and chunk->busy */
	struct zf_cond done;
	struct zf_chunk *chunks; /* IN_FLIGHT of them, used in turn */
	unsigned int next;
	int run_error;
	uint64_t nodes, holes, bytes;
};

struct zf_chunk *zf_txn_chunks_new(void)
{
	return calloc(IN_FLIGHT, sizeof(struct zf_chunk));
}

static void chunk_done(struct zf_io *io)
{
	struct zf_chunk *chunk = ZF_CONTAINER_OF(io, struct zf_chunk, io);
	struct stream *stream = chunk->stream;

	zf_mutex_lock(&stream->lock);
	chunk->busy = false;
	if (io->result < 0 && stream->run_error == 0)
		stream->run_error = io->result;
	zf_cond_broadcast(&stream->done);
	zf_mutex_unlock(&stream->lock);
}

static void wait_for(struct stream *stream, struct zf_chunk *chunk)
{
	zf_mutex_lock(&stream->lock);
	while (chunk->busy)
		zf_dev_wait_progress(stream->txn->dev, &stream->done, &stream->lock);
	zf_mutex_unlock(&stream->lock);
}

/* Gathers nodes and holes from *at on until the chunk is full or the run ends. */
static void fill_chunk(struct stream *stream, struct zf_chunk *chunk, uint64_t *at, uint64_t to)
{
	struct zf_txn *txn = stream->txn;
	uint32_t node_size = zf_forest_shape(txn->forest)->node_size;

	chunk->io = (struct zf_io){
		.op = ZF_IO_WRITE,
		.purpose = ZF_FOR_HOLES,
		.addr = *at,
		.iov = chunk->iov,
		.done = chunk_done,
	};
	while (*at < to && chunk->io.iovcnt < ZF_IO_IOV_MAX &&
	       chunk->io.len + node_size <= WRITE_MAX) {
		uint64_t len = zf_min_u64(node_size, to - *at);
		const void *node = NULL;

		if (len == node_size)
			node = zf_forest_dirty_node(txn->forest, *at, stream->copy,
						    txn->frozen->generation);
		if (!node)
			ZF_TRACE(hole_written, .address = *at, .bytes = len);
		chunk->io.purpose = node ? ZF_FOR_NODES : chunk->io.purpose;
		stream->nodes += node != NULL;
		stream->holes += node == NULL;
		chunk->iov[chunk->io.iovcnt++] = (struct iovec){
			.iov_base = node ? (void *)(uintptr_t)node : (void *)(uintptr_t)zeroes,
			.iov_len = len,
		};
		chunk->io.len += len;
		*at += len;
	}
}

static void write_run(struct stream *stream, const struct zf_meta_run *run)
{
	for (uint64_t at = run->from; at < run->to;) {
		struct zf_chunk *chunk = &stream->chunks[stream->next++ % IN_FLIGHT];

		wait_for(stream, chunk);
		fill_chunk(stream, chunk, &at, run->to);
		stream->bytes += chunk->io.len;
		chunk->busy = true;
		zf_dev_submit(stream->txn->dev, &chunk->io);
	}
	/* The next run opens another zone; two zones must not be active at once. */
	for (unsigned int i = 0; i < IN_FLIGHT; i++)
		wait_for(stream, &stream->chunks[i]);
}

static int write_copy(struct zf_txn *txn, unsigned int copy)
{
	struct stream stream = {.txn = txn, .copy = copy, .chunks = txn->chunks};
	int error = 0;

	zf_mutex_init(&stream.lock, ZF_RANK_DEV);
	zf_cond_init(&stream.done);
	for (unsigned int i = 0; i < IN_FLIGHT; i++)
		stream.chunks[i].stream = &stream;
	/* Each run is written even if the run before failed, because it lies in another zone. */
	for (unsigned int i = 0; i < txn->frozen->run_count[copy]; i++) {
		stream.run_error = 0;
		write_run(&stream, &txn->frozen->runs[copy][i]);
		txn->frozen->runs[copy][i].failed = stream.run_error < 0;
		if (stream.run_error < 0)
			error = stream.run_error;
	}
	zf_cond_deinit(&stream.done);
	zf_mutex_deinit(&stream.lock);
	zf_mutex_lock(&txn->lock);
	txn->stats.nodes_written += stream.nodes;
	txn->stats.holes_written += stream.holes;
	txn->stats.stream_bytes += stream.bytes;
	zf_mutex_unlock(&txn->lock);
	return error;
}

/*
 * In this copy the zone lacks a part of its run, and nothing can be written behind the gap. So the
 * allocator takes the zone for full. The device finishes the zone, if it can, so that a mount finds
 * no write pointer below the item's. Nodes that the running transaction already has in the zone
 * will fail in the same way.
 */
static void give_up_zones(struct zf_txn *txn, unsigned int copy)
{
	for (unsigned int i = 0; i < txn->frozen->run_count[copy]; i++) {
		const struct zf_meta_run *run = &txn->frozen->runs[copy][i];

		if (!run->failed)
			continue;
		if (run->zone_no >= zf_dev_geometry(txn->dev)->conventional)
			(void)zf_dev_finish(txn->dev, run->zone_no);
		zf_alloc_stream_failed(txn->alloc, run->zone_no);
	}
}

int zf_txn_write_stream(struct zf_txn *txn)
{
	unsigned int copies = txn->super.metadata_copies, written = 0;
	int errors[ZF_COPIES_MAX] = {0}, error = 0;

	for (unsigned int c = 0; c < copies; c++) {
		errors[c] = write_copy(txn, c);
		error = errors[c] < 0 ? errors[c] : error;
		written += errors[c] == 0;
	}
	if (written == 0)
		return error;
	for (unsigned int c = 0; c < copies; c++)
		if (errors[c] < 0)
			give_up_zones(txn, c);
	if (error < 0)
		zf_report(txn->report, ZF_REPORT_ERROR,
			  "metadata of generation %" PRIu64
			  " has one copy only: writing the other failed: %s",
			  txn->frozen->generation, strerror(-error));
	return 0;
}
