/* SPDX-License-Identifier: MIT */
/* What must be done before a file may be given a greater size. */
#ifndef ZF_FS_TRUNCATE_H
#define ZF_FS_TRUNCATE_H

#include <stdbool.h>

struct zf_inode;

/*
 * Finishes what an interrupted truncation or punch left, and makes sure that what lies behind the
 * end reads as zeroes when the size in the trees says that it is there. 1: the lock was dropped
 * meanwhile, and all has to be looked at again. -EAGAIN. Inode locked exclusively, no join.
 */
int zf_truncate_before_growth(struct zf_inode *inode, bool may_wait);

#endif
