/* SPDX-License-Identifier: MIT */
/* Reading what is stored, below zf_data_read(). */
#ifndef ZF_FS_READ_H
#define ZF_FS_READ_H

#include <stdint.h>

struct zf_inode;

/*
 * One block as the trees have it, whatever is in memory: verified; holes give zeroes. `bytes` is aligned.
 * Inode locked exclusively.
 */
int zf_read_stored(struct zf_inode *inode, uint64_t index, uint8_t *bytes);

#endif
