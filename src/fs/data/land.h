/* SPDX-License-Identifier: MIT */
/* From completed appends to extents: zf_data_land() in fs/data/data.h, and what becomes of what
 * failed.
 */
#ifndef ZF_FS_LAND_H
#define ZF_FS_LAND_H

#include <stdbool.h>

struct zf_append;
struct zf_block;
struct zf_inode;

/*
 * Those of these blocks that are in flight could not be written or recorded: they are GONE, and the
 * error is noted. The file reads what the device has, and keeps its size. But if it had grown from
 * within one of them, whose stored version may have bytes behind the old end that had been cut off
 * (P3), then the file ends there again, and what was written behind that is lost too. Inode locked
 * exclusively.
 */
void zf_land_lose(struct zf_inode *inode, struct zf_block *const *blocks, unsigned int count,
		  int error);

/* A write in place has ended, well or badly. The append is gone afterwards. */
void zf_land_in_place(struct zf_append *append);
/*
 * A record of the log has brought the rider's blocks, which are all that is in memory of one inode:
 * into the trees with them, and the append is over. An error leaves it to others to land, later.
 * Inode locked exclusively, log entered: waits for no commit.
 */
int zf_land_rider(struct zf_append *append);
/* Stores the item, under the same conditions. */
int zf_land_item(struct zf_inode *inode);

/* Blocks of this file landed or are gone: those that were held because of them are looked at again.
 */
void zf_land_let_go(struct zf_inode *inode);

#endif
