/* SPDX-License-Identifier: MIT */
/* Which zone of data is worth emptying next, and the room that its survivors move to. */
#include <assert.h>
#include <errno.h>

#include "alloc/alloc_internal.h"
#include "base/bits.h"

/* ---- victims ---- */

static bool is_victim(const struct zf_alloc *alloc, uint32_t zone_no)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	return (zone->role == ZF_ROLE_HOT || zone->role == ZF_ROLE_COLD) && zone->live > 0 &&
	       zone->pending == 0 && !zone->unusable && !zone->pointer_unknown &&
	       !zone->resetting && !zone->held && !zone->stuck && !zone->reclaimed &&
	       !zone->passed_over && !zf_alloc_is_stream_locked(alloc, zone_no) &&
	       !zf_alloc_is_log_locked(alloc, zone_no);
}

/* What its reset would give back, in blocks. */
static uint32_t gain(const struct zf_zone *zone)
{
	return zone->capacity - zone->live;
}

uint32_t zf_alloc_best_gain_locked(const struct zf_alloc *alloc)
{
	uint32_t best = 0;

	for (uint32_t z = 2; z < alloc->zone_count; z++)
		if (is_victim(alloc, z))
			best = (uint32_t)zf_max_u64(best, gain(&alloc->zones[z]));
	return best;
}

int zf_alloc_reclaim_begin(struct zf_alloc *alloc, enum zf_reclaim_need need, uint32_t *ret_zone_no)
{
	uint32_t best = NO_ZONE;

	(void)need;
	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count; z++)
		if (is_victim(alloc, z) && gain(&alloc->zones[z]) > 0 &&
		    (best == NO_ZONE || gain(&alloc->zones[z]) > gain(&alloc->zones[best])))
			best = z;
	if (best != NO_ZONE) {
		alloc->zones[best].reclaimed = true;
		alloc->zones[best].readers++;
	}
	zf_mutex_unlock(&alloc->lock);
	if (best == NO_ZONE)
		return -ENOENT;
	*ret_zone_no = best;
	return 0;
}

int zf_alloc_reclaim_begin_zone(struct zf_alloc *alloc, uint32_t zone_no)
{
	int r = -EBUSY;

	zf_mutex_lock(&alloc->lock);
	if (zone_no < alloc->zone_count && is_victim(alloc, zone_no)) {
		alloc->zones[zone_no].reclaimed = true;
		alloc->zones[zone_no].readers++;
		r = 0;
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_reclaim_end(struct zf_alloc *alloc, uint32_t zone_no, bool stuck)
{
	struct zf_zone *zone = &alloc->zones[zone_no];

	zf_mutex_lock(&alloc->lock);
	assert(zone->reclaimed && zone->readers > 0);
	zone->reclaimed = false;
	zone->readers--;
	zone->stuck |= stuck;
	zone->passed_over = zone->live > 0;
	zf_mutex_unlock(&alloc->lock);
}

/* ---- room ---- */

int zf_alloc_reserve_cold(struct zf_alloc *alloc, uint64_t blocks)
{
	int r = 0;

	zf_mutex_lock(&alloc->lock);
	alloc->cold_blocks += blocks;
	if (alloc->empty_count < zf_alloc_claimed_zones_locked(alloc) + alloc->copies) {
		alloc->cold_blocks -= blocks;
		r = -ENOSPC;
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_unreserve_cold(struct zf_alloc *alloc, uint64_t blocks)
{
	zf_mutex_lock(&alloc->lock);
	assert(alloc->cold_blocks >= blocks);
	alloc->cold_blocks -= blocks;
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_set_reclaim_target(struct zf_alloc *alloc, uint32_t zones)
{
	zf_mutex_lock(&alloc->lock);
	alloc->reclaim_target = zones;
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_reclaim_room(struct zf_alloc *alloc, struct zf_reclaim_room *ret_room)
{
	struct zf_reclaim_room room = {0};
	uint32_t kept;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count; z++) {
		const struct zf_zone *zone = &alloc->zones[z];

		room.zones += !zone->unusable && zone->role != ZF_ROLE_META &&
			      zone->role != ZF_ROLE_OVERWRITE && !zf_alloc_is_log_locked(alloc, z);
		room.coming += zf_alloc_holds_nothing_locked(alloc, z);
		if (is_victim(alloc, z))
			room.reclaimable += (uint64_t)gain(zone) << ZF_BLOCK_SHIFT;
	}
	kept = zf_alloc_claimed_zones_locked(alloc) + alloc->copies +
	       zf_alloc_kept_for_log_locked(alloc);
	room.empty = alloc->empty_count > kept ? alloc->empty_count - kept : 0;
	room.target = KEPT_FOR_RECLAIM + 1 + alloc->reclaim_target;
	room.low = KEPT_FOR_RECLAIM;
	zf_mutex_unlock(&alloc->lock);
	*ret_room = room;
}

bool zf_alloc_could_reserve(struct zf_alloc *alloc, uint64_t data_blocks, uint64_t items)
{
	(void)alloc;
	(void)data_blocks;
	(void)items;
	return true;
}
