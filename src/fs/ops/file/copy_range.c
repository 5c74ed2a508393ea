/* SPDX-License-Identifier: MIT */
/*
 * Copying a range of a file by sharing its extents.
 *
 * A copy goes in rounds. Each round looks at the next part of the source, and then shares it or
 * copies it as bytes. To share, one transaction of a bounded number of edits makes the source's
 * extents shared, removes the extents of the target's range, and adds both to the share tree. These
 * parts are copied as bytes, by a read and a write: parts with different offsets within a block,
 * parts that begin or end within a block, inline extents, and parts where the source or the target
 * is guaranteed, because overwriting shared bytes leaves no garbage (alloc/reserve.h).
 *
 * Each round is complete in itself, so nothing has to be finished after a crash, and no intent item
 * is needed. The caller goes on where the returned length ends.
 */
#include <errno.h>
#include <stdlib.h>

#include "alloc/reserve.h"
#include "base/undumped.h"
#include "fs/core/inode_flags.h"
#include "fs/data/block.h"
#include "fs/data/discard.h"
#include "fs/data/drop.h"
#include "fs/data/durable.h"
#include "fs/data/flush.h"
#include "fs/data/frontier.h"
#include "fs/data/tail.h"
#include "fs/map/extent.h"
#include "fs/ops/file/file.h"
#include "fs/ops/op.h"
#include "fs/space/room.h"

/*
 * Tree edits of one transaction, without the edit of the target's item: no more than a landing
 * makes.
 */
#define COPY_EDITS 32u
/* The most edits that one extent needs. */
#define PIECE_EDITS (ZF_EXTENT_SHARE_EDITS + ZF_EXTENT_PUT_EDITS)

/* The most bytes of one round that copies bytes. */
#define BYTES_MAX (UINT64_C(1) << 20)

/* The most extents of the target that are checked for one extent of the source. */
#define LOOKED_AT_MAX 64u

/*
 * How often a round waits until the data that it shares has landed. If the data is written again
 * each time, the round copies bytes.
 */
#define LANDINGS_MAX 3u

enum how {
	BY_SHARING,
	BY_BYTES,
	AFTER_LANDING, /* the round waits until copy->unlanded has landed */
};

struct copy {
	struct zf_inode *in, *out;
	const struct zf_ctx *ctx;
	uint64_t offset_in, offset_out, len; /* what is left */
	unsigned int landings;		     /* since something was copied */
	uint8_t *buf;			     /* BYTES_MAX, once bytes were copied */
	bool durable;			     /* the target's flags ask for a sync at the end */

	/* This round. */
	enum how how;
	uint64_t bytes;	 /* the most that the round copies; afterwards: that it has copied */
	uint64_t blocks; /* of the file, if the round shares */
	struct zf_inode *unlanded;
};

/* ---- what can be done: inodes locked ---- */

static void by_bytes(struct copy *copy, uint64_t bytes)
{
	copy->how = BY_BYTES;
	copy->bytes = zf_min_u64(bytes, BYTES_MAX);
}

/*
 * If waiting does not help, because another process writes all the time, `bytes` bytes are copied
 * instead.
 */
static void after_landing(struct copy *copy, struct zf_inode *inode, uint64_t bytes)
{
	if (copy->landings == LANDINGS_MAX) {
		by_bytes(copy, bytes);
		return;
	}
	copy->how = AFTER_LANDING;
	copy->unlanded = inode;
}

static void limit_blocks(struct copy *copy, uint64_t blocks)
{
	copy->blocks = blocks;
	copy->bytes = zf_min_u64(copy->bytes, blocks << ZF_BLOCK_SHIFT);
}

/*
 * Only whole blocks can be shared. A part of a block at the end of the range can be shared only if
 * it becomes the end of the target.
 */
static void look_at_offsets(struct copy *copy)
{
	uint64_t within = copy->offset_in % ZF_BLOCK_SIZE, tail;

	copy->bytes = zf_min_u64(copy->len, copy->in->item.size - copy->offset_in);
	copy->how = BY_SHARING;
	if (within != copy->offset_out % ZF_BLOCK_SIZE) {
		by_bytes(copy, copy->bytes);
		return;
	}
	if (within > 0) {
		by_bytes(copy, zf_min_u64(copy->bytes, ZF_BLOCK_SIZE - within));
		return;
	}
	tail = copy->bytes % ZF_BLOCK_SIZE;
	copy->blocks = copy->bytes >> ZF_BLOCK_SHIFT;
	if (tail > 0 && copy->offset_out + copy->bytes >= copy->out->item.size)
		copy->blocks++;
	if (copy->blocks == 0)
		by_bytes(copy, tail);
	else
		limit_blocks(copy, copy->blocks);
}

/*
 * Data that has not landed ends the part that can be shared. If the part begins with such data, the
 * data has to land first.
 */
static void look_at_source(struct copy *copy)
{
	uint64_t first = copy->offset_in >> ZF_BLOCK_SHIFT, at = UINT64_MAX;
	struct zf_data *data = &copy->in->data;
	struct zf_block *block;

	zf_mutex_lock(&data->lock);
	block = zf_block_next_locked(data, first);
	if (block)
		at = block->index;
	zf_mutex_unlock(&data->lock);
	if (at >= first + copy->blocks)
		return;
	if (at > first)
		limit_blocks(copy, at - first);
	else
		after_landing(copy, copy->in, zf_min_u64(copy->bytes, ZF_BLOCK_SIZE));
}

/*
 * The file before the range must be whole in the trees before extents may be put there. An
 * unfinished punch must be finished before its range is copied or overwritten.
 */
static int look_at_target(struct copy *copy)
{
	uint64_t first = copy->offset_out >> ZF_BLOCK_SHIFT;
	struct zf_inode *out = copy->out;
	bool may_land;
	int r = zf_drop_finish(copy->in, true);

	if (r == 0)
		r = zf_drop_finish(out, true);
	if (r == 0 && copy->offset_out + copy->bytes > out->item.size &&
	    first > out->item.size >> ZF_BLOCK_SHIFT)
		r = zf_tail_settle(out, true);
	if (r < 0)
		return r;
	zf_mutex_lock(&out->data.lock);
	may_land = zf_frontier_may_land_locked(out, first);
	zf_mutex_unlock(&out->data.lock);
	if (!may_land)
		after_landing(copy, out, copy->bytes);
	return 0;
}

static int look(struct copy *copy)
{
	int r = zf_inode_check_write(copy->out, copy->offset_out);

	if (r == 0)
		r = zf_drop_finish(copy->in, true);
	if (r < 0)
		return r;
	copy->durable = zf_inode_is_sync(copy->out);
	if (copy->offset_in >= copy->in->item.size) {
		by_bytes(copy, 0);
		return 0;
	}
	look_at_offsets(copy);
	if (copy->how == BY_SHARING)
		look_at_source(copy);
	return copy->how == BY_SHARING ? look_at_target(copy) : 0;
}

/* ---- one extent or hole: joined ---- */

struct sharing {
	struct copy *copy;
	struct zf_extent_editor in, out;
	uint64_t done; /* bytes, whole blocks */
};

static unsigned int edits_of(const struct sharing *sharing)
{
	return sharing->in.edits + sharing->out.edits;
}

/* Makes `len` bytes of the target a hole. 1: only a part of them could be done. */
static int put_hole(struct sharing *sharing, uint64_t len)
{
	uint64_t from = sharing->copy->offset_out + sharing->done;
	struct zf_extent next;
	int r = zf_extent_drop(&sharing->out, from, from + len, COPY_EDITS - sharing->in.edits);

	if (r == 0)
		sharing->done += len;
	if (r != 1)
		return r;
	r = zf_extent_find(&sharing->out.reader, from, &next);
	if (r < 0 && r != -ENOENT) {
		sharing->out.torn = true;
		return r;
	}
	if (r == 0 && next.offset < from + len)
		len = zf_max_u64(next.offset, from) - from;
	sharing->done += len;
	return 1;
}

/* Shares the part of an extent from `from` on, at most `len` bytes. */
static int put_shared(struct sharing *sharing, const struct zf_extent *extent, uint64_t from,
		      uint64_t len)
{
	struct zf_extent piece = {
		.offset = sharing->copy->offset_out + sharing->done,
		.len = zf_min_u64(len, ZF_SHARE_MAX),
		.address = extent->address + (from - extent->offset),
		.generation = sharing->out.trans->generation,
		.type = ZF_EXTENT_DATA,
		.flags = ZF_EXTENT_SHARED,
	};
	uint64_t put;
	int r = 0;

	if (!(extent->flags & ZF_EXTENT_SHARED))
		r = zf_extent_share(&sharing->in, extent, from, from + piece.len);
	if (r == 0)
		r = zf_extent_put(&sharing->out, &piece, &put);
	if (r == 0)
		sharing->done += put;
	return r;
}

/* The next `len` bytes are for a round that copies bytes. */
static int end_with_bytes(struct sharing *sharing, uint64_t len)
{
	struct copy *copy = sharing->copy;

	if (sharing->done == 0)
		by_bytes(copy, zf_min_u64(len, copy->bytes));
	return 1;
}

/*
 * A guaranteed range of the target stays guaranteed, so it is never shared. 1: the next *len bytes
 * of the target are guaranteed; 0: they are not, and *len may have become less.
 */
static int look_for_guarantee(struct sharing *sharing, uint64_t *len)
{
	uint64_t from = sharing->copy->offset_out + sharing->done, end = from + *len, at = from;

	for (unsigned int i = 0; at < end; i++) {
		struct zf_extent extent;
		int r = zf_extent_find(&sharing->out.reader, at, &extent);

		if (r == -ENOENT || (r == 0 && extent.offset >= end))
			return 0;
		if (r < 0)
			return r;
		if (zf_extent_is_guaranteed(&extent) || i == LOOKED_AT_MAX) {
			uint64_t begin = zf_max_u64(extent.offset, from);

			*len = begin > from ? begin - from
					    : zf_min_u64(zf_extent_end(&extent), end) - from;
			return begin == from;
		}
		at = zf_extent_end(&extent);
	}
	return 0;
}

/* 1: the round ends here. */
static int put_next(struct sharing *sharing)
{
	struct copy *copy = sharing->copy;
	uint64_t from = copy->offset_in + sharing->done;
	uint64_t left = (copy->blocks << ZF_BLOCK_SHIFT) - sharing->done;
	struct zf_extent extent;
	int r = look_for_guarantee(sharing, &left);

	if (r < 0)
		return r;
	if (r > 0)
		return end_with_bytes(sharing, left);
	r = zf_extent_find(&sharing->in.reader, from, &extent);
	if (r == -ENOENT)
		return put_hole(sharing, left);
	if (r < 0)
		return r;
	if (extent.offset > from)
		return put_hole(sharing, zf_min_u64(extent.offset - from, left));
	left = zf_min_u64(zf_extent_end(&extent) - from, left);
	switch (extent.type) {
	case ZF_EXTENT_DATA:
		/* Data that is written in place, and guaranteed data, is never shared. */
		if (extent.flags & (ZF_EXTENT_OVERWRITE | ZF_EXTENT_GUARANTEED))
			break;
		return put_shared(sharing, &extent, from, left);
	case ZF_EXTENT_ZERO:
		return put_hole(sharing, left);
	case ZF_EXTENT_INLINE:
		break;
	}
	return end_with_bytes(sharing, left);
}

/* ---- one transaction ---- */

/* Drops the range's blocks from memory, and lets the file grow. */
static void update_target(struct sharing *sharing, const struct zf_time *now)
{
	struct copy *copy = sharing->copy;
	struct zf_inode *out = copy->out;
	uint64_t end = copy->offset_out + copy->bytes;

	zf_discard_blocks(out, copy->offset_out >> ZF_BLOCK_SHIFT,
			  (copy->offset_out + sharing->done) >> ZF_BLOCK_SHIFT);
	if (end >= out->item.size) {
		out->item.size = end;
		out->data.tail_is_zero = false;
	}
	zf_mutex_lock(&out->data.lock);
	zf_frontier_advance_locked(out);
	zf_mutex_unlock(&out->data.lock);
	out->item.mtime = *now;
	out->item.ctime = *now;
	/*
	 * The shared data may have landed without FUA, and the source may be deleted before its own
	 * sync.
	 */
	out->data.write_mark = zf_dev_write_mark(out->fs->dev);
	/*
	 * If a hole replaces a hole, no extent changes, so the change of size and times is noted
	 * here.
	 */
	out->essential_dirty = true;
	if (copy->ctx->uid != 0)
		zf_inode_kill_suidgid(out, copy->ctx);
}

/*
 * Shares as much as one transaction allows. An error ends the round; if the extents that were put
 * before it are right, the next round meets the error again and returns it.
 */
static int share_some(struct zf_op *op, struct copy *copy)
{
	struct sharing sharing = {.copy = copy};
	int r = 0;

	/* Loans of kept blocks end before the replaced extents are removed. */
	zf_block_take_back_range(&copy->out->data, copy->offset_out >> ZF_BLOCK_SHIFT,
				 (copy->offset_out >> ZF_BLOCK_SHIFT) + copy->blocks);
	zf_extent_editor_init(&sharing.in, copy->in, &op->trans);
	zf_extent_editor_init(&sharing.out, copy->out, &op->trans);
	while (r == 0 && sharing.done < copy->blocks << ZF_BLOCK_SHIFT &&
	       edits_of(&sharing) + PIECE_EDITS <= COPY_EDITS)
		r = put_next(&sharing);
	if (sharing.in.torn || sharing.out.torn || sharing.done > 0)
		op->edits = edits_of(&sharing);
	if (sharing.in.torn || sharing.out.torn || sharing.done == 0)
		return r < 0 ? r : 0;
	limit_blocks(copy, sharing.done >> ZF_BLOCK_SHIFT);
	update_target(&sharing, &op->now);
	return zf_op_store(op, copy->out);
}

static int share_once(struct zf_op *op, struct copy *copy)
{
	struct zf_inode *inode;
	int r = zf_op_check_writable(op);

	if (r == 0)
		r = zf_op_get(op, copy->in->ino, &inode);
	if (r == 0)
		r = zf_op_get(op, copy->out->ino, &inode);
	if (r < 0)
		return r;
	zf_op_lock(op);
	r = look(copy);
	if (r < 0 || copy->how != BY_SHARING)
		return r;
	r = zf_op_join(op, ZF_RESERVE_NORMAL, COPY_EDITS + 1);
	if (r != 0)
		return r;
	/* One sync of the target at the end is enough, and the source's flags do not matter. */
	op->durable = false;
	return zf_op_leave(op, share_some(op, copy), "sharing extents");
}

static int share(struct copy *copy)
{
	struct zf_op op = ZF_OP(copy->in->fs, copy->ctx);
	struct zf_room_search search = {0};
	int r;

	op.content = true;
	do {
		do {
			r = share_once(&op, copy);
		} while (zf_op_again(&op, &r));
		/* There was no room to zero the block at the target's old end. */
	} while (r == -ENOSPC && zf_room_wait(copy->in->fs, ZF_RESERVE_NORMAL, &search));
	return r;
}

/* ---- bytes ---- */

static int copy_bytes(struct copy *copy)
{
	unsigned int flags = copy->ctx->uid != 0 ? ZF_WRITE_KILL_SUIDGID : 0;
	struct zf_ctx ctx = *copy->ctx;
	ssize_t n;

	/* Sharing does not move the access time, so copying bytes does not either. */
	ctx.no_atime = true;
	if (!copy->buf)
		copy->buf = zf_undumped_alloc(BYTES_MAX);
	if (!copy->buf)
		return -ENOMEM;
	n = zf_file_read(copy->in, &ctx, copy->offset_in, copy->buf, copy->bytes);
	if (n > 0)
		n = zf_file_write(copy->out, copy->ctx, copy->offset_out, copy->buf, (size_t)n,
				  flags);
	if (n < 0)
		return (int)n;
	copy->bytes = (uint64_t)n;
	return 0;
}

/* ---- the whole ---- */

/* Copies or shares the next copy->bytes bytes. copy->bytes 0: nothing is left. */
static int copy_round(struct copy *copy)
{
	for (;;) {
		int r = share(copy);

		if (r < 0 || copy->how == BY_SHARING)
			return r;
		if (copy->how == BY_BYTES)
			return copy->bytes > 0 ? copy_bytes(copy) : 0;
		r = zf_flush_land(copy->unlanded);
		if (r < 0)
			return r;
		copy->landings++;
	}
}

/* Limits the range to the source's size and to the largest file size. */
static int clip(struct copy *copy)
{
	uint64_t size;

	zf_rwlock_rdlock(&copy->in->lock);
	size = copy->in->item.size;
	zf_rwlock_unlock(&copy->in->lock);
	if (copy->offset_in >= size)
		copy->len = 0;
	else
		copy->len = zf_min_u64(copy->len, size - copy->offset_in);
	if (copy->len == 0)
		return 0;
	if (copy->offset_out >= ZF_FILE_SIZE_MAX)
		return -EFBIG;
	copy->len = zf_min_u64(copy->len, ZF_FILE_SIZE_MAX - copy->offset_out);
	if (copy->in == copy->out && copy->offset_in < copy->offset_out + copy->len &&
	    copy->offset_out < copy->offset_in + copy->len)
		return -EINVAL;
	return 0;
}

ssize_t zf_file_copy_range(struct zf_inode *in, struct zf_inode *out, const struct zf_ctx *ctx,
			   uint64_t offset_in, uint64_t offset_out, uint64_t len)
{
	struct copy copy = {
		.in = in,
		.out = out,
		.ctx = ctx,
		.offset_in = offset_in,
		.offset_out = offset_out,
		.len = zf_min_u64(len, ZF_FILE_SIZE_MAX),
	};
	uint64_t done = 0;
	int r = clip(&copy);

	while (r == 0 && copy.len > 0) {
		r = copy_round(&copy);
		if (r < 0 || copy.bytes == 0)
			break;
		copy.offset_in += copy.bytes;
		copy.offset_out += copy.bytes;
		copy.len -= copy.bytes;
		copy.landings = 0;
		done += copy.bytes;
	}
	free(copy.buf);
	if (done == 0)
		return r;
	r = copy.durable ? zf_durable_inode(out, ctx, false) : 0;
	return r < 0 ? r : (ssize_t)done;
}
