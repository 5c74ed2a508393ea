/* SPDX-License-Identifier: MIT */
/* Reserving and waiting for room. */
#include "fs/space/room.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "alloc/zone.h"
#include "base/plant.h"
#include "fs/core/inode.h"
#include "fs/data/append.h"
#include "fs/data/delete.h"
#include "fs/data/flush.h"
#include "fs/space/reclaim.h"

/*
 * The most rounds of reclaim that one search makes, for each zone of the filesystem. This is a
 * bound for the case that writers use up what each round gives back: by then every zone could have
 * been a victim twice.
 */
#define ROUNDS_PER_ZONE 2u

/*
 * How many rounds in a row may give nothing back although zf_alloc_could_reserve() says that
 * reclaim could make the room. Garbage in a zone that is being read, or whose appends have not
 * landed, comes back a little later. FRUITLESS_MS is the pause before another such round, and the
 * poll interval of await_deletion() and await_overwrites().
 */
#define FRUITLESS_MAX 4u
#define FRUITLESS_MS  5u

/*
 * How long a search waits for the RELEASE and FORGET of a file that has no name. The kernel sends
 * RELEASE after close() has returned, and FORGET after that. On a busy machine the daemon may
 * handle both later than the next write. The program expects the closed file's room to be free, but
 * the daemon has not deleted the file yet.
 */
#define CLOSE_MS UINT64_C(100)

/*
 * The longest wait for room while other threads delete one file after the other, or have slack
 * reserved.
 */
#define OTHERS_MS UINT64_C(10000)

int zf_room_init(struct zf_fs *fs)
{
	fs->room = calloc(1, sizeof(*fs->room));
	if (!fs->room)
		return -ENOMEM;
	zf_mutex_init(&fs->room->lock, ZF_RANK_ROOM);
	zf_mutex_init(&fs->room->pace_lock, ZF_RANK_DEV);
	zf_cond_init(&fs->room->eased);
	return 0;
}

void zf_room_deinit(struct zf_fs *fs)
{
	if (!fs->room)
		return;
	zf_cond_deinit(&fs->room->eased);
	zf_mutex_deinit(&fs->room->pace_lock);
	zf_mutex_deinit(&fs->room->lock);
	free(fs->room);
}

uint64_t zf_room_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void zf_room_waited(struct zf_fs *fs, uint64_t began_ns)
{
	struct zf_reclaim *reclaim = fs->reclaim;

	zf_mutex_lock(&reclaim->stats_lock);
	reclaim->stats.waits++;
	reclaim->stats.wait_ns += zf_room_now_ns() - began_ns;
	zf_mutex_unlock(&reclaim->stats_lock);
}

/* ---- what gives room back ---- */

/*
 * Lands all data and deletes files without a name. A dirty block has reserved its worst case;
 * landed, it takes only what it needs. An append in flight counts as live, and its zone is no
 * victim, even if its file was truncated meanwhile and the bytes are garbage.
 */
static void land_and_delete(struct zf_fs *fs)
{
	(void)zf_flush_land_all(fs);
	zf_append_await_all(fs);
	zf_delete_doomed(fs);
}

static void begin(struct zf_room_search *search, uint64_t now_ns)
{
	if (search->began_ns == 0)
		search->began_ns = now_ns;
}

static bool has_passed_ms(const struct zf_room_search *search, uint64_t ms)
{
	return zf_room_now_ns() >= search->began_ns + ms * 1000000;
}

/*
 * Bounds the wait, because other threads may delete files without end: one try after CLOSE_MS, and
 * further tries only while a deletion is under way, up to OTHERS_MS (checked only before a wait).
 */
static bool may_await_deletion(struct zf_fs *fs, struct zf_room_search *search)
{
	if (!has_passed_ms(search, CLOSE_MS))
		return true;
	if (search->overdue &&
	    (atomic_load(&fs->deleting) == 0 || has_passed_ms(search, OTHERS_MS)))
		return false;
	search->overdue = true;
	return true;
}

/*
 * Waits until fs->deletions differs from `seen`: a file without a name has been doomed (the caller
 * may delete it then) or deleted. The wait lasts as long as another thread deletes a file; while
 * such a file is only open, the wait ends CLOSE_MS after the beginning of the search. False: no
 * file was doomed or deleted. The caller does not hold room->lock, so other threads that look for
 * room need not wait for this.
 */
static bool await_deletion(struct zf_fs *fs, uint64_t seen, struct zf_room_search *search)
{
	if (!fs->options.threads || !may_await_deletion(fs, search))
		return false;
	while (atomic_load(&fs->deletions) == seen) {
		if (zf_txn_error(fs->txn))
			return false;
		/* The last such file may have been deleted between the two loads. */
		if (atomic_load(&fs->unlinked_count) == 0)
			return atomic_load(&fs->deletions) != seen;
		if (atomic_load(&fs->deleting) == 0 && has_passed_ms(search, CLOSE_MS))
			return false;
		zf_append_wait_ms(fs, FRUITLESS_MS);
	}
	return true;
}

/*
 * Counts a round. Returns whether the round may run: not during a replay, not beyond the bound, and
 * for users not if it is known to be in vain.
 */
static bool may_reclaim(struct zf_fs *fs, enum zf_reserve_class class,
			struct zf_room_search *search)
{
	/* During a replay no data may be moved, because a record may name it. */
	if (fs->recovering || ZF_PLANTED(ZF_BUG_ROOM_NOT_RECLAIMED))
		return false;
	if (search->rounds++ == 0)
		zf_vain_begin(&search->trial, fs->alloc);
	return search->rounds <= ROUNDS_PER_ZONE * zf_alloc_zone_count(fs->alloc) &&
	       (!zf_reserve_is_of_user(class) ||
		!zf_vain_is_known(&fs->room->no_garbage, fs->alloc));
}

static bool reclaim(struct zf_fs *fs, enum zf_reserve_class class, struct zf_room_search *search)
{
	int r;

	if (!may_reclaim(fs, class, search))
		return false;
	r = zf_reclaim_make_room(fs);
	if (r > 0 && (!zf_reserve_is_of_user(class) || zf_vain_goes_on(&search->trial, fs->alloc)))
		return true;
	search->vain = r >= 0 || r == -ENOSPC;
	if (search->vain)
		zf_vain_end(&fs->room->no_garbage, fs->alloc, &search->trial);
	return false;
}

/*
 * The search ends without room. If its last round of reclaim was in vain, remembers all efforts
 * once more, as of now, because the commits of later efforts ended the memory of earlier ones.
 */
static void give_up(struct zf_fs *fs, const struct zf_room_search *search)
{
	if (!search->vain)
		return;
	zf_vain_end(&fs->room->no_garbage, fs->alloc, &search->trial);
	zf_txn_room_was_sought(fs->txn, &search->trial);
}

bool zf_room_wait(struct zf_fs *fs, enum zf_reserve_class class, struct zf_room_search *search)
{
	uint64_t began = zf_room_now_ns();
	bool worth = true;

	begin(search, began);
	if (!search->landed)
		land_and_delete(fs);
	else
		worth = reclaim(fs, class, search);
	search->landed = true;
	if (!worth && await_deletion(fs, search->seen, search)) {
		land_and_delete(fs);
		worth = true;
	}
	/*
	 * Loaded before the caller tries again: a deletion that comes too late for that try ends
	 * the next wait at once.
	 */
	search->seen = atomic_load(&fs->deletions);
	if (!worth)
		give_up(fs, search);
	zf_room_waited(fs, began);
	return worth && !zf_txn_error(fs->txn);
}

/* ---- reserving ---- */

/* Reserves from the room that is free now. -EAGAIN: that is not enough. */
static int reserve(struct zf_fs *fs, enum zf_reserve_class class, uint64_t data_blocks,
		   uint64_t items)
{
	return zf_txn_reserve(fs->txn, class, data_blocks, items, false);
}

/*
 * Lands, deletes and reserves. While the reservation fails, resets zones, and commits as long as a
 * commit would give a zone back. -ENOSPC: that was not enough.
 */
static int reserve_all_there_is(struct zf_fs *fs, enum zf_reserve_class class, uint64_t data_blocks,
				uint64_t items)
{
	land_and_delete(fs);
	return zf_txn_reserve(fs->txn, class, data_blocks, items, true);
}

static int reserve_in_turn_locked(struct zf_fs *fs, enum zf_reserve_class class,
				  uint64_t data_blocks, uint64_t items)
{
	int r = reserve(fs, class, data_blocks, items);
	struct zf_room_search search = {0};
	unsigned int fruitless = 0;

	/*
	 * This comes before reclaim, because data that is about to be deleted or overwritten need
	 * not be moved.
	 */
	if (r == -EAGAIN) {
		land_and_delete(fs);
		r = reserve(fs, class, data_blocks, items);
	}
	while (r == -EAGAIN || r == -ENOSPC) {
		/*
		 * Reclaim comes before commits of this thread's own: it makes one commit for many
		 * zones.
		 */
		if (zf_alloc_could_reserve(fs->alloc, class, data_blocks, items) &&
		    reclaim(fs, class, &search)) {
			fruitless = 0;
			r = reserve(fs, class, data_blocks, items);
			continue;
		}
		if (fruitless > 0)
			zf_append_wait_ms(fs, FRUITLESS_MS);
		r = reserve_all_there_is(fs, class, data_blocks, items);
		if (++fruitless == FRUITLESS_MAX ||
		    !zf_alloc_could_reserve(fs->alloc, class, data_blocks, items))
			break;
	}
	if (r == -ENOSPC)
		give_up(fs, &search);
	return r;
}

static int reserve_in_turn(struct zf_fs *fs, enum zf_reserve_class class, uint64_t data_blocks,
			   uint64_t items)
{
	int r;

	atomic_fetch_add(&fs->room->waiting, 1);
	zf_mutex_lock(&fs->room->lock);
	r = reserve_in_turn_locked(fs, class, data_blocks, items);
	zf_mutex_unlock(&fs->room->lock);
	atomic_fetch_sub(&fs->room->waiting, 1);
	return r;
}

/*
 * For class OVERWRITE: if other writers have reserved slack for guaranteed blocks, waits a moment,
 * because reclaim can restore the slack when those writers have written. False: another class, no
 * such writer, or OTHERS_MS are over.
 */
static bool await_overwrites(struct zf_fs *fs, enum zf_reserve_class class,
			     const struct zf_room_search *search)
{
	if (class != ZF_RESERVE_OVERWRITE || atomic_load(&fs->room->overwriting) == 0 ||
	    has_passed_ms(search, OTHERS_MS))
		return false;
	zf_append_wait_ms(fs, FRUITLESS_MS);
	return true;
}

static int reserve_waiting(struct zf_fs *fs, enum zf_reserve_class class, uint64_t data_blocks,
			   uint64_t items, struct zf_room_search *search)
{
	uint64_t began = zf_room_now_ns(), seen;
	int r;

	begin(search, began);
	do {
		seen = atomic_load(&fs->deletions);
		r = reserve_in_turn(fs, class, data_blocks, items);
	} while (r == -ENOSPC &&
		 (await_overwrites(fs, class, search) || await_deletion(fs, seen, search)));
	zf_room_waited(fs, began);
	return r;
}

int zf_room_reserve(struct zf_fs *fs, enum zf_reserve_class class, uint64_t data_blocks,
		    uint64_t items, struct zf_room_search *search)
{
	int r = -EAGAIN;

	if (atomic_load_explicit(&fs->room->waiting, memory_order_relaxed) == 0)
		r = reserve(fs, class, data_blocks, items);
	return r == -EAGAIN && search ? reserve_waiting(fs, class, data_blocks, items, search) : r;
}
