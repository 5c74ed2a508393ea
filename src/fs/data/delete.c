/* SPDX-License-Identifier: MIT */
#include "fs/data/delete.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc/reserve.h"
#include "fs/core/inode.h"
#include "fs/data/discard.h"
#include "fs/map/extent.h"

#define DROP_NODES  16u
#define OTHER_EDITS 3u
#define DROP_ITEMS  (ZF_DELETE_EXTENTS + DROP_NODES + OTHER_EDITS)

static int delete_last_items(struct zf_inode *inode, struct zf_trans *trans)
{
	struct zf_forest *forest = inode->fs->forest;
	struct zf_key item = ZF_KEY(inode->ino, ZF_KEY_INODE, 0);
	struct zf_key orphan = ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, inode->ino);
	int r = zf_tree_delete(forest, trans->writer, ZF_TREE_FS, &item);

	if (r < 0)
		return r;
	r = zf_tree_delete(forest, trans->writer, ZF_TREE_FS, &orphan);
	if (r < 0) {
		zf_trans_abort(trans, r, "deleting an inode");
		return r;
	}
	atomic_fetch_sub(&zf_txn_counters(inode->fs->txn)->inode_count, 1);
	return 0;
}

/* 0: the inode is deleted; 1: there is more to delete. */
static int delete_some(struct zf_inode *inode, struct zf_trans *trans)
{
	struct zf_key from = ZF_KEY(inode->ino, ZF_KEY_INODE + 1, 0);
	struct zf_key to = ZF_KEY(inode->ino, UINT8_MAX, UINT64_MAX);
	int r = 0;

	if (S_ISREG(inode->item.mode))
		r = zf_extent_drop_range(inode, trans, 0, ZF_FILE_END_MAX, ZF_DELETE_EXTENTS);
	if (r == 0)
		r = zf_tree_delete_range(inode->fs->forest, trans->writer, ZF_TREE_FS, &from, &to,
					 DROP_NODES);
	return r == 0 ? delete_last_items(inode, trans) : r;
}

static int delete_inode(struct zf_inode *inode)
{
	struct zf_trans trans;
	int r;

	zf_data_discard(inode);
	do {
		zf_rwlock_wrlock(&inode->lock);
		r = zf_trans_join(inode->fs->txn, ZF_RESERVE_FREEING, DROP_ITEMS, true, &trans);
		if (r == 0) {
			r = delete_some(inode, &trans);
			zf_trans_leave(&trans);
		}
		zf_rwlock_unlock(&inode->lock);
	} while (r > 0);
	return r;
}

/* Deletes one doomed inode and puts the use of fs->doomed. 1: the inode stays, for a later try. */
static int delete_one(struct zf_inode *inode)
{
	struct zf_fs *fs = inode->fs;
	int r = delete_inode(inode);

	if (r == -ENOSPC || r == -ENOMEM)
		return 1;
	if (r < 0 && r != -EROFS)
		zf_report(&fs->report, ZF_REPORT_ERROR,
			  "inode %" PRIu64 " has no name, but could not be deleted: %s", inode->ino,
			  strerror(-r));
	/* This must come before unlinked_count falls, because fs/space/room.c reads both. */
	atomic_fetch_add(&fs->deletions, 1);
	zf_inode_bury(inode);
	zf_inode_put(inode);
	return 0;
}

static struct zf_inode *take_doomed(struct zf_fs *fs)
{
	struct zf_inode *inode;

	zf_mutex_lock(&fs->lock);
	inode = TAILQ_FIRST(&fs->doomed);
	if (inode) {
		TAILQ_REMOVE(&fs->doomed, inode, doomed_link);
		atomic_fetch_add(&fs->deleting, 1);
	}
	zf_mutex_unlock(&fs->lock);
	return inode;
}

int zf_delete_doomed(struct zf_fs *fs)
{
	struct zf_inode_list kept = TAILQ_HEAD_INITIALIZER(kept);
	struct zf_inode *inode;
	int deleted = 0;

	while ((inode = take_doomed(fs))) {
		if (delete_one(inode) == 0)
			deleted++;
		else
			TAILQ_INSERT_TAIL(&kept, inode, doomed_link);
		atomic_fetch_sub(&fs->deleting, 1);
	}
	zf_mutex_lock(&fs->lock);
	TAILQ_CONCAT(&fs->doomed, &kept, doomed_link);
	zf_mutex_unlock(&fs->lock);
	return deleted;
}

/* ---- the kernel forgets ---- */

/*
 * No program can read the file any more, so its dirty data is dropped instead of written. If an
 * operation has the inode locked, this call does not wait: the data is then written, and deleted
 * afterwards.
 */
static void discard(struct zf_inode *inode)
{
	if (inode->fs->read_only || !zf_rwlock_trywrlock(&inode->lock))
		return;
	zf_data_discard(inode);
	zf_rwlock_unlock(&inode->lock);
}

void zf_fs_forget(struct zf_fs *fs, uint64_t ino, uint64_t count)
{
	bool unlinked;
	struct zf_inode *inode = zf_inode_kernel_unref(fs, ino, count, &unlinked);

	if (unlinked)
		discard(inode);
	zf_inode_put(inode);
}

void zf_delete_forget_all(struct zf_fs *fs)
{
	for (unsigned int i = 0; i < ZF_INODE_SHARDS; i++) {
		struct zf_inode_shard *shard = &fs->shards[i];
		struct zf_inode *inode;
		uint64_t next = 0;

		zf_inode_kernel_unref_all(shard);
		while ((inode = zf_inode_next_unlinked(shard, next))) {
			next = inode->ino + 1;
			discard(inode);
			zf_inode_put(inode);
		}
	}
}
