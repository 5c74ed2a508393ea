/* SPDX-License-Identifier: MIT */
/* Setting a file's size. */
#include "fs/truncate.h"

#include <errno.h>

#include "fs/block.h"
#include "fs/discard.h"
#include "fs/extent.h"
#include "fs/flush.h"
#include "fs/inode.h"
#include "fs/size.h"
#include "fs/tail.h"

/* Tree edits of one transaction: the extents, an inline one, the intent, the item. */
#define DROP_EDITS  16u
#define OTHER_EDITS 3u

struct truncation {
	struct zf_inode *inode;
	bool may_wait;
	uint64_t size, from; /* `from`: the first byte whose extents go */
};

static void set_times(struct zf_inode *inode)
{
	inode->item.mtime = zf_fs_now(inode->fs);
	inode->item.ctime = inode->item.mtime;
}

/* ---- the intent ---- */

static int put_intent(struct truncation *truncation, struct zf_trans *trans)
{
	struct zf_fs *fs = truncation->inode->fs;
	struct zf_disk_intent disk = {
		.type = ZF_INTENT_TRUNCATE,
		.ino = zf_le64_from(truncation->inode->ino),
		.from = zf_le64_from(truncation->from),
		.to = zf_le64_from(ZF_FILE_END_MAX),
	};
	struct zf_key key = ZF_KEY(ZF_INO_INTENTS, ZF_KEY_INTENT, 0);

	key.offset = atomic_fetch_add(&zf_txn_counters(fs->txn)->next_intent, 1);
	truncation->inode->data.intent = key.offset;
	truncation->inode->data.dropping = true;
	return zf_tree_insert(fs->forest, trans->writer, ZF_TREE_FS, &key, &disk, sizeof(disk));
}

static int remove_intent(struct zf_inode *inode, struct zf_trans *trans)
{
	struct zf_key key = ZF_KEY(ZF_INO_INTENTS, ZF_KEY_INTENT, inode->data.intent);

	inode->data.dropping = false;
	return zf_tree_delete(inode->fs->forest, trans->writer, ZF_TREE_FS, &key);
}

/* ---- shrinking ---- */

static void zero_dirty_tail(struct zf_inode *inode)
{
	struct zf_data *data = &inode->data;
	uint32_t within = inode->item.size % ZF_BLOCK_SIZE;
	struct zf_block *block;

	zf_mutex_lock(&data->lock);
	block = zf_block_dirty_locked(data, inode->item.size >> ZF_BLOCK_SHIFT);
	if (block && within > 0)
		memset(block->bytes + within, 0, ZF_BLOCK_SIZE - within);
	zf_mutex_unlock(&data->lock);
}

static void shrink_memory(struct truncation *truncation)
{
	struct zf_inode *inode = truncation->inode;

	zf_discard_blocks(inode, truncation->from >> ZF_BLOCK_SHIFT, UINT64_MAX);
	zf_mutex_lock(&inode->data.lock);
	zf_size_shrink_locked(inode, truncation->size);
	zf_size_advance_locked(inode);
	zf_mutex_unlock(&inode->data.lock);
	zero_dirty_tail(inode);
	inode->data.tail_is_zero = false;
	set_times(inode);
}

/* What makes the file short for good. 0: all is gone; 1: extents are left, and the intent says so.
 */
static int shrink_first(struct truncation *truncation, struct zf_trans *trans)
{
	struct zf_inode *inode = truncation->inode;
	struct zf_extent_editor editor;
	int r, more;

	zf_extent_editor_init(&editor, inode, trans);
	more = zf_extent_drop(&editor, truncation->from, ZF_FILE_END_MAX, DROP_EDITS);
	r = more;
	if (r >= 0)
		r = zf_extent_trim_inline(&editor, truncation->size);
	if (r >= 0 && more)
		r = put_intent(truncation, trans);
	if (r < 0 && editor.edits == 0)
		return r;
	if (r >= 0) {
		shrink_memory(truncation);
		r = zf_inode_store(inode, trans);
	}
	if (r < 0)
		zf_trans_abort(trans, r, "truncating a file");
	return r < 0 ? r : more;
}

static int drop_more(struct zf_inode *inode, struct zf_trans *trans)
{
	uint64_t from = zf_align_up(inode->item.size, ZF_BLOCK_SIZE);
	int r, more = zf_data_drop_extents(inode, trans, from, ZF_FILE_END_MAX, DROP_EDITS);

	if (more < 0)
		return more;
	r = zf_inode_store(inode, trans);
	if (r == 0 && !more)
		r = remove_intent(inode, trans);
	if (r < 0)
		zf_trans_abort(trans, r, "truncating a file");
	return r < 0 ? r : more;
}

int zf_truncate_finish(struct zf_inode *inode)
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

static int count_extent(void *arg, const struct zf_extent *extent, const uint8_t *bytes)
{
	unsigned int *left = arg;
	/* An item, and its name if it is shared. */
	unsigned int edits = extent->flags & ZF_EXTENT_SHARED ? 2 : 1;

	(void)bytes;
	if (*left < edits)
		return 1;
	*left -= edits;
	return 0;
}

/* Surely done by one transaction? Whoever may not wait must know that before it begins. */
static int check_few(struct truncation *truncation)
{
	struct zf_extent_reader reader;
	unsigned int left = DROP_EDITS;
	int r;

	zf_extent_reader_init(&reader, truncation->inode);
	r = zf_extent_scan(&reader, truncation->from, ZF_FILE_END_MAX, count_extent, &left);
	return r > 0 ? -EAGAIN : r;
}

static int shrink_reserved(struct truncation *truncation)
{
	struct zf_inode *inode = truncation->inode;
	struct zf_trans trans;
	int r = zf_trans_join(inode->fs->txn, ZF_RESERVE_FREEING, DROP_EDITS + OTHER_EDITS,
			      truncation->may_wait, &trans);

	if (r < 0)
		return r;
	r = shrink_first(truncation, &trans);
	zf_trans_leave(&trans);
	if (r <= 0)
		return r;
	/* It is short in any case: what fails now is done before the file grows, or by the next
	 * mount. */
	r = zf_truncate_finish(inode);
	return zf_txn_error(inode->fs->txn) ? r : 0;
}

static int shrink(struct truncation *truncation)
{
	struct zf_fs *fs = truncation->inode->fs;
	int r = truncation->may_wait ? 0 : check_few(truncation);

	if (r == 0 && truncation->inode->data.dropping)
		r = truncation->may_wait ? zf_truncate_finish(truncation->inode) : -EAGAIN;
	if (r < 0)
		return r;
	/* The intent's. */
	r = zf_txn_reserve(fs->txn, ZF_RESERVE_FREEING, 0, 1, truncation->may_wait);
	if (r < 0)
		return r;
	r = shrink_reserved(truncation);
	zf_alloc_unreserve(fs->alloc, 0, 1);
	return r;
}

/* ---- growing ---- */

int zf_truncate_before_growth(struct zf_inode *inode, bool may_wait)
{
	int r = 0;

	if (inode->data.dropping)
		r = may_wait ? zf_truncate_finish(inode) : -EAGAIN;
	return r < 0 ? r : zf_tail_settle(inode, may_wait);
}

/*
 * A given size is in the trees with its transaction, whatever has landed until then. Blocks that
 * have not read as zeroes, if they never had a place; but one that has, with bytes behind an old
 * end of the file, must land first.
 */
static bool must_land(struct zf_inode *inode)
{
	bool r;

	zf_mutex_lock(&inode->data.lock);
	r = zf_size_has_partial_locked(inode);
	zf_mutex_unlock(&inode->data.lock);
	return r;
}

/* 1: the lock was dropped, look again. */
static int grow(struct truncation *truncation)
{
	struct zf_inode *inode = truncation->inode;
	bool grows = truncation->size > inode->item.size;
	struct zf_trans trans;
	int r = 0;

	if (grows)
		r = zf_truncate_before_growth(inode, truncation->may_wait);
	if (r == 0 && grows && must_land(inode)) {
		if (!truncation->may_wait)
			return -EAGAIN;
		zf_rwlock_unlock(&inode->lock);
		r = zf_flush_land(inode);
		zf_rwlock_wrlock(&inode->lock);
		return r < 0 ? r : 1;
	}
	if (r == 0)
		r = zf_trans_join(inode->fs->txn, ZF_RESERVE_NORMAL, 1, truncation->may_wait,
				  &trans);
	if (r < 0)
		return r;
	if (grows)
		inode->disk_size = truncation->size;
	inode->item.size = truncation->size;
	set_times(inode);
	r = zf_inode_store(inode, &trans);
	if (r < 0)
		zf_trans_abort(&trans, r, "extending a file");
	zf_trans_leave(&trans);
	return r;
}

int zf_data_set_size(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t size)
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
		r = size < inode->item.size ? shrink(&truncation) : grow(&truncation);
	} while (r == 1);
	return r;
}
