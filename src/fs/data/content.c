/* SPDX-License-Identifier: MIT */
#include "fs/data/content.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/overwrite.h"
#include "alloc/zone.h"
#include "fs/core/inode.h"
#include "fs/data/block.h"
#include "fs/data/recent.h"
#include "fs/map/summary.h"
#include "log/carry.h"

/* Values of content->source[]. Any other value is the address of the block on the device. */
#define FROM_HOLE 0u
#define FROM_DONE 1u /* the bytes are in the caller's buffer */

/* Blocks that are adjacent in the file and on the device, in one zone. */
struct run {
	unsigned int first, count;
	uint64_t address; /* of the first */
};

static void init(struct zf_content *content, struct zf_inode *inode, uint64_t from, uint64_t to,
		 uint8_t *buf, size_t room)
{
	zf_extent_reader_init(&content->reader, inode);
	content->first = from >> ZF_BLOCK_SHIFT;
	content->count = (unsigned int)(((to - 1) >> ZF_BLOCK_SHIFT) - content->first + 1);
	content->from = from;
	content->to = to;
	content->buf = buf;
	content->buf_end = from + room;
	content->resets = 0;
	content->holds = false;
	memset(content->source, 0, content->count * sizeof(content->source[0]));
}

static uint64_t block_offset(const struct zf_content *content, unsigned int i)
{
	return (content->first + i) << ZF_BLOCK_SHIFT;
}

/*
 * Copies the wanted part of `bytes`, the content of [offset, offset + len), to the caller's buffer.
 * `bytes` NULL: zeroes.
 */
static void deliver(struct zf_content *content, uint64_t offset, const uint8_t *bytes, uint64_t len)
{
	uint64_t from = zf_max_u64(offset, content->from),
		 to = zf_min_u64(offset + len, content->to);

	if (from >= to)
		return;
	if (bytes)
		memcpy(content->buf + (from - content->from), bytes + (from - offset), to - from);
	else
		memset(content->buf + (from - content->from), 0, to - from);
}

/* ---- the sources ---- */

/* Copies the blocks that are in memory. Returns how many blocks are still to be found. */
static unsigned int take_from_memory(struct zf_content *content)
{
	struct zf_data *data = &content->reader.inode->data;
	unsigned int left = content->count;
	struct zf_block *block;

	zf_mutex_lock(&data->lock);
	block = zf_block_next_locked(data, content->first);
	while (block && block->index < content->first + content->count) {
		unsigned int i = (unsigned int)(block->index - content->first);

		deliver(content, block_offset(content, i), block->bytes, ZF_BLOCK_SIZE);
		content->source[i] = FROM_DONE;
		left--;
		block = zf_block_next_locked(data, block->index + 1);
	}
	zf_mutex_unlock(&data->lock);
	return left;
}

static void take_inline(struct zf_content *content, const struct zf_extent *extent,
			const uint8_t *bytes)
{
	/* Only block 0 has such bytes; a damaged image may say otherwise. */
	if (extent->offset > 0 || content->first > 0 || content->source[0] != FROM_HOLE)
		return;
	deliver(content, 0, NULL, ZF_BLOCK_SIZE);
	deliver(content, 0, bytes, extent->len);
	content->source[0] = FROM_DONE;
}

/*
 * Returns whether an unfinished truncation or punch covers the offset: its extents do not count any
 * more.
 */
static bool is_dropped(const struct zf_data *data, uint64_t offset)
{
	return data->dropping && offset >= data->drop_from && offset < data->drop_to;
}

static int take_extent(void *arg, const struct zf_extent *extent, const uint8_t *bytes)
{
	struct zf_content *content = arg;
	const struct zf_data *data = &content->reader.inode->data;
	uint64_t at = zf_max_u64(extent->offset, block_offset(content, 0));
	uint64_t end = zf_min_u64(zf_extent_end(extent), block_offset(content, content->count));

	if (extent->type == ZF_EXTENT_INLINE)
		take_inline(content, extent, bytes);
	if (extent->type != ZF_EXTENT_DATA)
		return 0;
	for (; at < end; at += ZF_BLOCK_SIZE) {
		unsigned int i = (unsigned int)((at >> ZF_BLOCK_SHIFT) - content->first);

		if (content->source[i] != FROM_HOLE || is_dropped(data, at))
			continue;
		content->source[i] = extent->address + (at - extent->offset);
		content->in_place[i] = extent->flags & ZF_EXTENT_OVERWRITE;
	}
	return 0;
}

static int look_up_extents(struct zf_content *content)
{
	uint64_t from = block_offset(content, 0), last = block_offset(content, content->count) - 1;

	return zf_extent_scan_le(&content->reader, from, last, take_extent, content);
}

/* Finds the next run at or behind block *at, and moves *at behind it. False: there is none. */
static bool next_run(const struct zf_content *content, unsigned int *at, struct run *ret_run)
{
	const struct zf_geometry *geometry = zf_dev_geometry(content->reader.inode->fs->dev);
	unsigned int i = *at;

	while (i < content->count && content->source[i] <= FROM_DONE)
		i++;
	if (i == content->count)
		return false;
	*ret_run = (struct run){.first = i, .address = content->source[i]};
	i++;
	while (i < content->count && content->source[i] == content->source[i - 1] + ZF_BLOCK_SIZE &&
	       zf_zone_of(geometry, content->source[i]) ==
		       zf_zone_of(geometry, content->source[i - 1]))
		i++;
	ret_run->count = i - ret_run->first;
	*at = i;
	return true;
}

/* Gets the run's checksums, if it has any, and holds its zone and its blocks for the read. */
static int hold_run(struct zf_content *content, const struct run *run)
{
	struct zf_alloc *alloc = content->reader.inode->fs->alloc;
	int r = 0;

	if (!content->in_place[run->first])
		r = zf_summary_fetch(&content->reader, content->source[run->first], run->count,
				     content->csum + run->first);
	else if (!content->holds)
		content->hold = zf_alloc_overwrite_hold(alloc);
	if (r < 0)
		return r;
	content->holds |= content->in_place[run->first];
	content->resets = zf_alloc_read_begin(alloc, content->source[run->first]);
	return 0;
}

/* Ends the hold of blocks that are written in place, if there is one. */
static void end_hold(struct zf_content *content)
{
	if (content->holds)
		zf_alloc_overwrite_let_go(content->reader.inode->fs->alloc, content->hold);
	content->holds = false;
}

/* Finds sources and checksums of the blocks that are not FROM_DONE, and holds their zones. */
static int look_up_stored(struct zf_content *content)
{
	struct zf_alloc *alloc = content->reader.inode->fs->alloc;
	unsigned int at = 0, begun = 0;
	struct run run;
	int r = look_up_extents(content);

	while (r == 0 && next_run(content, &at, &run)) {
		r = hold_run(content, &run);
		if (r == 0)
			begun = at;
	}
	if (r == 0)
		return 0;
	for (at = 0; at < begun && next_run(content, &at, &run);)
		zf_alloc_read_end(alloc, content->source[run.first]);
	end_hold(content);
	return r;
}

/* Ends the holds that look_up_stored() has taken. */
static void let_go(struct zf_content *content)
{
	struct zf_alloc *alloc = content->reader.inode->fs->alloc;
	unsigned int at = 0;
	struct run run;

	while (next_run(content, &at, &run))
		zf_alloc_read_end(alloc, content->source[run.first]);
	end_hold(content);
}

/*
 * Copies a single block of which there is a copy in memory, so that it need not be read. Longer
 * ranges are not searched: most of them have to read the device anyway.
 */
static void take_recent(struct zf_content *content)
{
	const struct zf_recent_place place = {content->source[0], content->resets};
	struct zf_recent *recent = content->reader.inode->fs->flush.recent;
	uint64_t offset = block_offset(content, 0);

	if (content->count > 1 || place.address <= FROM_DONE || content->in_place[0] ||
	    !zf_recent_get(recent, &place, content->csum[0], (uint32_t)(content->from - offset),
			   (uint32_t)(content->to - content->from), content->buf))
		return;
	let_go(content);
	content->source[0] = FROM_DONE;
}

/* Finds where the blocks that are not FROM_DONE come from. */
static int find_stored(struct zf_content *content)
{
	int r = look_up_stored(content);

	if (r == 0)
		take_recent(content);
	return r;
}

/* ---- from the device ---- */

/* Verifies a block, and unpacks it if a log record carried it: `bytes` is then the data. */
static int verify(const struct zf_content *content, unsigned int i, uint8_t *bytes)
{
	struct zf_inode *inode = content->reader.inode;
	uint64_t csum;

	if (zf_log_carry_verify(bytes, content->csum[i], &csum))
		return 0;
	atomic_fetch_add_explicit(&inode->fs->checksum_errors, 1, memory_order_relaxed);
	zf_report_corrupt(&inode->fs->report, "data", content->source[i],
			  "inode %" PRIu64 " at offset %" PRIu64 ": checksum has %016" PRIx64
			  ", expected %016" PRIx64,
			  inode->ino, block_offset(content, i), csum, content->csum[i]);
	return -EIO;
}

static int cannot_read(const struct zf_content *content, const struct run *run, int error)
{
	struct zf_inode *inode = content->reader.inode;
	uint64_t address = content->source[run->first];
	uint32_t zone_no = zf_zone_of(zf_dev_geometry(inode->fs->dev), address);

	zf_alloc_suspect(inode->fs->alloc, zone_no);
	zf_report(&inode->fs->report, ZF_REPORT_ERROR,
		  "data of inode %" PRIu64 " at offset %" PRIu64 ", %u blocks from %" PRIu64
		  " on in zone %" PRIu32 ", cannot be read: %s",
		  inode->ino, block_offset(content, run->first), run->count, address, zone_no,
		  strerror(-error));
	return -EIO;
}

/* The block's place in the caller's buffer; NULL: there is no room for all of it, aligned. */
static uint8_t *place_in_buf(const struct zf_content *content, unsigned int i)
{
	uint64_t offset = block_offset(content, i);
	uint8_t *place;

	if (offset < content->from || offset + ZF_BLOCK_SIZE > content->buf_end)
		return NULL;
	place = content->buf + (offset - content->from);
	return (uintptr_t)place % ZF_BLOCK_SIZE == 0 ? place : NULL;
}

/*
 * The reads of all runs. Block i of the range goes to place[i]. segments[] has, for each run, from
 * index run->first on, the iovec of the run's read; adjacent places share a segment.
 */
struct transfer {
	uint8_t *place[ZF_CONTENT_BLOCKS];
	struct iovec segments[ZF_CONTENT_BLOCKS];
	struct zf_block *bounce; /* chain: for blocks without a place in the caller's buffer */
	struct run runs[ZF_CONTENT_BLOCKS];
	struct zf_read reads[ZF_CONTENT_BLOCKS]; /* of the runs */
	unsigned int count;
	struct zf_content *content; /* gets the bytes */
	int result;		    /* the first error, in the order of completion; 0: none */
};

/* Fills runs[] and place[]. Returns how many blocks have no place in the caller's buffer. */
static unsigned int find_places(struct transfer *transfer, const struct zf_content *content)
{
	unsigned int at = 0, bounces = 0;

	transfer->count = 0;
	while (next_run(content, &at, &transfer->runs[transfer->count])) {
		const struct run *run = &transfer->runs[transfer->count++];

		for (unsigned int i = run->first; i < run->first + run->count; i++) {
			transfer->place[i] = place_in_buf(content, i);
			bounces += !transfer->place[i];
		}
	}
	return bounces;
}

static int compare_addresses(const void *a, const void *b)
{
	const struct run *first = a, *second = b;

	return first->address < second->address ? -1 : first->address > second->address;
}

/* Prepares the read of run k, with as few segments as the places of its blocks allow. */
static void prepare_read(struct transfer *transfer, const struct zf_content *content,
			 unsigned int k, struct zf_block **bounce)
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
		.addr = content->source[run->first],
		.iov = iov,
		.iovcnt = (unsigned int)(last - iov) + 1,
	};
}

static int transfer_init(struct transfer *transfer, struct zf_content *content)
{
	struct zf_fs *fs = content->reader.inode->fs;
	struct zf_flush *flush = &fs->flush;
	unsigned int bounces = find_places(transfer, content);
	struct zf_block *bounce = NULL;

	if (bounces > 0) {
		bounce = zf_block_pool_take(flush, bounces);
		if (!bounce)
			return -ENOMEM;
	}
	transfer->bounce = bounce;
	transfer->content = content;
	transfer->result = 0;
	/*
	 * On a rotational disk the reads are sorted by address, so that the heads move in one
	 * direction.
	 */
	if (zf_dev_geometry(fs->dev)->rotational)
		qsort(transfer->runs, transfer->count, sizeof(transfer->runs[0]),
		      compare_addresses);
	for (unsigned int k = 0; k < transfer->count; k++)
		prepare_read(transfer, content, k, &bounce);
	return 0;
}

/*
 * Verifies a run that was read into place[0 ... run->count - 1], and copies it to the caller's
 * buffer.
 */
static int take_run(struct zf_content *content, const struct run *run, uint8_t *const *place,
		    int result)
{
	int r = result;

	if (r < 0)
		return cannot_read(content, run, r);
	for (unsigned int k = 0; r == 0 && k < run->count; k++) {
		unsigned int i = run->first + k;

		if (!content->in_place[i])
			r = verify(content, i, place[k]);
		if (r == 0 && !place_in_buf(content, i))
			deliver(content, block_offset(content, i), place[k], ZF_BLOCK_SIZE);
	}
	return r;
}

static void run_came(void *arg, struct zf_read *read)
{
	struct transfer *transfer = arg;
	const struct run *run = &transfer->runs[read - transfer->reads];

	if (transfer->result == 0)
		transfer->result = take_run(transfer->content, run, &transfer->place[run->first],
					    read->result);
}

/* Reads all runs at once, and verifies each while others are in flight. Returns the first error. */
static int read_runs(struct zf_content *content)
{
	struct zf_fs *fs = content->reader.inode->fs;
	struct transfer transfer;
	int r = transfer_init(&transfer, content);

	if (r < 0)
		return r;
	zf_dev_read_many(fs->dev, transfer.reads, transfer.count, run_came, &transfer);
	zf_block_pool_give(&fs->flush, transfer.bounce);
	return transfer.result;
}

/* Called when all runs were read: ends the holds, and zeroes the holes. Returns `result`. */
static int finish(struct zf_content *content, int result)
{
	let_go(content);
	for (unsigned int i = 0; result == 0 && i < content->count; i++)
		if (content->source[i] == FROM_HOLE)
			deliver(content, block_offset(content, i), NULL, ZF_BLOCK_SIZE);
	return result;
}

/* ---- reading ---- */

static bool needs_device(const struct zf_content *content)
{
	unsigned int at = 0;
	struct run run;

	return next_run(content, &at, &run);
}

int zf_content_get(struct zf_content *content, bool may_wait)
{
	if (!may_wait && needs_device(content)) {
		let_go(content);
		return -EAGAIN;
	}
	return finish(content, read_runs(content));
}

/* Returns whether there is only one run, and the caller's buffer has a place for all of it. */
static bool has_one_run(const struct zf_content *content, struct run *ret_run)
{
	unsigned int at = 0;
	struct run other;

	if (!next_run(content, &at, ret_run) || next_run(content, &at, &other))
		return false;
	return place_in_buf(content, ret_run->first) &&
	       place_in_buf(content, ret_run->first + ret_run->count - 1);
}

bool zf_content_wants_one(const struct zf_content *content, struct zf_read *ret_read,
			  struct iovec *ret_iov)
{
	struct run run;

	if (!has_one_run(content, &run))
		return false;
	*ret_iov = (struct iovec){place_in_buf(content, run.first),
				  (size_t)run.count << ZF_BLOCK_SHIFT};
	*ret_read = (struct zf_read){.addr = run.address, .iov = ret_iov, .iovcnt = 1};
	return true;
}

int zf_content_came(struct zf_content *content)
{
	uint8_t *place[ZF_CONTENT_BLOCKS];
	struct run run;

	if (!has_one_run(content, &run))
		return -EIO;
	for (unsigned int k = 0; k < run.count; k++)
		place[k] = place_in_buf(content, run.first + k);
	return finish(content, take_run(content, &run, place, 0));
}

int zf_content_find(struct zf_content *content, struct zf_inode *inode, uint64_t from, uint64_t to,
		    uint8_t *buf, size_t room)
{
	init(content, inode, from, to, buf, room);
	return take_from_memory(content) == 0 ? 0 : find_stored(content);
}

int zf_content_read_stored(struct zf_inode *inode, uint64_t index, bool may_wait, uint8_t *bytes)
{
	struct zf_content content;
	int r;

	init(&content, inode, index << ZF_BLOCK_SHIFT, (index + 1) << ZF_BLOCK_SHIFT, bytes,
	     ZF_BLOCK_SIZE);
	r = find_stored(&content);
	return r < 0 ? r : zf_content_get(&content, may_wait);
}
