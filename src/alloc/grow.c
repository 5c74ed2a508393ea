/* SPDX-License-Identifier: MIT */
/*
 * New zones are added while the others are in use. On the right is the function that makes each
 * change.
 *
 *      unknown to the filesystem
 *        |       zf_alloc_grow()
 *        v
 *      counted by alloc->zones_coming
 *        |       zf_alloc_freeze(): their items are in the snapshot
 *        v
 *      in the commit
 *        |       zf_alloc_committed()
 *        v
 *      empty zones like any other, or garbage that is to be reset
 */
#include <assert.h>
#include <errno.h>

#include "alloc/alloc_internal.h"

static int make_room(struct zf_alloc *alloc, unsigned int nodes)
{
	uint64_t need = alloc->promised_nodes + alloc->tail_max + nodes;

	if (zf_alloc_node_room_locked(alloc) < need)
		return -ENOSPC;
	alloc->tail_max += nodes;
	return 0;
}

int zf_alloc_grow(struct zf_alloc *alloc, uint32_t zone_count, unsigned int nodes)
{
	uint32_t first = alloc->zone_count;
	int r;

	assert(zone_count > first && zone_count <= alloc->geometry->zone_count);
	r = zf_alloc_table_extend(alloc, zone_count);
	if (r < 0)
		return r;
	r = zf_alloc_read_report(alloc, first, zone_count);
	if (r < 0)
		return r;
	zf_mutex_lock(&alloc->lock);
	r = make_room(alloc, nodes);
	for (uint32_t z = first; r == 0 && z < zone_count; z++)
		alloc->zones[z].dirty = true;
	if (r == 0)
		alloc->zones_coming = zone_count - first;
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_grown_locked(struct zf_alloc *alloc, const struct zf_alloc_frozen *frozen)
{
	uint32_t first = alloc->zone_count;

	if (frozen->zones_total == first)
		return;
	for (uint32_t z = first; z < frozen->zones_total; z++) {
		struct zf_zone *zone = &alloc->zones[z];

		alloc->empty_count += zone_is_empty(zone);
		if (zone->pointer > 0)
			zone->emptied_generation = frozen->generation;
	}
	alloc->zones_coming = 0;
	alloc->zone_count = frozen->zones_total;
	zf_alloc_recount_locked(alloc);
	zf_alloc_kept_regain_locked(alloc);
}
