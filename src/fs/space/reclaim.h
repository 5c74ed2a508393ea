/* SPDX-License-Identifier: MIT */
/*
 * Reclaim: moves live data out of zones that are mostly garbage, so that these zones can be reset.
 *
 *      victim --find: who names its bytes--> pieces --sort by inode and offset--> read, verified
 *      --append to the COLD stream--> landed --swap, if still unchanged--> the victim holds nothing
 *      --commit--> reset (txn/tidy.c)
 *
 * Finding. The summary tree says for which file each run of the zone's blocks was written. The
 * share tree says which extents name shared blocks. Both may have entries that are out of date. So
 * a piece counts only if an extent of that inode names just these bytes now; the swap checks that
 * again.
 *
 * Moving. Pieces are moved in the order of inode and offset, so a scattered file lies together
 * afterwards. Each block is verified against its checksum when it is read (P4): a block that does
 * not match is reported and not moved. No lock is held while data moves; if a file is written
 * meanwhile, the new data stays.
 *
 * Swapping. A swap holds the inode's lock and is part of the running transaction: an extent names
 * the new address instead of the old one, for the same bytes. Nothing else of the file changes. The
 * log gets no record of it: until the transaction is durable, the victim is not reset, so a replay
 * finds the data at the old address; afterwards S and O of the superblock cover it. But a record
 * that names the new address must not be durable before the moved data is (write_mark,
 * fs/core/data_memory.h). Shared bytes are moved once, and each extent that names them is swapped
 * by itself.
 *
 * The victim counts as having a reader from its choice until reclaim is done with it, so it is not
 * reset. After a power cut each extent names the old address or the new one, and the data is at
 * both.
 *
 * Two kinds of threads run reclaim: the background, while there are fewer zones than the target
 * (alloc/reclaim.h), and a thread that waits for room. One thread runs reclaim at a time; the
 * others wait, and then use the room that it gave back. The caller of any function of this header
 * holds no lock and no join.
 */
#ifndef ZF_FS_RECLAIM_H
#define ZF_FS_RECLAIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "alloc/reclaim.h"
#include "base/lock.h"

struct zf_fs;

/* Counters since the mount. Bytes, but zones for victims, emptied, meta_victims and stuck. */
struct zf_reclaim_stats {
	uint64_t victims; /* zones */
	uint64_t emptied; /* of these: emptied wholly */
	uint64_t live;	  /* in the victims when they were chosen */
	uint64_t moved;
	uint64_t changed;	 /* copied, but changed in the file meanwhile */
	uint64_t meta_victims;	 /* zones of metadata, whose nodes were moved */
	uint64_t stuck;		 /* zones with blocks that could not be read */
	uint64_t waits, wait_ns; /* waits of writers for room: how often, and how long in all */
};

/* fs->reclaim, for the whole life of the mount. */
struct zf_reclaim {
	struct zf_mutex lock; /* ZF_RANK_RECLAIM: one victim at a time */
	_Atomic uint64_t
		rounds;	      /* counts efforts that gave room back: threads that waited check it */
	atomic_bool paused;   /* for the background */
	atomic_bool stopping; /* the present victim is left as it is */
	struct zf_mutex stats_lock; /* ZF_RANK_DEV */
	struct zf_reclaim_stats stats;
	/*
	 * For tests without threads: called between copying and swapping, without a lock, to run
	 * other operations.
	 */
	void (*copied)(void *arg);
	void *copied_arg;
};
int zf_reclaim_init(struct zf_fs *fs);
void zf_reclaim_deinit(struct zf_fs *fs); /* does nothing if it was not made */

void zf_reclaim_get_stats(struct zf_fs *fs, struct zf_reclaim_stats *ret_stats);

/*
 * Moves out of the next victim all that can be moved. 1: it did something; 0: there is no victim;
 * -errno: an error that ends reclaim (-EROFS, -ENOMEM, -ENOSPC: there is no room to move to).
 */
int zf_reclaim_one(struct zf_fs *fs, enum zf_reclaim_need need);
/*
 * The same, but -EBUSY while another thread runs reclaim, because that thread may take many
 * victims.
 */
int zf_reclaim_try_one(struct zf_fs *fs, enum zf_reclaim_need need);
/* The same with this zone, however little garbage it has: for tests and `zfusectl gc run`. */
int zf_reclaim_zone(struct zf_fs *fs, uint32_t zone_no);

/*
 * For a thread that waits for room: resets zones that may be reset. If there is none, empties
 * victims until enough zones are coming to be worth a commit, and commits. 1: a zone has come back,
 * or another thread made progress meanwhile; 0: nothing came back; -errno.
 */
int zf_reclaim_make_room(struct zf_fs *fs);

/* One step of the background: one victim, or one commit. > 0: there may be more to do. */
int zf_reclaim_in_peace(struct zf_fs *fs);
/*
 * The periodic commit, if anything is dirty. Below the target it also drops the summaries of zones
 * that are coming and resets these zones afterwards, which would otherwise take another commit. 0
 * or -errno.
 */
int zf_reclaim_commit(struct zf_fs *fs);
/* `zfusectl gc pause`: the background stops reclaim; threads that wait for room still run it. */
void zf_reclaim_pause(struct zf_fs *fs, bool pause);
bool zf_reclaim_is_paused(struct zf_fs *fs);
/*
 * Before an unmount: a thread that runs reclaim ends soon, and the background does not begin again.
 */
void zf_reclaim_stop(struct zf_fs *fs);

#endif
