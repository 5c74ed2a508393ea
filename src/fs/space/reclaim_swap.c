/* SPDX-License-Identifier: MIT */
/* Swaps: an extent that still names a block's old address names its new address afterwards. */
#include <assert.h>
#include <errno.h>

#include "alloc/reserve.h"
#include "alloc/zone.h"
#include "base/bits.h"
#include "base/plant.h"
#include "fs/core/inode.h"
#include "fs/map/extent.h"
#include "fs/map/summary.h"
#include "fs/space/reclaim.h"
#include "fs/space/reclaim_internal.h"

/*
 * Tree edits of one join: as many as a landing has (fs/data/land.c), for which even the smallest
 * device has room.
 */
#define SWAP_EDITS  32u
#define PIECE_EDITS (ZF_EXTENT_PUT_EDITS + 1u)

/*
 * Blocks that are checked while the inode is locked once; at most as many as a shared extent has.
 */
#define SWAP_BLOCKS ((unsigned int)(ZF_SHARE_MAX / ZF_BLOCK_SIZE))

/* How often a swap makes room for metadata before it gives up. */
#define ROUNDS_MAX 4u

struct swap {
	struct zf_fs *fs;
	struct zf_inode *inode;
	struct zf_trans trans;
	struct zf_extent_editor editor;
	unsigned int edits; /* that are promised to the join */
	uint64_t offset;    /* of slots[0] in the file */
	const struct zf_move_slot *slots;
	unsigned int count;
	bool shared;
	/*
	 * The generation of the extent that still names slots[i].from at that block; 0: none does.
	 */
	uint64_t generation[SWAP_BLOCKS];
	unsigned int swapped;
};

/* ---- what has not changed ---- */

static bool may_move(const struct swap *swap, const struct zf_extent *extent)
{
	bool shared = extent->flags & ZF_EXTENT_SHARED;

	return extent->type == ZF_EXTENT_DATA && shared == swap->shared &&
	       !(extent->flags & ~(ZF_EXTENT_SHARED | ZF_EXTENT_GUARANTEED));
}

static int compare(void *arg, const struct zf_extent *extent, const uint8_t *bytes)
{
	struct swap *swap = arg;
	uint64_t end = swap->offset + ((uint64_t)swap->count << ZF_BLOCK_SHIFT);
	uint64_t at = zf_max_u64(extent->offset, swap->offset);

	(void)bytes;
	if (!may_move(swap, extent))
		return 0;
	for (; at < zf_min_u64(end, zf_extent_end(extent)); at += ZF_BLOCK_SIZE) {
		unsigned int i = (unsigned int)((at - swap->offset) >> ZF_BLOCK_SHIFT);

		if (swap->slots[i].to != 0 &&
		    extent->address + (at - extent->offset) == swap->slots[i].from)
			swap->generation[i] = extent->generation;
	}
	return 0;
}

/*
 * Returns whether an unfinished truncation will drop a part of the range. Then nothing is swapped.
 */
static bool is_dropping(const struct swap *swap)
{
	const struct zf_data *data = &swap->inode->data;

	return data->dropping && swap->offset < data->drop_to &&
	       swap->offset + ((uint64_t)swap->count << ZF_BLOCK_SHIFT) > data->drop_from;
}

/* Finds the extents that still name the slots from `first` on. Inode locked. */
static int look(struct swap *swap, unsigned int first)
{
	uint64_t last = swap->offset + ((uint64_t)swap->count << ZF_BLOCK_SHIFT) - 1;
	int r;

	for (unsigned int i = first; i < swap->count; i++)
		swap->generation[i] = ZF_PLANTED(ZF_BUG_RECLAIM_SWAPS_BLINDLY) && swap->slots[i].to
					      ? swap->trans.generation
					      : 0;
	if (is_dropping(swap))
		return 0;
	r = zf_extent_scan_le(&swap->editor.reader,
			      swap->offset + ((uint64_t)first << ZF_BLOCK_SHIFT), last, compare,
			      swap);
	return r < 0 ? r : 0;
}

/* ---- one run ---- */

/*
 * Returns whether the new address of `next` is right behind that of `slot`, in the same zone.
 */
static bool follows(struct zf_fs *fs, const struct zf_move_slot *slot,
		    const struct zf_move_slot *next)
{
	const struct zf_geometry *geometry = zf_dev_geometry(fs->dev);

	return next->to == slot->to + ZF_BLOCK_SIZE &&
	       zf_zone_of(geometry, next->to) == zf_zone_of(geometry, slot->to);
}

/*
 * Returns how many slots from `first` on can be one extent at the new addresses; at most as many as
 * a summary entry has.
 */
static unsigned int run_from(const struct swap *swap, unsigned int first)
{
	unsigned int most = zf_summary_blocks_max(swap->fs), n = 1;

	while (n < most && first + n < swap->count && swap->generation[first + n] &&
	       follows(swap->fs, &swap->slots[first + n - 1], &swap->slots[first + n]))
		n++;
	return n;
}

static int summarise(struct zf_fs *fs, struct zf_trans *trans, uint64_t ino, uint64_t offset,
		     const struct zf_move_slot *slots, unsigned int count)
{
	uint64_t csums[SWAP_BLOCKS];

	for (unsigned int i = 0; i < count; i++)
		csums[i] = slots[i].csum;
	return zf_summary_insert(fs, trans, ino, offset, slots[0].to, csums, count);
}

static void trace_swapped(const struct swap *swap, unsigned int first, unsigned int count)
{
	for (unsigned int i = first; zf_trace_is_on() && i < first + count; i++)
		ZF_TRACE(block_swapped, .inode = swap->inode->ino,
			 .offset = swap->offset + ((uint64_t)i << ZF_BLOCK_SHIFT),
			 .from = swap->slots[i].from, .to = swap->slots[i].to);
}

/* Traces that no extent will name the slot's new address. */
static void trace_dropped(uint64_t ino, uint64_t offset, const struct zf_move_slot *slot)
{
	if (slot->to != 0)
		ZF_TRACE(block_dropped, .inode = ino, .offset = offset, .from = slot->from,
			 .to = slot->to);
}

static void trace_all_dropped(const struct zf_piece *piece, const struct zf_move_slot *slots)
{
	for (unsigned int i = 0; zf_trace_is_on() && i < piece->count; i++)
		trace_dropped(piece->ino, piece->offset + ((uint64_t)i << ZF_BLOCK_SHIFT),
			      &slots[i]);
}

/*
 * Swaps a run of slots, or only its head if the edit replaces many extents. *ret_count: how many
 * slots.
 */
static int swap_run(struct swap *swap, unsigned int first, unsigned int count,
		    unsigned int *ret_count)
{
	struct zf_extent_editor *editor = &swap->editor;
	struct zf_extent extent = {
		.offset = swap->offset + ((uint64_t)first << ZF_BLOCK_SHIFT),
		.len = (uint64_t)count << ZF_BLOCK_SHIFT,
		.address = swap->slots[first].to,
		.generation = swap->generation[first],
		.type = ZF_EXTENT_DATA,
		.flags = swap->shared ? ZF_EXTENT_SHARED : 0,
	};
	uint64_t len;
	int r;

	for (unsigned int i = 1; i < count; i++)
		extent.generation = zf_max_u64(extent.generation, swap->generation[first + i]);
	r = zf_extent_put(editor, &extent, &len);
	if (r < 0)
		return r;
	*ret_count = (unsigned int)(len >> ZF_BLOCK_SHIFT);
	swap->swapped += *ret_count;
	trace_swapped(swap, first, *ret_count);
	if (swap->shared || ZF_PLANTED(ZF_BUG_RECLAIM_WITHOUT_SUMMARY))
		return 0;
	r = summarise(swap->fs, &swap->trans, swap->inode->ino, extent.offset, &swap->slots[first],
		      *ret_count);
	editor->edits++;
	editor->torn |= r < 0;
	return r;
}

/* Swaps slots from *first on, as many as the edits of one join allow. Inode locked, joined. */
static int swap_some(struct swap *swap, unsigned int *first)
{
	int r;

	zf_extent_editor_init(&swap->editor, swap->inode, &swap->trans);
	swap->editor.moves = true;
	r = look(swap, *first);
	while (r == 0 && *first < swap->count && swap->editor.edits + PIECE_EDITS <= swap->edits) {
		unsigned int count = 1;

		if (swap->generation[*first])
			r = swap_run(swap, *first, run_from(swap, *first), &count);
		else
			trace_dropped(swap->inode->ino,
				      swap->offset + ((uint64_t)*first << ZF_BLOCK_SHIFT),
				      &swap->slots[*first]);
		*first += count;
	}
	/* A record of the log must not name the new address before the moved data is durable. */
	if (swap->editor.edits > 0 && !ZF_PLANTED(ZF_BUG_RECLAIM_WITHOUT_MARK))
		swap->inode->data.write_mark = zf_dev_write_mark(swap->fs->dev);
	if (swap->editor.torn)
		zf_trans_abort(&swap->trans, r, "moving file data");
	return r;
}

/* ---- joining ---- */

/*
 * Makes room after a join of class SYSTEM found none, although it may use the room kept for
 * reclaim: by a commit and by tidying.
 */
static int make_room(struct zf_fs *fs)
{
	int r = zf_txn_commit(fs->txn, true);

	while (r >= 0 && (r = zf_txn_tidy(fs->txn, true)) == ZF_TIDY_DID)
		;
	return r < 0 ? r : 0;
}

/* Locks the inode (NULL: none), and joins. */
static int join(struct zf_fs *fs, struct zf_inode *inode, unsigned int items,
		struct zf_trans *ret_trans)
{
	for (unsigned int round = 0;; round++) {
		int r = zf_txn_keep_bound(fs->txn, true);

		if (r < 0)
			return r;
		if (inode)
			zf_rwlock_wrlock(&inode->lock);
		r = zf_trans_join(fs->txn, ZF_RESERVE_SYSTEM, items, true, ret_trans);
		if (r == 0)
			return 0;
		if (inode)
			zf_rwlock_unlock(&inode->lock);
		if (r == -ENOSPC && round < ROUNDS_MAX)
			r = make_room(fs);
		if (r < 0)
			return r;
	}
}

/* ---- a piece ---- */

static int swap_all(struct swap *swap)
{
	unsigned int first = 0;
	int r = 0;

	while (r == 0 && first < swap->count) {
		/*
		 * Asks for no more edits than it can need, because other joins cannot use what is
		 * promised to this one.
		 */
		swap->edits = (unsigned int)zf_min_u64(SWAP_EDITS, (uint64_t)(swap->count - first) *
									   PIECE_EDITS);
		r = join(swap->fs, swap->inode, swap->edits, &swap->trans);
		if (r < 0)
			break;
		r = swap_some(swap, &first);
		zf_trans_leave(&swap->trans);
		zf_rwlock_unlock(&swap->inode->lock);
	}
	return r;
}

int zf_reclaim_swap(struct zf_fs *fs, const struct zf_piece *piece,
		    const struct zf_move_slot *slots, bool shared, unsigned int *ret_swapped)
{
	struct swap swap = {.fs = fs, .shared = shared};
	int r = zf_inode_get(fs, piece->ino, &swap.inode);

	*ret_swapped = 0;
	if (r < 0) {
		trace_all_dropped(piece, slots);
		return r == -ENOMEM ? r : 0;
	}
	for (unsigned int at = 0; r == 0 && at < piece->count; at += swap.count) {
		swap.offset = piece->offset + ((uint64_t)at << ZF_BLOCK_SHIFT);
		swap.slots = slots + at;
		swap.count = piece->count - at < SWAP_BLOCKS ? piece->count - at : SWAP_BLOCKS;
		r = swap_all(&swap);
	}
	*ret_swapped = swap.swapped;
	zf_inode_put(swap.inode);
	/* Damage was reported; the data stays where it is. */
	return r == -EUCLEAN || r == -EIO ? 0 : r;
}

int zf_reclaim_summarise(struct zf_fs *fs, const struct zf_piece *piece,
			 const struct zf_move_slot *slots)
{
	unsigned int most = zf_summary_blocks_max(fs);

	if (most > SWAP_BLOCKS)
		most = SWAP_BLOCKS;
	for (unsigned int at = 0, n; at < piece->count; at += n) {
		struct zf_trans trans;
		int r;

		n = 1;
		if (slots[at].to == 0)
			continue;
		while (n < most && at + n < piece->count &&
		       follows(fs, &slots[at + n - 1], &slots[at + n]))
			n++;
		r = join(fs, NULL, 1, &trans);
		if (r < 0)
			return r;
		r = summarise(fs, &trans, piece->ino,
			      piece->offset + ((uint64_t)at << ZF_BLOCK_SHIFT), slots + at, n);
		/*
		 * The zone's item must cover all bytes that the summary describes, even if no
		 * extent names them, because a mount knows the pointer of a conventional zone only
		 * from that item.
		 */
		if (r == 0)
			zf_alloc_note_written(fs->alloc, slots[at].to,
					      (uint64_t)n << ZF_BLOCK_SHIFT);
		else
			zf_trans_abort(&trans, r, "moving shared data");
		zf_trans_leave(&trans);
		if (r < 0)
			return r;
	}
	return 0;
}
