/* SPDX-License-Identifier: MIT */
/* An inode's item in the tree: loading it, for inode.c. Storing is in inode.h. */
#ifndef ZF_FS_INODE_ITEM_H
#define ZF_FS_INODE_ITEM_H

struct zf_inode;

/* Fills item and disk_size from the tree. -ESTALE if there is none. */
int zf_inode_item_load(struct zf_inode *inode);

#endif
