/* SPDX-License-Identifier: MIT */
/* Small files, whose bytes are stored in their extent item. */
#ifndef ZF_FS_INLINE_H
#define ZF_FS_INLINE_H

#include <stdbool.h>

struct zf_inode;

/*
 * If block 0 is the only block in memory of a small file, stores it inline, in a transaction of its
 * own. 0: stored, or not to be stored inline. -EAGAIN: only without may_wait. -errno: if the
 * look-up or the join failed, or memory was missing before the first edit, the block stays dirty;
 * otherwise the block is lost. No lock held.
 */
int zf_inline_flush(struct zf_inode *inode, bool may_wait);

#endif
