/* SPDX-License-Identifier: MIT */
/* Zeroing a part of one block in memory, as a write of zeroes does. */
#ifndef ZF_FS_ZERO_H
#define ZF_FS_ZERO_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/reserve.h"

struct zf_inode;

/*
 * Makes bytes [from, to) of block `index` zeroes. If they are zeroes already, nothing changes.
 * Otherwise the block becomes dirty, and its room is reserved with `class`. -EAGAIN: the device
 * would have to be read, or room waited for, and may_wait is false. -ENOSPC. Inode locked
 * exclusively, no join.
 */
int zf_zero_part(struct zf_inode *inode, uint64_t index, uint32_t from, uint32_t to,
		 enum zf_reserve_class class, bool may_wait);

#endif
