/* SPDX-License-Identifier: MIT */
/*
 * Room for what users bring: reserving, waiting for it, and slowing down before it runs out (P5).
 *
 * Reserving tries, in this order: what is there; what landing and deleting give back; what reclaim
 * does (zf_reclaim_make_room), which knows for how many zones a commit is worth it; when that has
 * none, a commit for however little. -ENOSPC only when all of the device's live and
 * reserved data leaves none (zf_alloc_could_reserve), or what is left cannot be moved; and, while
 * a file without a name is open as far as the daemon knows, after a tenth of a second in which its
 * close may come, or ten seconds if others delete files all that time.
 *
 * What gave no room is not done again before something was freed (alloc/vain.h): a program that
 * meets ENOSPC and tries again costs no commits. Removals are not held back by that.
 *
 * Who waits is served in turn: while somebody does, others queue behind him, even if what they
 * want is there. So nobody finds again and again that others took what came back, and everybody
 * comes to an end: garbage gets less with each round, for nobody brings more.
 *
 * Slowing down (room_pace.c). A writer who runs into the wall waits for a whole victim to be moved
 * and for two commits. So before that, as soon as room is below reclaim's target, writers together
 * get as many zones a second as come back, times what is there / what is missing of the target:
 * more than that near the target, less at the wall. Where nothing can come back nobody is slowed
 * down: it would not help.
 *
 * Nothing here is called with a lock or a join held: reclaim takes inode locks. An operation that
 * finds no room under its inode's lock gives that up, having changed nothing or what it may do
 * again, waits (zf_room_wait), and starts over.
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
	struct zf_mutex lock;	   /* ZF_RANK_ROOM: whose turn it is */
	struct zf_vain no_garbage; /* what reclaim did */
	atomic_uint waiting;	   /* who has it, or wants it */
	/* Writers who have slack for guaranteed blocks reserved, and have not used it yet. */
	atomic_uint overwriting;

	/* Nanoseconds that a block costs its writer now; 0: there is room enough. */
	_Atomic uint64_t cost_ns;
	/* When the last writer's turn is: of all, so that however many they are changes nothing. */
	_Atomic uint64_t turn_ns;
	/* When somebody looked last how much room there is, and fs->flush.zones_begun then. */
	_Atomic uint64_t looked_ns;
	atomic_uint looked_zones;

	struct zf_mutex pace_lock; /* ZF_RANK_DEV; the rest */
	struct zf_cond eased;	   /* cost_ns became 0 */
	uint32_t had, had_begun;   /* at the last look: room, and zones_begun */
	uint64_t came, during_ns;  /* what came back of late: thousandths of a zone, and how long */
};
int zf_room_init(struct zf_fs *fs);
void zf_room_deinit(struct zf_fs *fs); /* does nothing if it was not made */

/* Of one operation that finds no room: zeroed, nothing has been tried yet. */
struct zf_room_search {
	uint64_t began_ns;   /* 0: not yet */
	uint64_t seen;	     /* fs->deletions before the last try */
	bool overdue;	     /* it has had its try after CLOSE_MS */
	bool landed;	     /* what is dirty has, and what has no name is deleted */
	unsigned int rounds; /* of reclaim */
	bool vain;	     /* the last of them */
	struct zf_vain_trial trial;
};

/*
 * As zf_txn_reserve() of class NORMAL or OVERWRITE, and with a search all of the above; of the
 * search only its beginning counts; no lock and no join held. Without (NULL) it does not wait:
 * -EAGAIN.
 */
int zf_room_reserve(struct zf_fs *fs, enum zf_reserve_class class, uint64_t data_blocks,
		    uint64_t items, struct zf_room_search *search);

/*
 * An operation of this class got -ENOSPC, has changed nothing and holds no lock: is it worth
 * another try? Waits for what may give room back; never for ever.
 */
bool zf_room_wait(struct zf_fs *fs, enum zf_reserve_class class, struct zf_room_search *search);

/* Looks how much room there is now: when zones came back, or data has begun one. */
void zf_room_look(struct zf_fs *fs);
/* zf_room_pace(), where blocks cost their writer something. */
int zf_room_take_turn(struct zf_fs *fs, uint64_t blocks, bool may_wait);

/*
 * Of a writer who is about to bring `blocks` more: waits as long as is fitting, so that reclaim
 * keeps up. Without may_wait: -EAGAIN instead. No lock and no join held.
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

/* A writer waited for room, from then until now (zf_room_now_ns()): for the statistics. */
void zf_room_waited(struct zf_fs *fs, uint64_t began_ns);
uint64_t zf_room_now_ns(void);

#endif
