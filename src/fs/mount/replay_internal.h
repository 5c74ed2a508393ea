/* SPDX-License-Identifier: MIT */
/*
 * What the files of the replay share: replay.c, replay_operation.c, replay_extents.c,
 * replay_piece.c.
 *
 * Nobody else is there yet: what was looked up stays so, whatever lock is held.
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

/* 0 or -errno, reported. A body of which nothing fits has changed nothing. */
int zf_replay_operation(struct zf_replay *replay);
int zf_replay_extents(struct zf_replay *replay);

/* The body does not fit the state. Returns -EUCLEAN. */
int zf_replay_misfit(const struct zf_replay *replay, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Joins with all that recovery may use; commits, and resets what may be reset, to find it. */
int zf_replay_join(struct zf_replay *replay, unsigned int items, struct zf_trans *ret_trans);
/* In the join that applies the rest of the body: from now on a commit says that it is in the trees.
 */
void zf_replay_done(struct zf_replay *replay);

/*
 * An inode's item as the log has it, for the transaction `generation`: in the past it may have been
 * a later one that was lost.
 */
void zf_replay_settle_item(struct zf_disk_inode *disk, uint64_t generation);

/*
 * Sets a file's size, in as many joins as it takes; nothing of it is in memory only afterwards.
 * Done twice it gives the same. The inode is not locked.
 */
int zf_replay_resize(struct zf_inode *inode, uint64_t size);

/* ---- replay_piece.c ---- */

/*
 * The part of a DATA range from `done` on that is put as one extent, or is there already: *ret_len
 * bytes, at most `len`. The inode is not locked, no join is held.
 */
int zf_replay_piece(struct zf_replay *replay, struct zf_inode *inode,
		    const struct zf_log_range_view *range, uint64_t done, uint64_t len,
		    uint64_t *ret_len);

#endif
