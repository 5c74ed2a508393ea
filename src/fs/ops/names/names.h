/* SPDX-License-Identifier: MIT */
/* What the operations on names (lookup.c, make.c, remove.c, rename.c) share. */
#ifndef ZF_FS_NAMES_H
#define ZF_FS_NAMES_H

#include "fs/ops/names/dir.h"
#include "fs/ops/op.h"

/* Reports that the tree contradicts itself at an entry of `dir`. Returns -EUCLEAN. */
int zf_names_corrupt(struct zf_fs *fs, const struct zf_inode *dir, const char *what);

/*
 * Finds the present entry of this name. Takes and releases the directory's lock. -ENOENT, -ENOTDIR.
 */
int zf_names_peek(struct zf_inode *dir, const struct zf_name *name, struct zf_dir_entry *ret_entry);

/*
 * Called before the locks are taken. Adds the inode that the name names now to the operation.
 * *ret_type (may be NULL): the inode's type, DT_*, which never changes. Under the locks the name
 * must be looked up again, with zf_names_find_same().
 */
int zf_names_get_child(struct zf_op *op, struct zf_inode *dir, const struct zf_name *name,
		       struct zf_inode **ret_child, uint8_t *ret_type);

/*
 * Called with the locks held. Finds the place of the name. ZF_OP_CHANGED: the name does not name
 * `child` any more (NULL: the name exists now). -EUCLEAN: `child` is not what the entry says.
 */
int zf_names_find_same(struct zf_inode *dir, const struct zf_name *name, struct zf_inode *child,
		       struct zf_dir_place *ret_place);

/* Finds the ref of an existing name. -EUCLEAN: the ref is missing. */
int zf_names_find_ref(struct zf_inode *child, const struct zf_dir_place *place,
		      struct zf_ref_place *ret_ref);

/*
 * Called when the inode loses a name: changes nlink and ctime, and adds the orphan item if this was
 * the last name. At most two edits.
 */
int zf_names_drop_link(struct zf_op *op, struct zf_inode *child);

/*
 * Called when the directory's entries have changed: sets its times, and adds `subdirs` (negative:
 * subtracts) to its link count. One edit.
 */
int zf_names_touch_dir(struct zf_op *op, struct zf_inode *dir, int subdirs);

#endif
