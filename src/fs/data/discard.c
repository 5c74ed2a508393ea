/* SPDX-License-Identifier: MIT */
#include "fs/data/discard.h"

#include "alloc/reserve.h"
#include "base/plant.h"
#include "fs/core/inode.h"
#include "fs/data/append.h"
#include "fs/data/block.h"
#include "fs/data/flush.h"
#include "fs/data/land.h"

void zf_discard_blocks(struct zf_inode *inode, uint64_t from, uint64_t to)
{
	struct zf_fs *fs = inode->fs;
	struct zf_data *data = &inode->data;
	struct zf_block key = {.index = from}, *block, *next, *chain = NULL;
	unsigned int count = 0, reserved = 0;

	zf_mutex_lock(&data->lock);
	for (block = RB_NFIND(zf_block_tree, &data->flight, &key); block && block->index < to;
	     block = next) {
		if (ZF_PLANTED(ZF_BUG_LATE_OVER_NEWER))
			break;
		next = RB_NEXT(zf_block_tree, &data->flight, block);
		zf_block_leave_flight_locked(data, block, false);
	}
	for (block = RB_NFIND(zf_block_tree, &data->dirty, &key); block && block->index < to;
	     block = next) {
		next = RB_NEXT(zf_block_tree, &data->dirty, block);
		reserved += !block->address;
		count++;
		zf_block_remove_dirty_locked(data, block);
		block->next = chain;
		chain = block;
	}
	zf_mutex_unlock(&data->lock);
	zf_block_pool_give(&fs->flush, chain);
	zf_alloc_unreserve(fs->alloc, reserved, (uint64_t)reserved * ZF_BLOCK_ITEMS);
	zf_flush_release(fs, count);
	zf_land_let_go(inode);
	if (count > 0)
		zf_flush_event(fs);
}

void zf_data_discard(struct zf_inode *inode)
{
	zf_discard_blocks(inode, 0, UINT64_MAX);
	zf_inode_mark_clean(inode);
	/* This is not the last use, because the caller has one. */
	if (zf_inode_leave_dirty_list(inode))
		zf_inode_put(inode);
}
