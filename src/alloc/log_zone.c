/* SPDX-License-Identifier: MIT */
/*
 * There are two sets of at most two zones: the durable superblock names the zones in
 * alloc->log_named, and the superblock that is being written names those in alloc->log_chosen. A
 * zone in either set is the log's. Records go to zones in both sets.
 */
#include "alloc/log_zone.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#include "alloc/alloc_internal.h"

static void fill_zones(const struct zf_alloc *alloc, const uint32_t zones[2],
		       struct zf_log_zones *ret_zones)
{
	for (unsigned int i = 0; i < 2; i++) {
		const struct zf_zone *zone = zones[i] == NO_ZONE ? NULL : &alloc->zones[zones[i]];

		ret_zones->zone[i] = zones[i];
		ret_zones->resets[i] = zone ? zone->reset_count : 0;
		ret_zones->pointer[i] = zone ? (uint64_t)zone->pointer << ZF_BLOCK_SHIFT : 0;
	}
}

void zf_alloc_log_get(struct zf_alloc *alloc, struct zf_log_zones *ret_zones)
{
	zf_mutex_lock(&alloc->lock);
	fill_zones(alloc, alloc->log_named, ret_zones);
	zf_mutex_unlock(&alloc->lock);
}

/* ---- with the commit ---- */

/*
 * With `empty_count` empty zones, is there room for the nodes that removals and overwriting
 * guaranteed blocks may need?
 */
static bool has_node_room(const struct zf_alloc *alloc, uint32_t empty_count)
{
	uint64_t overwrites = zf_alloc_overwrite_need_locked(alloc) / alloc->copies;

	return zf_alloc_node_room_with_locked(alloc, empty_count) >=
	       alloc->tail_max + alloc->nodes_kept + blocks_to_nodes(alloc, overwrites);
}

/* Should the log give this zone, which has no records, to metadata that is short of room? */
static bool gives_way(const struct zf_alloc *alloc, const struct zf_zone *zone)
{
	return zone->pointer == 0 && !has_node_room(alloc, alloc->empty_count);
}

/*
 * Does the zone stay the log's? It does not while data of a record is not yet in the trees, which
 * is rare: the next superblock could not tell how far the zone is known to be written.
 */
static bool stays(const struct zf_alloc *alloc, const struct zf_zone *zone)
{
	return log_zone_has_room(zone) && zone->pending == 0 && !gives_way(alloc, zone);
}

/*
 * The zone keeps its data. Once no superblock names the zone, the HOT stream fills it, or it is
 * finished.
 */
static void leave(struct zf_alloc *alloc, uint32_t zone_no)
{
	struct zf_zone *zone = &alloc->zones[zone_no];

	zf_alloc_set_role_locked(alloc, zone_no, ZF_ROLE_HOT);
	if (zone->pointer > 0 && zone->live == 0 && zone->pending == 0)
		zone->emptied_generation = alloc->running;
	zf_alloc_dirty_locked(alloc, zone_no);
}

/* The log takes no zone that metadata or reclaim needs in the worst case, or that was reserved. */
static int open_zone(struct zf_alloc *alloc, uint32_t *ret_zone_no)
{
	uint32_t keep = zf_alloc_claimed_zones_locked(alloc) + alloc->copies +
			zf_alloc_kept_for_reclaim_locked(alloc);

	if (alloc->empty_count <= keep || !has_node_room(alloc, alloc->empty_count - 1))
		return -ENOSPC;
	return zf_alloc_open_zone_locked(alloc, ZF_ROLE_LOG, keep, ret_zone_no);
}

/* All room granted in the zone has been written, so the zone's item may say so. */
static void note_written(struct zf_alloc *alloc, uint32_t zone_no)
{
	struct zf_zone *zone = &alloc->zones[zone_no];

	assert(zone->pending == 0);
	if (zone->written == zone->pointer)
		return;
	zone->written = zone->pointer;
	zf_alloc_dirty_locked(alloc, zone_no);
}

void zf_alloc_log_choose(struct zf_alloc *alloc, struct zf_log_zones *ret_zones)
{
	uint32_t zones[2] = {NO_ZONE, NO_ZONE};
	unsigned int count = 0;

	zf_mutex_lock(&alloc->lock);
	for (unsigned int i = 0; i < 2; i++) {
		uint32_t zone_no = alloc->log_chosen[i];

		if (zone_no == NO_ZONE)
			continue;
		if (stays(alloc, &alloc->zones[zone_no]))
			zones[count++] = zone_no;
		else
			leave(alloc, zone_no);
	}
	while (count < 2 && open_zone(alloc, &zones[count]) == 0)
		count++;
	for (unsigned int i = 0; i < 2; i++) {
		alloc->log_chosen[i] = zones[i];
		if (zones[i] != NO_ZONE)
			note_written(alloc, zones[i]);
	}
	fill_zones(alloc, zones, ret_zones);
	zf_alloc_recount_locked(alloc);
	zf_mutex_unlock(&alloc->lock);
}

/* No superblock that a mount may use names the zone any more. */
static void let_out(struct zf_alloc *alloc, uint32_t zone_no)
{
	struct zf_zone *zone = &alloc->zones[zone_no];

	zone->log_closed = false;
	if (zone_is_partial(zone))
		zf_alloc_limit_event_locked(alloc);
	/* After failed appends, the zone counts as empty only once the last append has ended. */
	if (zone->pointer > 0 || zone->unusable || zone->pending > 0 || zone->pointer_unknown) {
		zf_alloc_note_emptied_locked(alloc, zone_no, alloc->running);
		return;
	}
	zf_alloc_set_role_locked(alloc, zone_no, ZF_ROLE_NONE);
	zone->summary = ZF_SUMMARY_NONE;
	alloc->empty_count++;
	zf_alloc_dirty_locked(alloc, zone_no);
	zf_alloc_kept_regain_locked(alloc);
}

void zf_alloc_log_named(struct zf_alloc *alloc, const struct zf_log_zones *zones)
{
	zf_mutex_lock(&alloc->lock);
	for (unsigned int i = 0; i < 2; i++) {
		uint32_t was = alloc->log_named[i];

		assert(zones->zone[i] == alloc->log_chosen[i]);
		alloc->log_named[i] = NO_ZONE;
		if (was != NO_ZONE && !zf_alloc_is_log_locked(alloc, was))
			let_out(alloc, was);
	}
	for (unsigned int i = 0; i < 2; i++)
		alloc->log_named[i] = zones->zone[i];
	zf_alloc_recount_locked(alloc);
	zf_mutex_unlock(&alloc->lock);
}

/* ---- records ---- */

/*
 * May the zone, which the durable superblock names, take records? The one being written must name
 * it, too.
 */
static bool takes_records(const struct zf_alloc *alloc, uint32_t zone_no)
{
	return zone_no != NO_ZONE && is_among(alloc->log_chosen, zone_no) &&
	       log_zone_has_room(&alloc->zones[zone_no]);
}

static bool fits(const struct zf_alloc *alloc, uint32_t zone_no, uint64_t blocks)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	return takes_records(alloc, zone_no) && zone->capacity - zone->pointer >= blocks &&
	       (zone->pointer > 0 || zf_alloc_may_open_log_locked(alloc, zone_no));
}

/* -ENOSPC: nothing has changed. */
static int choose_zone(struct zf_alloc *alloc, uint64_t blocks, uint32_t *ret_zone_no,
		       bool *ret_switched)
{
	const uint32_t *named = alloc->log_named;
	unsigned int current = takes_records(alloc, named[0]) ? 0 : 1;

	*ret_switched = false;
	*ret_zone_no = named[current];
	if (*ret_zone_no != NO_ZONE && fits(alloc, *ret_zone_no, blocks)) {
		/* The first zone may have been filled exactly: then this record is the switch. */
		*ret_switched = current == 1 && alloc->zones[*ret_zone_no].pointer == 0;
		return 0;
	}
	if (current == 1 || named[1] == NO_ZONE || !fits(alloc, named[1], blocks))
		return -ENOSPC;
	alloc->zones[named[0]].log_closed = true;
	*ret_switched = true;
	*ret_zone_no = named[1];
	return 0;
}

static void grant(struct zf_alloc *alloc, uint32_t zone_no, uint64_t blocks,
		  struct zf_append_grant *ret_grant)
{
	struct zf_zone *zone = &alloc->zones[zone_no];
	uint64_t start = zone_no * alloc->geometry->zone_size;

	*ret_grant = (struct zf_append_grant){
		.zone_no = zone_no,
		.zone_start = start,
		.len = blocks << ZF_BLOCK_SHIFT,
	};
	if (zone_is_conventional(alloc, zone_no))
		ret_grant->address = start + ((uint64_t)zone->pointer << ZF_BLOCK_SHIFT);
	zone->pending += (uint32_t)blocks;
	zone->flight += (uint32_t)blocks;
	zone->summary = ZF_SUMMARY_PRESENT;
	zf_alloc_set_pointer_locked(alloc, zone_no, zone->pointer + (uint32_t)blocks);
}

int zf_alloc_log_begin(struct zf_alloc *alloc, uint64_t len, uint64_t reserved,
		       struct zf_append_grant *ret_grant, uint64_t *ret_resets, bool *ret_switched)
{
	uint64_t blocks = len >> ZF_BLOCK_SHIFT;
	uint32_t zone_no;
	int r;

	assert(blocks > 0 && zf_is_aligned(len, ZF_BLOCK_SIZE) && reserved <= blocks);
	if (len > alloc->geometry->append_limit)
		return -ENOSPC;
	zf_mutex_lock(&alloc->lock);
	r = choose_zone(alloc, blocks, &zone_no, ret_switched);
	if (r == 0) {
		grant(alloc, zone_no, blocks, ret_grant);
		*ret_resets = alloc->zones[zone_no].reset_count;
		assert(alloc->reserved_blocks >= reserved);
		alloc->reserved_blocks -= reserved;
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

/* ---- mount ---- */

/*
 * Raises the zone's pointer to `end`, because the bytes below are in use. False: `end` is above the
 * capacity, or above a pointer that the device knows exactly.
 */
static bool raise_pointer(struct zf_alloc *alloc, uint32_t zone_no, uint64_t end)
{
	struct zf_zone *zone = &alloc->zones[zone_no];
	bool may_raise =
		zone_is_conventional(alloc, zone_no) || alloc->geometry->pointers_are_lower_bounds;

	if (end > zone->capacity || (end > zone->pointer && !may_raise))
		return false;
	if (end > zone->pointer)
		zone->pointer = (uint32_t)end;
	return true;
}

static int load_zone(struct zf_alloc *alloc, const struct zf_super *super, unsigned int which)
{
	uint32_t zone_no = super->log_zone[which];
	struct zf_zone *zone = &alloc->zones[zone_no];
	uint64_t start = zone_no * alloc->geometry->zone_size;

	if (zone->role != ZF_ROLE_LOG)
		return zf_report_corrupt(alloc->report, "zone", start,
					 "role has %u (%s), expected 3 (log) for log_zone[%u]",
					 zone->role, zf_zone_role_name(zone->role), which);
	/* No zone is reset while a superblock names it. */
	if (zone->lost)
		zone->reset_count = super->log_zone_resets[which];
	if (zone->reset_count != super->log_zone_resets[which])
		return zf_report_corrupt(alloc->report, "zone", start,
					 "reset count has %" PRIu64 ", expected %" PRIu64
					 ": the log's zone was reset after this commit",
					 zone->reset_count, super->log_zone_resets[which]);
	if (!raise_pointer(alloc, zone_no, super->log_pointer[which] >> ZF_BLOCK_SHIFT))
		return zf_report_corrupt(
			alloc->report, "zone", start,
			"write pointer has %u blocks, expected at least the %" PRIu64
			" of log_pointer[%u]",
			zone->pointer, super->log_pointer[which] >> ZF_BLOCK_SHIFT, which);
	return 0;
}

int zf_alloc_log_load(struct zf_alloc *alloc, const struct zf_super *super)
{
	int r = 0;

	zf_mutex_lock(&alloc->lock);
	for (unsigned int i = 0; i < 2 && r == 0; i++)
		if (super->log_zone[i] != NO_ZONE)
			r = load_zone(alloc, super, i);
	for (unsigned int i = 0; i < 2 && r == 0; i++)
		alloc->log_named[i] = alloc->log_chosen[i] = super->log_zone[i];
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_raise_log(struct zf_alloc *alloc, unsigned int which, uint64_t pointer)
{
	struct zf_zone *zone;
	uint32_t blocks = (uint32_t)(pointer >> ZF_BLOCK_SHIFT);

	zf_mutex_lock(&alloc->lock);
	zone = &alloc->zones[alloc->log_named[which]];
	assert(blocks <= zone->capacity);
	if (blocks > zone->pointer)
		zf_alloc_set_pointer_locked(alloc, alloc->log_named[which], blocks);
	zf_mutex_unlock(&alloc->lock);
}

/*
 * If a zone was opened after the commit, its committed item has no role; or, if the zone was also
 * reset after the commit, the role of its former life, without live bytes.
 */
static bool can_hold_data(const struct zf_zone *zone)
{
	return zone->role != ZF_ROLE_SUPER &&
	       (zone->role != ZF_ROLE_META || (zone->live == 0 && zone->system_live == 0));
}

int zf_alloc_hold(struct zf_alloc *alloc, uint64_t address, uint64_t len)
{
	uint64_t zone_size = alloc->geometry->zone_size, zone_no = address / zone_size;
	uint64_t offset = address % zone_size;
	struct zf_zone *zone;
	int r = 0;

	if (!zf_is_aligned(address, ZF_BLOCK_SIZE) || !zf_is_aligned(len, ZF_BLOCK_SIZE) ||
	    len == 0 || len > zone_size - offset || zone_no < 2 || zone_no >= alloc->zone_count)
		return zf_report_corrupt(
			alloc->report, "log record's range", address,
			"length has %" PRIu64 ", expected whole blocks within one zone", len);
	zf_mutex_lock(&alloc->lock);
	zone = &alloc->zones[zone_no];
	if (!can_hold_data(zone)) {
		r = zf_report_corrupt(alloc->report, "log record's range", address,
				      "zone has role %s, expected one for data",
				      zf_zone_role_name(zone->role));
	} else if (!raise_pointer(alloc, (uint32_t)zone_no, (offset + len) >> ZF_BLOCK_SHIFT)) {
		r = zf_report_corrupt(alloc->report, "log record's range", address,
				      "end has %" PRIu64 ", expected at most the pointer, %" PRIu64,
				      offset + len, (uint64_t)zone->pointer << ZF_BLOCK_SHIFT);
	} else {
		if (zone->role == ZF_ROLE_OVERWRITE && zone->live == 0)
			zf_alloc_overwrite_left_locked(alloc, (uint32_t)zone_no);
		if (zone->live == 0 && zone->role != ZF_ROLE_COLD && zone->role != ZF_ROLE_LOG)
			zf_alloc_set_role_locked(alloc, (uint32_t)zone_no, ZF_ROLE_HOT);
		zone->held = true;
		zf_alloc_dirty_locked(alloc, (uint32_t)zone_no);
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_let_go(struct zf_alloc *alloc)
{
	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count; z++) {
		if (!alloc->zones[z].held)
			continue;
		alloc->zones[z].held = false;
		zf_alloc_note_emptied_locked(alloc, z, alloc->running);
	}
	zf_alloc_recount_locked(alloc);
	zf_mutex_unlock(&alloc->lock);
}
