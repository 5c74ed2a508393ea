/* SPDX-License-Identifier: MIT */
/* Reading what is stored, below zf_data_read(). */
#ifndef ZF_FS_READ_H
#define ZF_FS_READ_H

#include <stdbool.h>
#include <stdint.h>

struct zf_inode;

/*
 * One block as the trees have it, whatever is in memory: verified; holes give zeroes. `bytes` is
 * aligned. -EAGAIN: the device would have to be read. Inode locked exclusively.
 */
int zf_read_stored(struct zf_inode *inode, uint64_t index, bool may_wait, uint8_t *bytes);

#endif
