/* SPDX-License-Identifier: MIT */
#include "age/sample.h"

#include <string.h>
#include <time.h>

#include "alloc/reclaim.h"
#include "alloc/zone.h"
#include "base/bits.h"
#include "fs/space/reclaim.h"
#include "txn/txn.h"

static double seconds(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- totals ---- */

void age_totals_get(struct zf_fs *fs, const struct age_user *user,
		    const struct age_traffic *traffic, struct age_totals *ret_totals)
{
	struct zf_dev_stats device;
	struct zf_txn_stats txn;

	zf_dev_get_stats(zf_fs_dev(fs), &device);
	zf_txn_get_stats(zf_fs_txn(fs), &txn);
	*ret_totals = (struct age_totals){
		.user_bytes = user->bytes,
		.calls = user->calls,
		.read_bytes = device.read_bytes,
		.resets = device.resets,
		.flushes = device.flushes,
		.commits = txn.commits,
		.commit_ns = txn.commit_ns,
		.cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID),
		.wall_s = seconds(CLOCK_MONOTONIC),
		.latency = user->latency,
	};
	for (unsigned int i = 0; i < AGE_KINDS; i++)
		ret_totals->bytes[i] = traffic->bytes[i];
	zf_reclaim_get_stats(fs, &ret_totals->reclaim);
}

static void reclaim_since(const struct zf_reclaim_stats *later,
			  const struct zf_reclaim_stats *earlier,
			  struct zf_reclaim_stats *ret_stats)
{
	*ret_stats = (struct zf_reclaim_stats){
		.victims = later->victims - earlier->victims,
		.emptied = later->emptied - earlier->emptied,
		.live = later->live - earlier->live,
		.moved = later->moved - earlier->moved,
		.changed = later->changed - earlier->changed,
		.stuck = later->stuck - earlier->stuck,
		.waits = later->waits - earlier->waits,
		.wait_ns = later->wait_ns - earlier->wait_ns,
	};
}

void age_totals_since(const struct age_totals *later, const struct age_totals *earlier,
		      struct age_totals *ret_totals)
{
	*ret_totals = *later;
	ret_totals->user_bytes -= earlier->user_bytes;
	ret_totals->calls -= earlier->calls;
	ret_totals->read_bytes -= earlier->read_bytes;
	ret_totals->resets -= earlier->resets;
	ret_totals->flushes -= earlier->flushes;
	ret_totals->commits -= earlier->commits;
	ret_totals->commit_ns -= earlier->commit_ns;
	ret_totals->cpu_s -= earlier->cpu_s;
	ret_totals->wall_s -= earlier->wall_s;
	for (unsigned int i = 0; i < AGE_KINDS; i++)
		ret_totals->bytes[i] -= earlier->bytes[i];
	reclaim_since(&later->reclaim, &earlier->reclaim, &ret_totals->reclaim);
}

/* ---- sights ---- */

void age_sight_init(struct age_sight *sight)
{
	*sight = (struct age_sight){.empty_low = UINT32_MAX, .room_low = UINT32_MAX};
}

void age_look(struct zf_fs *fs, struct age_sight *sight)
{
	struct zf_alloc *alloc = zf_fs_alloc(fs);
	uint32_t empty = 0, meta = 0;
	struct zf_reclaim_room room;
	double spare = 0;
	uint64_t meta_live = 0;

	for (uint32_t z = 2; z < zf_alloc_zone_count(alloc); z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(alloc, z, &zone);
		empty += zone.role == ZF_ROLE_NONE && zone.pointer == 0;
		meta += zone.role == ZF_ROLE_META;
		meta_live += zone.role == ZF_ROLE_META ? zone.live : 0;
		if (zone.role == ZF_ROLE_HOT || zone.role == ZF_ROLE_COLD) {
			sight->live += zone.live;
			sight->written += zone.capacity;
			spare = zone.capacity;
		}
	}
	zf_alloc_reclaim_room(alloc, &room);
	sight->spare += spare * room.empty;
	sight->looks++;
	sight->empty_low = (uint32_t)zf_min_u64(sight->empty_low, empty);
	sight->room_low = (uint32_t)zf_min_u64(sight->room_low, room.empty);
	sight->meta_live_max = zf_max_u64(sight->meta_live_max, meta_live << ZF_BLOCK_SHIFT);
	sight->meta_zones_max = (uint32_t)zf_max_u64(sight->meta_zones_max, meta);
}

void age_sight_add(struct age_sight *sight, const struct age_sight *more)
{
	sight->looks += more->looks;
	sight->empty_low = (uint32_t)zf_min_u64(sight->empty_low, more->empty_low);
	sight->room_low = (uint32_t)zf_min_u64(sight->room_low, more->room_low);
	sight->live += more->live;
	sight->written += more->written;
	sight->meta_live_max = zf_max_u64(sight->meta_live_max, more->meta_live_max);
	sight->spare += more->spare;
	sight->meta_zones_max = (uint32_t)zf_max_u64(sight->meta_zones_max, more->meta_zones_max);
}

double age_utilisation(const struct age_sight *sight, bool spare)
{
	double all = sight->written + (spare ? sight->spare : 0);

	return all > 0 ? sight->live / all : 0;
}
