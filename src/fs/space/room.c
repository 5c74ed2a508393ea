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

static bool reclaim(struct zf_fs *fs, unsigned int rounds)
{
	/* A replay has room of its own, and moves nothing that a record may name. */
	return !fs->recovering && !ZF_PLANTED(ZF_BUG_ROOM_NOT_RECLAIMED) &&
	       rounds < ROUNDS_PER_ZONE * zf_alloc_zone_count(fs->alloc) &&
	       zf_reclaim_make_room(fs) > 0;
}

bool zf_room_wait(struct zf_fs *fs, unsigned int *tries)
{
	uint64_t began = zf_room_now_ns();
	unsigned int try = (*tries)++;
	bool worth = true;

	if (try == 0)
		land_and_delete(fs);
	else
		worth = reclaim(fs, try);
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

static int reserve_in_turn_locked(struct zf_fs *fs, uint64_t data_blocks, uint64_t items)
{
	int r = reserve(fs, data_blocks, items);
	unsigned int fruitless = 0;

	/* What is going to be deleted, or overwritten by what is dirty, need not be moved. */
	if (r == -EAGAIN) {
		land_and_delete(fs);
		r = reserve(fs, data_blocks, items);
	}
	for (unsigned int rounds = 0; r == -EAGAIN || r == -ENOSPC; rounds++) {
		/* Reclaim brings as many zones with a commit as it is worth; nobody else does. */
		if (zf_alloc_could_reserve(fs->alloc, data_blocks, items) && reclaim(fs, rounds)) {
			fruitless = 0;
			r = reserve(fs, data_blocks, items);
			continue;
		}
		if (fruitless > 0)
			zf_flush_wait_ms(fs, FRUITLESS_MS);
		r = reserve_all_there_is(fs, data_blocks, items);
		if (++fruitless == FRUITLESS_MAX ||
		    !zf_alloc_could_reserve(fs->alloc, data_blocks, items))
			break;
	}
	return r;
}

static int reserve_waiting(struct zf_fs *fs, uint64_t data_blocks, uint64_t items)
{
	uint64_t began = zf_room_now_ns();
	int r;

	atomic_fetch_add(&fs->room.waiting, 1);
	zf_mutex_lock(&fs->room.lock);
	r = reserve_in_turn_locked(fs, data_blocks, items);
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
