/* SPDX-License-Identifier: MIT */
/*
 * Inodes without a name: their deletion, and what a mount has to finish.
 *
 * The orphan item is inserted by the transaction that takes the last name, and deleted by the one
 * that deletes the inode's item. In between its extents and attributes go in as many transactions
 * as it takes: a crash anywhere leaves an orphan that is a bit smaller, which the next mount
 * deletes.
 */
#include <errno.h>
#include <string.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "fs/core/inode.h"
#include "fs/core/item_check.h"
#include "fs/ops/op.h"

/* Of one transaction: small, so that it finds room when there is little. */
#define DROP_EXTENTS 16u
#define DROP_NODES   16u
#define OTHER_EDITS  3u
#define DROP_ITEMS   (DROP_EXTENTS + DROP_NODES + OTHER_EDITS)

int zf_orphan_add(struct zf_op *op, struct zf_inode *inode)
{
	struct zf_key key = ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, inode->ino);
	int r = zf_op_insert(op, &key, "", 0);

	if (r == 0)
		zf_inode_set_unlinked(inode, true);
	return r;
}

int zf_orphan_remove(struct zf_op *op, struct zf_inode *inode)
{
	struct zf_key key = ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, inode->ino);
	int r = zf_op_delete(op, &key);

	if (r == 0)
		zf_inode_set_unlinked(inode, false);
	return r;
}

/* ---- deletion ---- */

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

/* 0: all is gone; 1: there is more. */
static int delete_some(struct zf_inode *inode, struct zf_trans *trans)
{
	struct zf_key from = ZF_KEY(inode->ino, ZF_KEY_INODE + 1, 0);
	struct zf_key to = ZF_KEY(inode->ino, UINT8_MAX, UINT64_MAX);
	int r = 0;

	if (S_ISREG(inode->item.mode))
		r = zf_data_drop_extents(inode, trans, 0, ZF_FILE_END_MAX, DROP_EXTENTS);
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

/* Deletes one doomed inode and gives it up. 1: it stays, for a later try. */
static int delete_doomed(struct zf_inode *inode)
{
	struct zf_fs *fs = inode->fs;
	int r = delete_inode(inode);

	if (r == -ENOSPC || r == -ENOMEM)
		return 1;
	if (r < 0 && r != -EROFS)
		zf_report(&fs->report, ZF_REPORT_ERROR,
			  "inode %" PRIu64 " has no name, but could not be deleted: %s", inode->ino,
			  strerror(-r));
	zf_inode_bury(inode);
	zf_inode_put(inode);
	atomic_fetch_add(&fs->deletions, 1);
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

int zf_orphan_run(struct zf_fs *fs)
{
	struct zf_inode_list kept = TAILQ_HEAD_INITIALIZER(kept);
	struct zf_inode *inode;
	int deleted = 0;

	while ((inode = take_doomed(fs))) {
		if (delete_doomed(inode) == 0)
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

/* ---- recovery ---- */

/* An item that needs nothing but to be deleted. */
static int delete_item(struct zf_fs *fs, const struct zf_key *key)
{
	struct zf_trans trans;
	int r = zf_trans_join(fs->txn, ZF_RESERVE_FREEING, 1, true, &trans);

	if (r < 0)
		return r;
	r = zf_tree_delete(fs->forest, trans.writer, ZF_TREE_FS, key);
	zf_trans_leave(&trans);
	return r;
}

static int recover_orphan(struct zf_fs *fs, const struct zf_key *key, const void *value)
{
	struct zf_inode *inode;
	int r = zf_inode_get(fs, key->offset, &inode);

	if (r == -ESTALE)
		return delete_item(fs, key);
	if (r < 0)
		return r;
	if (inode->item.nlink != 0)
		r = zf_report_corrupt(&fs->report, "orphan", inode->ino,
				      "its inode's nlink has %u, expected 0", inode->item.nlink);
	/* Dooms it. */
	zf_inode_put(inode);
	zf_orphan_run(fs);
	return r;
}

static int truncate_some(struct zf_inode *inode, struct zf_trans *trans, const struct zf_key *key,
			 const struct zf_disk_intent *intent)
{
	int r = zf_data_drop_extents(inode, trans, zf_le64_get(intent->from),
				     zf_le64_get(intent->to), DROP_EXTENTS);
	int stored;

	if (r < 0)
		return r;
	stored = zf_inode_store(inode, trans);
	if (stored == 0 && r == 0)
		stored = zf_tree_delete(inode->fs->forest, trans->writer, ZF_TREE_FS, key);
	if (stored < 0) {
		zf_trans_abort(trans, stored, "finishing a truncation");
		return stored;
	}
	return r;
}

static int recover_intent(struct zf_fs *fs, const struct zf_key *key, const void *value)
{
	const struct zf_disk_intent *intent = value;
	struct zf_inode *inode;
	struct zf_trans trans;
	int r;

	if (intent->type != ZF_INTENT_TRUNCATE)
		return zf_report_corrupt(&fs->report, "intent", key->offset,
					 "type has %u, expected %u", intent->type,
					 ZF_INTENT_TRUNCATE);
	r = zf_inode_get(fs, zf_le64_get(intent->ino), &inode);
	if (r == -ESTALE)
		return delete_item(fs, key);
	if (r < 0)
		return r;
	do {
		zf_rwlock_wrlock(&inode->lock);
		r = zf_trans_join(fs->txn, ZF_RESERVE_FREEING, DROP_ITEMS, true, &trans);
		if (r == 0) {
			r = truncate_some(inode, &trans, key, intent);
			zf_trans_leave(&trans);
		}
		zf_rwlock_unlock(&inode->lock);
	} while (r > 0);
	zf_inode_put(inode);
	return r;
}

/* Does the filesystem as a whole fail, or only this item? */
static bool is_general(int error)
{
	return error != -EUCLEAN && error != -EIO;
}

/* Calls fn for each item of one type; damaged ones have been reported and are passed over. */
static int for_each(struct zf_fs *fs, uint64_t objectid, enum zf_fs_key type,
		    int (*fn)(struct zf_fs *fs, const struct zf_key *key, const void *value))
{
	struct zf_disk_intent value;
	struct zf_key key = ZF_KEY(objectid, type, 0);
	size_t len;

	for (;;) {
		int r = zf_tree_lookup_ge(fs->forest, ZF_TREE_FS, &key, &value, sizeof(value),
					  &len);

		if (r == -ENOENT || (r == 0 && (key.objectid != objectid || key.type != type)))
			return 0;
		if (r < 0)
			return r;
		r = zf_fs_check_item(fs, &key, &value, len);
		if (r == 0)
			r = fn(fs, &key, &value);
		if (r < 0 && is_general(r))
			return r;
		if (key.offset == UINT64_MAX)
			return 0;
		key.offset++;
	}
}

int zf_intents_finish(struct zf_fs *fs)
{
	return for_each(fs, ZF_INO_INTENTS, ZF_KEY_INTENT, recover_intent);
}

int zf_orphan_recover(struct zf_fs *fs)
{
	return for_each(fs, ZF_INO_ORPHANS, ZF_KEY_ORPHAN, recover_orphan);
}
