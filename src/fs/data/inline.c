/* SPDX-License-Identifier: MIT */
#include "fs/data/inline.h"

#include <errno.h>

#include "alloc/reserve.h"
#include "fs/core/inode.h"
#include "fs/data/append.h"
#include "fs/data/close.h"
#include "fs/data/flush.h"
#include "fs/data/land.h"
#include "fs/data/frontier.h"
#include "fs/map/extent.h"

/* The tree edits of zf_extent_put_inline(), and one for the inode's item. */
#define INLINE_EDITS 9u

static struct zf_block *only_block_locked(struct zf_data *data)
{
	struct zf_block *block = RB_MIN(zf_block_tree, &data->dirty);

	if (data->ready != 1 || block->index != 0 || block->address || block->blocked ||
	    RB_NEXT(zf_block_tree, &data->dirty, block) || !RB_EMPTY(&data->flight))
		return NULL;
	return block;
}

static bool looks_small(struct zf_data *data)
{
	bool r;

	zf_mutex_lock(&data->lock);
	r = only_block_locked(data) != NULL;
	zf_mutex_unlock(&data->lock);
	return r;
}

/*
 * Moves block 0 to flight, although no append has it: so no append takes it, and an fsync knows
 * that it has not landed.
 */
static struct zf_block *take_block(struct zf_inode *inode)
{
	struct zf_data *data = &inode->data;
	struct zf_block *block = NULL;

	zf_mutex_lock(&data->lock);
	if (inode->item.size > 0 && inode->item.size <= zf_inode_inline_max(inode->fs))
		block = only_block_locked(data);
	if (block)
		zf_block_take_off_locked(data, block);
	zf_mutex_unlock(&data->lock);
	return block;
}

static void give_back(struct zf_inode *inode, struct zf_block *block)
{
	block->next = NULL;
	zf_block_pool_give(&inode->fs->flush, block);
	zf_flush_release(inode->fs, 1);
}

/* Makes the block dirty again, because nothing has changed yet. The next flush tries again. */
static void put_back(struct zf_inode *inode, struct zf_block *block)
{
	zf_mutex_lock(&inode->data.lock);
	zf_block_put_back_locked(&inode->data, block);
	zf_mutex_unlock(&inode->data.lock);
}

/* *ret_gone: the block has left memory, because it was stored or is lost. */
static int put(struct zf_inode *inode, struct zf_trans *trans, struct zf_block *block,
	       bool *ret_gone)
{
	struct zf_extent_editor editor;
	int r;

	zf_extent_editor_init(&editor, inode, trans);
	zf_block_take_back_range(&inode->data, 0, 1);
	r = zf_extent_put_inline(&editor, block->bytes, inode->item.size);
	*ret_gone = r != -ENOMEM || editor.torn;
	if (r == 0) {
		zf_mutex_lock(&inode->data.lock);
		zf_block_leave_flight_locked(&inode->data, block, true);
		zf_frontier_advance_locked(inode);
		zf_mutex_unlock(&inode->data.lock);
		give_back(inode, block);
		r = zf_inode_store(inode, trans);
		editor.torn = r < 0;
		if (r == 0)
			zf_close_landed(inode);
	} else if (*ret_gone) {
		zf_land_lose(inode, &block, 1, r);
		give_back(inode, block);
	} else {
		put_back(inode, block);
	}
	if (editor.torn)
		zf_trans_abort(trans, r, "storing a small file");
	return r;
}

/*
 * Returns 1 if the file has to be stored inline, 0 or -errno. It is not stored inline if block 0 is
 * guaranteed, because each later overwrite would need new room for the item.
 */
static int is_small(struct zf_inode *inode)
{
	struct zf_extent_reader reader;
	struct zf_extent extent;
	int r;

	if (inode->item.size > zf_inode_inline_max(inode->fs))
		return 0;
	if (inode->item.bytes == 0)
		return 1;
	zf_extent_reader_init(&reader, inode);
	r = zf_extent_find(&reader, 0, &extent);
	if (r < 0)
		return r == -ENOENT ? 1 : r;
	return extent.offset > 0 || !(extent.flags & ZF_EXTENT_GUARANTEED);
}

int zf_inline_flush(struct zf_inode *inode, bool may_wait)
{
	struct zf_block *block;
	struct zf_trans trans;
	bool gone = false;
	int r;

	if (!looks_small(&inode->data))
		return 0;
	if (!zf_inode_rdlock(inode, may_wait))
		return -EAGAIN;
	r = is_small(inode);
	zf_rwlock_unlock(&inode->lock);
	if (r <= 0)
		return r;
	r = may_wait ? zf_data_join(inode, INLINE_EDITS, &trans)
		     : zf_data_try_join(inode, INLINE_EDITS, &trans);
	if (r < 0)
		return r;
	block = take_block(inode);
	if (block)
		r = put(inode, &trans, block, &gone);
	zf_trans_leave(&trans);
	if (gone)
		zf_alloc_unreserve(inode->fs->alloc, 1, ZF_BLOCK_ITEMS);
	if (block)
		zf_append_event_for_askers(inode->fs);
	zf_data_unlock(inode);
	return r;
}
