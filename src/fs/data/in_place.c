/* SPDX-License-Identifier: MIT */
#include "fs/data/in_place.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc/overwrite.h"
#include "alloc/zone.h"
#include "fs/core/inode.h"
#include "fs/core/inode_flags.h"
#include "fs/data/append.h"
#include "fs/data/block.h"
#include "fs/data/close.h"
#include "fs/data/flush.h"
#include "fs/data/land.h"
#include "fs/data/frontier.h"
#include "fs/map/extent.h"
#include "log/log.h"

/* ---- addresses ---- */

struct find {
	uint64_t index, end; /* blocks */
	uint64_t *addresses;
};

static int take_extent(void *arg, const struct zf_extent *extent, const uint8_t *bytes)
{
	struct find *find = arg;
	uint64_t at = zf_max_u64(extent->offset, find->index << ZF_BLOCK_SHIFT);
	uint64_t end = zf_min_u64(zf_extent_end(extent), find->end << ZF_BLOCK_SHIFT);

	(void)bytes;
	if (!(extent->flags & ZF_EXTENT_OVERWRITE))
		return 0;
	for (; at < end; at += ZF_BLOCK_SIZE)
		find->addresses[(at >> ZF_BLOCK_SHIFT) - find->index] =
			extent->address + (at - extent->offset);
	return 0;
}

int zf_in_place_find(struct zf_inode *inode, uint64_t index, unsigned int count,
		     uint64_t *ret_addresses)
{
	struct find find = {.index = index, .end = index + count, .addresses = ret_addresses};
	struct zf_extent_reader reader;

	memset(ret_addresses, 0, count * sizeof(ret_addresses[0]));
	if (!zf_alloc_has_overwrite(inode->fs->alloc))
		return 0;
	zf_extent_reader_init(&reader, inode);
	return zf_extent_scan_le(&reader, index << ZF_BLOCK_SHIFT, (find.end << ZF_BLOCK_SHIFT) - 1,
				 take_extent, &find);
}

/* ---- to the device ---- */

static bool may_follow(const struct zf_append *append, const struct zf_block *block)
{
	const struct zf_geometry *geometry = zf_dev_geometry(append->fs->dev);
	const struct zf_block *last = append->blocks[append->count - 1];

	return block->index == last->index + 1 && block->address == last->address + ZF_BLOCK_SIZE &&
	       zf_zone_of(geometry, block->address) == zf_zone_of(geometry, last->address);
}

static bool is_ready(const struct zf_block *block)
{
	return block->address && !block->blocked;
}

/* Moves the first ready run of in-place blocks, from index *from on, into the append. */
static void take_run_locked(struct zf_append *append, struct zf_data *data, uint64_t *from)
{
	struct zf_block key = {.index = *from}, *block, *next;

	block = RB_NFIND(zf_block_tree, &data->dirty, &key);
	while (block && append->count == 0 && !is_ready(block))
		block = RB_NEXT(zf_block_tree, &data->dirty, block);
	for (; block && is_ready(block) && append->count < append->capacity; block = next) {
		if (append->count > 0 && !may_follow(append, block))
			break;
		next = RB_NEXT(zf_block_tree, &data->dirty, block);
		zf_block_take_off_locked(data, block);
		append->blocks[append->count++] = block;
		*from = block->index + 1;
	}
	/*
	 * Takes the hold now: if these blocks are revoked and their space is freed, it is not
	 * reused before the writes have ended.
	 */
	if (append->count > 0)
		append->hold = zf_alloc_overwrite_hold(append->fs->alloc);
}

/* Makes the next write. NULL: *ret_error is -ENOMEM, or 0 if there is nothing to write. */
static struct zf_append *next_write(struct zf_inode *inode, uint64_t *from, int *ret_error)
{
	struct zf_data *data = &inode->data;
	struct zf_fs *fs = inode->fs;
	struct zf_append *append;
	uint32_t count;

	zf_mutex_lock(&data->lock);
	count = data->in_place < data->ready ? data->in_place : data->ready;
	zf_mutex_unlock(&data->lock);
	*ret_error = 0;
	if (count == 0)
		return NULL;
	append = zf_append_new(fs, (unsigned int)zf_min_u64(count, fs->flush.limit_blocks));
	if (!append) {
		*ret_error = -ENOMEM;
		return NULL;
	}
	append->in_place = true;
	zf_mutex_lock(&data->lock);
	take_run_locked(append, data, from);
	zf_mutex_unlock(&data->lock);
	if (append->count == 0) {
		zf_append_free(append);
		return NULL;
	}
	append->segments[append->segment_count++] =
		(struct zf_segment){.inode = zf_inode_ref(inode), .count = append->count};
	atomic_fetch_add(&fs->flush.flight_bytes, (uint64_t)append->count << ZF_BLOCK_SHIFT);
	return append;
}

int zf_in_place_start(struct zf_inode *inode, bool durable)
{
	struct zf_append *append, *next;
	uint64_t from = 0;
	int r;

	append = next_write(inode, &from, &r);
	while (append) {
		next = next_write(inode, &from, &r);
		if (next || !durable) {
			zf_append_submit_in_place(append, durable);
		} else {
			zf_append_run_in_place(append);
			zf_land_in_place(append);
			zf_flush_event(inode->fs);
		}
		append = next;
	}
	return r;
}

/* ---- landing ---- */

void zf_in_place_landed(struct zf_append *append)
{
	struct zf_inode *inode = append->segments[0].inode;
	struct zf_data *data = &inode->data;
	bool closing;

	zf_rwlock_wrlock(&inode->lock);
	if (!append->fua)
		data->write_mark = zf_dev_write_mark(inode->fs->dev);
	zf_mutex_lock(&data->lock);
	for (unsigned int i = 0; i < append->count; i++)
		if (append->blocks[i]->state == ZF_BLOCK_FLIGHT)
			zf_block_leave_flight_locked(data, append->blocks[i], true);
	zf_mutex_unlock(&data->lock);
	/* An item that was stored before this call has a size without these blocks. */
	zf_frontier_advance(inode);
	closing = data->closing == ZF_CLOSING;
	zf_data_unlock(inode);
	zf_land_let_go(inode);
	/* If there is no room now, the next landing announces the file. */
	if (closing)
		(void)zf_close_landed_in_place(inode);
}

/* ---- durable ---- */

static int sync_inode(struct zf_inode *inode)
{
	uint64_t mark;

	zf_rwlock_rdlock(&inode->lock);
	mark = inode->data.write_mark;
	zf_rwlock_unlock(&inode->lock);
	return zf_txn_flush(inode->fs->txn, mark);
}

/* Returns whether all in-place blocks that were dirty before `seq` have landed. */
static bool has_landed(struct zf_data *data, uint64_t seq)
{
	const struct zf_block *block;
	bool r = true;

	zf_mutex_lock(&data->lock);
	if (data->in_place > 0)
		TAILQ_FOREACH (block, &data->age, age_link) {
			if (block->seq >= seq)
				break;
			r &= block->address == 0;
		}
	zf_mutex_unlock(&data->lock);
	return r;
}

/*
 * Returns whether all of the file is durable once its in-place blocks are, and the log record
 * *ret_record is. *ret_seq: blocks that become dirty from now on need not be waited for.
 */
static bool is_alone(struct zf_inode *inode, bool data_only, uint64_t *ret_seq,
		     uint64_t *ret_record)
{
	struct zf_data *data = &inode->data;
	uint64_t durable = zf_txn_durable(inode->fs->txn), changed;
	bool r;

	zf_rwlock_rdlock(&inode->lock);
	data_only &= !zf_inode_is_sync(inode);
	changed = data_only ? inode->essential : inode->item.change;
	*ret_record = data_only ? inode->essential_record : 0;
	r = changed <= durable && !(data_only ? inode->essential_dirty : inode->item_dirty) &&
	    inode->disk_size == inode->item.size;
	zf_mutex_lock(&data->lock);
	r &= data->blocks == data->in_place;
	*ret_seq = data->next_seq;
	zf_mutex_unlock(&data->lock);
	zf_rwlock_unlock(&inode->lock);
	return r;
}

int zf_data_flush_in_place(struct zf_inode *inode, bool data_only)
{
	struct zf_fs *fs = inode->fs;
	uint64_t seq, seen, record;
	bool alone;
	int r;

	if (inode->type != S_IFREG || !zf_alloc_has_overwrite(fs->alloc))
		return 0;
	alone = is_alone(inode, data_only, &seq, &record);
	for (;;) {
		seen = zf_flush_events(fs);
		r = zf_in_place_start(inode, true);
		if (r < 0 || has_landed(&inode->data, seq))
			break;
		zf_append_progress(fs, seen);
	}
	if (r == 0)
		r = sync_inode(inode);
	if (r < 0)
		return r;
	if (alone && record > 0)
		alone = zf_log_wait(fs->log, record) == 0;
	return alone;
}
