/* SPDX-License-Identifier: MIT */
/*
 * Moves a batch of a victim's blocks to the COLD stream: reads them in the order of addresses,
 * verifies them, and appends them in the order of the slots.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/reclaim.h"
#include "alloc/zone.h"
#include "base/bits.h"
#include "base/plant.h"
#include "base/undumped.h"
#include "fs/core/inode.h"
#include "fs/data/append.h"
#include "fs/space/reclaim_internal.h"
#include "log/carry.h"

/* 8 MiB, so that appends are long and few files are split between two batches. */
#define BATCH_BLOCKS 2048u

/* ---- several requests, waited for together ---- */

struct batch {
	struct zf_dev *dev;
	struct zf_mutex lock; /* ZF_RANK_DEV */
	struct zf_cond progress;
	unsigned int left;
};

struct request {
	struct zf_io io;
	struct batch *batch;
};

static void batch_init(struct batch *batch, struct zf_dev *dev)
{
	*batch = (struct batch){.dev = dev};
	zf_mutex_init(&batch->lock, ZF_RANK_DEV);
	zf_cond_init(&batch->progress);
}

static void batch_deinit(struct batch *batch)
{
	zf_cond_deinit(&batch->progress);
	zf_mutex_deinit(&batch->lock);
}

static void completed(struct zf_io *io)
{
	struct batch *batch = ZF_CONTAINER_OF(io, struct request, io)->batch;

	zf_mutex_lock(&batch->lock);
	batch->left--;
	zf_cond_broadcast(&batch->progress);
	zf_mutex_unlock(&batch->lock);
}

static void submit(struct batch *batch, struct request *request)
{
	request->batch = batch;
	zf_mutex_lock(&batch->lock);
	batch->left++;
	zf_mutex_unlock(&batch->lock);
	zf_dev_submit(batch->dev, &request->io);
}

static void wait_for_all(struct batch *batch)
{
	zf_mutex_lock(&batch->lock);
	while (batch->left > 0)
		zf_dev_wait_progress(batch->dev, &batch->progress, &batch->lock);
	zf_mutex_unlock(&batch->lock);
}

/* ---- life ---- */

struct zf_move_write {
	struct request request;
	struct zf_alloc *alloc;
	struct iovec iov;
	struct zf_append_grant grant;
	unsigned int place, count; /* in buf, blocks */
	bool ended;
};

int zf_move_init(struct zf_move *move, struct zf_fs *fs)
{
	uint64_t zone = zf_dev_geometry(fs->dev)->zone_capacity >> ZF_BLOCK_SHIFT;

	*move = (struct zf_move){.fs = fs};
	move->capacity = (unsigned int)zf_min_u64(BATCH_BLOCKS, zone);
	move->slots = calloc(move->capacity, sizeof(*move->slots));
	move->place = calloc(move->capacity, sizeof(*move->place));
	move->buf = zf_undumped_alloc((size_t)move->capacity << ZF_BLOCK_SHIFT);
	return move->slots && move->place && move->buf ? 0 : -ENOMEM;
}

void zf_move_deinit(struct zf_move *move)
{
	free(move->slots);
	free(move->place);
	free(move->buf);
	free(move->writes);
}

static uint8_t *bytes_at(const struct zf_move *move, unsigned int place)
{
	return move->buf + ((size_t)place << ZF_BLOCK_SHIFT);
}

/* ---- reading ---- */

struct reading {
	struct request *requests;
	struct iovec *iov;   /* one a slot */
	unsigned int *order; /* slots by address */
	unsigned int count;  /* of requests */
};

static int by_source(const void *a, const void *b, void *arg)
{
	const struct zf_move *move = arg;
	uint64_t x = move->slots[*(const unsigned int *)a].from;
	uint64_t y = move->slots[*(const unsigned int *)b].from;

	return x < y ? -1 : x > y;
}

/* Slots with adjacent addresses are read by one request. */
static void plan_reading(struct zf_move *move, struct reading *reading)
{
	struct zf_io *last = NULL;

	for (unsigned int i = 0; i < move->count; i++)
		reading->order[i] = i;
	qsort_r(reading->order, move->count, sizeof(reading->order[0]), by_source, move);
	for (unsigned int i = 0; i < move->count; i++) {
		unsigned int slot = reading->order[i];
		uint64_t from = move->slots[slot].from;

		reading->iov[i] = (struct iovec){bytes_at(move, slot), ZF_BLOCK_SIZE};
		if (last && last->addr + last->len == from && last->iovcnt < ZF_IO_IOV_MAX) {
			last->iovcnt++;
			last->len += ZF_BLOCK_SIZE;
			continue;
		}
		last = &reading->requests[reading->count++].io;
		*last = (struct zf_io){
			.op = ZF_IO_READ,
			.purpose = ZF_FOR_RECLAIM,
			.addr = from,
			.len = ZF_BLOCK_SIZE,
			.iov = &reading->iov[i],
			.iovcnt = 1,
			.done = completed,
		};
	}
}

/* If a request fails, each of its blocks is read alone, so that only the bad block is left out. */
static void read_singly(struct zf_move *move, struct reading *reading, const struct zf_io *io)
{
	unsigned int first = (unsigned int)(io->iov - reading->iov);

	zf_alloc_suspect(move->fs->alloc, zf_zone_of(zf_dev_geometry(move->fs->dev), io->addr));
	for (unsigned int i = first; i < first + io->iovcnt; i++) {
		struct zf_move_slot *slot = &move->slots[reading->order[i]];

		slot->bad = zf_dev_read_buf(move->fs->dev, slot->from, reading->iov[i].iov_base,
					    ZF_BLOCK_SIZE) < 0;
	}
}

static void read_planned(struct zf_move *move, struct reading *reading)
{
	struct batch batch;

	batch_init(&batch, move->fs->dev);
	for (unsigned int i = 0; i < reading->count; i++)
		submit(&batch, &reading->requests[i]);
	wait_for_all(&batch);
	batch_deinit(&batch);
	for (unsigned int i = 0; i < reading->count; i++)
		if (reading->requests[i].io.result < 0)
			read_singly(move, reading, &reading->requests[i].io);
}

static int read_all(struct zf_move *move)
{
	struct reading reading = {
		.requests = calloc(move->count, sizeof(struct request)),
		.iov = calloc(move->count, sizeof(struct iovec)),
		.order = calloc(move->count, sizeof(unsigned int)),
	};
	int r = reading.requests && reading.iov && reading.order ? 0 : -ENOMEM;

	if (r == 0) {
		plan_reading(move, &reading);
		read_planned(move, &reading);
	}
	free(reading.requests);
	free(reading.iov);
	free(reading.order);
	return r;
}

/*
 * Leaves out the bad blocks, so that the good ones lie together in buf in the order of the slots. A
 * block that a log record carries is unpacked. Returns how many good blocks there are.
 */
static unsigned int verify_all(struct zf_move *move)
{
	unsigned int good = 0;
	uint64_t csum;

	for (unsigned int i = 0; i < move->count; i++) {
		struct zf_move_slot *slot = &move->slots[i];

		if (!slot->bad && !zf_log_carry_verify(bytes_at(move, i), slot->csum, &csum)) {
			atomic_fetch_add_explicit(&move->fs->checksum_errors, 1,
						  memory_order_relaxed);
			slot->bad = !ZF_PLANTED(ZF_BUG_RECLAIM_UNVERIFIED);
		}
		if (slot->bad)
			continue;
		if (good < i)
			memmove(bytes_at(move, good), bytes_at(move, i), ZF_BLOCK_SIZE);
		move->place[good++] = i;
	}
	return good;
}

/* ---- appending ---- */

/*
 * A zone stays active until its last append is written, so opening the next zone may have to wait
 * for that.
 */
static int begin_append(struct zf_move *move, uint64_t want, struct zf_append_grant *ret_grant)
{
	struct zf_fs *fs = move->fs;
	int r;

	do {
		uint64_t seen = zf_alloc_limit_events(fs->alloc);

		r = zf_alloc_append_begin(fs->alloc, ZF_ROLE_COLD, want, ret_grant);
		if (r != -EAGAIN)
			return r;
		r = zf_append_wait_limits(fs, seen);
	} while (r == 0);
	return r;
}

/* Appends as many of the blocks [place, place + count) of buf as fit into the zone. */
static int add_write(struct zf_move *move, unsigned int place, unsigned int count)
{
	struct zf_move_write *write;
	int r;

	if (move->write_count == move->write_room)
		return -ENOMEM;
	write = &move->writes[move->write_count];
	*write = (struct zf_move_write){.place = place, .alloc = move->fs->alloc};
	r = begin_append(move, (uint64_t)count << ZF_BLOCK_SHIFT, &write->grant);
	if (r < 0)
		return r;
	write->count = (unsigned int)(write->grant.len >> ZF_BLOCK_SHIFT);
	write->iov = (struct iovec){bytes_at(move, place), write->grant.len};
	move->write_count++;
	return 0;
}

/*
 * Notes that the appends are written, because swapping takes long and others wait for active zones.
 */
static void write_completed(struct zf_io *io)
{
	struct request *request = ZF_CONTAINER_OF(io, struct request, io);
	struct zf_move_write *write = ZF_CONTAINER_OF(request, struct zf_move_write, request);

	zf_alloc_append_written(write->alloc, &write->grant);
	completed(io);
}

static void submit_write(struct batch *batch, struct zf_move_write *write)
{
	const struct zf_append_grant *grant = &write->grant;

	write->request.io = (struct zf_io){
		.op = grant->address ? ZF_IO_WRITE : ZF_IO_APPEND,
		.purpose = ZF_FOR_RECLAIM,
		.addr = grant->address ? grant->address : grant->zone_start,
		.len = grant->len,
		.iov = &write->iov,
		.iovcnt = 1,
		.done = write_completed,
	};
	submit(batch, &write->request);
}

/* Appends blocks [place, place + count) of buf, for which room is reserved. */
static int begin_writes(struct zf_move *move, struct batch *batch, unsigned int place,
			unsigned int count)
{
	unsigned int end = place + count;

	while (place < end) {
		int r = add_write(move, place, end - place);

		if (r < 0) {
			zf_alloc_unreserve_cold(move->fs->alloc, end - place);
			return r;
		}
		submit_write(batch, &move->writes[move->write_count - 1]);
		place += move->writes[move->write_count - 1].count;
	}
	return 0;
}

static void arrived(struct zf_move *move, const struct zf_move_write *write)
{
	for (unsigned int i = 0; i < write->count; i++) {
		struct zf_move_slot *slot = &move->slots[move->place[write->place + i]];

		slot->to = write->request.io.addr + ((uint64_t)i << ZF_BLOCK_SHIFT);
		ZF_TRACE(block_moved, .from = slot->from, .to = slot->to,
			 .submitted = write->request.io.traced);
	}
}

static void end_write(struct zf_move *move, struct zf_move_write *write)
{
	if (!write->ended)
		zf_alloc_append_end(move->fs->alloc, &write->grant, write->request.io.result);
	write->ended = true;
}

/* Appends the failed ones of writes[first..] once more, in another zone, if there is room. */
static int retry(struct zf_move *move, struct batch *batch, unsigned int first)
{
	unsigned int end = move->write_count;
	int r = 0;

	for (unsigned int i = first; i < end; i++) {
		struct zf_move_write *write = &move->writes[i];

		if (write->request.io.result == 0)
			continue;
		end_write(move, write);
		if (r == 0)
			r = zf_alloc_reserve_cold(move->fs->alloc, write->count);
		if (r == 0)
			r = begin_writes(move, batch, write->place, write->count);
	}
	return r;
}

static int settle_writes(struct zf_move *move, unsigned int first)
{
	int r = 0;

	for (unsigned int i = first; i < move->write_count; i++) {
		struct zf_move_write *write = &move->writes[i];

		if (write->request.io.result == 0)
			arrived(move, write);
		else
			r = write->request.io.result;
	}
	return r;
}

/*
 * Allocates entries for all appends. An append may be split where a zone begins or ends, and a
 * failed append is tried a second time.
 */
static int make_writes(struct zf_move *move, unsigned int blocks)
{
	uint64_t limit = zf_dev_geometry(move->fs->dev)->append_limit >> ZF_BLOCK_SHIFT;
	unsigned int room = (unsigned int)(blocks / limit + 4) * 4;

	free(move->writes);
	move->writes = calloc(room, sizeof(*move->writes));
	move->write_room = move->writes ? room : 0;
	return move->writes ? 0 : -ENOMEM;
}

static int append_all(struct zf_move *move, unsigned int blocks)
{
	struct batch batch;
	unsigned int tried;
	int r = make_writes(move, blocks), again;

	if (r == 0)
		r = zf_alloc_reserve_cold(move->fs->alloc, blocks);
	if (r < 0)
		return r;
	batch_init(&batch, move->fs->dev);
	r = begin_writes(move, &batch, 0, blocks);
	wait_for_all(&batch);
	tried = move->write_count;
	if (settle_writes(move, 0) < 0) {
		again = retry(move, &batch, 0);
		wait_for_all(&batch);
		if (again == 0)
			again = settle_writes(move, tried);
		r = r < 0 ? r : again;
	}
	batch_deinit(&batch);
	return r;
}

/* ---- a batch ---- */

int zf_move_verify(struct zf_move *move)
{
	int r = read_all(move);

	if (r == 0)
		verify_all(move);
	return r;
}

int zf_move_run(struct zf_move *move)
{
	unsigned int good;
	int r = read_all(move);

	if (r < 0)
		return r;
	good = verify_all(move);
	return good > 0 ? append_all(move, good) : 0;
}

void zf_move_end(struct zf_move *move)
{
	for (unsigned int i = 0; i < move->write_count; i++)
		end_write(move, &move->writes[i]);
	move->write_count = 0;
	move->count = 0;
}
