/* SPDX-License-Identifier: MIT */
/* Forgetting blocks in memory: what truncation, punching and deletion have in common. */
#ifndef ZF_FS_DISCARD_H
#define ZF_FS_DISCARD_H

#include <stdint.h>

struct zf_inode;

/*
 * Drops dirty blocks of [index, end), with their reservations, and revokes the tickets of those in
 * flight. Inode locked exclusively.
 */
void zf_discard_blocks(struct zf_inode *inode, uint64_t index, uint64_t end);

#endif
