/* SPDX-License-Identifier: MIT */
/*
 * Room for data that users write: reserving room, waiting for room, and slowing writers down before
 * it runs out (P5).
 *
 * A reservation tries these sources, in this order: room that is free now; room that landing and
 * deleting give back; reclaim (zf_reclaim_make_room), which makes one commit for as many zones as
 * are worth it; and last, a commit that gives back anything at all. The result is -ENOSPC only if
 * live and reserved data fill the device even with all garbage gone (zf_alloc_could_reserve), or if
 * the live data that is in the way cannot be moved. While the daemon believes that a file without a
 * name is still open, a reservation first waits for its close: a tenth of a second, or up to ten
 * seconds while other threads delete files.
 *
 * An effort that gave no room is not repeated before something was freed (alloc/vain.h), so a
 * program that retries after ENOSPC causes no commits. Removals always make the effort.
 *
 * Waiting callers are served in turn. While one waits, later callers queue behind it, even if the
 * room that they want is free. So later callers cannot take the room that came back for the first
 * one. And each wait ends: while callers queue, no writer makes new garbage, and each round leaves
 * less of it.
 *
 * Slowing down (room_pace.c). A writer that finds no room at all waits for a whole victim to be
 * moved and for a commit. To avoid that long wait, writers are slowed down as soon as fewer zones
 * are ready than reclaim's target. Let R be the zones that come back each second, H the ready
 * zones, and M the zones that are missing of the target. All writers together get about R * H / M
 * zones a second: more than R near the target, less than R when few zones are ready. If nothing can
 * come back, slowing down would not help, and no writer is slowed down.
 *
 * No function here may be called with a lock or a join held, because reclaim takes inode locks. An
 * operation that finds no room while it holds its inode's lock releases the lock, waits
 * (zf_room_wait), and starts over. So up to that point it has changed nothing, or only what it may
 * do twice.
 */
#ifndef ZF_FS_ROOM_H
#define ZF_FS_ROOM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "alloc/reserve.h"
#include "alloc/vain.h"
#include "base/lock.h"
#include "fs/core/inode.h"

/* fs->room, for the whole life of the mount. */
struct zf_room {
	struct zf_mutex lock;	   /* ZF_RANK_ROOM: held by the thread whose turn it is */
	struct zf_vain no_garbage; /* efforts of reclaim that were in vain */
	atomic_uint waiting;	   /* threads that hold `lock` or wait for it */
	/* Writers that have reserved slack for guaranteed blocks, and have not used it yet. */
	atomic_uint overwriting;

	/* Nanoseconds that a block costs its writer now; 0: there is room enough. */
	_Atomic uint64_t cost_ns;
	/*
	 * When the turn of the last writer is. All writers share it, so their number does not
	 * change their common rate.
	 */
	_Atomic uint64_t turn_ns;
	/* When zf_room_look() was called last, and fs->flush.zones_begun at that time. */
	_Atomic uint64_t looked_ns;
	atomic_uint looked_zones;

	struct zf_mutex pace_lock; /* ZF_RANK_DEV; for the rest */
	struct zf_cond eased;	   /* cost_ns became 0 */
	uint32_t had, had_begun;   /* at the last look: zones that were ready, and zones_begun */
	uint64_t came, during_ns;  /* zones that came back lately, in thousandths, and the time */
};
int zf_room_init(struct zf_fs *fs);
void zf_room_deinit(struct zf_fs *fs); /* does nothing if it was not made */

/* What one operation has tried to get room. All zero: nothing yet. */
struct zf_room_search {
	uint64_t began_ns;   /* 0: not yet */
	uint64_t seen;	     /* fs->deletions before the last try */
	bool overdue;	     /* the try after CLOSE_MS was made */
	bool landed;	     /* dirty data has landed, and files without a name are deleted */
	unsigned int rounds; /* of reclaim */
	bool vain;	     /* the last round was in vain */
	struct zf_vain_trial trial;
};

/*
 * Reserves as zf_txn_reserve() does, for class NORMAL or OVERWRITE. With a search it waits as
 * described above, and uses only search->began_ns; the caller holds no lock and no join. Without
 * one (NULL) it does not wait: -EAGAIN.
 */
int zf_room_reserve(struct zf_fs *fs, enum zf_reserve_class class, uint64_t data_blocks,
		    uint64_t items, struct zf_room_search *search);

/*
 * For an operation of this class that got -ENOSPC, has changed nothing and holds no lock: makes
 * room or waits for it, for a bounded time, and returns whether the operation should try again.
 */
bool zf_room_wait(struct zf_fs *fs, enum zf_reserve_class class, struct zf_room_search *search);

/*
 * Computes again how much writers are slowed down. Called when zones came back, and when data has
 * begun a zone.
 */
void zf_room_look(struct zf_fs *fs);
/* The slow path of zf_room_pace(): writers are being slowed down. */
int zf_room_take_turn(struct zf_fs *fs, uint64_t blocks, bool may_wait);

/*
 * Called by a writer that is about to write `blocks` blocks: slows the writer down so that reclaim
 * keeps up. -EAGAIN: it would have to wait, and may_wait is false. The caller holds no lock and no
 * join.
 */
static inline int zf_room_pace(struct zf_fs *fs, uint64_t blocks, bool may_wait)
{
	struct zf_room *room = fs->room;

	if (atomic_load_explicit(&fs->flush.zones_begun, memory_order_relaxed) !=
	    atomic_load_explicit(&room->looked_zones, memory_order_relaxed))
		zf_room_look(fs);
	if (atomic_load_explicit(&room->cost_ns, memory_order_relaxed) == 0)
		return 0;
	return zf_room_take_turn(fs, blocks, may_wait);
}

/* For the statistics: a writer has waited for room since began_ns (zf_room_now_ns()). */
void zf_room_waited(struct zf_fs *fs, uint64_t began_ns);
uint64_t zf_room_now_ns(void);

#endif
