/* SPDX-License-Identifier: MIT */
/* Opening zones for streams, within the device's limit of active zones (P6). */
#include <errno.h>

#include "alloc/alloc_internal.h"

/* ---- zones that are active on the device ---- */

static bool is_garbage(const struct zf_zone *zone)
{
	return zone->live == 0 && zone->system_live == 0;
}

static bool is_meta_stream(const struct zf_alloc *alloc, uint32_t zone_no)
{
	for (unsigned int c = 0; c < alloc->copies; c++)
		if (alloc->meta_zone[c] == zone_no)
			return true;
	return false;
}

/*
 * Is this zone active on the device, and neither the ring's nor a metadata stream's? A data zone
 * whose room is all granted stays active until its last append was written. Commits open the next
 * metadata zone only when the one before is full. So each copy has one active zone, however many
 * zones a transaction has filled in memory, and that zone is counted separately.
 */
static bool is_active(const struct zf_alloc *alloc, uint32_t zone_no)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	return zone_no >= 2 && !zone_is_conventional(alloc, zone_no) && !zone->unusable &&
	       !is_meta_stream(alloc, zone_no) &&
	       (zone_is_partial(zone) || zone->flight > 0 || zone->pointer_unknown);
}

struct active {
	uint32_t hot;  /* users' data; and zones that a crash or the log left partly written */
	uint32_t cold; /* data that reclaim moves; one such zone is always set aside */
	uint32_t log;
};

static struct active count_active(const struct zf_alloc *alloc)
{
	struct active active = {0};

	for (uint32_t z = 2; z < alloc->zone_count; z++) {
		if (!is_active(alloc, z))
			continue;
		if (zf_alloc_is_log_locked(alloc, z))
			active.log++;
		else if (alloc->zones[z].role == ZF_ROLE_COLD)
			active.cold++;
		else
			active.hot++;
	}
	return active;
}

static uint32_t with_cold(const struct active *active)
{
	return active->hot + (active->cold > ACTIVE_FOR_COLD ? active->cold : ACTIVE_FOR_COLD);
}

/*
 * May one more zone of data be active, besides those that are always set aside? The first zone of
 * the COLD stream may take a place of the log: a filesystem that cannot log can commit instead, but
 * one that cannot reclaim is full.
 */
static bool may_open_data(const struct zf_alloc *alloc, enum zf_role role)
{
	uint32_t all = alloc->active_max - 1 - alloc->copies;
	struct active active;

	if (alloc->active_max == UINT32_MAX)
		return true;
	active = count_active(alloc);
	if (role == ZF_ROLE_COLD && active.cold == 0)
		return active.hot + active.log < all;
	if (role == ZF_ROLE_COLD)
		return active.hot + active.cold < all - ACTIVE_FOR_LOG;
	return with_cold(&active) < all - ACTIVE_FOR_LOG;
}

/*
 * The zone that the log left when it switched counts as a zone of data. It may be one active zone
 * too many until it is finished; then the log waits.
 */
bool zf_alloc_may_open_log_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	struct active active;

	if (alloc->active_max == UINT32_MAX || zone_is_conventional(alloc, zone_no))
		return true;
	active = count_active(alloc);
	return with_cold(&active) + active.log < alloc->active_max - 1 - alloc->copies;
}

/*
 * A real device finishes a zone by writing the rest of it, which may take a second. The rest is
 * also lost, unless the zone is garbage anyway.
 */
static uint64_t finish_costs(const struct zf_zone *zone)
{
	uint64_t left = zone->capacity - zone->pointer;

	return is_garbage(zone) ? left : 2 * left;
}

static bool can_finish(const struct zf_alloc *alloc, uint32_t zone_no)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	return is_active(alloc, zone_no) && zone_is_partial(zone) && zone->flight == 0 &&
	       !zone->pointer_unknown && !zone->resetting && !zone->unfinishable &&
	       !zf_alloc_is_log_locked(alloc, zone_no) &&
	       !zf_alloc_is_stream_locked(alloc, zone_no);
}

int zf_alloc_next_finish(struct zf_alloc *alloc, uint32_t *ret_zone_no)
{
	uint32_t best = NO_ZONE;
	bool wanted;

	zf_mutex_lock(&alloc->lock);
	wanted = !may_open_data(alloc, ZF_ROLE_HOT);
	for (uint32_t z = 2; wanted && z < alloc->zone_count; z++)
		if (can_finish(alloc, z) &&
		    (best == NO_ZONE ||
		     finish_costs(&alloc->zones[z]) < finish_costs(&alloc->zones[best])))
			best = z;
	if (best != NO_ZONE)
		alloc->zones[best].finishing = true;
	zf_mutex_unlock(&alloc->lock);
	return zf_alloc_found(best, ret_zone_no);
}

void zf_alloc_finish_done(struct zf_alloc *alloc, uint32_t zone_no, int result)
{
	ZF_TRACE(zone_finished, .address = zone_no * alloc->geometry->zone_size, .result = result);
	zf_mutex_lock(&alloc->lock);
	alloc->zones[zone_no].finishing = false;
	alloc->zones[zone_no].unfinishable = result < 0;
	if (result < 0)
		alloc->zones[zone_no].pointer_unknown = true;
	else
		zf_alloc_set_pointer_locked(alloc, zone_no, alloc->zones[zone_no].capacity);
	zf_alloc_recount_locked(alloc);
	zf_alloc_limit_event_locked(alloc);
	zf_mutex_unlock(&alloc->lock);
}

/* ---- opening zones ---- */

/*
 * Can the stream continue in this partly written zone? A metadata stream continues in empty zones
 * only: its previous zone is active on the device until the commit has written it, and a partly
 * written zone would be active besides.
 */
static bool can_resume(const struct zf_alloc *alloc, uint32_t zone_no, enum zf_role role)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	return (role == ZF_ROLE_HOT || role == ZF_ROLE_COLD) && zone->role == role &&
	       zone_is_partial(zone) && !zone->unusable && !zone->pointer_unknown &&
	       !zone->resetting && !zone->finishing && !zone->reclaimed &&
	       (zone->live || zone->system_live) && !zf_alloc_is_stream_locked(alloc, zone_no) &&
	       !zf_alloc_is_log_locked(alloc, zone_no);
}

/*
 * The empty zone with the lowest value is taken first. Conventional zones come last, because data
 * written in place will need them. The log prefers warm zones, and the other streams leave them to
 * it if they can.
 */
static unsigned int reluctance(const struct zf_alloc *alloc, uint32_t zone_no, enum zf_role role)
{
	if (zone_is_conventional(alloc, zone_no))
		return 2;
	return alloc->zones[zone_no].warm == (role == ZF_ROLE_LOG) ? 0 : 1;
}

int zf_alloc_open_zone_locked(struct zf_alloc *alloc, enum zf_role role, uint32_t keep_empty,
			      uint32_t *ret_zone_no)
{
	uint32_t best = NO_ZONE;

	for (uint32_t i = 0; i < alloc->zone_count; i++) {
		uint32_t z = alloc->search_next + i;

		if (z >= alloc->zone_count)
			z -= alloc->zone_count;
		if (can_resume(alloc, z, role)) {
			zf_alloc_recount_locked(alloc);
			*ret_zone_no = z;
			return 0;
		}
		if (zone_is_empty(&alloc->zones[z]) &&
		    (best == NO_ZONE || reluctance(alloc, z, role) < reluctance(alloc, best, role)))
			best = z;
	}
	if (best == NO_ZONE || alloc->empty_count <= keep_empty)
		return -ENOSPC;
	/* Active zones for metadata and the log are set aside. */
	if (role != ZF_ROLE_META && role != ZF_ROLE_LOG && !zone_is_conventional(alloc, best) &&
	    !may_open_data(alloc, role))
		return -EAGAIN;
	alloc->empty_count--;
	alloc->search_next = best + 1 < alloc->zone_count ? best + 1 : 0;
	zf_alloc_set_role_locked(alloc, best, role);
	alloc->zones[best].emptied_generation = 0;
	alloc->zones[best].warm = false;
	zf_alloc_dirty_locked(alloc, best);
	zf_alloc_recount_locked(alloc);
	*ret_zone_no = best;
	return 0;
}
