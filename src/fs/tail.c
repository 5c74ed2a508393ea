/* SPDX-License-Identifier: MIT */
#include "fs/tail.h"

#include "fs/inode.h"
#include "fs/zero.h"

int zf_tail_settle(struct zf_inode *inode, bool may_wait)
{
	uint32_t within = inode->item.size % ZF_BLOCK_SIZE;
	int r;

	if (inode->data.tail_is_zero || within == 0)
		return 0;
	r = zf_zero_part(inode, inode->item.size >> ZF_BLOCK_SHIFT, within, ZF_BLOCK_SIZE,
			 zf_fs_growing_class(inode->fs), may_wait);
	if (r == 0)
		inode->data.tail_is_zero = true;
	return r;
}
