/* SPDX-License-Identifier: MIT */
/*
 * The room that live data of victims moves to.
 *
 * Reclaim needs a place to move live data to, so one empty zone is set aside for the COLD stream
 * (alloc->cold_zone), which neither metadata nor data takes. Once the COLD stream has opened it, no
 * zone is set aside until the next zone of data comes back. This leaves the room promised to
 * metadata unchanged: there is one empty zone less, and one less is set aside. After a mount no
 * zone may be set aside either. Then metadata spares one, once it has room for its promises, for
 * the tail of a commit and for removals.
 */
#include <assert.h>
#include <errno.h>

#include "alloc/alloc_internal.h"

void zf_alloc_cold_rearm_locked(struct zf_alloc *alloc)
{
	if (alloc->cold_zone)
		return;
	alloc->cold_zone = true;
	alloc->cold_zone = alloc->empty_count > zf_alloc_claimed_zones_locked(alloc) &&
			   zf_alloc_can_spare_locked(alloc);
}

void zf_alloc_cold_opened_locked(struct zf_alloc *alloc)
{
	alloc->cold_zone = false;
	zf_alloc_cold_rearm_locked(alloc);
}

/*
 * Beyond the zone that is set aside, reclaim gets only zones that metadata can spare and that no
 * reservation of data needs.
 */
static bool can_move(const struct zf_alloc *alloc, uint64_t node_room_before)
{
	uint32_t zones = zf_alloc_zones_for_locked(alloc, ZF_ROLE_COLD, alloc->cold_blocks);

	if (zones > 0 && alloc->empty_count < zf_alloc_claimed_zones_locked(alloc) + zones)
		return false;
	return zf_alloc_node_room_locked(alloc) >= node_room_before ||
	       zf_alloc_can_spare_locked(alloc);
}

int zf_alloc_reserve_cold(struct zf_alloc *alloc, uint64_t blocks)
{
	uint64_t node_room;
	int r = 0;

	zf_mutex_lock(&alloc->lock);
	node_room = zf_alloc_node_room_locked(alloc);
	alloc->cold_blocks += blocks;
	if (!can_move(alloc, node_room)) {
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
