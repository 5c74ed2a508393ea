/* SPDX-License-Identifier: MIT */
/* Which zone of metadata is worth emptying next. */
#include <errno.h>

#include "alloc/alloc_internal.h"

/* Zones of room that dead nodes may take beyond what live nodes take, before a zone is emptied. */
#define MUCH_GARBAGE	4u
#define MUCH_WHEN_SHORT 2u
/* A metadata zone is emptied before a data zone only if it gives back at least 2 times as much. */
#define DATA_FIRST 2u

/*
 * Emptying a metadata zone pays when it gives back more than it costs. Nodes die without reclaim,
 * the sooner the more is written, and moving a node writes it once more. So zones are emptied only
 * when dead nodes take more room than live nodes by some zones: fewer zones if few empty zones are
 * left.
 */
static bool has_much_garbage(const struct zf_alloc *alloc, uint64_t live, uint64_t written,
			     uint32_t coming)
{
	uint32_t watermark = zf_alloc_claimed_zones_locked(alloc) +
			     zf_alloc_kept_zones_locked(alloc, ZF_RESERVE_NORMAL);
	uint64_t zones = alloc->empty_count + coming > watermark ? MUCH_GARBAGE : MUCH_WHEN_SHORT;

	return written >= 2 * live + zones * capacity_blocks(alloc);
}

/* Would emptying a zone of data give more, and can metadata wait for it? */
static bool others_have_more(const struct zf_alloc *alloc, uint64_t gain, uint32_t coming)
{
	return zf_alloc_can_spare_locked(alloc) &&
	       zf_alloc_best_gain_locked(alloc) > gain / DATA_FIRST;
}

/* Nodes that are not written yet cannot be read and moved. A damaged zone is scrubbed instead. */
static bool can_move_nodes(const struct zf_alloc *alloc, uint32_t zone_no)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	return zone->role == ZF_ROLE_META && !zf_alloc_is_stream_locked(alloc, zone_no) &&
	       !zone->resetting && !zone->unusable && !zone->damaged && !zone->stuck &&
	       zone->write_generation <= alloc->committed;
}

static void begin(struct zf_alloc *alloc, uint32_t zone_no)
{
	alloc->zones[zone_no].readers++;
	zf_alloc_trace_victim_locked(alloc, zone_no);
}

/*
 * Nodes of trees that change everywhere die soon. Nodes of the summary tree, which only grows, live
 * long. So zones are left in which a few nodes live; moving these gives back nearly a whole zone.
 */
int zf_alloc_meta_victim_begin(struct zf_alloc *alloc, uint32_t *ret_zone_no)
{
	uint32_t best = NO_ZONE, best_live = (uint32_t)capacity_blocks(alloc) / 2;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count; z++) {
		const struct zf_zone *zone = &alloc->zones[z];

		if (can_move_nodes(alloc, z) && !zone->passed_over && zone->live > 0 &&
		    zone->live < best_live) {
			best_live = zone->live;
			best = z;
		}
	}
	if (best != NO_ZONE &&
	    alloc->zones[best].capacity - best_live <= zf_alloc_best_gain_locked(alloc))
		best = NO_ZONE;
	if (best != NO_ZONE)
		begin(alloc, best);
	zf_mutex_unlock(&alloc->lock);
	return zf_alloc_found(best, ret_zone_no);
}

void zf_alloc_meta_victim_end(struct zf_alloc *alloc, uint32_t zone_no)
{
	zf_mutex_lock(&alloc->lock);
	alloc->zones[zone_no].passed_over = alloc->zones[zone_no].live > 0;
	alloc->zones[zone_no].readers--;
	zf_mutex_unlock(&alloc->lock);
}

int zf_alloc_meta_victim(struct zf_alloc *alloc, bool urgent, uint32_t *ret_zone_no)
{
	uint32_t best = NO_ZONE, best_live = UINT32_MAX, coming = 0;
	uint64_t live = 0, written = 0, per_zone = capacity_blocks(alloc);
	uint64_t used_max = per_zone / 2, costs;
	bool closed = false;

	zf_mutex_lock(&alloc->lock);
	/*
	 * If not urgent, half a zone must come back. Otherwise a nearly full filesystem would move
	 * nodes for ever.
	 */
	costs = meta_move_costs(alloc);
	if (urgent)
		used_max = per_zone - zf_min_u64(costs, per_zone);
	for (uint32_t z = 2; z < alloc->zone_count; z++) {
		const struct zf_zone *zone = &alloc->zones[z];
		uint32_t used = zone->live + zone->system_live;

		coming += zf_alloc_holds_nothing_locked(alloc, z);
		if (zone->role != ZF_ROLE_META || used == 0)
			continue;
		live += used;
		written += zone->pointer;
		if (!can_move_nodes(alloc, z))
			continue;
		if (used < best_live && used <= used_max) {
			best_live = used;
			best = z;
		}
	}
	if (best == NO_ZONE && urgent)
		closed = zf_alloc_close_streams_locked(alloc, 2 * costs);
	if (best != NO_ZONE && !has_much_garbage(alloc, live, written, coming) &&
	    (!urgent || others_have_more(alloc, per_zone - best_live, coming)))
		best = NO_ZONE;
	if (best != NO_ZONE)
		begin(alloc, best);
	zf_mutex_unlock(&alloc->lock);
	if (closed)
		return ZF_META_CLOSED;
	return zf_alloc_found(best, ret_zone_no);
}

void zf_alloc_meta_stuck(struct zf_alloc *alloc, uint32_t zone_no, uint64_t reset_count)
{
	struct zf_zone *zone = &alloc->zones[zone_no];

	zf_mutex_lock(&alloc->lock);
	if (zone->reset_count == reset_count && (zone->live || zone->system_live))
		zone->stuck = true;
	zf_mutex_unlock(&alloc->lock);
}
