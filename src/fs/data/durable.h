/* SPDX-License-Identifier: MIT */
/*
 * Making things durable (P1): what fsync, O_DSYNC, chattr +S and the like come to.
 *
 * Small things go into the intent log: one append with FUA that carries the operations until now,
 * the inode's state, and what is still dirty of it. More than that lands first, and the record says
 * where. What cannot be told in one record, or finds no room in the log, is made durable by a
 * commit. What is written in place needs neither: fs/data/in_place.h.
 *
 *      try: inode locked, log entered, state described, record written, its data landed, left,
 *      unlocked --waits for the records before it--> durable
 *      too much dirty, or on its way: lands, and tries again; anything else: commits
 *
 * While the record is on its way the inode's lock is kept (zf_rwlock_keep()): readers go on, and
 * writes that only make blocks dirty. Data syncs of one file are shared: one is under way, and one
 * that begins after somebody has written serves him too.
 */
#ifndef ZF_FS_DURABLE_H
#define ZF_FS_DURABLE_H

#include <stdbool.h>

struct zf_ctx;
struct zf_fs;
struct zf_inode;

/*
 * All that was done to the inode before this call, and all names. With `data_only` (fdatasync) not
 * the times, unless chattr +S asks for them; and if all of the file but times is durable but for
 * what is written in place, that alone, and not the names. -errno too if data of the file is lost
 * and ctx->errors was not told yet (fs/core/write_error.h). No lock and no join held; waits.
 */
int zf_durable_inode(struct zf_inode *inode, const struct zf_ctx *ctx, bool data_only);
/*
 * The same if one record of the log does it. -EAGAIN where data has to land first, a commit is
 * needed, somebody else has the inode locked or is syncing it (he may be waiting for a commit), or
 * data is written in place on this filesystem: then zf_durable_inode() makes up for all of it.
 */
int zf_durable_by_record(struct zf_inode *inode, const struct zf_ctx *ctx, bool data_only);
/* All operations before this call: fsync of a directory. The same conditions. */
int zf_durable_names(struct zf_fs *fs);

#endif
