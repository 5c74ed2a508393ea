/* SPDX-License-Identifier: MIT */
/*
 * Making changes durable (P1): fsync, O_SYNC and O_DSYNC, chattr +S and +D all call these
 * functions.
 *
 * A small change goes into the intent log: one append with FUA holds all operations up to now, the
 * inode's state, and its dirty blocks (up to 128 KiB). If more is dirty, the data lands first, and
 * the record names its addresses. If one record is not enough, or the log has no room, a commit
 * makes the change durable. Data that is written in place needs neither (fs/data/in_place.h).
 *
 *      try: inode locked, log entered, state described, record written, its data landed, left,
 *      unlocked --waits for the records before it--> durable
 *      too much dirty, or on its way: lands, and tries again; anything else: commits
 *
 * While the device writes the record, the inode's lock is *kept* (zf_rwlock_keep()): readers go on,
 * and so do writes that only make blocks dirty. Only one data sync of a file runs at a time. A data
 * sync that begins after a thread has written also serves that thread.
 */
#ifndef ZF_FS_DURABLE_H
#define ZF_FS_DURABLE_H

#include <stdbool.h>

struct zf_ctx;
struct zf_fs;
struct zf_inode;

/*
 * Makes durable all that was done to the inode before this call, and all operations on names. With
 * `data_only` (fdatasync) the times are left out, unless chattr +S is set. With `data_only`, if
 * only data that is written in place is not durable yet, the names are left out, too. -errno also
 * if data of the file was lost and ctx->errors was not told of it yet (fs/core/write_error.h). No
 * lock and no join held; it waits.
 */
int zf_durable_inode(struct zf_inode *inode, const struct zf_ctx *ctx, bool data_only);
/*
 * The same, if one record of the log is enough. -EAGAIN, and the caller uses zf_durable_inode():
 * data has to land first; or a commit is needed; or another thread has locked the inode or syncs
 * it, and may be waiting for a commit; or this filesystem has data that is written in place.
 */
int zf_durable_by_record(struct zf_inode *inode, const struct zf_ctx *ctx, bool data_only);
/*
 * Makes all operations before this call durable: fsync of a directory. No lock and no join held; it
 * waits.
 */
int zf_durable_names(struct zf_fs *fs);

#endif
