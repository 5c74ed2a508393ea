/* SPDX-License-Identifier: MIT */
/*
 * Opening zones for streams, within what the device allows to be active at once (P6).
 */
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
 * Is this zone one of the device's active ones, besides the ring's and the metadata streams'? A
 * data zone whose room is all promised stays active until its last append was written. A metadata
 * zone is written by commits, which open the next one only when it is full: so however many zones a
 * transaction has filled in memory, each copy has one active, and a slot of its own for that.
 */
static bool is_active(const struct zf_alloc *alloc, uint32_t zone_no)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	return zone_no >= 2 && !zone_is_conventional(alloc, zone_no) && !zone->unusable &&
	       !is_meta_stream(alloc, zone_no) &&
	       (zone_is_partial(zone) || zone->flight > 0 || zone->pointer_unknown);
}

/* Besides those that are always set aside: the log's own as well. */
static bool counts_as_active(const struct zf_alloc *alloc, uint32_t zone_no)
{
	return is_active(alloc, zone_no) && !zf_alloc_is_log_locked(alloc, zone_no);
}

/* How many zones may be active besides those set aside, and still could be. */
static uint32_t active_left(const struct zf_alloc *alloc)
{
	uint32_t budget = alloc->active_max - 1 - alloc->copies - ACTIVE_FOR_LOG, active = 0;

	if (alloc->active_max == UINT32_MAX)
		return UINT32_MAX;
	for (uint32_t z = 2; z < alloc->zone_count; z++)
		active += counts_as_active(alloc, z);
	return active < budget ? budget - active : 0;
}

/*
 * The zone that the log left when it switched is no longer its own, and may be one too many until
 * it is finished: then the log waits.
 */
bool zf_alloc_may_open_log_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	uint32_t budget = alloc->active_max - 1 - alloc->copies, active = 0;

	if (alloc->active_max == UINT32_MAX || zone_is_conventional(alloc, zone_no))
		return true;
	for (uint32_t z = 2; z < alloc->zone_count; z++)
		active += is_active(alloc, z);
	return active < budget;
}

int zf_alloc_next_finish(struct zf_alloc *alloc, uint32_t *ret_zone_no)
{
	uint32_t best = NO_ZONE;
	bool wanted;

	zf_mutex_lock(&alloc->lock);
	wanted = active_left(alloc) == 0;
	for (uint32_t z = 2; wanted && z < alloc->zone_count; z++) {
		const struct zf_zone *zone = &alloc->zones[z];
		const struct zf_zone *other = &alloc->zones[best == NO_ZONE ? z : best];

		if (!counts_as_active(alloc, z) || !zone_is_partial(zone) || zone->pending ||
		    zone->pointer_unknown || zone->resetting || zf_alloc_is_stream_locked(alloc, z))
			continue;
		/* Garbage first, it loses nothing; then the one with the least room. */
		if (best == NO_ZONE || is_garbage(zone) > is_garbage(other) ||
		    (is_garbage(zone) == is_garbage(other) && zone->pointer > other->pointer))
			best = z;
	}
	if (best != NO_ZONE)
		alloc->zones[best].finishing = true;
	zf_mutex_unlock(&alloc->lock);
	if (best == NO_ZONE)
		return -ENOENT;
	*ret_zone_no = best;
	return 0;
}

void zf_alloc_finish_done(struct zf_alloc *alloc, uint32_t zone_no, int result)
{
	zf_mutex_lock(&alloc->lock);
	alloc->zones[zone_no].finishing = false;
	if (result < 0)
		alloc->zones[zone_no].pointer_unknown = true;
	else
		zf_alloc_set_pointer_locked(alloc, zone_no, alloc->zones[zone_no].capacity);
	zf_mutex_unlock(&alloc->lock);
}

/* ---- opening zones ---- */

/*
 * A metadata stream goes on in a fresh zone only: the one before it is active on the device until
 * the commit has written it, and beside it this one would be.
 */
static bool can_resume(const struct zf_alloc *alloc, uint32_t zone_no, enum zf_role role)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	return (role == ZF_ROLE_HOT || role == ZF_ROLE_COLD) && zone->role == role &&
	       zone_is_partial(zone) && !zone->unusable && !zone->pointer_unknown &&
	       !zone->resetting && !zone->finishing && !zone->reclaimed &&
	       (zone->live || zone->system_live) &&
	       !zf_alloc_is_stream_locked(alloc, zone_no) &&
	       !zf_alloc_is_log_locked(alloc, zone_no);
}

/*
 * Which empty zone is taken first; 0: at once. Conventional ones last: what is written in place
 * will want them. Warm ones are the log's, as long as there are others.
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
			*ret_zone_no = z;
			return 0;
		}
		if (zone_is_empty(&alloc->zones[z]) &&
		    (best == NO_ZONE || reluctance(alloc, z, role) < reluctance(alloc, best, role)))
			best = z;
	}
	if (best == NO_ZONE || alloc->empty_count <= keep_empty)
		return -ENOSPC;
	/* Metadata's and the log's are set aside. */
	if (role != ZF_ROLE_META && role != ZF_ROLE_LOG && !zone_is_conventional(alloc, best) &&
	    active_left(alloc) == 0)
		return -EAGAIN;
	alloc->empty_count--;
	alloc->search_next = best + 1 < alloc->zone_count ? best + 1 : 0;
	alloc->zones[best].role = (uint8_t)role;
	alloc->zones[best].emptied_generation = 0;
	alloc->zones[best].warm = false;
	zf_alloc_dirty_locked(alloc, best);
	*ret_zone_no = best;
	return 0;
}
