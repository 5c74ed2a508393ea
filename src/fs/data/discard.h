/* SPDX-License-Identifier: MIT */
/* Forgetting blocks in memory: what truncating, punching, deleting and copying over have in common.
 */
#ifndef ZF_FS_DISCARD_H
#define ZF_FS_DISCARD_H

#include <stdint.h>

struct zf_inode;

/*
 * Drops the dirty blocks of [from, to), with their reservations, and revokes the tickets of those
 * in flight. What the trees hold of them counts from now on: so does zf_frontier_advance_locked(),
 * which the caller sees to. Inode locked exclusively.
 */
void zf_discard_blocks(struct zf_inode *inode, uint64_t from, uint64_t to);

/* Forgets everything dirty or in flight: the inode is being deleted. Locked exclusively, or the
 * only use. */
void zf_data_discard(struct zf_inode *inode);

#endif
