/* SPDX-License-Identifier: MIT */
/* Small files: their bytes stand in their extent item. */
#ifndef ZF_FS_INLINE_H
#define ZF_FS_INLINE_H

#include <stdbool.h>

struct zf_inode;

/*
 * If block 0 is all that is dirty of a small file: stores it, in a transaction of its own. Returns
 * 0, done or not to be done; -ENOMEM: it may stay dirty; -errno: the block has failed; -EAGAIN:
 * only without may_wait. No lock held.
 */
int zf_inline_flush(struct zf_inode *inode, bool may_wait);

#endif
