/* SPDX-License-Identifier: MIT */
/* What the files of the oracle share: oracle.c, oracle_acl.c, oracle_names.c, oracle_files.c. */
#ifndef ZF_TESTS_ORACLE_IMPL_H
#define ZF_TESTS_ORACLE_IMPL_H

#include "support/oracle.h"
#include "support/workload.h"

struct oracle_inode *oracle_add_inode(struct oracle *oracle, uint64_t ino, uint32_t mode);
/* Removes the inode if it has neither a name nor a kernel reference. */
void oracle_drop_unused(struct oracle *oracle, struct oracle_inode *inode);
/* All of the inode is durable. */
void oracle_settle(struct oracle_inode *inode);
/* All of the inode but its times is durable. */
void oracle_settle_content(struct oracle_inode *inode);
/* The content changes, and with it mtime and ctime; `data`: the change has data to be written. */
void oracle_change_content(struct oracle *oracle, struct oracle_inode *inode,
			   const struct zf_op *op, bool data);

/* What an operation does to the times of the inode or directory that it changes. */
void oracle_change(struct oracle *oracle, struct oracle_inode *inode);
void oracle_change_dir(struct oracle *oracle, struct oracle_inode *dir);

/* Reading moves the access time: relatime, and no test lasts a day. */
void oracle_access(struct oracle *oracle, struct oracle_inode *inode);

/* What flags forbid: 0 or -EPERM. */
int64_t oracle_check_change(const struct oracle_inode *inode);

/* A new inode gets its lists and mode from its directory's default list, in place of the umask. */
void oracle_acl_inherit(const struct oracle_inode *dir, mode_t umask, struct oracle_inode *inode);
/* The access list follows the mode. */
void oracle_acl_chmod(struct oracle_inode *inode);

/* Setting, getting and removing an attribute that is a list. */
int64_t oracle_acl_set(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_acl_get(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_acl_remove(struct oracle *oracle, const struct zf_op *op);

/* One function for each operation: it returns the answer and applies the effect. */
int64_t oracle_lookup(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_forget(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_make(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_tmpfile(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_link(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_unlink(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_rmdir(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_rename(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_readlink(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_readdir(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_setattr(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_setflags(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_setxattr(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_getxattr(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_removexattr(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_read(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_write(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_fallocate(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_copy(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_seek(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_fsync(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_syncfs(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_freeze(struct oracle *oracle, const struct zf_op *op);
int64_t oracle_commit(struct oracle *oracle, const struct zf_op *op);

#endif
