/* SPDX-License-Identifier: MIT */
/* An inode's item in the tree: loading and describing it. Storing it is in inode.h. */
#ifndef ZF_FS_INODE_ITEM_H
#define ZF_FS_INODE_ITEM_H

struct zf_disk_inode;
struct zf_inode;

/* Fills item and disk_size from the tree. -ESTALE: there is no item. */
int zf_inode_item_load(struct zf_inode *inode);
/* Encodes the item; the size of a file is disk_size. Inode locked. */
void zf_inode_item_describe(const struct zf_inode *inode, struct zf_disk_inode *ret_disk);

#endif
