/* SPDX-License-Identifier: MIT */
/* From completed appends to extents: zf_data_land() in fs/data.h, and what becomes of what failed.
 */
#ifndef ZF_FS_LAND_H
#define ZF_FS_LAND_H

#include <stdbool.h>

struct zf_append;
struct zf_block;
struct zf_inode;

/*
 * A block in flight could not be written or recorded: it is GONE, and the error noted. Inode locked
 * exclusively; zf_size_advance() follows after the last of them, for where data was lost the file
 * has a hole, and the size that everybody sees.
 */
void zf_land_lose_block(struct zf_inode *inode, struct zf_block *block, int error);

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
