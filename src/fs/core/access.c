/* SPDX-License-Identifier: MIT */
#include "fs/core/access.h"

#include <sys/stat.h>

#define DAY_S 86400

/* Inodes that lazytime keeps in memory: some 2 MB. */
#define LAZY_MAX 4096u

static bool is_after(struct zf_time a, struct zf_time b)
{
	return a.seconds != b.seconds ? a.seconds > b.seconds : a.nanoseconds > b.nanoseconds;
}

static bool never_counts(const struct zf_inode *inode, const struct zf_ctx *ctx)
{
	const struct zf_fs *fs = inode->fs;

	return ctx->no_atime || fs->read_only || fs->options.atime == ZF_ATIME_NEVER ||
	       (inode->item.flags & ZF_INODE_NOATIME) ||
	       (fs->options.no_dir_atime && inode->type == S_IFDIR);
}

bool zf_access_counts(const struct zf_inode *inode, const struct zf_ctx *ctx)
{
	const struct zf_inode_item *item = &inode->item;

	if (never_counts(inode, ctx))
		return false;
	if (inode->fs->options.atime == ZF_ATIME_STRICT || !is_after(item->atime, item->mtime) ||
	    !is_after(item->atime, item->ctime))
		return true;
	return zf_fs_now(inode->fs).seconds - item->atime.seconds >= DAY_S;
}

/* ---- noting ---- */

static bool lock(struct zf_inode *inode, bool may_wait)
{
	if (!may_wait)
		return zf_rwlock_trywrlock(&inode->lock);
	zf_rwlock_wrlock(&inode->lock);
	return true;
}

static void mark_locked(struct zf_inode *inode, struct zf_time now)
{
	struct zf_fs *fs = inode->fs;

	inode->item.atime = now;
	if (inode->item_dirty)
		return;
	inode->item_dirty = true;
	if (fs->options.lazy_time && atomic_load(&fs->lazy_count) < LAZY_MAX) {
		inode->lazy = true;
		inode->lazy_since_s = now.seconds;
		atomic_fetch_add(&fs->lazy_count, 1);
	}
	zf_inode_mark_dirty(inode);
}

void zf_access_note(struct zf_inode *inode, const struct zf_ctx *ctx)
{
	if (zf_txn_error(inode->fs->txn) || !lock(inode, ctx->may_wait))
		return;
	/* Another reader may have set the time. For an inode without a name it does not matter. */
	if (inode->item.nlink > 0 && zf_access_counts(inode, ctx))
		mark_locked(inode, zf_fs_now(inode->fs));
	zf_rwlock_unlock(&inode->lock);
}

bool zf_access_is_lazy(const struct zf_inode *inode)
{
	return inode->lazy && zf_fs_now(inode->fs).seconds - inode->lazy_since_s < DAY_S;
}
