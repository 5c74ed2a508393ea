/* SPDX-License-Identifier: MIT */
#include "fs/data/zero.h"

#include <errno.h>
#include <string.h>

#include "fs/data/block.h"
#include "fs/data/content.h"
#include "fs/data/flush.h"
#include "fs/data/in_place.h"
#include "fs/core/inode.h"

/*
 * If the block is dirty, zeroes [from, to) in it and returns 1. Otherwise loads its newest bytes
 * into `block` and returns 0.
 */
static int load(struct zf_inode *inode, struct zf_block *block, uint32_t from, uint32_t to,
		bool may_wait)
{
	struct zf_data *data = &inode->data;
	struct zf_block *dirty, *flight;

	zf_mutex_lock(&data->lock);
	dirty = zf_block_dirty_locked(data, block->index);
	flight = zf_block_flight_locked(data, block->index);
	if (dirty)
		memset(dirty->bytes + from, 0, to - from);
	else if (flight)
		memcpy(block->bytes, flight->bytes, ZF_BLOCK_SIZE);
	zf_mutex_unlock(&data->lock);
	if (dirty)
		return 1;
	return flight ? 0 : zf_content_read_stored(inode, block->index, may_wait, block->bytes);
}

static int make_dirty(struct zf_inode *inode, struct zf_block *block, enum zf_reserve_class class,
		      bool may_wait)
{
	struct zf_fs *fs = inode->fs;
	uint64_t address;
	int r = zf_in_place_find(inode, block->index, 1, &address);

	if (r == 0 && !address)
		r = zf_txn_reserve(fs->txn, class, 1, ZF_BLOCK_ITEMS, may_wait);
	if (r < 0)
		return r;
	zf_flush_admit_always(fs, 1);
	zf_mutex_lock(&inode->data.lock);
	zf_block_make_dirty_locked(&inode->data, block, inode->item.size);
	if (address)
		zf_block_set_address_locked(&inode->data, block, address);
	zf_mutex_unlock(&inode->data.lock);
	if (!inode->on_dirty_list)
		zf_inode_mark_dirty(inode);
	zf_flush_check(fs);
	return 0;
}

int zf_zero_part(struct zf_inode *inode, uint64_t index, uint32_t from, uint32_t to,
		 enum zf_reserve_class class, bool may_wait)
{
	struct zf_flush *flush = &inode->fs->flush;
	struct zf_block *block = zf_block_pool_take(flush, 1);
	int r;

	if (!block)
		return -ENOMEM;
	block->index = index;
	r = load(inode, block, from, to, may_wait);
	if (r == 0 && !zf_is_zero(block->bytes + from, to - from)) {
		memset(block->bytes + from, 0, to - from);
		r = make_dirty(inode, block, class, may_wait);
		if (r == 0)
			block = NULL;
	}
	zf_block_pool_give(flush, block);
	return r < 0 ? r : 0;
}
