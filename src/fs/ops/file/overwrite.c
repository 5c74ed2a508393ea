/* SPDX-License-Identifier: MIT */
/*
 * Allocating blocks that are overwritten in place. The allocation goes in rounds. Without a lock,
 * each round takes room in conventional zones, zeroes the room and flushes. Then the round inserts
 * extents that name the room, in as many transactions as needed. A crash before that leaves only
 * zeroes that no extent names.
 */
#include "fs/map/overwrite.h"

#include <errno.h>

#include "alloc/overwrite.h"
#include "alloc/reserve.h"
#include "alloc/zone.h"
#include "fs/core/inode_flags.h"
#include "fs/data/block.h"
#include "fs/data/discard.h"
#include "fs/data/drop.h"
#include "fs/data/flush.h"
#include "fs/data/frontier.h"
#include "fs/map/extent.h"
#include "fs/ops/file/truncate.h"
#include "fs/space/room.h"

/* The most blocks of one round, which are zeroed before one flush. */
#define PIECES_MAX 16u

/* Tree edits of one transaction, including the edit of the inode's item. */
#define PUT_EDITS 32u

struct piece {
	uint64_t address, len;
};

struct allocation {
	struct zf_inode *inode;
	const struct zf_ctx *ctx;
	uint64_t at, to; /* bytes, block multiples: the range that is left */
	uint64_t size;	 /* of the file, when all is done */

	/* The pieces of this round lie one behind the other in the file, from `at` on. */
	struct piece pieces[PIECES_MAX];
	unsigned int first, count; /* pieces [first, count) are not named yet */
};

/* ---- room ---- */

static bool has_empty_zone(struct zf_fs *fs)
{
	uint32_t end = zf_dev_geometry(fs->dev)->conventional;

	for (uint32_t z = 2; z < end && z < zf_alloc_zone_count(fs->alloc); z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(fs->alloc, z, &zone);
		if (zone.role == ZF_ROLE_NONE && !zone.unusable)
			return true;
	}
	return false;
}

static int open_zone(struct zf_fs *fs)
{
	uint64_t blocks = zf_dev_geometry(fs->dev)->zone_capacity >> ZF_BLOCK_SHIFT;
	struct zf_room_search search = {0};
	int r;

	if (!has_empty_zone(fs))
		return -ENOSPC;
	r = zf_room_reserve(fs, ZF_RESERVE_NORMAL, blocks, 0, &search);
	if (r < 0)
		return r;
	r = zf_alloc_overwrite_open(fs->alloc);
	zf_alloc_unreserve(fs->alloc, blocks, 0);
	return r;
}

static int take_urgently(struct zf_fs *fs, uint64_t want, struct piece *piece)
{
	int r = zf_alloc_overwrite_take(fs->alloc, want, true, &piece->address, &piece->len);

	if (r != -EAGAIN)
		return r;
	/* Freed blocks can be used again once the freeing transaction is durable. */
	r = zf_txn_commit(fs->txn, true);
	return r < 0 ? r
		     : zf_alloc_overwrite_take(fs->alloc, want, true, &piece->address, &piece->len);
}

static int take_piece(struct zf_fs *fs, uint64_t want, struct piece *piece)
{
	int r = zf_alloc_overwrite_take(fs->alloc, want, false, &piece->address, &piece->len);

	if (r == 0)
		return 0;
	if (open_zone(fs) == 0)
		r = zf_alloc_overwrite_take(fs->alloc, want, false, &piece->address, &piece->len);
	return r == -EAGAIN ? take_urgently(fs, want, piece) : r;
}

/* Takes as many pieces as there is room for. */
static void take_pieces(struct allocation *allocation)
{
	uint64_t left = allocation->to - allocation->at;

	allocation->first = allocation->count = 0;
	while (left > 0 && allocation->count < PIECES_MAX) {
		struct piece *piece = &allocation->pieces[allocation->count];

		if (take_piece(allocation->inode->fs, zf_min_u64(left, ZF_EXTENT_MAX), piece) < 0)
			return;
		left -= piece->len;
		allocation->count++;
	}
}

/* Gives back the blocks that no extent names. */
static void give_pieces(struct allocation *allocation)
{
	for (; allocation->first < allocation->count; allocation->first++) {
		const struct piece *piece = &allocation->pieces[allocation->first];

		if (piece->len > 0)
			zf_alloc_overwrite_give(allocation->inode->fs->alloc, piece->address,
						piece->len);
	}
}

static int zero_pieces(struct allocation *allocation)
{
	struct zf_fs *fs = allocation->inode->fs;
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < allocation->count; i++) {
		struct zf_io io = {
			.op = ZF_IO_ZEROES,
			.addr = allocation->pieces[i].address,
			.len = allocation->pieces[i].len,
		};

		r = zf_dev_run(fs->dev, &io);
	}
	/*
	 * The zeroes must be durable before a commit names them, or a power cut would bring back
	 * stale bytes (P3).
	 */
	if (r == 0 && zf_dev_geometry(fs->dev)->volatile_cache)
		r = zf_txn_flush(fs->txn, zf_dev_write_mark(fs->dev));
	return r;
}

/* ---- extents: the inode locked ---- */

/*
 * Called before extents are inserted; prepares growing as zf_file_set_size() does. 1: the lock was
 * released meanwhile, and the caller has to check again.
 */
static int prepare(struct allocation *allocation)
{
	struct zf_inode *inode = allocation->inode;
	uint64_t end = allocation->at;
	int r = zf_inode_check_change(inode);

	for (unsigned int i = allocation->first; i < allocation->count; i++)
		end += allocation->pieces[i].len;
	if (r < 0)
		return r;
	return end > inode->disk_size ? zf_truncate_before_size(inode, true)
				      : zf_drop_finish(inode, true);
}

/*
 * Drops the blocks of [from, to) from memory. Raises size and disk_size to cover the new extents,
 * because no extent may lie behind the stored size.
 */
static void update_inode(struct allocation *allocation, uint64_t from, uint64_t to)
{
	struct zf_inode *inode = allocation->inode;

	zf_discard_blocks(inode, from >> ZF_BLOCK_SHIFT, to >> ZF_BLOCK_SHIFT);
	inode->item.size = zf_max_u64(inode->item.size, zf_min_u64(to, allocation->size));
	zf_mutex_lock(&inode->data.lock);
	inode->disk_size = zf_max_u64(inode->disk_size, zf_min_u64(to, inode->item.size));
	zf_frontier_advance_locked(inode);
	zf_mutex_unlock(&inode->data.lock);
}

/* Inserts an extent for the next piece, or for the head of that piece. */
static int put_piece(struct allocation *allocation, struct zf_extent_editor *editor)
{
	struct zf_inode *inode = allocation->inode;
	struct piece *piece = &allocation->pieces[allocation->first];
	struct zf_extent extent = {
		.offset = allocation->at,
		.len = piece->len,
		.address = piece->address,
		.generation = editor->trans->generation,
		.type = ZF_EXTENT_DATA,
		.flags = ZF_EXTENT_OVERWRITE,
	};
	uint64_t len;
	int r;

	/* Loans of kept blocks end before the replaced extents are removed. */
	zf_block_take_back_range(&inode->data, extent.offset >> ZF_BLOCK_SHIFT,
				 (extent.offset + extent.len) >> ZF_BLOCK_SHIFT);
	r = zf_extent_put(editor, &extent, &len);
	if (r < 0)
		return r;
	zf_alloc_overwrite_named(inode->fs->alloc, extent.address, len);
	update_inode(allocation, extent.offset, extent.offset + len);
	allocation->at += len;
	piece->address += len;
	piece->len -= len;
	allocation->first += piece->len == 0;
	return 0;
}

static int put_some(struct allocation *allocation, struct zf_trans *trans)
{
	struct zf_inode *inode = allocation->inode;
	struct zf_extent_editor editor;
	int r = 0, stored = 0;

	zf_extent_editor_init(&editor, inode, trans);
	while (r == 0 && allocation->first < allocation->count &&
	       editor.edits + ZF_EXTENT_PUT_EDITS < PUT_EDITS)
		r = put_piece(allocation, &editor);
	if (!editor.torn && editor.edits > 0) {
		if (allocation->ctx->uid != 0)
			zf_inode_kill_suidgid(inode, allocation->ctx);
		inode->item.mtime = zf_fs_now(inode->fs);
		inode->item.ctime = inode->item.mtime;
		stored = zf_inode_store(inode, trans);
	}
	if (editor.torn || stored < 0)
		zf_trans_abort(trans, r < 0 ? r : stored, "allocating space to be overwritten");
	return stored < 0 ? stored : r;
}

/* 1: the lock was released meanwhile, and the caller has to try again. */
static int name_some(struct allocation *allocation)
{
	struct zf_trans trans;
	int r = prepare(allocation);

	if (r == 0)
		r = zf_trans_join(allocation->inode->fs->txn, ZF_RESERVE_NORMAL, PUT_EDITS, true,
				  &trans);
	if (r != 0)
		return r;
	r = put_some(allocation, &trans);
	zf_trans_leave(&trans);
	return r;
}

static int name_pieces(struct allocation *allocation)
{
	struct zf_inode *inode = allocation->inode;
	int r = 0;

	zf_rwlock_wrlock(&inode->lock);
	while (r >= 0 && allocation->first < allocation->count)
		r = name_some(allocation);
	zf_data_unlock(inode);
	return r < 0 ? r : 0;
}

/* ---- the call ---- */

int zf_overwrite_allocate(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t from,
			  uint64_t to, uint64_t size, uint64_t *ret_to)
{
	struct allocation allocation = {
		.inode = inode,
		.ctx = ctx,
		.at = from,
		.to = to,
		.size = size,
	};
	int r = 0;

	*ret_to = from;
	if (zf_dev_geometry(inode->fs->dev)->conventional <= ZF_SUPER_ZONES || from >= to)
		return 0;
	if (!ctx->may_wait)
		return -EAGAIN;
	while (r == 0 && allocation.at < to) {
		take_pieces(&allocation);
		if (allocation.count == 0)
			break;
		/*
		 * If zeroing fails, the rest of the range is left unallocated, as if there were no
		 * room.
		 */
		if (zero_pieces(&allocation) == 0)
			r = name_pieces(&allocation);
		else
			allocation.to = allocation.at;
		give_pieces(&allocation);
		to = allocation.to;
	}
	*ret_to = allocation.at;
	return r == -ENOSPC ? 0 : r;
}
