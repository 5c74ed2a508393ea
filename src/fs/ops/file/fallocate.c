/* SPDX-License-Identifier: MIT */
/*
 * fallocate. Space is allocated as ZERO extents (P5; alloc/reserve.h), whose blocks are kept, so
 * only metadata is written, whatever the size. The ZERO extents of WRITE_ZEROES are GUARANTEED, so
 * overwriting them never fails for want of space (docs/write-zeroes.md). The room for all holes of
 * the range is reserved first. Then the extents are inserted, in as many transactions as needed;
 * when an extent is inserted, its reserved blocks become kept blocks.
 *
 * Zeroing and punching remove whole blocks from the map and from memory. A part of each block at
 * the edges stays, so zeroes are written there. The inode is locked, except while the call waits
 * for room or for data to land. After a crash each block is as before the call or as after it. A
 * mount finishes a punch that has begun.
 */
#include <errno.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include "alloc/reserve.h"
#include "fs/core/inode_flags.h"
#include "fs/data/block.h"
#include "fs/data/discard.h"
#include "fs/data/drop.h"
#include "fs/data/durable.h"
#include "fs/data/flush.h"
#include "fs/data/frontier.h"
#include "fs/data/zero.h"
#include "fs/map/extent.h"
#include "fs/map/overwrite.h"
#include "fs/ops/attr/xattr.h"
#include "fs/ops/file/truncate.h"
#include "fs/space/room.h"

/*
 * Tree edits of one transaction that inserts ZERO extents, including the edit of the inode's item.
 */
#define FILL_EDITS 32u
#define FILL_PUTS  ((FILL_EDITS - 1u) / ZF_EXTENT_PUT_EDITS)

/* New items that filling a hole may make: its extent, and the rest of an extent that it splits. */
#define PIECE_ITEMS 2u

/* Outcomes of a try with the inode locked, besides 0 and -errno. */
enum outcome {
	OUTCOME_AGAIN = 1, /* the lock was released meanwhile: check everything again */
	OUTCOME_ROOM = 2,  /* room is missing: release the lock, and wait for room */
};

struct falloc {
	struct zf_inode *inode;
	const struct zf_ctx *ctx;
	int mode;
	uint64_t from, to; /* bytes, as asked for */
	/*
	 * Bytes, block multiples. outer: the blocks that the range touches. whole: the blocks that
	 * are zeroed or punched as a whole (find_blocks()).
	 */
	uint64_t outer_from, outer_to, whole_from, whole_to;
	uint64_t blocks, items;		  /* still reserved */
	uint64_t need_blocks, need_items; /* to be reserved */
	struct zf_room_search search;
	bool durable; /* the file's flags ask for a sync at the end */
};

static bool grows(const struct falloc *falloc)
{
	return !(falloc->mode & FALLOC_FL_KEEP_SIZE) && falloc->to > falloc->inode->item.size;
}

/* Updates the times as Linux does in file_modified(). */
static void modify(struct falloc *falloc)
{
	struct zf_inode *inode = falloc->inode;

	if (falloc->ctx->uid != 0)
		zf_inode_kill_suidgid(inode, falloc->ctx);
	inode->item.mtime = zf_fs_now(inode->fs);
	inode->item.ctime = inode->item.mtime;
	/*
	 * If the whole range is allocated already, no extent changes, so the change is noted here.
	 */
	inode->essential_dirty = true;
}

static bool zeroes(const struct falloc *falloc)
{
	return falloc->mode & (FALLOC_FL_ZERO_RANGE | ZF_FALLOC_WRITE_ZEROES);
}

/*
 * Decides for all functions below how the zeroes of a range are represented. On sequential zones a
 * later write goes to a new address anyway, so zeroes need no blocks on the device.
 */
static struct zf_extent new_extent(const struct falloc *falloc)
{
	struct zf_extent extent = {.type = ZF_EXTENT_ZERO};

	if (!zeroes(falloc))
		extent.flags = ZF_EXTENT_UNWRITTEN;
	else if (falloc->mode & ZF_FALLOC_WRITE_ZEROES)
		extent.flags = ZF_EXTENT_GUARANTEED;
	return extent;
}

/*
 * The last block of the file counts as whole if the range has all of its bytes before the end of
 * the file.
 */
static void find_blocks(struct falloc *falloc)
{
	uint64_t size = falloc->inode->item.size;

	falloc->outer_from = zf_align_down(falloc->from, ZF_BLOCK_SIZE);
	falloc->outer_to = zf_align_up(falloc->to, ZF_BLOCK_SIZE);
	falloc->whole_from = zf_align_up(falloc->from, ZF_BLOCK_SIZE);
	falloc->whole_to = zf_align_down(falloc->to, ZF_BLOCK_SIZE);
	if (falloc->whole_to < size && falloc->to >= size)
		falloc->whole_to = falloc->outer_to;
	if (falloc->whole_to < falloc->whole_from ||
	    !(zeroes(falloc) || (falloc->mode & FALLOC_FL_PUNCH_HOLE)))
		falloc->whole_to = falloc->whole_from;
}

/* ---- memory ---- */

static enum zf_reserve_class class_of(const struct falloc *falloc)
{
	return falloc->mode & FALLOC_FL_PUNCH_HOLE ? ZF_RESERVE_FREEING : ZF_RESERVE_NORMAL;
}

/* A part of one block that is to be zeroed; may be empty. */
struct edge {
	uint64_t from, to;
};

static int zero_edge(struct falloc *falloc, struct edge edge)
{
	uint64_t index = edge.from >> ZF_BLOCK_SHIFT, start = index << ZF_BLOCK_SHIFT;

	if (edge.from >= edge.to)
		return 0;
	return zf_zero_part(falloc->inode, index, (uint32_t)(edge.from - start),
			    (uint32_t)(edge.to - start), class_of(falloc), falloc->ctx->may_wait);
}

/* Checks that there is room for both edges, before either is zeroed. */
static int check_room(struct falloc *falloc)
{
	struct zf_fs *fs = falloc->inode->fs;
	int r = zf_txn_reserve(fs->txn, class_of(falloc), 2, 2 * ZF_BLOCK_ITEMS,
			       falloc->ctx->may_wait);

	if (r == 0)
		zf_alloc_unreserve(fs->alloc, 2, 2 * ZF_BLOCK_ITEMS);
	return r;
}

static int zero_edges(struct falloc *falloc)
{
	uint64_t size = falloc->inode->item.size;
	struct edge head = {falloc->from, zf_min_u64(falloc->whole_from, falloc->to)};
	struct edge tail = {zf_align_down(falloc->to, ZF_BLOCK_SIZE), falloc->to};
	int r = 0;

	if (tail.from < head.to || tail.from < falloc->whole_to)
		tail.to = tail.from;
	head.to = zf_min_u64(head.to, size);
	tail.to = zf_min_u64(tail.to, size);
	if (head.from < head.to && tail.from < tail.to)
		r = check_room(falloc);
	if (r == 0)
		r = zero_edge(falloc, head);
	return r < 0 ? r : zero_edge(falloc, tail);
}

/* Drops the whole blocks of [from, to) from memory. */
static void discard_whole(struct falloc *falloc, uint64_t from, uint64_t to)
{
	struct zf_inode *inode = falloc->inode;

	from = zf_max_u64(from, falloc->whole_from);
	to = zf_min_u64(to, falloc->whole_to);
	if (from >= to)
		return;
	zf_discard_blocks(inode, from >> ZF_BLOCK_SHIFT, to >> ZF_BLOCK_SHIFT);
	/* Blocks that waited for the dropped ones to land need not wait any more. */
	zf_mutex_lock(&inode->data.lock);
	zf_frontier_advance_locked(inode);
	zf_mutex_unlock(&inode->data.lock);
}

/* ---- punching ---- */

static void change_punched(struct zf_drop *drop)
{
	struct falloc *falloc = drop->arg;

	discard_whole(falloc, drop->from, drop->to);
	modify(falloc);
}

static int touch(struct falloc *falloc)
{
	struct zf_inode *inode = falloc->inode;
	struct zf_trans trans;
	int r = zf_trans_join(inode->fs->txn, ZF_RESERVE_FREEING, 1, falloc->ctx->may_wait, &trans);

	if (r < 0)
		return r;
	modify(falloc);
	r = zf_inode_store(inode, &trans);
	zf_trans_leave(&trans);
	return r;
}

static int punch(struct falloc *falloc)
{
	struct zf_drop drop = {
		.inode = falloc->inode,
		.may_wait = falloc->ctx->may_wait,
		.from = falloc->whole_from,
		.to = falloc->whole_to,
		.inline_max = UINT64_MAX,
		.change = change_punched,
		.arg = falloc,
	};
	int r = zf_drop_finish(falloc->inode, falloc->ctx->may_wait);

	if (r == 0)
		r = zero_edges(falloc);
	if (r < 0)
		return r;
	return drop.from < drop.to ? zf_drop_run(&drop) : touch(falloc);
}

/* ---- what is to be filled ---- */

struct piece {
	uint64_t from, to;  /* bytes, block multiples */
	unsigned int keeps; /* for each block: 1 if it becomes kept, 0 if it is kept already */
	bool guarantees;    /* the blocks become guaranteed, and were not before */
	bool wants_items;   /* no room is set aside yet for the items of each block */
};

static uint64_t blocks_of(const struct piece *piece, uint64_t len)
{
	return piece->keeps * (len >> ZF_BLOCK_SHIFT);
}

/*
 * Returns the part of an extent that ZERO extents have to replace; empty: none. An extent that
 * reads as zeroes already is replaced, too, if the call changes whether it counts as written or
 * guaranteed.
 */
static struct piece replaced_part(const struct falloc *falloc, const struct zf_extent *extent)
{
	struct zf_extent new = new_extent(falloc);
	bool zero = extent->type == ZF_EXTENT_ZERO;
	uint64_t from = zero ? falloc->outer_from : falloc->whole_from;
	uint64_t to = zero ? falloc->outer_to : falloc->whole_to;
	struct piece piece = {
		.from = zf_max_u64(extent->offset, from),
		.to = zf_min_u64(zf_extent_end(extent), to),
	};

	/* zf_extent_put() keeps this flag. */
	new.flags |= extent->flags & ZF_EXTENT_GUARANTEED;
	if (!zeroes(falloc) || piece.from >= piece.to || (zero && extent->flags == new.flags))
		return (struct piece){0};
	piece.keeps = !zf_extent_is_kept(extent);
	piece.guarantees = zf_extent_is_guaranteed(&new) && !zf_extent_is_guaranteed(extent);
	piece.wants_items = piece.keeps && !zf_extent_is_guaranteed(extent);
	return piece;
}

static struct piece hole(const struct falloc *falloc, uint64_t from, uint64_t to)
{
	struct zf_extent new = new_extent(falloc);

	return (struct piece){from, to, 1, zf_extent_is_guaranteed(&new), true};
}

/* Finds the first piece at or behind `at`. -ENOENT: none is left. */
static int next_piece(struct falloc *falloc, struct zf_extent_reader *reader, uint64_t at,
		      struct piece *ret_piece)
{
	struct zf_extent extent;
	int r;

	while (at < falloc->outer_to) {
		r = zf_extent_find(reader, at, &extent);
		if (r < 0 && r != -ENOENT)
			return r;
		if (r < 0 || extent.offset > at) {
			*ret_piece = hole(falloc, at,
					  r < 0 ? falloc->outer_to
						: zf_min_u64(extent.offset, falloc->outer_to));
			return 0;
		}
		at = zf_extent_end(&extent);
		*ret_piece = replaced_part(falloc, &extent);
		if (ret_piece->from < ret_piece->to)
			return 0;
	}
	return -ENOENT;
}

struct count {
	struct falloc *falloc;
	uint64_t at; /* counted up to here */
	uint64_t blocks, items, pieces;
	bool guarantees; /* of any piece */
};

static void count_piece(struct count *count, struct piece piece)
{
	if (piece.from >= piece.to)
		return;
	count->blocks += blocks_of(&piece, piece.to - piece.from);
	count->guarantees |= piece.guarantees;
	if (piece.wants_items)
		count->items += (piece.to - piece.from) / ZF_BLOCK_SIZE * ZF_KEPT_ITEMS;
	count->pieces += 1 + (piece.to - piece.from) / ZF_EXTENT_ZERO_MAX;
}

static int count_extent(void *arg, const struct zf_extent *extent, const uint8_t *bytes)
{
	struct count *count = arg;

	(void)bytes;
	count_piece(count, hole(count->falloc, count->at, zf_max_u64(extent->offset, count->at)));
	count_piece(count, replaced_part(count->falloc, extent));
	count->at = zf_max_u64(count->at, zf_extent_end(extent));
	return 0;
}

static int count_pieces(struct falloc *falloc, struct count *ret_count)
{
	struct count count = {.falloc = falloc, .at = falloc->outer_from};
	struct zf_extent_reader reader;
	struct zf_extent first;
	int r;

	zf_extent_reader_init(&reader, falloc->inode);
	r = zf_extent_find(&reader, falloc->outer_from, &first);
	if (r == 0 && first.offset < falloc->outer_to)
		r = zf_extent_scan(&reader, first.offset, falloc->outer_to - 1, count_extent,
				   &count);
	if (r < 0 && r != -ENOENT)
		return r;
	if (count.at < falloc->outer_to)
		count_piece(&count, hole(falloc, count.at, falloc->outer_to));
	*ret_count = count;
	return 0;
}

static void unreserve(struct falloc *falloc)
{
	zf_alloc_unreserve(falloc->inode->fs->alloc, falloc->blocks, falloc->items);
	falloc->blocks = falloc->items = 0;
}

/*
 * Checks that the room for the whole range is reserved. OUTCOME_ROOM: it is not, and the caller has
 * to reserve falloc->need_blocks and falloc->need_items with the inode unlocked. That is enough,
 * unless the file changes meanwhile.
 */
static int reserve(struct falloc *falloc)
{
	struct zf_fs *fs = falloc->inode->fs;
	struct count count;
	uint64_t items;
	int r = count_pieces(falloc, &count);

	if (r < 0)
		return r;
	/*
	 * If the caller may not wait, the call goes on only if one transaction is certainly enough.
	 */
	if (!falloc->ctx->may_wait && count.pieces > FILL_PUTS)
		return -EAGAIN;
	items = count.pieces * PIECE_ITEMS + count.items;
	if (count.guarantees)
		count.blocks += zf_alloc_slack_missing(fs->alloc);
	if (count.blocks <= falloc->blocks && items <= falloc->items)
		return 0;
	unreserve(falloc);
	r = zf_room_reserve(fs, ZF_RESERVE_NORMAL, count.blocks, items, NULL);
	if (r == -EAGAIN && falloc->ctx->may_wait) {
		falloc->need_blocks = count.blocks;
		falloc->need_items = items;
		return OUTCOME_ROOM;
	}
	if (r < 0)
		return r;
	falloc->blocks = count.blocks;
	falloc->items = items;
	return 0;
}

/* ---- filling ---- */

/* Puts ZERO extents, from *at on. 0: there may be more; 1: that was the last piece. */
static int put_pieces(struct falloc *falloc, struct zf_extent_editor *editor, uint64_t *at)
{
	struct zf_extent extent = new_extent(falloc);
	struct piece piece;
	int r = 0;

	extent.generation = editor->trans->generation;
	while (r == 0 && editor->edits + ZF_EXTENT_PUT_EDITS < FILL_EDITS) {
		uint64_t len;

		r = next_piece(falloc, &editor->reader, *at, &piece);
		if (r == -ENOENT)
			return 1;
		if (r < 0)
			break;
		extent.offset = piece.from;
		extent.len = zf_min_u64(piece.to - piece.from, ZF_EXTENT_ZERO_MAX);
		editor->reserved_blocks = blocks_of(&piece, extent.len);
		falloc->blocks -= editor->reserved_blocks;
		r = zf_extent_put(editor, &extent, &len);
		falloc->blocks += editor->reserved_blocks;
		if (r == 0)
			*at = piece.from + len;
	}
	return r;
}

static void finish(struct falloc *falloc)
{
	struct zf_inode *inode = falloc->inode;

	if (grows(falloc)) {
		zf_mutex_lock(&inode->data.lock);
		zf_frontier_grow_locked(inode, falloc->to);
		zf_mutex_unlock(&inode->data.lock);
	}
	modify(falloc);
}

/* Fills as much as one transaction allows. 0: there is more; 1: done. */
static int fill_some(struct falloc *falloc, struct zf_trans *trans, uint64_t *at)
{
	struct zf_inode *inode = falloc->inode;
	struct zf_extent_editor editor;
	uint64_t begin = *at;
	int r, stored = 0;

	zf_extent_editor_init(&editor, inode, trans);
	r = put_pieces(falloc, &editor, at);
	if (!editor.torn) {
		discard_whole(falloc, begin, r > 0 ? falloc->outer_to : *at);
		if (r > 0)
			finish(falloc);
		if (editor.edits > 0 || r > 0)
			stored = zf_inode_store(inode, trans);
	}
	if (editor.torn || stored < 0)
		zf_trans_abort(trans, r < 0 ? r : stored, "allocating space for a file");
	return stored < 0 ? stored : r;
}

/*
 * Ends the loans of kept blocks before their extents are replaced. Lent blocks in flight will be
 * garbage.
 */
static void end_loans(struct falloc *falloc)
{
	struct zf_inode *inode = falloc->inode;
	uint64_t used;

	if (falloc->whole_from >= falloc->whole_to)
		return;
	used = zf_block_take_back_range(&inode->data, falloc->whole_from >> ZF_BLOCK_SHIFT,
					falloc->whole_to >> ZF_BLOCK_SHIFT);
	zf_alloc_kept_used(inode->fs->alloc, used);
}

static int fill(struct falloc *falloc)
{
	struct zf_inode *inode = falloc->inode;
	struct zf_txn *txn = inode->fs->txn;
	uint64_t at = falloc->outer_from;
	struct zf_trans trans;
	int r;

	end_loans(falloc);
	do {
		bool may_wait = falloc->ctx->may_wait;

		r = zf_trans_join(txn, ZF_RESERVE_NORMAL, FILL_EDITS, may_wait, &trans);
		/*
		 * The room for the new items is reserved already, so the join may use the reserve.
		 */
		if (r == -ENOSPC)
			r = zf_trans_join(txn, ZF_RESERVE_FREEING, FILL_EDITS, may_wait, &trans);
		if (r < 0)
			return r;
		r = fill_some(falloc, &trans, &at);
		zf_trans_leave(&trans);
	} while (r == 0);
	return r < 0 ? r : 0;
}

/* 1: the lock was released meanwhile, so everything must be checked again. */
static int prepare(struct falloc *falloc)
{
	struct zf_inode *inode = falloc->inode;
	bool may_wait = falloc->ctx->may_wait;

	if (grows(falloc))
		return zf_truncate_before_size(inode, may_wait);
	/*
	 * Zeroes the old end of the file now, while there is room: a later write behind the end
	 * must not need other room than the kept blocks.
	 */
	if (falloc->to > inode->item.size)
		return zf_truncate_before_growth(inode, may_wait);
	return zf_drop_finish(inode, may_wait);
}

static int allocate(struct falloc *falloc)
{
	int r = prepare(falloc);

	if (r == 0)
		r = reserve(falloc);
	if (r == 0 && zeroes(falloc))
		r = zero_edges(falloc);
	return r == 0 ? fill(falloc) : r;
}

/* ---- the call ---- */

static int run_once(struct falloc *falloc)
{
	struct zf_inode *inode = falloc->inode;
	bool changes = zeroes(falloc) || (falloc->mode & FALLOC_FL_PUNCH_HOLE);
	int r = changes ? zf_inode_check_change(inode)
			: zf_inode_check_write(inode, inode->item.size);

	falloc->durable = zf_inode_is_sync(inode);
	if (r == 0 && falloc->durable && !falloc->ctx->may_wait)
		r = -EAGAIN;
	if (r < 0)
		return r;
	find_blocks(falloc);
	return falloc->mode & FALLOC_FL_PUNCH_HOLE ? punch(falloc) : allocate(falloc);
}

static int run_locked(struct falloc *falloc)
{
	int r;

	zf_rwlock_wrlock(&falloc->inode->lock);
	do {
		r = run_once(falloc);
	} while (r == OUTCOME_AGAIN);
	zf_data_unlock(falloc->inode);
	return r;
}

/*
 * Called with the inode unlocked, after a try. 0: try again; the new try repeats what the failed
 * one has done.
 */
static int wait_for_room(struct falloc *falloc, int outcome)
{
	struct zf_fs *fs = falloc->inode->fs;
	int r;

	if (outcome == -ENOSPC) {
		unreserve(falloc);
		return falloc->ctx->may_wait && zf_room_wait(fs, class_of(falloc), &falloc->search)
			       ? 0
			       : -ENOSPC;
	}
	r = zf_room_reserve(fs, ZF_RESERVE_NORMAL, falloc->need_blocks, falloc->need_items,
			    &falloc->search);
	if (r < 0)
		return r;
	falloc->blocks = falloc->need_blocks;
	falloc->items = falloc->need_items;
	return 0;
}

static int run(struct falloc *falloc)
{
	int r = run_locked(falloc);

	while (r == OUTCOME_ROOM || r == -ENOSPC) {
		r = wait_for_room(falloc, r);
		if (r < 0)
			break;
		r = run_locked(falloc);
	}
	unreserve(falloc);
	return r == 0 && falloc->durable ? zf_durable_inode(falloc->inode, falloc->ctx, false) : r;
}

/*
 * Allocates blocks that are overwritten in place, if the device has zones for that, and ZERO
 * extents for the rest of the range: the part before the first whole block, and blocks for which
 * there was no room.
 */
static int write_zeroes(struct falloc *falloc)
{
	struct zf_inode *inode = falloc->inode;
	uint64_t from = zf_align_up(falloc->from, ZF_BLOCK_SIZE);
	uint64_t to = zf_align_down(falloc->to, ZF_BLOCK_SIZE), done;
	struct falloc head, tail;
	int r;

	head = tail = *falloc;
	zf_rwlock_rdlock(&inode->lock);
	/* The last block of the file counts as a whole one. */
	if (falloc->to >= inode->item.size)
		to = zf_align_up(falloc->to, ZF_BLOCK_SIZE);
	falloc->durable = zf_inode_is_sync(inode);
	zf_rwlock_unlock(&inode->lock);
	r = zf_overwrite_allocate(inode, falloc->ctx, from, to, falloc->to, &done);
	if (r < 0 || done <= from)
		return r < 0 ? r : run(falloc);
	tail.from = done;
	head.to = from;
	if (tail.from < tail.to)
		r = run(&tail);
	if (r == 0 && head.from < head.to)
		r = run(&head);
	return r == 0 && falloc->durable ? zf_durable_inode(inode, falloc->ctx, false) : r;
}

static int check_mode(int mode)
{
	switch (mode) {
	case 0:
	case FALLOC_FL_KEEP_SIZE:
	case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
	case FALLOC_FL_ZERO_RANGE:
	case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
	case ZF_FALLOC_WRITE_ZEROES:
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int check_range(uint64_t offset, uint64_t len)
{
	if (len == 0 || len > INT64_MAX || offset > INT64_MAX)
		return -EINVAL;
	return len > ZF_FILE_SIZE_MAX - offset ? -EFBIG : 0;
}

static int change_range(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, int mode,
			uint64_t offset, uint64_t len)
{
	struct falloc falloc = {.ctx = ctx, .mode = mode, .from = offset, .to = offset + len};
	int r = check_range(offset, len);

	if (r == 0)
		r = check_mode(mode);
	if (r == 0 && fs->read_only)
		r = -EROFS;
	if (r == 0)
		r = zf_inode_get(fs, ino, &falloc.inode);
	if (r < 0)
		return r;
	if (falloc.inode->type != S_IFREG)
		r = falloc.inode->type == S_IFDIR ? -EISDIR : -ENODEV;
	if (r == 0)
		r = zf_xattr_drop_capability(falloc.inode, ctx);
	if (r == 0)
		r = mode == ZF_FALLOC_WRITE_ZEROES ? write_zeroes(&falloc) : run(&falloc);
	zf_inode_put(falloc.inode);
	return r;
}

int zf_fs_fallocate(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino, int mode,
		    uint64_t offset, uint64_t len)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_FALLOCATE, ino, offset, len);
	int r = change_range(fs, ctx, ino, mode, offset, len);

	return (int)zf_trace_ended(began, ZF_OPERATION_FALLOCATE, ino, r);
}
