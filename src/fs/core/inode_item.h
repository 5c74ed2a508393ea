/* SPDX-License-Identifier: MIT */
/* An inode's item in the tree: loading it, for inode.c, and describing it. Storing is in inode.h.
 */
#ifndef ZF_FS_INODE_ITEM_H
#define ZF_FS_INODE_ITEM_H

struct zf_disk_inode;
struct zf_inode;

/* Fills item and disk_size from the tree. -ESTALE if there is none. */
int zf_inode_item_load(struct zf_inode *inode);
/* The item as it is, with the size that a file has in the trees. Lock held. */
void zf_inode_item_describe(const struct zf_inode *inode, struct zf_disk_inode *ret_disk);

#endif
