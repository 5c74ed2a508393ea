/* SPDX-License-Identifier: MIT */
/*
 * Reclaim: gets zones of data back whose rest is garbage, by moving out what is live.
 *
 *      victim --find: who names its bytes--> pieces --sort by inode and offset--> read, verified
 *      --append to the COLD stream--> landed --swap, if still unchanged--> the victim holds nothing
 *      --commit--> reset (txn/tidy.c)
 *
 * Finding. The summary tree says who wrote each run of the zone's blocks, the share tree who names
 * those that several extents name. Both are a superset: each piece counts only if an extent of that
 * inode names just these bytes now, and again when it is swapped.
 *
 * Moving. Pieces go in the order of the files, so what was scattered lies together afterwards. They
 * are verified against their checksums as they are read (P4): a block that is wrong is reported,
 * and stays where it is. Nothing is locked while data moves; a file that is written meanwhile keeps
 * what was written.
 *
 * Swapping. Under the inode's lock, in the running transaction: extents name the new place instead
 * of the old, byte for byte what they named; all else about the file stays as it is. The log need
 * not know: until the transaction is durable its zones stand, and afterwards the log begins behind
 * it. But a record that names the new place must not be durable before the data (write_mark,
 * fs/data/data.h). Bytes that several extents name are moved once, and each name is swapped by
 * itself.
 *
 * The victim is held as by a reader all the time, and a mount after a cut finds either place.
 *
 * Who runs it: the background, below alloc's target; and whoever waits for room, one at a time:
 * those who come meanwhile find what it did. No lock and no join is held around any call of this
 * file.
 */
#ifndef ZF_FS_RECLAIM_H
#define ZF_FS_RECLAIM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "alloc/reclaim.h"
#include "base/lock.h"

struct zf_fs;

/* Of this mount. Bytes, but for the first two and `stuck`. */
struct zf_reclaim_stats {
	uint64_t victims; /* zones */
	uint64_t emptied; /* of these, wholly */
	uint64_t live;	  /* in them when they were chosen */
	uint64_t moved;
	uint64_t changed;	 /* copied, and then no longer what the file had */
	uint64_t meta_victims;	 /* zones of metadata, whose nodes were moved */
	uint64_t stuck;		 /* zones with blocks that could not be read */
	uint64_t waits, wait_ns; /* of writers for room: times, and how long in all */
};

/* fs->reclaim, for the whole life of the mount. */
struct zf_reclaim {
	struct zf_mutex lock; /* ZF_RANK_RECLAIM: one victim at a time */
	_Atomic uint64_t
		rounds;	      /* counts what gave something back: for those who waited meanwhile */
	atomic_bool paused;   /* for the background */
	atomic_bool stopping; /* the victim of now is left as it is */
	struct zf_mutex stats_lock; /* ZF_RANK_DEV */
	struct zf_reclaim_stats stats;
	/* For tests without threads: what others do between copying and swapping. No lock is held.
	 */
	void (*copied)(void *arg);
	void *copied_arg;
};
int zf_reclaim_init(struct zf_fs *fs);
void zf_reclaim_deinit(struct zf_fs *fs); /* does nothing if it was not made */

void zf_reclaim_get_stats(struct zf_fs *fs, struct zf_reclaim_stats *ret_stats);

/*
 * Empties the next victim as far as that goes. 1: it did something; 0: there is none; -errno: an
 * error that concerns all (-EROFS, -ENOMEM, -ENOSPC: no room to move to).
 */
int zf_reclaim_one(struct zf_fs *fs, enum zf_reclaim_need need);
/* The same; -EBUSY while somebody else is at it, who may take many victims in a row. */
int zf_reclaim_try_one(struct zf_fs *fs, enum zf_reclaim_need need);
/* The same with this zone, whatever is in it: for tests and `zfusectl gc run`. */
int zf_reclaim_zone(struct zf_fs *fs, uint32_t zone_no);

/*
 * Somebody waits for room: resets, and if these bring none victims, until what is coming is worth
 * its commit. 1: a zone has come back, or somebody else, the background too, made progress
 * meanwhile; 0: there is nothing to be had; -errno.
 */
int zf_reclaim_make_room(struct zf_fs *fs);

/* What the background does while it is wanted: one victim, or a commit. > 0: again. */
int zf_reclaim_in_peace(struct zf_fs *fs);
/*
 * A commit, if there is anything to commit, because it is time for one: below the target it brings
 * the zones that are coming, which would take another one otherwise. 0 or -errno.
 */
int zf_reclaim_commit(struct zf_fs *fs);
/* `zfusectl gc pause`: the background leaves it; who waits for room does not. */
void zf_reclaim_pause(struct zf_fs *fs, bool pause);
bool zf_reclaim_is_paused(struct zf_fs *fs);
/* The filesystem is about to be unmounted: who runs it ends soon, for good. */
void zf_reclaim_stop(struct zf_fs *fs);

#endif
