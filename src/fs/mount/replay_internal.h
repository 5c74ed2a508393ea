/* SPDX-License-Identifier: MIT */
/*
 * What the files of the replay share: replay.c, replay_operation.c, replay_extents.c,
 * replay_piece.c.
 *
 * No other thread uses the filesystem yet, so a result of a look-up stays true, even without a
 * lock.
 */
#ifndef ZF_FS_REPLAY_INTERNAL_H
#define ZF_FS_REPLAY_INTERNAL_H

#include "fs/map/extent.h"
#include "fs/core/inode.h"
#include "log/body.h"

/* One body, and what it is applied to. */
struct zf_replay {
	struct zf_fs *fs;
	const struct zf_log_body_view *body;
};

/* 0 or -errno, which was reported. A body that does not fit the state has changed nothing. */
int zf_replay_operation(struct zf_replay *replay);
int zf_replay_extents(struct zf_replay *replay);

/* Reports that the body does not fit the state. Returns -EUCLEAN. */
int zf_replay_misfit(const struct zf_replay *replay, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Joins, and may use the whole reserve. To find room it commits, and resets zones that may be
 * reset.
 */
int zf_replay_join(struct zf_replay *replay, unsigned int items, struct zf_trans *ret_trans);
/*
 * Called in the join that applies the rest of the body: the next commit says that the body is in
 * the trees.
 */
void zf_replay_done(struct zf_replay *replay);

/*
 * Adapts an inode's item from the log to the transaction `generation`, because the item may have a
 * later generation, of a transaction that was lost.
 */
void zf_replay_settle_item(struct zf_disk_inode *disk, uint64_t generation);

/*
 * Sets a file's size, in as many joins as needed. Afterwards nothing of the change is in memory
 * only. Doing it twice gives the same result. The inode is not locked.
 */
int zf_replay_resize(struct zf_inode *inode, uint64_t size);

/* ---- replay_piece.c ---- */

/*
 * Puts the next part of a DATA range, from `done` on, as one extent, unless it is in the tree
 * already. *ret_len: its length, at most `len`. The inode is not locked, no join is held.
 */
int zf_replay_piece(struct zf_replay *replay, struct zf_inode *inode,
		    const struct zf_log_range_view *range, uint64_t done, uint64_t len,
		    uint64_t *ret_len);

#endif
