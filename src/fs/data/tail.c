/* SPDX-License-Identifier: MIT */
#include "fs/data/tail.h"

#include "fs/data/in_place.h"
#include "fs/core/inode.h"
#include "fs/data/zero.h"

/*
 * Returns whether a replay must leave the block alone, because it is written in place. The zeroes
 * were durable before the record that made the file grow. Since then the block may have been
 * written again, in place and without a record.
 */
static int was_zeroed(struct zf_inode *inode)
{
	uint64_t address;
	int r;

	if (!inode->fs->recovering)
		return 0;
	r = zf_in_place_find(inode, inode->item.size >> ZF_BLOCK_SHIFT, 1, &address);
	return r < 0 ? r : address != 0;
}

int zf_tail_settle(struct zf_inode *inode, bool may_wait)
{
	uint32_t within = inode->item.size % ZF_BLOCK_SIZE;
	int r;

	if (inode->data.tail_is_zero || within == 0)
		return 0;
	r = was_zeroed(inode);
	if (r != 0)
		return r < 0 ? r : 0;
	r = zf_zero_part(inode, inode->item.size >> ZF_BLOCK_SHIFT, within, ZF_BLOCK_SIZE,
			 zf_fs_growing_class(inode->fs), may_wait);
	if (r == 0)
		inode->data.tail_is_zero = true;
	return r;
}
