/* SPDX-License-Identifier: MIT */
/* Setting a file's size. */
#include "fs/ops/file/truncate.h"

#include <errno.h>

#include "alloc/reserve.h"
#include "fs/core/inode.h"
#include "fs/core/inode_item.h"
#include "fs/data/discard.h"
#include "fs/data/drop.h"
#include "fs/data/flush.h"
#include "fs/data/frontier.h"
#include "fs/data/tail.h"
#include "fs/map/extent.h"
#include "fs/ops/file/file.h"
#include "log/log.h"

struct truncation {
	struct zf_inode *inode;
	bool may_wait;
	uint64_t size, from; /* `from`: extents from this byte on are dropped */
};

static void set_times(struct zf_inode *inode)
{
	inode->item.mtime = zf_fs_now(inode->fs);
	inode->item.ctime = inode->item.mtime;
}

/* ---- the log ---- */

/*
 * Adds the new size, which is stored already, to the log as an operation, because a size is an
 * attribute. If bytes were zeroed in place to let the file grow, these are flushed first, because a
 * replay does not zero them again. Joined.
 */
static void log_size(struct zf_inode *inode)
{
	struct zf_log *log = inode->fs->log;
	struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_INODE, 0);
	struct zf_disk_inode disk;
	struct zf_log_body body;

	zf_log_body_begin(&body, ZF_LOG_OPERATION);
	zf_log_body_resize(&body, inode->ino, inode->item.size);
	zf_inode_item_describe(inode, &disk);
	zf_log_body_set(&body, &key, &disk, sizeof(disk));
	zf_log_add(log, &body, inode->data.write_mark);
	zf_log_body_end(&body);
	zf_changes_clear_item(&inode->data.changes);
}

static void log_shrinking(struct zf_drop *drop)
{
	log_size(drop->inode);
}

/* ---- shrinking ---- */

static void shrink_memory(struct zf_drop *drop)
{
	const struct truncation *truncation = drop->arg;
	struct zf_inode *inode = truncation->inode;

	if (truncation->size == 0 && inode->item.size > 0)
		inode->data.closing = ZF_CLOSING_TRUNCATED;
	zf_discard_blocks(inode, truncation->from >> ZF_BLOCK_SHIFT, UINT64_MAX);
	zf_mutex_lock(&inode->data.lock);
	zf_frontier_shrink_locked(inode, truncation->size);
	zf_frontier_advance_locked(inode);
	zf_mutex_unlock(&inode->data.lock);
	inode->data.tail_is_zero = false;
	set_times(inode);
}

static int shrink(struct truncation *truncation)
{
	struct zf_drop drop = {
		.inode = truncation->inode,
		.may_wait = truncation->may_wait,
		.from = truncation->from,
		.to = ZF_FILE_END_MAX,
		.inline_max = truncation->size,
		.change = shrink_memory,
		.stored = log_shrinking,
		.arg = truncation,
	};

	return zf_drop_run(&drop);
}

/* ---- growing ---- */

/*
 * The transaction stores the new size, even if blocks before it have not landed. A block that never
 * had a place on the device then reads as zeroes after a crash. But a block whose stored version
 * has truncated bytes behind an old end of the file must land first.
 */
static bool must_land(struct zf_inode *inode)
{
	bool r;

	zf_mutex_lock(&inode->data.lock);
	r = zf_frontier_has_partial_locked(inode);
	zf_mutex_unlock(&inode->data.lock);
	return r;
}

int zf_truncate_before_growth(struct zf_inode *inode, bool may_wait)
{
	int r = zf_drop_finish(inode, may_wait);

	return r < 0 ? r : zf_tail_settle(inode, may_wait);
}

int zf_truncate_before_size(struct zf_inode *inode, bool may_wait)
{
	uint64_t errors = atomic_load(&inode->fs->errors.newest);
	int r = zf_truncate_before_growth(inode, may_wait);

	if (r < 0 || !must_land(inode))
		return r;
	if (!may_wait)
		return -EAGAIN;
	zf_rwlock_unlock(&inode->lock);
	r = zf_flush_land(inode);
	zf_rwlock_wrlock(&inode->lock);
	if (r == 0)
		r = zf_write_error_since(inode, errors);
	return r < 0 ? r : 1;
}

/* 1: the lock was released meanwhile, and the caller has to check again. */
static int grow(struct truncation *truncation)
{
	struct zf_inode *inode = truncation->inode;
	bool grows = truncation->size > inode->item.size;
	/* Truncating a file to size 0 never fails for space, even if it is empty already. */
	enum zf_reserve_class class = grows ? zf_fs_growing_class(inode->fs) : ZF_RESERVE_FREEING;
	struct zf_trans trans;
	int r = grows ? zf_truncate_before_size(inode, truncation->may_wait) : 0;

	if (r == 0)
		r = zf_trans_join(inode->fs->txn, class, 1, truncation->may_wait, &trans);
	if (r != 0)
		return r;
	if (grows)
		inode->disk_size = truncation->size;
	inode->item.size = truncation->size;
	set_times(inode);
	r = zf_inode_store(inode, &trans);
	if (r < 0)
		zf_trans_abort(&trans, r, "extending a file");
	else
		log_size(inode);
	zf_trans_leave(&trans);
	return r;
}

/* ---- both ---- */

/*
 * Returns whether the truncation removes something. Truncating a file to its own size gives back
 * the blocks that are kept behind it.
 */
static int is_shorter(struct truncation *truncation)
{
	struct zf_inode *inode = truncation->inode;
	struct zf_extent_reader reader;
	struct zf_extent extent;
	int r;

	if (truncation->size != inode->item.size)
		return truncation->size < inode->item.size;
	zf_extent_reader_init(&reader, inode);
	r = zf_extent_find(&reader, truncation->from, &extent);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	return extent.type == ZF_EXTENT_ZERO;
}

int zf_file_set_size(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t size)
{
	struct truncation truncation = {
		.inode = inode,
		.may_wait = ctx->may_wait,
		.size = size,
	};
	int r;

	if (size > ZF_FILE_SIZE_MAX)
		return -EFBIG;
	truncation.from = zf_align_up(size, ZF_BLOCK_SIZE);
	do {
		r = is_shorter(&truncation);
		if (r >= 0)
			r = r > 0 ? shrink(&truncation) : grow(&truncation);
	} while (r == 1);
	return r;
}
