/* SPDX-License-Identifier: MIT */
/* How dirty blocks are let in, and what starts their way to the device. */
#ifndef ZF_FS_FLUSH_H
#define ZF_FS_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "txn/txn.h"

struct zf_append;
struct zf_fs;
struct zf_inode;

/*
 * Room for `blocks` more in memory; waits for others to land, or returns -EAGAIN. No lock and no
 * join held. More than the bound on its own is let in when nothing else is there.
 */
int zf_flush_admit(struct zf_fs *fs, unsigned int blocks, bool may_wait);
/* The same in any case, for the few blocks that an operation needs besides. */
void zf_flush_admit_always(struct zf_fs *fs, unsigned int blocks);
/* Whoever waits for room looks again. */
void zf_flush_release(struct zf_fs *fs, unsigned int blocks);

/* Something became dirty: wakes the flusher if that is much, or if somebody waits for room. Without
 * threads: nothing. */
void zf_flush_check(struct zf_fs *fs);
/* The inode has an append's worth of blocks that were written one behind the other. */
void zf_flush_want_eager(struct zf_inode *inode);
void zf_flush_run_eager(struct zf_fs *fs);
/* Nobody runs them any more. */
void zf_flush_drop_eager(struct zf_fs *fs);
/* Starts what became dirty before `born_ms` (CLOCK_MONOTONIC_COARSE), and stores items. */
int zf_flush_run_aged(struct zf_fs *fs, uint64_t born_ms);

/* Returns when all that is dirty now has landed or is lost, which is noted for fsync. No lock held.
 */
int zf_flush_land(struct zf_inode *inode);
/* The same for all files. Fails for want of memory only. */
int zf_flush_land_all(struct zf_fs *fs);
/* zf_flush_land() with FUA as far as that is worth it. */
int zf_flush_land_durably(struct zf_inode *inode);
/* Takes what may go of the inode's dirty blocks into flight, as far as it fits into the append. */
void zf_flush_pack(struct zf_append *append, struct zf_inode *inode);

/*
 * Locks the inode exclusively and joins the running transaction, to record what was accepted
 * earlier: so it may use what is kept for freeing. The lock is not held while a commit is waited
 * for, unless commits come in between again and again.
 */
int zf_data_join(struct zf_inode *inode, unsigned int items, struct zf_trans *ret_trans);
/* The same for `most` items, or `least` where there is room for no more without waiting. */
int zf_data_join_some(struct zf_inode *inode, unsigned int most, unsigned int least,
		      unsigned int *ret_items, struct zf_trans *ret_trans);
/* The same if neither the lock nor the join has to be waited for; else -EAGAIN. */
int zf_data_try_join(struct zf_inode *inode, unsigned int items, struct zf_trans *ret_trans);
/* Takes the inode off the list of dirty ones if it is clean, and unlocks it. No join held. */
void zf_data_unlock(struct zf_inode *inode);

#endif
