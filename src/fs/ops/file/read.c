/* SPDX-License-Identifier: MIT */
/*
 * Reading: under the inode's lock it is settled where every byte comes from; then the lock is
 * dropped and the device is read. What was looked up stays readable: the zones are held against a
 * reset (zf_alloc_read_begin), and nothing is overwritten, but what is by its nature: that is held
 * against another use, and a read that meets a write of the same block may see part of each.
 */
#include "fs/ops/file/read.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "alloc/overwrite.h"
#include "fs/core/access.h"
#include "fs/data/block.h"
#include "fs/map/extent.h"
#include "fs/core/inode.h"
#include "fs/map/summary.h"
#include "log/carry.h"

/* One round: 1 MiB, wherever it begins. */
#define ROUND_BLOCKS 257u

/* Where a block's bytes come from, or else its address on the device. */
#define FROM_HOLE 0u
#define FROM_DONE 1u /* they are in the caller's buffer */

struct round {
	struct zf_extent_reader reader;
	uint64_t first;	    /* block of the file */
	unsigned int count; /* blocks */
	uint64_t from, to;  /* bytes of the file wanted, within the blocks */
	uint8_t *buf;	    /* for the byte at `from` */
	uint64_t source[ROUND_BLOCKS];
	uint64_t csum[ROUND_BLOCKS];
	bool in_place[ROUND_BLOCKS]; /* without a checksum: fs/map/overwrite.h */
	bool holds;		     /* because of these ... */
	unsigned int hold;	     /* ... this: alloc/overwrite.h */
};

/* Blocks that lie together on the device too. */
struct run {
	unsigned int first, count;
};

static void round_init(struct round *round, struct zf_inode *inode, uint64_t from, uint64_t to,
		       uint8_t *buf)
{
	zf_extent_reader_init(&round->reader, inode);
	round->first = from >> ZF_BLOCK_SHIFT;
	round->count = (unsigned int)(((to - 1) >> ZF_BLOCK_SHIFT) - round->first + 1);
	round->from = from;
	round->to = to;
	round->buf = buf;
	round->holds = false;
	memset(round->source, 0, round->count * sizeof(round->source[0]));
}

static uint64_t block_offset(const struct round *round, unsigned int i)
{
	return (round->first + i) << ZF_BLOCK_SHIFT;
}

/* Of bytes that stand for [offset, offset + len) of the file, what is wanted; NULL: zeroes. */
static void deliver(struct round *round, uint64_t offset, const uint8_t *bytes, uint64_t len)
{
	uint64_t from = zf_max_u64(offset, round->from), to = zf_min_u64(offset + len, round->to);

	if (from >= to)
		return;
	if (bytes)
		memcpy(round->buf + (from - round->from), bytes + (from - offset), to - from);
	else
		memset(round->buf + (from - round->from), 0, to - from);
}

/* ---- where it comes from ---- */

/* Returns how many blocks are still to be found. */
static unsigned int take_from_memory(struct round *round)
{
	struct zf_data *data = &round->reader.inode->data;
	unsigned int left = round->count;
	struct zf_block *block;

	zf_mutex_lock(&data->lock);
	block = zf_block_next_locked(data, round->first);
	while (block && block->index < round->first + round->count) {
		unsigned int i = (unsigned int)(block->index - round->first);

		deliver(round, block_offset(round, i), block->bytes, ZF_BLOCK_SIZE);
		round->source[i] = FROM_DONE;
		left--;
		block = zf_block_next_locked(data, block->index + 1);
	}
	zf_mutex_unlock(&data->lock);
	return left;
}

static void take_inline(struct round *round, const struct zf_extent *extent, const uint8_t *bytes)
{
	/* Only block 0 has such bytes; a damaged image may say otherwise. */
	if (extent->offset > 0 || round->first > 0 || round->source[0] != FROM_HOLE)
		return;
	deliver(round, 0, NULL, ZF_BLOCK_SIZE);
	deliver(round, 0, bytes, extent->len);
	round->source[0] = FROM_DONE;
}

/* Of a drop that was interrupted: the extents are still there, but count no more. */
static bool is_dropped(const struct zf_data *data, uint64_t offset)
{
	return data->dropping && offset >= data->drop_from && offset < data->drop_to;
}

static int take_extent(void *arg, const struct zf_extent *extent, const uint8_t *bytes)
{
	struct round *round = arg;
	const struct zf_data *data = &round->reader.inode->data;
	uint64_t at = zf_max_u64(extent->offset, block_offset(round, 0));
	uint64_t end = zf_min_u64(zf_extent_end(extent), block_offset(round, round->count));

	if (extent->type == ZF_EXTENT_INLINE)
		take_inline(round, extent, bytes);
	if (extent->type != ZF_EXTENT_DATA)
		return 0;
	for (; at < end; at += ZF_BLOCK_SIZE) {
		unsigned int i = (unsigned int)((at >> ZF_BLOCK_SHIFT) - round->first);

		if (round->source[i] != FROM_HOLE || is_dropped(data, at))
			continue;
		round->source[i] = extent->address + (at - extent->offset);
		round->in_place[i] = extent->flags & ZF_EXTENT_OVERWRITE;
	}
	return 0;
}

static int look_up_extents(struct round *round)
{
	uint64_t from = block_offset(round, 0), last = block_offset(round, round->count) - 1;

	return zf_extent_scan_le(&round->reader, from, last, take_extent, round);
}

/* The next run at or behind block *at. */
static bool next_run(const struct round *round, unsigned int *at, struct run *ret_run)
{
	const struct zf_geometry *geometry = zf_dev_geometry(round->reader.inode->fs->dev);
	unsigned int i = *at;

	while (i < round->count && round->source[i] <= FROM_DONE)
		i++;
	if (i == round->count)
		return false;
	*ret_run = (struct run){.first = i++};
	while (i < round->count && round->source[i] == round->source[i - 1] + ZF_BLOCK_SIZE &&
	       zf_zone_of(geometry, round->source[i]) == zf_zone_of(geometry, round->source[i - 1]))
		i++;
	ret_run->count = i - ret_run->first;
	*at = i;
	return true;
}

/* The run stays what it is until it was read. */
static int hold_run(struct round *round, const struct run *run)
{
	struct zf_alloc *alloc = round->reader.inode->fs->alloc;
	int r = 0;

	if (!round->in_place[run->first])
		r = zf_summary_fetch(&round->reader, round->source[run->first], run->count,
				     round->csum + run->first);
	else if (!round->holds)
		round->hold = zf_alloc_overwrite_hold(alloc);
	if (r < 0)
		return r;
	round->holds |= round->in_place[run->first];
	zf_alloc_read_begin(alloc, round->source[run->first]);
	return 0;
}

/* All runs were let go. */
static void end_hold(struct round *round)
{
	if (round->holds)
		zf_alloc_overwrite_let_go(round->reader.inode->fs->alloc, round->hold);
	round->holds = false;
}

/* Of what is not done yet: sources and checksums; afterwards the zones are held. */
static int look_up_stored(struct round *round)
{
	struct zf_alloc *alloc = round->reader.inode->fs->alloc;
	unsigned int at = 0, begun = 0;
	struct run run;
	int r = look_up_extents(round);

	while (r == 0 && next_run(round, &at, &run)) {
		r = hold_run(round, &run);
		if (r == 0)
			begun = at;
	}
	if (r == 0)
		return 0;
	for (at = 0; at < begun && next_run(round, &at, &run);)
		zf_alloc_read_end(alloc, round->source[run.first]);
	end_hold(round);
	return r;
}

/* ---- from the device ---- */

/* Afterwards `bytes` is the data, also where it was carried by a record of the log. */
static int verify(const struct round *round, unsigned int i, uint8_t *bytes)
{
	struct zf_inode *inode = round->reader.inode;
	uint64_t csum;

	if (zf_log_carry_verify(bytes, round->csum[i], &csum))
		return 0;
	zf_report_corrupt(&inode->fs->report, "data", round->source[i],
			  "inode %" PRIu64 " at offset %" PRIu64 ": checksum has %016" PRIx64
			  ", expected %016" PRIx64,
			  inode->ino, block_offset(round, i), csum, round->csum[i]);
	return -EIO;
}

static int cannot_read(const struct round *round, const struct run *run, int error)
{
	struct zf_inode *inode = round->reader.inode;
	uint64_t address = round->source[run->first];
	uint32_t zone_no = zf_zone_of(zf_dev_geometry(inode->fs->dev), address);

	zf_alloc_suspect(inode->fs->alloc, zone_no);
	zf_report(&inode->fs->report, ZF_REPORT_ERROR,
		  "data of inode %" PRIu64 " at offset %" PRIu64 ", %u blocks from %" PRIu64
		  " on in zone %" PRIu32 ", cannot be read: %s",
		  inode->ino, block_offset(round, run->first), run->count, address, zone_no,
		  strerror(-error));
	return -EIO;
}

/* Where the caller's buffer has the whole of this block, aligned; or NULL. */
static uint8_t *place_in_buf(const struct round *round, unsigned int i)
{
	uint64_t offset = block_offset(round, i);
	uint8_t *place;

	if (offset < round->from || offset + ZF_BLOCK_SIZE > round->to)
		return NULL;
	place = round->buf + (offset - round->from);
	return (uintptr_t)place % ZF_BLOCK_SIZE == 0 ? place : NULL;
}

/*
 * The blocks of all runs, on their way: block i of the round goes to place[i], by segments[i] or as
 * a further block of the segment before it.
 */
struct transfer {
	uint8_t *place[ROUND_BLOCKS];
	struct iovec segments[ROUND_BLOCKS];
	struct zf_block *bounce; /* chain: where the caller's buffer does not do */
	struct run runs[ROUND_BLOCKS];
	struct zf_read reads[ROUND_BLOCKS]; /* of the runs */
	unsigned int count;
};

/* Of all runs. Returns how many blocks have no place in the caller's buffer. */
static unsigned int find_places(struct transfer *transfer, const struct round *round)
{
	unsigned int at = 0, bounces = 0;

	transfer->count = 0;
	while (next_run(round, &at, &transfer->runs[transfer->count])) {
		const struct run *run = &transfer->runs[transfer->count++];

		for (unsigned int i = run->first; i < run->first + run->count; i++) {
			transfer->place[i] = place_in_buf(round, i);
			bounces += !transfer->place[i];
		}
	}
	return bounces;
}

/* A run's read, with as few segments as its places allow. */
static void prepare_read(struct transfer *transfer, const struct round *round, unsigned int k,
			 struct zf_block **bounce)
{
	const struct run *run = &transfer->runs[k];
	struct iovec *iov = &transfer->segments[run->first], *last = NULL;

	for (unsigned int i = run->first; i < run->first + run->count; i++) {
		if (!transfer->place[i]) {
			transfer->place[i] = (*bounce)->bytes;
			*bounce = (*bounce)->next;
		}
		if (last && (uint8_t *)last->iov_base + last->iov_len == transfer->place[i]) {
			last->iov_len += ZF_BLOCK_SIZE;
			continue;
		}
		last = last ? last + 1 : iov;
		*last = (struct iovec){transfer->place[i], ZF_BLOCK_SIZE};
	}
	transfer->reads[k] = (struct zf_read){
		.addr = round->source[run->first],
		.iov = iov,
		.iovcnt = (unsigned int)(last - iov) + 1,
	};
}

static int transfer_init(struct transfer *transfer, const struct round *round)
{
	struct zf_flush *flush = &round->reader.inode->fs->flush;
	unsigned int bounces = find_places(transfer, round);
	struct zf_block *bounce = NULL;

	if (bounces > 0) {
		bounce = zf_pool_take(flush, bounces);
		if (!bounce)
			return -ENOMEM;
	}
	transfer->bounce = bounce;
	for (unsigned int k = 0; k < transfer->count; k++)
		prepare_read(transfer, round, k, &bounce);
	return 0;
}

/* Of a run that was read: checks it, and hands it over. */
static int take_run(struct round *round, const struct transfer *transfer, unsigned int k)
{
	const struct run *run = &transfer->runs[k];
	int r = transfer->reads[k].result;

	if (r < 0)
		return cannot_read(round, run, r);
	for (unsigned int i = run->first; r == 0 && i < run->first + run->count; i++) {
		if (!round->in_place[i])
			r = verify(round, i, transfer->place[i]);
		if (r == 0 && !place_in_buf(round, i))
			deliver(round, block_offset(round, i), transfer->place[i], ZF_BLOCK_SIZE);
	}
	return r;
}

/* All runs at once; the first that is wrong is told of. */
static int read_runs(struct round *round)
{
	struct zf_fs *fs = round->reader.inode->fs;
	struct transfer transfer;
	int r = transfer_init(&transfer, round);

	if (r < 0)
		return r;
	zf_dev_read_many(fs->dev, transfer.reads, transfer.count);
	for (unsigned int k = 0; r == 0 && k < transfer.count; k++)
		r = take_run(round, &transfer, k);
	zf_pool_give(&fs->flush, transfer.bounce);
	return r;
}

/* Lets the zones go that look_up_stored() holds. */
static void let_go(struct round *round)
{
	struct zf_alloc *alloc = round->reader.inode->fs->alloc;
	unsigned int at = 0;
	struct run run;

	while (next_run(round, &at, &run))
		zf_alloc_read_end(alloc, round->source[run.first]);
	end_hold(round);
}

/* All that look_up() found; lets the zones go. */
static int fetch(struct round *round)
{
	int r = read_runs(round);

	let_go(round);
	for (unsigned int i = 0; r == 0 && i < round->count; i++)
		if (round->source[i] == FROM_HOLE)
			deliver(round, block_offset(round, i), NULL, ZF_BLOCK_SIZE);
	return r;
}

/* ---- reading ---- */

static bool needs_device(const struct round *round)
{
	unsigned int at = 0;
	struct run run;

	return next_run(round, &at, &run);
}

int zf_read_stored(struct zf_inode *inode, uint64_t index, bool may_wait, uint8_t *bytes)
{
	struct round round;
	int r;

	round_init(&round, inode, index << ZF_BLOCK_SHIFT, (index + 1) << ZF_BLOCK_SHIFT, bytes);
	r = look_up_stored(&round);
	if (r < 0)
		return r;
	if (!may_wait && needs_device(&round)) {
		let_go(&round);
		return -EAGAIN;
	}
	return fetch(&round);
}

/* The size counts as of this round: 0 behind the end. *counts: see fs/core/access.h. */
static ssize_t read_round(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t offset,
			  uint8_t *buf, size_t len, bool *counts)
{
	uint64_t last = (offset >> ZF_BLOCK_SHIFT) + ROUND_BLOCKS, to;
	struct round round;
	int r;

	zf_rwlock_rdlock(&inode->lock);
	*counts = zf_access_counts(inode, ctx);
	to = zf_min_u64(zf_min_u64(offset + len, last << ZF_BLOCK_SHIFT), inode->item.size);
	if (offset >= to) {
		zf_rwlock_unlock(&inode->lock);
		return 0;
	}
	round_init(&round, inode, offset, to, buf);
	r = take_from_memory(&round) == 0 ? 0 : look_up_stored(&round);
	zf_rwlock_unlock(&inode->lock);
	if (r == 0 && !ctx->may_wait && needs_device(&round)) {
		let_go(&round);
		return -EAGAIN;
	}
	if (r == 0)
		r = fetch(&round);
	return r < 0 ? r : (ssize_t)(to - offset);
}

ssize_t zf_data_read(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t offset, void *buf,
		     size_t len)
{
	size_t done = 0;
	bool counts = false;

	if (offset >= ZF_FILE_SIZE_MAX)
		return 0;
	len = zf_min_u64(len, ZF_FILE_SIZE_MAX - offset);
	while (done < len) {
		ssize_t r = read_round(inode, ctx, offset + done, (uint8_t *)buf + done, len - done,
				       &counts);

		if (r < 0)
			return done > 0 && r != -EAGAIN ? (ssize_t)done : r;
		if (r == 0)
			break;
		done += (size_t)r;
	}
	if (counts)
		zf_access_note(inode, ctx);
	return (ssize_t)done;
}
