/* SPDX-License-Identifier: MIT */
/*
 * The bytes behind the end of a file in its last block.
 *
 * Truncation does not change them, on the device or in memory, because no reader reads behind the
 * end. But an operation that makes the file grow again must make them zeroes (P3). A write that
 * begins in the last block zeroes them itself. Before any other operation, if they are not zeroes,
 * the block is made dirty with zeroes in their place. This block is then the frontier
 * (fs/data/frontier.h): the size in the trees does not grow before it has landed.
 */
#ifndef ZF_FS_TAIL_H
#define ZF_FS_TAIL_H

#include <stdbool.h>

struct zf_inode;

/*
 * Called before the file grows, except by a write that begins in its last block. -EAGAIN: the
 * device would have to be read, or room waited for, and may_wait is false. Inode locked
 * exclusively.
 */
int zf_tail_settle(struct zf_inode *inode, bool may_wait);

#endif
