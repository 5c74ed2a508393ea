/* SPDX-License-Identifier: MIT */
#include "fs/data/drop.h"

#include <errno.h>

#include "alloc/reserve.h"
#include "fs/core/inode.h"
#include "fs/data/block.h"
#include "fs/map/extent.h"

/* Tree edits of one transaction: of extents; and of an inline extent, the intent and the item. */
#define DROP_EDITS  16u
#define OTHER_EDITS 3u

/* ---- the intent ---- */

static int put_intent(struct zf_drop *drop, struct zf_trans *trans)
{
	struct zf_inode *inode = drop->inode;
	struct zf_fs *fs = inode->fs;
	struct zf_disk_intent disk = {
		.type = ZF_INTENT_TRUNCATE,
		.ino = zf_le64_from(inode->ino),
		.from = zf_le64_from(drop->from),
		.to = zf_le64_from(drop->to),
	};
	struct zf_key key = ZF_KEY(ZF_INO_INTENTS, ZF_KEY_INTENT, 0);

	key.offset = atomic_fetch_add(&zf_txn_counters(fs->txn)->next_intent, 1);
	inode->data.intent = key.offset;
	inode->data.dropping = true;
	inode->data.drop_from = drop->from;
	inode->data.drop_to = drop->to;
	return zf_tree_insert(fs->forest, trans->writer, ZF_TREE_FS, &key, &disk, sizeof(disk));
}

static int remove_intent(struct zf_inode *inode, struct zf_trans *trans)
{
	struct zf_key key = ZF_KEY(ZF_INO_INTENTS, ZF_KEY_INTENT, inode->data.intent);

	inode->data.dropping = false;
	return zf_tree_delete(inode->fs->forest, trans->writer, ZF_TREE_FS, &key);
}

/* ---- the transactions ---- */

/* 0: all extents are gone; 1: some are left, and an intent is recorded. */
static int drop_first(struct zf_drop *drop, struct zf_trans *trans)
{
	struct zf_inode *inode = drop->inode;
	struct zf_extent_editor editor;
	int r, more;

	/* The loans must end before the extents are removed. */
	zf_block_take_back_range(&inode->data, drop->from >> ZF_BLOCK_SHIFT,
				 drop->to >> ZF_BLOCK_SHIFT);
	zf_extent_editor_init(&editor, inode, trans);
	more = zf_extent_drop(&editor, drop->from, drop->to, DROP_EDITS);
	r = more;
	if (r >= 0)
		r = zf_extent_trim_inline(&editor, drop->inline_max);
	if (r >= 0 && more)
		r = put_intent(drop, trans);
	if (r < 0 && editor.edits == 0)
		return r;
	if (r >= 0) {
		drop->change(drop);
		r = zf_inode_store(inode, trans);
	}
	if (r >= 0 && drop->stored)
		drop->stored(drop);
	if (r < 0)
		zf_trans_abort(trans, r, "dropping extents");
	return r < 0 ? r : more;
}

static int drop_more(struct zf_inode *inode, struct zf_trans *trans)
{
	const struct zf_data *data = &inode->data;
	int r, more = zf_extent_drop_range(inode, trans, data->drop_from, data->drop_to,
					   DROP_EDITS);

	if (more < 0)
		return more;
	r = zf_inode_store(inode, trans);
	if (r == 0 && !more)
		r = remove_intent(inode, trans);
	if (r < 0)
		zf_trans_abort(trans, r, "dropping extents");
	return r < 0 ? r : more;
}

static int finish(struct zf_inode *inode)
{
	int r = 0;

	while (inode->data.dropping && r >= 0) {
		struct zf_trans trans;

		r = zf_trans_join(inode->fs->txn, ZF_RESERVE_FREEING, DROP_EDITS + OTHER_EDITS,
				  true, &trans);
		if (r < 0)
			return r;
		r = drop_more(inode, &trans);
		zf_trans_leave(&trans);
	}
	return r < 0 ? r : 0;
}

int zf_drop_finish_rest(struct zf_inode *inode, bool may_wait)
{
	return may_wait ? finish(inode) : -EAGAIN;
}

static int count_extent(void *arg, const struct zf_extent *extent, const uint8_t *bytes)
{
	unsigned int *left = arg;
	/* The extent's item, and its name if it has one. */
	unsigned int edits = extent->flags & (ZF_EXTENT_SHARED | ZF_EXTENT_OVERWRITE) ? 2 : 1;

	(void)bytes;
	if (*left < edits)
		return 1;
	*left -= edits;
	return 0;
}

/*
 * Returns whether one transaction is certainly enough. A caller that may not wait must know this
 * beforehand.
 */
static int check_few(struct zf_drop *drop)
{
	struct zf_extent_reader reader;
	unsigned int left = DROP_EDITS;
	int r;

	zf_extent_reader_init(&reader, drop->inode);
	r = zf_extent_scan(&reader, drop->from, drop->to - 1, count_extent, &left);
	return r > 0 ? -EAGAIN : r;
}

static int run_reserved(struct zf_drop *drop)
{
	struct zf_inode *inode = drop->inode;
	struct zf_trans trans;
	int r = zf_trans_join(inode->fs->txn, ZF_RESERVE_FREEING, DROP_EDITS + OTHER_EDITS,
			      drop->may_wait, &trans);

	if (r < 0)
		return r;
	r = drop_first(drop, &trans);
	zf_trans_leave(&trans);
	if (r <= 0)
		return r;
	/*
	 * The change is made already. If a later transaction fails, the rest is dropped before the
	 * next write, or by the next mount.
	 */
	r = finish(inode);
	return zf_txn_error(inode->fs->txn) ? r : 0;
}

int zf_drop_run(struct zf_drop *drop)
{
	struct zf_fs *fs = drop->inode->fs;
	int r = drop->may_wait ? 0 : check_few(drop);

	if (r == 0)
		r = zf_drop_finish(drop->inode, drop->may_wait);
	if (r < 0)
		return r;
	/* For the intent. */
	r = zf_txn_reserve(fs->txn, ZF_RESERVE_FREEING, 0, 1, drop->may_wait);
	if (r < 0)
		return r;
	r = run_reserved(drop);
	zf_alloc_unreserve(fs->alloc, 0, 1);
	return r;
}
