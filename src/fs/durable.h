/* SPDX-License-Identifier: MIT */
/*
 * Making things durable (P1): what fsync, O_DSYNC, chattr +S and the like come to.
 *
 * Small things go into the intent log: one append with FUA that carries the operations until now,
 * the inode's state, and what is still dirty of it. What is too much for that, or finds no room
 * there, is made durable by a commit.
 */
#ifndef ZF_FS_DURABLE_H
#define ZF_FS_DURABLE_H

#include <stdbool.h>

struct zf_fs;
struct zf_inode;

/*
 * All that was done to the inode before this call, and all names. With `data_only` (fdatasync) not
 * the times. Errors of appends that failed are reported once. No lock and no join held; waits.
 */
int zf_durable_inode(struct zf_inode *inode, bool data_only);
/*
 * The same if one record of the log does it, or one write in place: that is waited for, and nothing
 * that takes longer. -EAGAIN.
 */
int zf_durable_by_record(struct zf_inode *inode, bool data_only);
/* All operations before this call: fsync of a directory. */
int zf_durable_names(struct zf_fs *fs);

#endif
