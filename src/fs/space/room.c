/* SPDX-License-Identifier: MIT */
/* Reserving and waiting for room. */
#include "fs/space/room.h"

#include <errno.h>
#include <time.h>

#include "base/plant.h"
#include "fs/data/append.h"
#include "fs/data/flush.h"
#include "fs/core/inode.h"

/*
 * Rounds of reclaim for each zone that there is, at most: by then each has been a victim, and yet
 * what is wanted is not there.
 */
#define ROUNDS_PER_ZONE 2u

/*
 * Rounds in a row that give nothing back though something is foreseen. What is being read, or is
 * not landed yet, or waits for others' zones to be finished, comes back a little later.
 */
#define FRUITLESS_MAX 4u
#define FRUITLESS_MS  5u

/*
 * The kernel tells of the last close of a file without a name after close() has returned, and that
 * nobody can open it any more after that. On a busy machine the daemon's threads come to it later
 * than the next write, which finds no room that its writer knows to be there.
 */
#define CLOSE_MS UINT64_C(100)

void zf_room_init(struct zf_fs *fs)
{
	zf_mutex_init(&fs->room.lock, ZF_RANK_ROOM);
	zf_mutex_init(&fs->room.pace_lock, ZF_RANK_DEV);
	zf_cond_init(&fs->room.eased);
}

void zf_room_deinit(struct zf_fs *fs)
{
	zf_cond_deinit(&fs->room.eased);
	zf_mutex_deinit(&fs->room.pace_lock);
	zf_mutex_deinit(&fs->room.lock);
}

uint64_t zf_room_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void zf_room_waited(struct zf_fs *fs, uint64_t began_ns)
{
	struct zf_reclaim *reclaim = &fs->reclaim;

	zf_mutex_lock(&reclaim->stats_lock);
	reclaim->stats.waits++;
	reclaim->stats.wait_ns += zf_room_now_ns() - began_ns;
	zf_mutex_unlock(&reclaim->stats_lock);
}

/* ---- what gives room back ---- */

/* What is dirty has reserved the worst; landed, it takes what it takes. */
static void land_and_delete(struct zf_fs *fs)
{
	(void)zf_flush_land_all(fs);
	zf_orphan_run(fs);
}

static bool has_doomed(struct zf_fs *fs)
{
	bool r;

	zf_mutex_lock(&fs->lock);
	r = !TAILQ_EMPTY(&fs->doomed);
	zf_mutex_unlock(&fs->lock);
	return r;
}

/*
 * Waits until a file without a name is deleted or can be: for one that another thread deletes
 * as long as that takes, for one that is open CLOSE_MS from the beginning of the search on, so that
 * those who look for room one after the other wait at the same time. False: nothing came.
 */
static bool await_deletion(struct zf_fs *fs, const struct zf_room_search *search)
{
	uint64_t deleted = atomic_load(&fs->deleted);
	uint64_t end = search->began_ns + CLOSE_MS * 1000000;

	if (!fs->options.threads || fs->recovering)
		return false;
	while (!has_doomed(fs) && atomic_load(&fs->deleted) == deleted) {
		if (zf_txn_error(fs->txn) || atomic_load(&fs->unlinked_count) == 0)
			return false;
		if (atomic_load(&fs->deleting) == 0 && zf_room_now_ns() >= end)
			return false;
		zf_flush_wait_ms(fs, FRUITLESS_MS);
	}
	return true;
}

/* Is it allowed, and not known to be in vain? */
static bool may_reclaim(struct zf_fs *fs, enum zf_reserve_class class,
			struct zf_room_search *search)
{
	/* A replay has room of its own, and moves nothing that a record may name. */
	if (fs->recovering || ZF_PLANTED(ZF_BUG_ROOM_NOT_RECLAIMED))
		return false;
	if (search->rounds++ == 0)
		zf_vain_begin(&search->trial, fs->alloc);
	return search->rounds <= ROUNDS_PER_ZONE * zf_alloc_zone_count(fs->alloc) &&
	       (class != ZF_RESERVE_NORMAL || !zf_vain_is_known(&fs->room.no_garbage, fs->alloc));
}

static bool reclaim(struct zf_fs *fs, enum zf_reserve_class class, struct zf_room_search *search)
{
	int r;

	if (!may_reclaim(fs, class, search))
		return false;
	r = zf_reclaim_make_room(fs);
	if (r > 0 && (class != ZF_RESERVE_NORMAL || zf_vain_goes_on(&search->trial, fs->alloc)))
		return true;
	search->vain = r >= 0 || r == -ENOSPC;
	if (search->vain)
		zf_vain_end(&fs->room.no_garbage, fs->alloc, &search->trial);
	return false;
}

/* Everything has been tried, one after the other: commits of one are no hope for the others. */
static void give_up(struct zf_fs *fs, const struct zf_room_search *search)
{
	if (!search->vain)
		return;
	zf_vain_end(&fs->room.no_garbage, fs->alloc, &search->trial);
	zf_txn_room_was_sought(fs->txn, &search->trial);
}

bool zf_room_wait(struct zf_fs *fs, enum zf_reserve_class class, struct zf_room_search *search)
{
	uint64_t began = zf_room_now_ns();
	bool worth = true;

	if (search->began_ns == 0)
		search->began_ns = began;
	if (!search->landed)
		land_and_delete(fs);
	else
		worth = reclaim(fs, class, search);
	search->landed = true;
	if (!worth && await_deletion(fs, search)) {
		land_and_delete(fs);
		worth = true;
	}
	if (!worth)
		give_up(fs, search);
	zf_room_waited(fs, began);
	return worth && !zf_txn_error(fs->txn);
}

/* ---- reserving ---- */

/* What is there. -EAGAIN: not enough. */
static int reserve(struct zf_fs *fs, uint64_t data_blocks, uint64_t items)
{
	return zf_txn_reserve(fs->txn, ZF_RESERVE_NORMAL, data_blocks, items, false);
}

/* And what landing, deleting and a commit of one's own give back. -ENOSPC: not enough. */
static int reserve_all_there_is(struct zf_fs *fs, uint64_t data_blocks, uint64_t items)
{
	land_and_delete(fs);
	return zf_txn_reserve(fs->txn, ZF_RESERVE_NORMAL, data_blocks, items, true);
}

static int reserve_in_turn_locked(struct zf_fs *fs, uint64_t data_blocks, uint64_t items,
				  uint64_t began_ns)
{
	int r = reserve(fs, data_blocks, items);
	struct zf_room_search search = {.began_ns = began_ns};
	unsigned int fruitless = 0;

	/* What is going to be deleted, or overwritten by what is dirty, need not be moved. */
	if (r == -EAGAIN) {
		land_and_delete(fs);
		r = reserve(fs, data_blocks, items);
	}
	while (r == -EAGAIN || r == -ENOSPC) {
		/* Reclaim brings as many zones with a commit as it is worth; nobody else does. */
		if (zf_alloc_could_reserve(fs->alloc, data_blocks, items) &&
		    reclaim(fs, ZF_RESERVE_NORMAL, &search)) {
			fruitless = 0;
			r = reserve(fs, data_blocks, items);
			continue;
		}
		if (fruitless > 0)
			zf_flush_wait_ms(fs, FRUITLESS_MS);
		r = reserve_all_there_is(fs, data_blocks, items);
		if (++fruitless < FRUITLESS_MAX &&
		    zf_alloc_could_reserve(fs->alloc, data_blocks, items))
			continue;
		if (r == 0 || !await_deletion(fs, &search))
			break;
		fruitless = 0;
	}
	if (r == -ENOSPC)
		give_up(fs, &search);
	return r;
}

static int reserve_waiting(struct zf_fs *fs, uint64_t data_blocks, uint64_t items)
{
	uint64_t began = zf_room_now_ns();
	int r;

	atomic_fetch_add(&fs->room.waiting, 1);
	zf_mutex_lock(&fs->room.lock);
	r = reserve_in_turn_locked(fs, data_blocks, items, began);
	zf_mutex_unlock(&fs->room.lock);
	atomic_fetch_sub(&fs->room.waiting, 1);
	zf_room_waited(fs, began);
	return r;
}

int zf_room_reserve(struct zf_fs *fs, uint64_t data_blocks, uint64_t items, bool may_wait)
{
	int r = -EAGAIN;

	if (atomic_load_explicit(&fs->room.waiting, memory_order_relaxed) == 0)
		r = reserve(fs, data_blocks, items);
	return r == -EAGAIN && may_wait ? reserve_waiting(fs, data_blocks, items) : r;
}
