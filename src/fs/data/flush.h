/* SPDX-License-Identifier: MIT */
/* Flush: the bound of dirty blocks in memory, and starting the appends of dirty blocks. */
#ifndef ZF_FS_FLUSH_H
#define ZF_FS_FLUSH_H

#include <stdbool.h>
#include <stdint.h>

#include "txn/txn.h"

struct zf_append;
struct zf_fs;
struct zf_inode;

/*
 * Counts `blocks` more against the bound of dirty data (mount option dirty=). Waits until others
 * have landed, or returns -EAGAIN. A call for more than the bound succeeds when no other block is
 * in memory. No lock and no join held.
 */
int zf_flush_admit(struct zf_fs *fs, unsigned int blocks, bool may_wait);
/* The same, but it always succeeds: for the few further blocks that an operation needs. */
void zf_flush_admit_always(struct zf_fs *fs, unsigned int blocks);
/* Takes the blocks off the count again; threads in zf_flush_admit() try again. */
void zf_flush_release(struct zf_fs *fs, unsigned int blocks);

/*
 * Called after blocks became dirty: wakes the flusher if many bytes are dirty, or if a thread waits
 * in zf_flush_admit(). Without threads it does nothing.
 */
void zf_flush_check(struct zf_fs *fs);
/* Asks the flusher to start appends of this inode: it has enough consecutive blocks to fill one. */
void zf_flush_want_eager(struct zf_inode *inode);
void zf_flush_run_eager(struct zf_fs *fs);
/* Empties that list at the unmount, when no flusher runs any more. */
void zf_flush_drop_eager(struct zf_fs *fs);
/*
 * Starts appends of blocks that became dirty before `born_ms` (CLOCK_MONOTONIC_COARSE), and stores
 * items.
 */
int zf_flush_run_aged(struct zf_fs *fs, uint64_t born_ms);

/*
 * Returns when all blocks that are dirty now have landed or are lost; a loss is noted for fsync. No
 * lock held.
 */
int zf_flush_land(struct zf_inode *inode);
/* The same for all files. -ENOMEM is its only error. */
int zf_flush_land_all(struct zf_fs *fs);
/*
 * zf_flush_land(), with FUA if the dirty blocks fit into one append; for more, one flush is
 * cheaper.
 */
int zf_flush_land_durably(struct zf_inode *inode);
/*
 * Takes those of the inode's dirty blocks into flight that may be written now, as many as fit the
 * append.
 */
void zf_flush_pack(struct zf_append *append, struct zf_inode *inode);

/*
 * Locks the inode exclusively and joins the running transaction, to record data that a write was
 * answered for. So the join may use the room kept for removals. The call does not hold the lock
 * while it waits for a commit; only its last attempt does, after four that failed.
 */
int zf_data_join(struct zf_inode *inode, unsigned int items, struct zf_trans *ret_trans);
/* The same for `most` items, or for `least` if there is room for no more without waiting. */
int zf_data_join_some(struct zf_inode *inode, unsigned int most, unsigned int least,
		      unsigned int *ret_items, struct zf_trans *ret_trans);
/* The same without waiting for the lock or the join; -EAGAIN if it would have to. */
int zf_data_try_join(struct zf_inode *inode, unsigned int items, struct zf_trans *ret_trans);
/* Takes the inode off the list of dirty ones if it is clean, and unlocks it. No join held. */
void zf_data_unlock(struct zf_inode *inode);

#endif
