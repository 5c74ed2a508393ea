/* SPDX-License-Identifier: MIT */
/*
 * What lies behind the end of a file in its last block.
 *
 * Truncation leaves the block as it is, on the device and in memory: nobody reads behind the end.
 * But whoever lets the file grow again makes those bytes zeroes (P3). A write that begins in the
 * block does so with what it finds there; before anything else, a block with other bytes is made
 * dirty with zeroes in their place, and as the frontier (fs/data/frontier.h) keeps the size in the
 * trees where it was until it has landed.
 */
#ifndef ZF_FS_TAIL_H
#define ZF_FS_TAIL_H

#include <stdbool.h>

struct zf_inode;

/*
 * Before the file grows, other than by a write that begins in its last block. -EAGAIN: the device
 * would have to be read. Inode locked exclusively.
 */
int zf_tail_settle(struct zf_inode *inode, bool may_wait);

#endif
