/* SPDX-License-Identifier: MIT */
/* Slowing writers down while reclaim is behind: see room.h. */
#include <errno.h>

#include "alloc/reclaim.h"
#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/space/reclaim.h"
#include "fs/space/room.h"

/* The longest that one write waits. */
#define WAIT_MAX_NS UINT64_C(100000000)
/* A shorter wait is added to the next write's wait, because a sleep takes longer than that. */
#define WAIT_MIN_NS UINT64_C(1000000)

/* How often writers compute their cost again (zf_room_look()). */
#define LOOK_NS UINT64_C(10000000)
/* The rate counts zones that came back within about this time. */
#define REMEMBER_NS UINT64_C(4000000000)

/* The rate that is assumed before the first measurement. */
#define FIRST_BYTES_PER_S (UINT64_C(256) << 20)
#define FIRST_NS	  UINT64_C(50000000)
/* The least rate. If writers stopped, none would measure the rate again when more comes back. */
#define LEAST_BYTES_PER_S (UINT64_C(1) << 20)

/* ---- how much comes back ---- */

static uint64_t zone_bytes(const struct zf_fs *fs)
{
	return zf_dev_geometry(fs->dev)->zone_capacity;
}

static void begin_counting_locked(struct zf_fs *fs, uint32_t has)
{
	struct zf_room *room = fs->room;

	room->had = has;
	room->had_begun = atomic_load(&fs->flush.zones_begun);
	room->came = FIRST_BYTES_PER_S / (1000000000 / FIRST_NS) * 1000 / zone_bytes(fs);
	room->during_ns = FIRST_NS;
}

/*
 * Zones that came back since the last look: those that are ready now and those that data has begun
 * since, less those that were ready then.
 */
static void count_locked(struct zf_fs *fs, uint32_t has, uint64_t passed_ns)
{
	struct zf_room *room = fs->room;
	uint32_t begun = atomic_load(&fs->flush.zones_begun);
	uint32_t now = has + (begun - room->had_begun);

	if (now > room->had)
		room->came += (uint64_t)(now - room->had) * 1000;
	room->during_ns += passed_ns;
	if (room->during_ns > REMEMBER_NS) {
		room->came /= 2;
		room->during_ns /= 2;
	}
	room->had = has;
	room->had_begun = begun;
}

/* ---- what a block costs ---- */

/*
 * Zones that data may use, and how many of them reclaim wants; without those kept for reclaim
 * itself.
 */
struct standing {
	uint32_t has, wanted;
};

static struct standing stand(const struct zf_reclaim_room *room)
{
	uint32_t has = room->empty + room->coming;

	return (struct standing){
		.has = has > room->low ? has - room->low : 0,
		.wanted = room->target > room->low ? room->target - room->low : 0,
	};
}

static bool can_help(struct zf_fs *fs, const struct zf_reclaim_room *room)
{
	return room->reclaimable >= zone_bytes(fs) && !zf_reclaim_is_paused(fs);
}

static uint64_t cost_locked(struct zf_fs *fs, struct standing standing)
{
	struct zf_room *room = fs->room;
	uint64_t missing = standing.wanted - standing.has;
	uint64_t rate = room->came * zone_bytes(fs) / 1000 * 1000 / (room->during_ns / 1000000 + 1);

	/* has + 1/2 and missing + 1/2, so that neither is ever 0. */
	rate = rate * (2 * standing.has + 1) / (2 * missing + 1);
	return UINT64_C(1000000000) * ZF_BLOCK_SIZE / zf_max_u64(rate, LEAST_BYTES_PER_S);
}

void zf_room_look(struct zf_fs *fs)
{
	struct zf_room *room = fs->room;
	uint64_t now, cost = 0, before;
	struct zf_reclaim_room left;
	struct standing standing;

	/*
	 * This load comes first: if a zone is begun while this function runs, the next writer calls
	 * it again.
	 */
	atomic_store(&room->looked_zones, atomic_load(&fs->flush.zones_begun));
	/* Without background threads, reclaim would not run while a writer waits. */
	if (!fs->background)
		return;
	zf_alloc_reclaim_room(fs->alloc, &left);
	standing = stand(&left);
	if (left.empty < left.target || left.retired > 0)
		zf_wake_reclaim(fs);
	zf_mutex_lock(&room->pace_lock);
	now = zf_room_now_ns();
	before = atomic_load(&room->cost_ns);
	/*
	 * The rate is measured only while writers are slowed down, because reclaim then works all
	 * the time.
	 */
	if (before == 0)
		begin_counting_locked(fs, left.empty + left.coming);
	else
		count_locked(fs, left.empty + left.coming, now - atomic_load(&room->looked_ns));
	if (standing.has < standing.wanted && can_help(fs, &left))
		cost = cost_locked(fs, standing);
	atomic_store(&room->cost_ns, cost);
	atomic_store(&room->looked_ns, now);
	if (cost == 0 && before > 0)
		zf_cond_broadcast(&room->eased);
	zf_mutex_unlock(&room->pace_lock);
}

/* ---- waiting ---- */

/*
 * Takes a turn behind those of all other writers. Returns the time from now until that turn, in ns.
 */
static uint64_t take_turn(struct zf_fs *fs, uint64_t now, uint64_t cost_ns)
{
	uint64_t turn = atomic_load(&fs->room->turn_ns), next;

	do {
		next = zf_max_u64(turn, now) + cost_ns;
		next = zf_min_u64(next, now + WAIT_MAX_NS);
	} while (!atomic_compare_exchange_weak(&fs->room->turn_ns, &turn, next));
	return next - now;
}

static void wait_for_turn(struct zf_fs *fs, uint64_t now, uint64_t wait_ns)
{
	struct zf_room *room = fs->room;
	uint64_t end = now + wait_ns, began = now;

	zf_mutex_lock(&room->pace_lock);
	while (now + WAIT_MIN_NS <= end && atomic_load(&room->cost_ns) > 0) {
		zf_cond_wait_ms(&room->eased, &room->pace_lock, (end - now) / WAIT_MIN_NS);
		now = zf_room_now_ns();
	}
	zf_mutex_unlock(&room->pace_lock);
	zf_room_waited(fs, began);
}

int zf_room_take_turn(struct zf_fs *fs, uint64_t blocks, bool may_wait)
{
	struct zf_room *room = fs->room;
	uint64_t now = zf_room_now_ns(), cost, wait;

	if (atomic_load(&room->looked_ns) + LOOK_NS < now)
		zf_room_look(fs);
	cost = blocks * atomic_load(&room->cost_ns);
	if (!may_wait && atomic_load(&room->turn_ns) + cost > now + WAIT_MIN_NS)
		return -EAGAIN;
	wait = take_turn(fs, now, cost);
	if (wait >= WAIT_MIN_NS && may_wait)
		wait_for_turn(fs, now, wait);
	return 0;
}
