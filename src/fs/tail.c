/* SPDX-License-Identifier: MIT */
#include "fs/tail.h"

#include <errno.h>
#include <string.h>

#include "fs/block.h"
#include "fs/flush.h"
#include "fs/inode.h"
#include "fs/read.h"

static bool is_zero(const uint8_t *bytes, size_t len)
{
	return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

/* Puts the newest bytes of the last block into `block`. 1: nothing is to be done. */
static int load(struct zf_inode *inode, struct zf_block *block, bool may_wait)
{
	struct zf_data *data = &inode->data;
	struct zf_block *flight;
	bool dirty;

	zf_mutex_lock(&data->lock);
	dirty = zf_block_dirty_locked(data, block->index) != NULL;
	flight = zf_block_flight_locked(data, block->index);
	if (flight)
		memcpy(block->bytes, flight->bytes, ZF_BLOCK_SIZE);
	zf_mutex_unlock(&data->lock);
	if (dirty)
		return 1; /* writes and truncation keep zeroes there */
	if (flight)
		return 0;
	return zf_read_stored(inode, block->index, may_wait, block->bytes);
}

static int make_dirty(struct zf_inode *inode, struct zf_block *block, bool may_wait)
{
	struct zf_fs *fs = inode->fs;
	uint32_t within = inode->item.size % ZF_BLOCK_SIZE;
	int r = zf_txn_reserve(fs->txn, ZF_RESERVE_NORMAL, 1, ZF_BLOCK_ITEMS, may_wait);

	if (r < 0)
		return r;
	memset(block->bytes + within, 0, ZF_BLOCK_SIZE - within);
	zf_flush_admit_always(fs, 1);
	zf_mutex_lock(&inode->data.lock);
	zf_block_make_dirty_locked(&inode->data, block, inode->item.size);
	zf_mutex_unlock(&inode->data.lock);
	if (!inode->on_dirty_list)
		zf_inode_mark_dirty(inode);
	return 0;
}

int zf_tail_settle(struct zf_inode *inode, bool may_wait)
{
	struct zf_flush *flush = &inode->fs->flush;
	uint32_t within = inode->item.size % ZF_BLOCK_SIZE;
	struct zf_block *block;
	int r;

	if (inode->data.tail_is_zero || within == 0)
		return 0;
	block = zf_pool_take(flush, 1);
	if (!block)
		return -ENOMEM;
	block->index = inode->item.size >> ZF_BLOCK_SHIFT;
	r = load(inode, block, may_wait);
	if (r == 0 && !is_zero(block->bytes + within, ZF_BLOCK_SIZE - within)) {
		r = make_dirty(inode, block, may_wait);
		if (r == 0)
			block = NULL;
	}
	zf_pool_give(flush, block);
	if (r < 0)
		return r;
	inode->data.tail_is_zero = true;
	return 0;
}
