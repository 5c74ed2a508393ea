/* SPDX-License-Identifier: MIT */
/* The entries of the zone table: what a zone is, and the changes that several files make to one. */
#include "alloc/zone.h"

#include <assert.h>

#include "alloc/alloc_internal.h"

uint32_t zf_alloc_zone_count(const struct zf_alloc *alloc)
{
	return alloc->zone_count;
}

void zf_alloc_get_zone(struct zf_alloc *alloc, uint32_t zone_no, struct zf_zone *ret_zone)
{
	assert(zone_no < alloc->zone_count);
	zf_mutex_lock(&alloc->lock);
	*ret_zone = alloc->zones[zone_no];
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_trace_begin(struct zf_alloc *alloc)
{
	zf_mutex_lock(&alloc->lock);
	zf_trace_begin();
	for (uint32_t z = 2; z < alloc->zone_count; z++) {
		const struct zf_zone *zone = &alloc->zones[z];

		if (zone->pointer > 0 || zone->role != ZF_ROLE_NONE)
			ZF_TRACE(zone, .address = z * alloc->geometry->zone_size,
				 .written = (uint64_t)zone->pointer << ZF_BLOCK_SHIFT,
				 .live = zone_live_bytes(zone), .resets = zone->reset_count,
				 .role = zone->role);
	}
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_touch_zone(struct zf_alloc *alloc, uint32_t zone_no)
{
	zf_mutex_lock(&alloc->lock);
	if (zone_no < alloc->zone_count)
		zf_alloc_dirty_locked(alloc, zone_no);
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_set_warm(struct zf_alloc *alloc, uint32_t zone_no, bool warm)
{
	zf_mutex_lock(&alloc->lock);
	alloc->zones[zone_no].warm = warm;
	zf_mutex_unlock(&alloc->lock);
}

/* ---- what a zone is ---- */

bool zf_alloc_is_stream_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	for (unsigned int c = 0; c < alloc->copies; c++)
		if (alloc->meta_zone[c] == zone_no)
			return true;
	return alloc->data_zone[ZF_ROLE_HOT] == zone_no ||
	       alloc->data_zone[ZF_ROLE_COLD] == zone_no;
}

bool zf_alloc_is_log_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	return is_among(alloc->log_chosen, zone_no) || is_among(alloc->log_named, zone_no);
}

struct zf_zone *zf_alloc_node_zone_locked(struct zf_alloc *alloc, uint64_t address)
{
	uint64_t zone_no = address / alloc->geometry->zone_size;
	uint64_t end =
		(address % alloc->geometry->zone_size >> ZF_BLOCK_SHIFT) + alloc->node_blocks;
	struct zf_zone *zone;

	if (zone_no < 2 || zone_no >= alloc->zone_count)
		return NULL;
	zone = &alloc->zones[zone_no];
	return zone->role == ZF_ROLE_META && end <= zone->pointer ? zone : NULL;
}

bool zf_alloc_is_unneeded_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	return zone_no >= 2 && zone->pointer > 0 && zone->live == 0 && zone->system_live == 0 &&
	       zone->pending == 0 && !zone->resetting && !zone->held &&
	       !zf_alloc_is_stream_locked(alloc, zone_no) &&
	       !zf_alloc_is_log_locked(alloc, zone_no);
}

bool zf_alloc_holds_nothing_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	return zf_alloc_is_unneeded_locked(alloc, zone_no) && !alloc->zones[zone_no].unusable;
}

bool zf_alloc_is_coming_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	return alloc->zones[zone_no].resetting || zf_alloc_holds_nothing_locked(alloc, zone_no);
}

/* ---- zones of data whose live blocks can be moved out ---- */

static bool is_movable(const struct zf_alloc *alloc, uint32_t zone_no)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	return (zone->role == ZF_ROLE_HOT || zone->role == ZF_ROLE_COLD) && !zone->stuck &&
	       !zf_alloc_is_stream_locked(alloc, zone_no) &&
	       !zf_alloc_is_log_locked(alloc, zone_no);
}

bool zf_alloc_is_movable_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	return is_movable(alloc, zone_no) && !alloc->zones[zone_no].unusable;
}

static bool is_idle(const struct zf_zone *zone)
{
	return zone->live > 0 && zone->pending == 0 && !zone->pointer_unknown && !zone->resetting &&
	       !zone->held;
}

bool zf_alloc_is_victim_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	return zf_alloc_is_movable_locked(alloc, zone_no) && is_idle(&alloc->zones[zone_no]);
}

bool zf_alloc_is_rescuable_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	return zone->unusable && !zone->offline && is_movable(alloc, zone_no) && is_idle(zone);
}

/* ---- changes ---- */

void zf_alloc_set_role_locked(struct zf_alloc *alloc, uint32_t zone_no, enum zf_role role)
{
	struct zf_zone *zone = &alloc->zones[zone_no];

	if (zone->role != role)
		ZF_TRACE(zone_role, .address = zone_no * alloc->geometry->zone_size,
			 .role = (uint8_t)role, .before = zone->role);
	zone->role = (uint8_t)role;
}

void zf_alloc_dirty_locked(struct zf_alloc *alloc, uint32_t zone_no)
{
	alloc->zones[zone_no].dirty = true;
}

void zf_alloc_set_pointer_locked(struct zf_alloc *alloc, uint32_t zone_no, uint32_t pointer)
{
	alloc->zones[zone_no].pointer = pointer;
	zf_alloc_dirty_locked(alloc, zone_no);
}

void zf_alloc_recount_locked(struct zf_alloc *alloc)
{
	alloc->tally.stale = true;
}

void zf_alloc_note_emptied_locked(struct zf_alloc *alloc, uint32_t zone_no, uint64_t generation)
{
	struct zf_zone *zone = &alloc->zones[zone_no];

	if (zf_alloc_holds_nothing_locked(alloc, zone_no) && zone->emptied_generation == 0) {
		zone->emptied_generation = generation;
		zf_alloc_dirty_locked(alloc, zone_no);
		zf_alloc_recount_locked(alloc);
	}
}
