/* SPDX-License-Identifier: MIT */
/*
 * Writing: reserve, copy, answer. Whole blocks are copied before the inode is locked, and put into
 * place under the lock by setting pointers. Everything that can fail is done before anything is
 * changed.
 */
#include <errno.h>
#include <sched.h>

#include "alloc/overwrite.h"
#include "alloc/reserve.h"
#include "fs/core/inode.h"
#include "fs/core/inode_flags.h"
#include "fs/data/block.h"
#include "fs/data/content.h"
#include "fs/data/drop.h"
#include "fs/data/durable.h"
#include "fs/data/flush.h"
#include "fs/data/in_place.h"
#include "fs/data/tail.h"
#include "fs/ops/file/file.h"
#include "fs/ops/file/write_internal.h"
#include "fs/space/room.h"

/* How often a write that may not wait tries to take the inode's lock. */
#define LOCK_TRIES 32u

/* ---- the written part of a block ---- */

struct part {
	uint32_t from, to; /* bytes within the block */
};

static struct part part_of(const struct write *write, unsigned int i)
{
	uint64_t start = (write->first + i) << ZF_BLOCK_SHIFT;
	uint64_t from = zf_max_u64(write->offset, start);
	uint64_t to = zf_min_u64(write->offset + write->len, start + ZF_BLOCK_SIZE);

	return (struct part){(uint32_t)(from - start), (uint32_t)(to - start)};
}

static bool is_partial(struct part part)
{
	return part.to - part.from < ZF_BLOCK_SIZE;
}

/* Returns how many bytes of the block the file has before the write. */
static uint32_t old_bytes(const struct write *write, unsigned int i)
{
	uint64_t start = (write->first + i) << ZF_BLOCK_SHIFT, size = write->inode->item.size;

	return size > start ? (uint32_t)zf_min_u64(size - start, ZF_BLOCK_SIZE) : 0;
}

/* ---- reserving ---- */

static void give_back(struct write *write, unsigned int blocks)
{
	struct zf_fs *fs = write->inode->fs;

	if (blocks > 0 && !write->lends)
		zf_alloc_unreserve(fs->alloc, blocks, (uint64_t)blocks * ZF_BLOCK_ITEMS);
	zf_flush_release(fs, blocks);
}

/*
 * If there is no room now, the write first uses blocks that are kept for the file, because other
 * room would have to wait for commits. Which blocks are lent is decided under the inode's lock, so
 * nothing is reserved here.
 */
static int reserve_round(struct write *write, bool may_lend)
{
	struct zf_fs *fs = write->inode->fs;
	uint64_t items = (uint64_t)write->reserved * ZF_BLOCK_ITEMS;
	int r = zf_room_reserve(fs, ZF_RESERVE_NORMAL, write->reserved, items, NULL);

	write->lends = r == -EAGAIN && may_lend &&
		       (zf_alloc_keeps_any(fs->alloc) || zf_alloc_has_overwrite(fs->alloc));
	if (r != -EAGAIN || write->lends)
		return write->lends ? 0 : r;
	if (!write->ctx->may_wait)
		return r;
	return zf_room_reserve(fs, ZF_RESERVE_NORMAL, write->reserved, items, &write->search);
}

/*
 * Reserves all that the round can need. The offset of an append is not known yet, so it may begin
 * anywhere in a block.
 */
static int begin_round(struct write *write, bool may_lend)
{
	struct zf_fs *fs = write->inode->fs;
	uint64_t end = write->offset + write->len;
	int r;

	write->reserved = write->flags & ZF_WRITE_APPEND
				  ? (unsigned int)(write->len / ZF_BLOCK_SIZE + 2)
				  : (unsigned int)(((end - 1) >> ZF_BLOCK_SHIFT) -
						   (write->offset >> ZF_BLOCK_SHIFT) + 1);
	r = zf_flush_admit(fs, write->reserved, write->ctx->may_wait);
	if (r < 0)
		return r;
	r = reserve_round(write, may_lend);
	if (r < 0) {
		zf_flush_release(fs, write->reserved);
		return r;
	}
	write->chain = zf_block_pool_take(&fs->flush, write->reserved);
	if (!write->chain) {
		give_back(write, write->reserved);
		return -ENOMEM;
	}
	return 0;
}

/* ---- copying ---- */

static void copy(struct write *write)
{
	write->first = write->offset >> ZF_BLOCK_SHIFT;
	write->count = (unsigned int)(((write->offset + write->len - 1) >> ZF_BLOCK_SHIFT) -
				      write->first + 1);
	for (unsigned int i = 0; i < write->count; i++) {
		struct zf_block *block = write->chain;
		struct part part = part_of(write, i);
		uint64_t start = (write->first + i) << ZF_BLOCK_SHIFT;

		write->chain = block->next;
		block->next = NULL;
		block->index = write->first + i;
		memcpy(block->bytes + part.from, write->buf + (start + part.from - write->offset),
		       part.to - part.from);
		write->block[i] = block;
	}
}

/*
 * Fills the parts of the block around the written part: the old bytes up to the old end of the
 * file, then zeroes.
 */
static void fill_base(struct write *write, unsigned int i, const uint8_t *base)
{
	uint8_t *bytes = write->block[i]->bytes;
	struct part part = part_of(write, i);
	uint32_t old = old_bytes(write, i);
	uint32_t head = base ? (uint32_t)zf_min_u64(part.from, old) : 0;
	uint32_t tail = base && old > part.to ? old : part.to;

	if (head > 0)
		memcpy(bytes, base, head);
	memset(bytes + head, 0, part.from - head);
	if (tail > part.to)
		memcpy(bytes + part.to, base + part.to, tail - part.to);
	memset(bytes + tail, 0, ZF_BLOCK_SIZE - tail);
}

static bool is_in_memory(struct write *write, unsigned int i)
{
	struct zf_data *data = &write->inode->data;
	bool r;

	zf_mutex_lock(&data->lock);
	r = zf_block_newest_locked(data, write->first + i) != NULL;
	zf_mutex_unlock(&data->lock);
	return r;
}

/*
 * Completes a partly written block with the stored bytes. If an older version is in memory, place()
 * does this under data->lock, so that the version cannot change.
 */
static int base_on_stored(struct write *write, unsigned int i)
{
	struct zf_flush *flush = &write->inode->fs->flush;
	struct part part = part_of(write, i);
	uint32_t old = old_bytes(write, i);
	struct zf_block *stored;
	int r;

	if (is_in_memory(write, i))
		return 0;
	if (old == 0 || (part.from == 0 && part.to >= old)) {
		fill_base(write, i, NULL);
		return 0;
	}
	stored = zf_block_pool_take(flush, 1);
	if (!stored)
		return -ENOMEM;
	r = zf_content_read_stored(write->inode, write->first + i, write->ctx->may_wait,
				   stored->bytes);
	if (r == 0)
		fill_base(write, i, stored->bytes);
	zf_block_pool_give(flush, stored);
	return r;
}

static int base_partial_blocks(struct write *write)
{
	unsigned int last = write->count - 1;
	int r = 0;

	if (is_partial(part_of(write, 0)))
		r = base_on_stored(write, 0);
	if (r == 0 && last > 0 && is_partial(part_of(write, last)))
		r = base_on_stored(write, last);
	return r;
}

/* ---- into the inode ---- */

/*
 * Copies the written part onto a dirty version of the block. Behind the end of the file that
 * version may have any bytes, as a stored one may (fs/data/tail.h).
 */
static void place_on_dirty_locked(struct write *write, unsigned int i, struct zf_block *dirty)
{
	struct zf_block *block = write->block[i];
	struct part part = part_of(write, i);
	uint32_t old = old_bytes(write, i);
	uint8_t *bytes = dirty->bytes;

	if (is_partial(part)) {
		memset(bytes + old, 0, ZF_BLOCK_SIZE - old);
		memcpy(bytes + part.from, block->bytes + part.from, part.to - part.from);
	} else {
		dirty->bytes = block->bytes;
		block->bytes = bytes;
	}
	dirty->partial = is_partial(part);
	block->next = write->chain;
	write->chain = block;
}

/* Returns how many blocks kept their reservation. */
static unsigned int place_locked(struct write *write)
{
	struct zf_data *data = &write->inode->data;
	unsigned int used = 0;

	for (unsigned int i = 0; i < write->count; i++) {
		struct zf_block *dirty = zf_block_dirty_locked(data, write->first + i);
		struct zf_block *flight;

		if (dirty) {
			place_on_dirty_locked(write, i, dirty);
			continue;
		}
		flight = zf_block_flight_locked(data, write->first + i);
		if (flight && is_partial(part_of(write, i)))
			fill_base(write, i, flight->bytes);
		zf_block_make_dirty_locked(data, write->block[i], write->inode->item.size);
		write->block[i]->partial = is_partial(part_of(write, i));
		if (write->address[i]) {
			zf_block_set_address_locked(data, write->block[i], write->address[i]);
			zf_flush_admit_always(write->inode->fs, 1);
			continue;
		}
		write->block[i]->lent = write->lends && zf_write_takes_kept(write, i, flight);
		used++;
	}
	return used;
}

/* *ret_used: how many blocks kept their reservation. ROUND_NOT_PROMISED, ROUND_NO_SLACK. */
static int place(struct write *write, unsigned int *ret_used)
{
	struct zf_data *data = &write->inode->data;
	int r = 0;

	zf_mutex_lock(&data->lock);
	if (write->lends)
		r = zf_write_lend_locked(write);
	if (r == 0)
		*ret_used = place_locked(write);
	zf_mutex_unlock(&data->lock);
	return r;
}

static void update_item(struct write *write)
{
	struct zf_inode *inode = write->inode;
	uint64_t end = write->offset + write->len;
	bool essential = false;

	if (end > inode->item.size) {
		inode->item.size = end;
		inode->data.tail_is_zero = true;
		essential = true;
	}
	if (!(write->flags & ZF_WRITE_CACHE)) {
		inode->item.mtime = zf_fs_now(inode->fs);
		inode->item.ctime = inode->item.mtime;
	}
	if (write->flags & ZF_WRITE_KILL_SUIDGID)
		essential |= zf_inode_kill_suidgid(inode, write->ctx);
	zf_inode_note_change(inode, essential);
}

/* Returns whether sequential writes have filled one more append. */
static bool follow_run(struct write *write)
{
	struct zf_data *data = &write->inode->data;
	uint64_t limit = (uint64_t)write->inode->fs->flush.limit_blocks << ZF_BLOCK_SHIFT, before;

	if (write->offset != data->run_end)
		data->run_len = 0;
	before = data->run_len;
	data->run_len += write->len;
	data->run_end = write->offset + write->len;
	return data->run_len / limit > before / limit;
}

static int check_flags(struct write *write)
{
	/* An inode without flags forbids nothing and asks for nothing (fs/core/inode_flags.h). */
	if ((write->flags & ZF_WRITE_CACHE) || write->inode->item.flags == 0)
		return 0;
	if (!(write->flags & ZF_WRITE_PAGE) && zf_inode_is_sync(write->inode))
		write->flags |= ZF_WRITE_DSYNC;
	if ((write->flags & ZF_WRITE_DSYNC) && !write->ctx->may_wait)
		return -EAGAIN;
	return zf_inode_check_write(write->inode, write->offset);
}

static int settle_tail(struct write *write)
{
	int r = zf_tail_settle(write->inode, write->ctx->may_wait);

	write->short_of_tail = r == -ENOSPC;
	return r;
}

/*
 * Inode locked exclusively. On success *ret_used blocks have kept their reservation.
 * ROUND_NOT_PROMISED, ROUND_NO_SLACK.
 */
static int write_locked(struct write *write, unsigned int *ret_used)
{
	struct zf_inode *inode = write->inode;
	int r = 0;

	if (write->flags & ZF_WRITE_APPEND) {
		write->offset = inode->item.size;
		if (write->len > ZF_FILE_SIZE_MAX - write->offset)
			return -EFBIG;
		copy(write);
	}
	r = check_flags(write);
	if (r == 0)
		r = zf_drop_finish(inode, write->ctx->may_wait);
	if (r == 0)
		r = zf_in_place_find(inode, write->first, write->count, write->address);
	if (r == 0 && write->lends)
		r = zf_write_shorten_to_promised(write);
	/*
	 * A write that begins in the last block zeroes the bytes between the old end and its start
	 * itself.
	 */
	if (r == 0 && write->offset + write->len > inode->item.size &&
	    write->first > inode->item.size >> ZF_BLOCK_SHIFT)
		r = settle_tail(write);
	if (r == 0)
		r = base_partial_blocks(write);
	if (r == 0)
		r = place(write, ret_used);
	if (r == 0)
		update_item(write);
	return r;
}

static bool lock_beside(struct zf_inode *inode, bool may_wait)
{
	if (may_wait) {
		zf_rwlock_wrlock_beside(&inode->lock);
		return true;
	}
	for (unsigned int i = 0; i < LOCK_TRIES; i++) {
		if (zf_rwlock_trywrlock_beside(&inode->lock))
			return true;
		sched_yield();
	}
	return false;
}

/*
 * Returns whether the write only makes blocks dirty. Such a write may run while an fsync of the
 * file keeps the lock (docs/locking.md). Inode locked: exclusively, or beside a thread that keeps
 * the lock.
 */
static bool is_plain(const struct write *write)
{
	const struct zf_inode *inode = write->inode;
	bool grows_over_tail = write->offset + write->len > inode->item.size &&
			       write->first > inode->item.size >> ZF_BLOCK_SHIFT;

	return !inode->data.dropping && !write->lends && !grows_over_tail &&
	       !(write->flags & (ZF_WRITE_APPEND | ZF_WRITE_KILL_SUIDGID));
}

static bool lock(struct write *write, bool may_wait)
{
	struct zf_inode *inode = write->inode;

	if (!lock_beside(inode, may_wait))
		return false;
	if (is_plain(write))
		return true;
	zf_rwlock_unlock(&inode->lock);
	return zf_inode_wrlock(inode, may_wait);
}

/* Frees the buffers that the inode did not take. */
static void free_blocks(struct write *write, bool placed)
{
	struct zf_flush *flush = &write->inode->fs->flush;

	for (unsigned int i = 0; !placed && i < write->count; i++)
		zf_block_pool_give(flush, write->block[i]);
	zf_block_pool_give(flush, write->chain);
}

static int try_round(struct write *write, bool may_lend)
{
	struct zf_inode *inode = write->inode;
	unsigned int used = 0;
	bool run = false;
	int r = begin_round(write, may_lend);

	if (r < 0)
		return r;
	write->count = 0;
	if (!(write->flags & ZF_WRITE_APPEND))
		copy(write);
	if (lock(write, write->ctx->may_wait)) {
		r = write_locked(write, &used);
		if (r == 0)
			run = follow_run(write);
		zf_rwlock_unlock(&inode->lock);
	} else {
		r = -EAGAIN;
	}
	free_blocks(write, r == 0);
	give_back(write, write->reserved - used);
	if (run)
		zf_flush_want_eager(inode);
	zf_flush_check(inode->fs);
	return r;
}

/*
 * Writes into blocks that are kept or guaranteed for the file, because there is no other room. If
 * the slack is not enough, the call waits for more of it.
 */
static int try_promised(struct write *write)
{
	size_t len = write->len;
	int r;

	while ((r = try_round(write, true)) == ROUND_NO_SLACK) {
		r = write->ctx->may_wait ? zf_write_wait_for_slack(write) : -EAGAIN;
		if (r < 0)
			break;
		write->len = len;
	}
	if (write->overwrites > 0)
		zf_write_give_up_slack(write);
	return r;
}

static int find_room_and_write(struct write *write)
{
	size_t len = write->len;
	int r = try_promised(write);

	if (r != ROUND_NOT_PROMISED)
		return r;
	write->len = len;
	r = try_round(write, false);
	if (r != -ENOSPC)
		return r;
	/*
	 * The search for room may have brought back zones, so kept blocks that were short may be
	 * there again.
	 */
	write->len = len;
	r = try_promised(write);
	return r == ROUND_NOT_PROMISED ? -ENOSPC : r;
}

/* Writes all of write->len, or only its head; write->len then is the length of the head. */
static int write_round(struct write *write)
{
	size_t len = write->len;
	int r;

	/*
	 * Each round has a search of its own, but the waits of all rounds count from the first one.
	 */
	write->search = (struct zf_room_search){.began_ns = write->search.began_ns};

	/*
	 * Waits in two cases: the round had room, but zeroing the block at the old end had none; or
	 * only kept blocks were left, and garbage takes their room.
	 */
	do {
		write->len = len;
		write->short_of_tail = write->short_of_kept = false;
		r = find_room_and_write(write);
	} while (r == -ENOSPC && (write->short_of_tail || write->short_of_kept) &&
		 write->ctx->may_wait &&
		 zf_room_wait(write->inode->fs, ZF_RESERVE_NORMAL, &write->search));
	return r;
}

/*
 * Returns how many bytes one round writes. The round ends at the end of a block, so that the next
 * one begins with whole blocks. `most`: ROUND_BYTES, or fewer whole blocks if there was no room for
 * so many.
 */
static size_t round_len(uint64_t offset, size_t left, size_t most)
{
	uint64_t end = zf_align_down(offset + most, ZF_BLOCK_SIZE);

	if (left <= most && most == ROUND_BYTES)
		return left;
	return (size_t)zf_min_u64(left, end - offset);
}

/* Returns half of the blocks that these bytes touch, in bytes. 0: the bytes touch one block. */
static size_t half_of_blocks(uint64_t offset, size_t len)
{
	uint64_t first = offset >> ZF_BLOCK_SHIFT, last = (offset + len - 1) >> ZF_BLOCK_SHIFT;

	return (size_t)((last - first + 1) / 2 << ZF_BLOCK_SHIFT);
}

ssize_t zf_file_write(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t offset,
		      const void *buf, size_t len, unsigned int flags)
{
	struct write write = {.inode = inode, .ctx = ctx, .flags = flags, .offset = offset};
	size_t done = 0, most = ROUND_BYTES;
	int r = 0;

	if (len == 0)
		return 0;
	if (!(flags & ZF_WRITE_APPEND) && offset >= ZF_FILE_SIZE_MAX)
		return -EFBIG;
	if (!(flags & ZF_WRITE_APPEND))
		len = (size_t)zf_min_u64(len, ZF_FILE_SIZE_MAX - offset);
	/*
	 * A caller that may not wait gets one round, which writes everything or changes nothing. A
	 * longer write needs several rounds, so it has to wait.
	 */
	if (!ctx->may_wait && ((flags & ZF_WRITE_DSYNC) || len > ROUND_BYTES))
		return -EAGAIN;
	if (zf_txn_error(inode->fs->txn))
		return -EROFS;
	r = zf_room_pace(inode->fs, (len + ZF_BLOCK_SIZE - 1) >> ZF_BLOCK_SHIFT, ctx->may_wait);
	while (done < len && r == 0) {
		size_t round = round_len(write.offset, len - done, most);

		write.buf = (const uint8_t *)buf + done;
		write.len = round;
		r = write_round(&write);
		if (r == -ENOSPC && half_of_blocks(write.offset, round) > 0) {
			/* If there is no room for the whole round, a smaller one is tried. */
			most = half_of_blocks(write.offset, round);
			r = ctx->may_wait ? 0 : -EAGAIN;
		} else if (r == 0) {
			done += write.len;
			write.offset += write.len;
		}
	}
	/* The kernel ignores a short write of its own pages, so that must be an error. */
	if (done == 0 || (done < len && (flags & ZF_WRITE_PAGE)))
		return r;
	if (write.flags & ZF_WRITE_DSYNC) {
		r = zf_durable_inode(inode, ctx, true);
		if (r < 0)
			return r;
	}
	return (ssize_t)done;
}
