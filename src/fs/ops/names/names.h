/* SPDX-License-Identifier: MIT */
/* What the operations on names (lookup.c, make.c, remove.c, rename.c) share. */
#ifndef ZF_FS_NAMES_H
#define ZF_FS_NAMES_H

#include "fs/ops/names/dir.h"
#include "fs/ops/op.h"

/* A place's message if the tree contradicts itself: -EUCLEAN. */
int zf_names_corrupt(struct zf_fs *fs, const struct zf_inode *dir, const char *what);

/* The entry of this name as it is now. Takes and gives up the directory's lock. -ENOENT, -ENOTDIR.
 */
int zf_names_peek(struct zf_inode *dir, const struct zf_name *name, struct zf_dir_entry *ret_entry);

/*
 * Before the locks: the inode that the name names now, added to the operation, and its type (DT_*,
 * may be NULL), which stays. What is found must be looked at again, with zf_names_find_same().
 */
int zf_names_get_child(struct zf_op *op, struct zf_inode *dir, const struct zf_name *name,
		       struct zf_inode **ret_child, uint8_t *ret_type);

/*
 * With the locks: the place of the name, which must still name `child` (NULL: nothing), else
 * ZF_OP_CHANGED. Checks that child is what the entry says, too: -EUCLEAN.
 */
int zf_names_find_same(struct zf_inode *dir, const struct zf_name *name, struct zf_inode *child,
		       struct zf_dir_place *ret_place);

/* The ref of an existing name. -EUCLEAN if it is missing. */
int zf_names_find_ref(struct zf_inode *child, const struct zf_dir_place *place,
		      struct zf_ref_place *ret_ref);

/* One name less in this transaction: nlink, ctime, the orphan if it was the last one. Two edits. */
int zf_names_drop_link(struct zf_op *op, struct zf_inode *child);

/* The directory's entries changed: times, and `subdirs` more or fewer directories in it. One edit.
 */
int zf_names_touch_dir(struct zf_op *op, struct zf_inode *dir, int subdirs);

#endif
