/* SPDX-License-Identifier: MIT */
/* From an inode to its path, for messages: by the names that inodes know of themselves. */
#ifndef ZF_FS_PATH_H
#define ZF_FS_PATH_H

#include "btree/tree.h"
#include "fs/core/item_check.h"

/*
 * A path of the inode from the root: "/a/b". The first name of each inode is taken. `check`: what an
 * item of the forest's fs tree may say. -ENOENT: it has no name; -ENAMETOOLONG: `size` is too small;
 * -EUCLEAN; -errno of reading the tree.
 */
int zf_path_find(struct zf_forest *forest, const struct zf_item_check *check, uint64_t ino,
		 char *buf, size_t size);

#endif
