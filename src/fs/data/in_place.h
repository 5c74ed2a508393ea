/* SPDX-License-Identifier: MIT */
/*
 * Dirty blocks that are written in place (fs/map/overwrite.h): their way to the device.
 *
 * They are packed into writes like others into appends, and land by the same lists
 * (fs/data/append.h); but a landing changes no tree. What was not written with FUA is durable after
 * a flush (data->write_mark).
 */
#ifndef ZF_FS_IN_PLACE_H
#define ZF_FS_IN_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct zf_append;
struct zf_inode;

/*
 * Where blocks [index, index + count) of the file are written in place, or 0. Inode locked
 * exclusively: so it holds until it is unlocked, and then for those that became dirty meanwhile.
 */
int zf_in_place_find(struct zf_inode *inode, uint64_t index, unsigned int count,
		     uint64_t *ret_addresses);

/*
 * Starts writing what is ready of the inode. With `durable`, by FUA, and the last write on this
 * thread, if the device can do that: whoever asks waits for it.
 */
int zf_in_place_start(struct zf_inode *inode, bool durable);

/* The append's blocks, of one inode, were written in place. */
void zf_in_place_landed(struct zf_append *append);

/*
 * What the inode has in memory that is written in place is durable when this returns 0 or more. 1:
 * so is everything else of it (with `data_only`, but for times): nothing is left to do. 0: go on.
 * What of it is lost has been noted (fs/core/write_error.h). No lock and no join held.
 */
int zf_data_flush_in_place(struct zf_inode *inode, bool data_only);

#endif
