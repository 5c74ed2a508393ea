/* SPDX-License-Identifier: MIT */
/*
 * Replaying a DATA range: finding the extents that name its bytes already, and putting its extents.
 *
 * A range is replayed in pieces. All bytes of a piece are in the same case:
 *
 *      the map has it there already                  it is left alone
 *      a name in the share tree covers it            one more name
 *      the file that wrote it first has it, unshared both become shared
 *      nobody has it                                 it is live again, or for the first time
 *
 * An unshared extent can only be in the file and at the offset that the summary entry of its bytes
 * has. So besides the share tree only that place has to be checked. Therefore an extent that is put
 * at any other place must be a shared one, even if no other extent names the bytes yet; otherwise a
 * later piece would not find it.
 */
#include <assert.h>
#include <errno.h>

#include "alloc/zone.h"
#include "base/plant.h"
#include "fs/map/extent_edit.h"
#include "fs/map/share.h"
#include "fs/map/summary.h"
#include "fs/mount/replay_internal.h"

/* Edits of one join: sharing the other extent, the put, the summary entry, and the item. */
#define PIECE_EDITS (ZF_EXTENT_SHARE_EDITS + ZF_EXTENT_PUT_EDITS + 2u)

struct piece {
	struct zf_replay *replay;
	struct zf_inode *inode;
	struct zf_extent_reader reader;	    /* of the inode */
	struct zf_extent extent;	    /* to be put */
	bool is_there;			    /* the map has the extent already */
	bool is_named;			    /* the share tree has a name for it */
	bool is_known;			    /* the summary has its checksums */
	uint64_t writer_ino, writer_offset; /* if known: the place of its first write */
	struct zf_inode *other;		    /* the file that has it, unshared; NULL: none */
	struct zf_extent other_extent;
};

static void limit(struct piece *piece, uint64_t len)
{
	piece->extent.len = zf_min_u64(piece->extent.len, len);
}

/* ---- looking ---- */

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a < b ? b - a : a - b;
}

/*
 * Finds the extent that the map has in the piece's place. If that extent names some of the piece's
 * bytes at another offset, the piece is cut, so that it names none of the bytes whose extent it
 * replaces.
 */
static int look_at_map(struct piece *piece)
{
	uint64_t at = piece->extent.offset, address;
	struct zf_extent old;
	int r = zf_extent_find(&piece->reader, at, &old);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (old.offset > at) {
		limit(piece, old.offset - at);
		return 0;
	}
	limit(piece, zf_extent_end(&old) - at);
	if (old.type != ZF_EXTENT_DATA)
		return 0;
	address = old.address + (at - old.offset);
	piece->is_there = address == piece->extent.address;
	if (!piece->is_there)
		limit(piece, distance(address, piece->extent.address));
	return 0;
}

static int look_at_summary(struct piece *piece)
{
	uint64_t address = piece->extent.address, within;
	struct zf_summary_entry entry;
	int r = zf_summary_find(&piece->reader, address, &entry);

	limit(piece, (uint64_t)zf_summary_blocks_max(piece->replay->fs) << ZF_BLOCK_SHIFT);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (entry.address > address) {
		limit(piece, entry.address - address);
		return 0;
	}
	within = address - entry.address;
	limit(piece, entry.len - within);
	piece->is_known = true;
	piece->writer_ino = entry.ino;
	piece->writer_offset = entry.offset + within;
	return 0;
}

static int look_at_names(struct piece *piece)
{
	uint64_t len;
	int r;

	limit(piece, ZF_SHARE_MAX);
	r = zf_share_look(&piece->reader, piece->extent.address, piece->extent.len,
			  &piece->is_named, &len);
	if (r == 0)
		limit(piece, len);
	return r;
}

static bool is_writer(const struct piece *piece)
{
	return piece->writer_ino == piece->inode->ino &&
	       piece->writer_offset == piece->extent.offset;
}

/* Checks whether the file of the summary entry still names the bytes. Only then `other` is kept. */
static int look_at_writer_map(struct piece *piece, struct zf_inode *other)
{
	uint64_t at = piece->writer_offset;
	struct zf_extent_reader reader;
	struct zf_extent extent;
	int r;

	zf_extent_reader_init(&reader, other);
	r = zf_extent_find(&reader, at, &extent);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (extent.offset > at) {
		limit(piece, extent.offset - at);
		return 0;
	}
	limit(piece, zf_extent_end(&extent) - at);
	if (extent.type != ZF_EXTENT_DATA || zf_extent_is_shared(&extent) ||
	    extent.address + (at - extent.offset) != piece->extent.address)
		return 0;
	piece->other = zf_inode_ref(other);
	piece->other_extent = extent;
	return 0;
}

static int look_at_writer(struct piece *piece)
{
	struct zf_inode *other;
	int r = zf_inode_get(piece->replay->fs, piece->writer_ino, &other);

	if (r < 0)
		return r == -ESTALE ? 0 : r;
	r = look_at_writer_map(piece, other);
	zf_inode_put(other);
	return r;
}

static int look(struct piece *piece)
{
	int r = look_at_map(piece);

	if (r < 0 || piece->is_there || piece->extent.flags & ZF_EXTENT_OVERWRITE)
		return r;
	r = look_at_summary(piece);
	if (r == 0)
		r = look_at_names(piece);
	if (r < 0 || ZF_PLANTED(ZF_BUG_REPLAY_WITHOUT_SHARE))
		return r;
	if (piece->is_known && !piece->is_named && !is_writer(piece))
		r = look_at_writer(piece);
	if (piece->is_named || piece->other || (piece->is_known && !is_writer(piece)))
		piece->extent.flags |= ZF_EXTENT_SHARED;
	return r;
}

/* ---- putting ---- */

struct join {
	struct zf_trans trans;
	struct zf_extent_editor editor, other;
};

/* Inserts the summary entry of the first `len` bytes of the piece, if the summary lacks it. */
static int put_summary(struct piece *piece, struct join *join,
		       const struct zf_log_range_view *range, uint64_t len)
{
	uint64_t csums[ZF_NODE_SIZE_MAX / 4 / sizeof(uint64_t)];
	const struct zf_extent *extent = &piece->extent;
	uint64_t first = (extent->offset - range->range.offset) >> ZF_BLOCK_SHIFT;
	unsigned int count = (unsigned int)(len >> ZF_BLOCK_SHIFT);

	if (piece->is_known || extent->flags & ZF_EXTENT_OVERWRITE)
		return 0;
	assert(count <= sizeof(csums) / sizeof(csums[0]));
	zf_log_range_csums(range, (unsigned int)first, count, csums);
	return zf_extent_editor_count(
		&join->editor, zf_summary_insert(piece->replay->fs, &join->trans, piece->inode->ino,
						 extent->offset, extent->address, csums, count));
}

static int put(struct piece *piece, struct join *join, const struct zf_log_range_view *range,
	       uint64_t *ret_len)
{
	struct zf_extent *extent = &piece->extent;
	uint64_t len, from = piece->writer_offset;
	int r = 0;

	if (piece->other)
		r = zf_extent_share(&join->other, &piece->other_extent, from, from + extent->len);
	if (r == 0)
		r = zf_extent_put(&join->editor, extent, &len);
	if (r < 0)
		return r;
	/*
	 * zf_extent_put() does not count the bytes of a shared extent as live. No extent named
	 * these, so they are counted here.
	 */
	if (zf_extent_is_shared(extent) && !piece->is_named && !piece->other)
		zf_alloc_live_add(piece->replay->fs->alloc, extent->address, len);
	r = put_summary(piece, join, range, len);
	if (r == 0)
		r = zf_inode_store(piece->inode, &join->trans);
	if (r == 0)
		*ret_len = len;
	return r;
}

static bool has_edited(const struct join *join)
{
	return join->editor.edits > 0 || join->other.edits > 0 || join->editor.torn ||
	       join->other.torn;
}

static int put_joined(struct piece *piece, const struct zf_log_range_view *range, uint64_t *ret_len)
{
	struct join join;
	int r = zf_replay_join(piece->replay, PIECE_EDITS, &join.trans);

	if (r < 0)
		return r;
	piece->extent.generation = join.trans.generation;
	zf_extent_editor_init(&join.editor, piece->inode, &join.trans);
	if (piece->other)
		zf_extent_editor_init(&join.other, piece->other, &join.trans);
	else
		join.other = (struct zf_extent_editor){0};
	r = put(piece, &join, range, ret_len);
	if (r < 0 && has_edited(&join))
		zf_trans_abort(&join.trans, r, "replaying a file's data");
	zf_trans_leave(&join.trans);
	return r;
}

static int put_locked(struct piece *piece, const struct zf_log_range_view *range, uint64_t *ret_len)
{
	struct zf_inode *inodes[] = {piece->inode, piece->other};
	int r;

	zf_inode_lock_many(inodes, 2);
	r = put_joined(piece, range, ret_len);
	zf_inode_unlock_many(inodes, 2);
	return r;
}

static int zero_again(const struct piece *piece)
{
	struct zf_io io = {
		.op = ZF_IO_ZEROES,
		.addr = piece->extent.address,
		.len = piece->extent.len,
	};

	return zf_dev_run(piece->replay->fs->dev, &io);
}

int zf_replay_piece(struct zf_replay *replay, struct zf_inode *inode,
		    const struct zf_log_range_view *range, uint64_t done, uint64_t len,
		    uint64_t *ret_len)
{
	struct piece piece = {
		.replay = replay,
		.inode = inode,
		.extent = {.offset = range->range.offset + done,
			   .len = zf_min_u64(len, ZF_EXTENT_MAX),
			   .address = range->range.address + done,
			   .type = ZF_EXTENT_DATA,
			   .flags = range->range.flags},
	};
	int r;

	zf_extent_reader_init(&piece.reader, inode);
	r = look(&piece);
	if (r == 0 && ZF_PLANTED(ZF_BUG_REPLAY_ZEROES) && piece.extent.flags & ZF_EXTENT_OVERWRITE)
		r = zero_again(&piece);
	if (r == 0 && piece.is_there)
		*ret_len = piece.extent.len;
	else if (r == 0)
		r = put_locked(&piece, range, ret_len);
	zf_inode_put(piece.other);
	return r;
}
