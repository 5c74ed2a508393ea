/* SPDX-License-Identifier: MIT */
/*
 * Landing: inserting the extents of completed appends (zf_data_land() in fs/data/data.h), and
 * dropping the blocks of failed ones.
 */
#ifndef ZF_FS_LAND_H
#define ZF_FS_LAND_H

#include <stdbool.h>

struct zf_append;
struct zf_block;
struct zf_inode;

/*
 * Drops those of the blocks that are in flight, because they could not be written or recorded:
 * their state becomes GONE, and the error is noted. Afterwards the file reads as the trees have it,
 * and keeps its size. One exception: the file had ended within a dropped block and had then grown.
 * The stored version of that block may hold truncated bytes behind the old end, which nobody may
 * read (P3). Then the file ends at the old end again, and all that was written behind it is lost,
 * too. Inode locked exclusively.
 */
void zf_land_lose(struct zf_inode *inode, struct zf_block *const *blocks, unsigned int count,
		  int error);

/* Lands a write in place that has completed or failed, and frees the append. */
void zf_land_in_place(struct zf_append *append);
/*
 * Lands the rider of a log record that has completed, and frees the append. Its blocks are all
 * blocks in memory of one inode. After an error the append is left on the list of completed ones,
 * and is landed later. Inode locked exclusively, log entered. It waits for no commit.
 */
int zf_land_rider(struct zf_append *append);
/* Stores the inode's item, under the same conditions. */
int zf_land_item(struct zf_inode *inode);

/*
 * Blocks of this file have landed or are GONE, so appends that are held because of them are tried
 * again.
 */
void zf_land_let_go(struct zf_inode *inode);

#endif
