/* SPDX-License-Identifier: MIT */
/* Finds the path of an inode, for messages, from the REF items of the inode and its ancestors. */
#ifndef ZF_FS_PATH_H
#define ZF_FS_PATH_H

#include "btree/tree.h"
#include "fs/core/item_check.h"

/*
 * A path of the inode from the root: "/a/b". The first name of each inode is used. `check` checks
 * the items that are read. -ENOENT: an inode has no name; -ENAMETOOLONG: `size` is too small;
 * -EUCLEAN; -errno of reading the tree.
 */
int zf_path_find(struct zf_forest *forest, const struct zf_item_check *check, uint64_t ino,
		 char *buf, size_t size);

#endif
