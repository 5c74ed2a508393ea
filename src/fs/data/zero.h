/* SPDX-License-Identifier: MIT */
/* Zeroes in place of part of one block, in memory: they go to the device as if written. */
#ifndef ZF_FS_ZERO_H
#define ZF_FS_ZERO_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/reserve.h"

struct zf_inode;

/*
 * Bytes [from, to) of block `index` read as zeroes from now on; a block that holds nothing else
 * there stays as it is. Its room is reserved as `class`. -EAGAIN: the device would have to be read,
 * or room waited for. -ENOSPC. Inode locked exclusively, no join.
 */
int zf_zero_part(struct zf_inode *inode, uint64_t index, uint32_t from, uint32_t to,
		 enum zf_reserve_class class, bool may_wait);

#endif
