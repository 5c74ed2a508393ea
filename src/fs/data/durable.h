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
 * and so do writes that only make blocks dirty. Data syncs of one file are shared
 * (fs/core/sync_share.h).
 */
#ifndef ZF_FS_DURABLE_H
#define ZF_FS_DURABLE_H

#include <stdbool.h>

#include "fs/core/fs.h"
#include "fs/core/sync_share.h"

struct zf_inode;

/*
 * Makes durable all that was done to the inode before this call, and all operations on names. With
 * `data_only` (fdatasync) the times are left out, unless chattr +S is set. With `data_only`, if
 * only data that is written in place is not durable yet, the names are left out, too. -errno also
 * if data of the file was lost and ctx->told does not contain that yet (fs/core/write_error.h). No
 * lock and no join held; it waits.
 */
int zf_durable_inode(struct zf_inode *inode, const struct zf_ctx *ctx, bool data_only);
/*
 * The same, if one record of the log is enough. -EAGAIN, and the caller uses zf_durable_inode():
 * data has to land first; or a commit is needed; or another thread has locked the inode or syncs
 * it, and may be waiting for a commit; or this filesystem has data that is written in place.
 */
int zf_durable_by_record(struct zf_inode *inode, const struct zf_ctx *ctx, bool data_only);

/* A data sync that waits without a thread. */
struct zf_syncing {
	struct zf_sync_waiter waiter;
	struct zf_inode *inode; /* with a use */
	struct zf_told told;
	uint64_t began; /* of the trace */
	bool served;
	zf_syncing_ended_fn *ended;
	void *arg;
};

/*
 * zf_durable_inode() of data only, without a thread: see zf_fs_sync_later(). -EINPROGRESS: the
 * inode's use is now that of zf_durable_later_end(). -EAGAIN: nothing was done.
 */
int zf_durable_later(struct zf_inode *inode, const struct zf_ctx *ctx, zf_syncing_ended_fn *ended,
		     void *arg);
/* Ends what zf_durable_later() began (zf_fs_sync_later_end()), and puts the inode. */
int zf_durable_later_end(struct zf_syncing *syncing);

/*
 * Makes all operations before this call durable: fsync of a directory. No lock and no join held; it
 * waits.
 */
int zf_durable_names(struct zf_fs *fs);

#endif
