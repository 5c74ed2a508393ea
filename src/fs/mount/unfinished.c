/* SPDX-License-Identifier: MIT */
#include "fs/mount/unfinished.h"

#include <errno.h>

#include "alloc/reserve.h"
#include "fs/core/inode.h"
#include "fs/core/item_check.h"
#include "fs/data/delete.h"
#include "fs/map/extent.h"

/* Edits besides those of the extents: the inode's item and the intent. */
#define OTHER_EDITS    2u
#define TRUNCATE_ITEMS (ZF_DELETE_EXTENTS + OTHER_EDITS)

/* Deletes an item that needs no other work. */
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
				      "nlink of its inode has %u, expected 0", inode->item.nlink);
	/* The inode has no other user, so this dooms it. */
	zf_inode_put(inode);
	zf_delete_doomed(fs);
	return r;
}

static int truncate_some(struct zf_inode *inode, struct zf_trans *trans, const struct zf_key *key,
			 const struct zf_disk_intent *intent)
{
	int r = zf_extent_drop_range(inode, trans, zf_le64_get(intent->from),
				     zf_le64_get(intent->to), ZF_DELETE_EXTENTS);
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
		r = zf_trans_join(fs->txn, ZF_RESERVE_FREEING, TRUNCATE_ITEMS, true, &trans);
		if (r == 0) {
			r = truncate_some(inode, &trans, key, intent);
			zf_trans_leave(&trans);
		}
		zf_rwlock_unlock(&inode->lock);
	} while (r > 0);
	zf_inode_put(inode);
	return r;
}

/* Returns whether the error is one of the whole filesystem, and not only of this item. */
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

int zf_unfinished_intents(struct zf_fs *fs)
{
	return for_each(fs, ZF_INO_INTENTS, ZF_KEY_INTENT, recover_intent);
}

int zf_unfinished_orphans(struct zf_fs *fs)
{
	return for_each(fs, ZF_INO_ORPHANS, ZF_KEY_ORPHAN, recover_orphan);
}
