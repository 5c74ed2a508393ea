/* SPDX-License-Identifier: MIT */
#include "fs/data/frontier.h"

#include "fs/data/block.h"
#include "fs/core/inode.h"

static struct zf_block *frontier_locked(struct zf_inode *inode)
{
	struct zf_data *data = &inode->data;
	uint64_t index = inode->disk_size >> ZF_BLOCK_SHIFT;
	struct zf_block *block;

	while ((block = zf_block_next_locked(data, index))) {
		if (block->landed_end < ZF_BLOCK_SIZE)
			return block;
		index = block->index + 1;
	}
	return NULL;
}

void zf_frontier_advance_locked(struct zf_inode *inode)
{
	struct zf_block *frontier = frontier_locked(inode);
	uint64_t whole = inode->item.size;

	if (frontier)
		whole = zf_min_u64(whole,
				   (frontier->index << ZF_BLOCK_SHIFT) + frontier->landed_end);
	inode->disk_size = zf_max_u64(inode->disk_size, whole);
}

void zf_frontier_advance(struct zf_inode *inode)
{
	uint64_t before = inode->disk_size;

	zf_mutex_lock(&inode->data.lock);
	zf_frontier_advance_locked(inode);
	zf_mutex_unlock(&inode->data.lock);
	if (inode->disk_size == before)
		return;
	zf_inode_note_change(inode, true);
}

bool zf_frontier_may_land_locked(struct zf_inode *inode, uint64_t index)
{
	struct zf_block *frontier;

	if (index < inode->disk_size >> ZF_BLOCK_SHIFT)
		return true;
	frontier = frontier_locked(inode);
	return !frontier || index <= frontier->index;
}

static bool is_partial(uint32_t bytes)
{
	return bytes > 0 && bytes < ZF_BLOCK_SIZE;
}

bool zf_frontier_has_partial_locked(struct zf_inode *inode)
{
	struct zf_data *data = &inode->data;
	uint64_t index = inode->disk_size >> ZF_BLOCK_SHIFT;
	struct zf_block *block;

	while ((block = zf_block_next_locked(data, index))) {
		if (is_partial(block->landed_end) ||
		    (block->blocked && is_partial(block->landed_end_next)))
			return true;
		index = block->index + 1;
	}
	return false;
}

uint64_t zf_frontier_without_locked(struct zf_inode *inode, const struct zf_block *block)
{
	if (!is_partial(block->landed_end) || zf_block_dirty_locked(&inode->data, block->index))
		return UINT64_MAX;
	return (block->index << ZF_BLOCK_SHIFT) + block->landed_end;
}

static void clamp(struct zf_block *block, uint32_t bytes)
{
	if (!block)
		return;
	block->landed_end = (uint32_t)zf_min_u64(block->landed_end, bytes);
	block->landed_end_next = (uint32_t)zf_min_u64(block->landed_end_next, bytes);
}

void zf_frontier_shrink_locked(struct zf_inode *inode, uint64_t size)
{
	uint32_t bytes = size % ZF_BLOCK_SIZE;

	inode->item.size = size;
	inode->disk_size = zf_min_u64(inode->disk_size, size);
	if (bytes) {
		clamp(zf_block_dirty_locked(&inode->data, size >> ZF_BLOCK_SHIFT), bytes);
		clamp(zf_block_flight_locked(&inode->data, size >> ZF_BLOCK_SHIFT), bytes);
	}
}

static void make_whole(struct zf_block *block)
{
	if (!block)
		return;
	if (is_partial(block->landed_end))
		block->landed_end = ZF_BLOCK_SIZE;
	if (is_partial(block->landed_end_next))
		block->landed_end_next = ZF_BLOCK_SIZE;
}

void zf_frontier_grow_locked(struct zf_inode *inode, uint64_t size)
{
	uint64_t last = inode->item.size >> ZF_BLOCK_SHIFT;

	make_whole(zf_block_dirty_locked(&inode->data, last));
	make_whole(zf_block_flight_locked(&inode->data, last));
	inode->item.size = size;
	inode->disk_size = size;
}
