/* SPDX-License-Identifier: MIT */
/* Resets: alloc/reclaim.h tells when a zone may be reset, may_reset() checks it. */
#include <assert.h>
#include <errno.h>

#include "alloc/alloc_internal.h"
#include "base/plant.h"

/*
 * Have all writes to the zone failed? If the device then reports that its pointer has not moved,
 * the zone is written again at once. Summary entries that are removed after that could be those of
 * new data.
 */
static bool may_be_empty(const struct zf_zone *zone)
{
	return zone->pointer_unknown && zone->written == 0;
}

int zf_alloc_next_unsummarise(struct zf_alloc *alloc, uint32_t *ret_zone_no)
{
	int r = -ENOENT;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count && r < 0; z++) {
		const struct zf_zone *zone = &alloc->zones[z];

		/* A reader may still need the zone's checksums. */
		if (zone->summary == ZF_SUMMARY_PRESENT && zone->readers == 0 &&
		    !zone->passed_over && !may_be_empty(zone) &&
		    zf_alloc_is_unneeded_locked(alloc, z)) {
			*ret_zone_no = z;
			alloc->zones[z].summary = ZF_SUMMARY_DROPPING;
			r = 0;
		}
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_summary_dropped(struct zf_alloc *alloc, uint32_t zone_no, int result)
{
	zf_mutex_lock(&alloc->lock);
	assert(alloc->zones[zone_no].summary == ZF_SUMMARY_DROPPING);
	alloc->zones[zone_no].summary = result < 0 ? ZF_SUMMARY_PRESENT : ZF_SUMMARY_DROPPED;
	alloc->zones[zone_no].passed_over = result == -EUCLEAN || result == -EIO;
	zf_mutex_unlock(&alloc->lock);
}

static bool has_no_summary(const struct zf_zone *zone)
{
	if (ZF_PLANTED(ZF_BUG_ZONE_REUSED_EARLY) && zone->summary == ZF_SUMMARY_DROPPED)
		return true;
	return zone->summary == ZF_SUMMARY_NONE;
}

static bool may_reset(const struct zf_alloc *alloc, uint32_t zone_no, bool urgent)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];
	uint64_t committed = alloc->committed;

	if (ZF_PLANTED(ZF_BUG_RESET_BEFORE_COMMIT))
		committed = UINT64_MAX;
	urgent = urgent || ZF_PLANTED(ZF_BUG_RESET_ONE_COMMIT_EARLY);
	return zf_alloc_holds_nothing_locked(alloc, zone_no) && zone->readers == 0 &&
	       has_no_summary(zone) && zone->emptied_generation != 0 &&
	       !zf_alloc_overwrite_in_use_locked(alloc, zone_no) &&
	       zone->emptied_generation + (urgent ? 0 : 1) <= committed;
}

int zf_alloc_next_reset(struct zf_alloc *alloc, bool urgent, uint32_t *ret_zone_no)
{
	int r = -ENOENT;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count && r < 0; z++) {
		if (!may_reset(alloc, z, urgent))
			continue;
		alloc->zones[z].resetting = true;
		*ret_zone_no = z;
		r = 0;
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_reset_done(struct zf_alloc *alloc, uint32_t zone_no, int result)
{
	struct zf_zone *zone = &alloc->zones[zone_no];

	zf_mutex_lock(&alloc->lock);
	assert(zone->resetting);
	ZF_TRACE(zone_reset, .address = zone_no * alloc->geometry->zone_size,
		 .resets = zone->reset_count + (result >= 0), .result = result);
	zone->resetting = false;
	if (zone_is_partial(zone))
		zf_alloc_limit_event_locked(alloc);
	if (result < 0) {
		/* If resets were tried again for ever, a writer would wait for room for ever. */
		zone->unusable = zone->suspect = true;
	} else {
		bool data = zone->role != ZF_ROLE_META;

		zf_alloc_overwrite_left_locked(alloc, zone_no);
		zf_alloc_set_pointer_locked(alloc, zone_no, 0);
		zf_alloc_set_role_locked(alloc, zone_no, ZF_ROLE_NONE);
		zone->written = 0;
		zone->emptied_generation = 0;
		zone->stuck = zone->damaged = false;
		zone->unfinishable = zone->pointer_unknown = false;
		zone->reset_generation = alloc->committed;
		zone->reset_count++;
		alloc->empty_count++;
		zf_alloc_kept_regain_locked(alloc);
		/*
		 * This zone replaces the one that the COLD stream has opened, before any other use
		 * gets a zone.
		 */
		alloc->cold_zone |= data;
	}
	zf_alloc_recount_locked(alloc);
	zf_mutex_unlock(&alloc->lock);
}

uint32_t zf_alloc_emptied_zones(struct zf_alloc *alloc)
{
	uint32_t n = 0;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count; z++)
		n += zf_alloc_holds_nothing_locked(alloc, z);
	zf_mutex_unlock(&alloc->lock);
	return n;
}
