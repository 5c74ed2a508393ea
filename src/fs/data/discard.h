/* SPDX-License-Identifier: MIT */
/* Dropping blocks from memory, for truncating, punching, deleting and copying. */
#ifndef ZF_FS_DISCARD_H
#define ZF_FS_DISCARD_H

#include <stdint.h>

struct zf_inode;

/*
 * Drops the dirty blocks [from, to) with their reservations, and revokes the tickets of the blocks
 * in flight. The file's content there is then what the trees have, so the caller also calls
 * zf_frontier_advance_locked(). Inode locked exclusively.
 */
void zf_discard_blocks(struct zf_inode *inode, uint64_t from, uint64_t to);

/* Drops all blocks, and the dirty item, of an inode that is deleted. Inode locked exclusively, or
 * the caller has its only use. */
void zf_data_discard(struct zf_inode *inode);

#endif
