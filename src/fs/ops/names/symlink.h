/* SPDX-License-Identifier: MIT */
/* Targets of symbolic links: inline extents, one behind the other (fs/core/fs_format.h). */
#ifndef ZF_FS_SYMLINK_H
#define ZF_FS_SYMLINK_H

#include "fs/ops/op.h"

/* How many edits zf_symlink_write() makes. */
unsigned int zf_symlink_edits(const struct zf_fs *fs, size_t len);
int zf_symlink_write(struct zf_op *op, const struct zf_inode *inode, const char *target,
		     size_t len);
/* Reads at most `size` bytes, and returns how many. Inode locked. */
ssize_t zf_symlink_read(const struct zf_inode *inode, char *buf, size_t size);

#endif
