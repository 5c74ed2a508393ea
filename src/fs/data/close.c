/* SPDX-License-Identifier: MIT */
#include "fs/data/close.h"

#include <errno.h>
#include <sys/stat.h>

#include "base/plant.h"
#include "fs/data/data.h"
#include "fs/data/describe.h"
#include "fs/data/flush.h"
#include "fs/core/inode.h"
#include "log/log.h"

void zf_close_announce(struct zf_inode *inode)
{
	struct zf_log *log = inode->fs->log;
	struct zf_changes *changes = &inode->data.changes;
	struct zf_log_body body;
	uint64_t mark;
	int r;

	zf_changes_prune(changes, zf_txn_durable(inode->fs->txn));
	if (!zf_changes_any(changes))
		return;
	if (!zf_log_wants_operations(log)) {
		zf_log_add(log, NULL, 0);
		return;
	}
	r = zf_describe_inode(inode, NULL, &body, &mark);
	if (ZF_PLANTED(ZF_BUG_SOURCE_WITHOUT_MARK))
		mark = 0;
	zf_log_add(log, r < 0 ? NULL : &body, mark);
	zf_log_body_end(&body);
}

void zf_close_landed(struct zf_inode *inode)
{
	struct zf_data *data = &inode->data;

	if (data->closing != ZF_CLOSING || zf_data_is_dirty(inode))
		return;
	data->closing = ZF_CLOSING_NOT;
	zf_close_announce(inode);
}

int zf_close_landed_in_place(struct zf_inode *inode)
{
	struct zf_trans trans;
	int r = zf_data_join(inode, 1, &trans);

	if (r < 0)
		return r;
	zf_close_landed(inode);
	zf_trans_leave(&trans);
	zf_data_unlock(inode);
	return 0;
}

static int close_truncated(struct zf_inode *inode)
{
	int r;

	zf_rwlock_wrlock(&inode->lock);
	if (inode->data.closing == ZF_CLOSING_TRUNCATED)
		inode->data.closing = ZF_CLOSING;
	zf_rwlock_unlock(&inode->lock);
	r = zf_data_flush(inode, false);
	return r < 0 || zf_data_is_dirty(inode) ? r : zf_close_landed_in_place(inode);
}

static int close_file(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino)
{
	struct zf_inode *inode;
	bool truncated;
	int r;

	if (fs->read_only)
		return 0;
	r = zf_inode_get(fs, ino, &inode);
	if (r < 0)
		return r;
	if (zf_inode_rdlock(inode, ctx->may_wait)) {
		truncated = inode->data.closing == ZF_CLOSING_TRUNCATED;
		zf_rwlock_unlock(&inode->lock);
		if (truncated)
			r = ctx->may_wait ? close_truncated(inode) : -EAGAIN;
	} else {
		r = -EAGAIN;
	}
	zf_inode_put(inode);
	return r;
}

int zf_fs_close(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t ino)
{
	uint64_t began = zf_trace_began(ZF_OPERATION_CLOSE, ino, 0, 0);
	int r = close_file(fs, ctx, ino);

	return (int)zf_trace_ended(began, ZF_OPERATION_CLOSE, ino, r);
}
