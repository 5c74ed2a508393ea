/* SPDX-License-Identifier: MIT */
/*
 * Writing dirty blocks in place (fs/map/overwrite.h).
 *
 * These blocks are packed into writes as other blocks are packed into appends, and use the same
 * lists (fs/data/append.h). But their landing changes no tree. Blocks that were written without FUA
 * are durable after a flush (data->write_mark).
 */
#ifndef ZF_FS_IN_PLACE_H
#define ZF_FS_IN_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct zf_append;
struct zf_inode;

/*
 * Gets the addresses at which blocks [index, index + count) of the file are written in place; 0:
 * not in place. Inode locked exclusively. The addresses are valid until the inode is unlocked, and
 * afterwards for the blocks that became dirty under that lock (fs/map/overwrite.h).
 */
int zf_in_place_find(struct zf_inode *inode, uint64_t index, unsigned int count,
		     uint64_t *ret_addresses);

/*
 * Starts writing the inode's in-place blocks that are ready. With `durable` the writes have FUA,
 * and this thread carries out the last one itself if the backend can do that (zf_dev_run()),
 * because the caller waits for it anyway.
 */
int zf_in_place_start(struct zf_inode *inode, bool durable);

/* Lands an append whose blocks, all of one inode, have been written in place. */
void zf_in_place_landed(struct zf_append *append);

/*
 * Makes the inode's in-place blocks in memory durable. 1: everything else of the inode is durable,
 * too (with `data_only`, except times), so the caller is done. 0: the rest may not be durable.
 * -errno. Losses are noted (fs/core/write_error.h). No lock and no join held.
 */
int zf_data_flush_in_place(struct zf_inode *inode, bool data_only);

#endif
