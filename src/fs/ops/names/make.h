/* SPDX-License-Identifier: MIT */
/* Making an inode as a part of another operation. */
#ifndef ZF_FS_MAKE_H
#define ZF_FS_MAKE_H

#include <sys/stat.h>

#include "fs/ops/attr/acl.h"
#include "fs/ops/names/names.h"

/* A character device 0:0: overlayfs takes it for a name that does not exist. */
#define ZF_WHITEOUT_MODE  ((mode_t)S_IFCHR)
#define ZF_WHITEOUT_EDITS 4u /* besides acls.edits */

/*
 * -EOVERFLOW: the uid or gid is -1. No inode can have such an owner, because chown(2) reads -1 as
 * "do not change". Called before anything is edited.
 */
int zf_make_check_owner(const struct zf_ctx *ctx);

/*
 * Makes a new whiteout, and gives it the name of `place`, which exists. Joined. `acls`: from
 * zf_acl_inherit() for ZF_WHITEOUT_MODE, called before the join. The caller changes the directory's
 * times and link count.
 */
int zf_make_whiteout(struct zf_op *op, struct zf_dir_place *place,
		     const struct zf_acl_inherited *acls);

#endif
