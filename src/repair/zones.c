/* SPDX-License-Identifier: MIT */
/* The zone tree's items, and the zones of the log. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "repair/state.h"
#include "salvage/found.h"

static bool may_hold_data(uint8_t role)
{
	return role == ZF_ROLE_HOT || role == ZF_ROLE_COLD;
}

/* Does the zone have an item with a possible pointer? */
static bool tells_pointer(const struct zf_repair_zone *zone)
{
	uint64_t pointer = zf_le64_get(zone->item.pointer);

	return zone->has_item && zone->item.role < ZF_ROLE_COUNT &&
	       zf_is_aligned(pointer, ZF_BLOCK_SIZE) && pointer <= zone->capacity &&
	       (zone->item.role == ZF_ROLE_NONE) == (pointer == 0);
}

/*
 * If the device's pointer is a lower bound and the item's pointer is useless, a zone may look empty
 * although it has nodes of the state that is repaired. Such a zone with any node counts as full.
 */
int zf_repair_find_nodes(struct zf_repair *repair)
{
	const struct zf_geometry *geometry = zf_dev_geometry(repair->dev);
	_zf_free_ bool *skip = calloc(geometry->zone_count, sizeof(*skip));
	struct zf_vector found = ZF_VECTOR(struct zf_found);
	struct zf_node_shape shape;
	bool any = false;
	int r = 0;

	if (!skip)
		return -ENOMEM;
	memset(skip, true, geometry->zone_count);
	for (uint32_t z = ZF_SUPER_ZONES; z < repair->zones.count; z++) {
		const struct zf_repair_zone *zone = zf_vector_at(&repair->zones, z);

		/* The items of an older state do not cover what was written since. */
		skip[z] = (!geometry->pointers_are_lower_bounds && !zone->lost) ||
			  (tells_pointer(zone) && repair->options->generation == 0);
		any |= !skip[z];
	}
	zf_repair_shape(repair, &shape);
	if (any)
		r = zf_found_scan(repair->dev, &shape, skip, &repair->meter->search.progress,
				  &found);
	ZF_VECTOR_FOREACH (&found, struct zf_found, node)
		for (unsigned int c = 0; c < shape.copies && r == 0; c++) {
			uint64_t zone_no = node->ptr.address[c] / geometry->zone_size;
			struct zf_repair_zone *zone;

			if (zone_no >= repair->zones.count || skip[zone_no])
				continue;
			zone = zf_vector_at(&repair->zones, zone_no);
			zone->pointer = zone->capacity;
		}
	zf_vector_deinit(&found);
	return r;
}

static bool is_log_zone(const struct zf_repair *repair, uint32_t zone_no)
{
	return repair->super.log_zone[0] == zone_no || repair->super.log_zone[1] == zone_no;
}

/* The role in the old item, if it is a possible one. */
static uint8_t old_role(const struct zf_repair_zone *zone)
{
	return zone->has_item && zone->item.role < ZF_ROLE_COUNT ? zone->item.role : ZF_ROLE_NONE;
}

static uint64_t old_pointer(const struct zf_repair_zone *zone)
{
	uint64_t pointer = zone->has_item ? zf_le64_get(zone->item.pointer) : 0;

	return zf_is_aligned(pointer, ZF_BLOCK_SIZE) && pointer <= zone->capacity ? pointer : 0;
}

/*
 * How far the zone is written. A zone that is not empty must never count as empty. The device has
 * no pointer for a conventional zone: without a usable pointer in the item, nodes of the old trees
 * may be anywhere in the zone, and the zone counts as full.
 */
static uint64_t pointer_of(const struct zf_repair *repair, const struct zf_repair_zone *zone)
{
	bool lower = zf_dev_geometry(repair->dev)->pointers_are_lower_bounds || zone->lost;

	if (zone->conventional) {
		bool empty = zone->has_item && old_role(zone) == ZF_ROLE_NONE &&
			     zf_le64_get(zone->item.pointer) == 0 && zone->live == 0;
		bool whole = zone->has_item && old_pointer(zone) > 0 && !zone->in_place &&
			     old_role(zone) != ZF_ROLE_OVERWRITE;

		if (empty)
			return 0;
		return whole ? zf_max_u64(old_pointer(zone), zone->data_end) : zone->capacity;
	}
	return lower ? zf_max_u64(zone->pointer, zf_max_u64(old_pointer(zone), zone->data_end))
		     : zone->pointer;
}

static uint8_t role_of(const struct zf_repair *repair, uint32_t zone_no,
		       const struct zf_repair_zone *zone, uint64_t pointer)
{
	uint8_t role = old_role(zone);

	if (zone_no < ZF_SUPER_ZONES)
		return ZF_ROLE_SUPER;
	if (is_log_zone(repair, zone_no))
		return ZF_ROLE_LOG;
	if (zone->live > 0)
		return zone->in_place	     ? ZF_ROLE_OVERWRITE
		       : may_hold_data(role) ? role
					     : ZF_ROLE_HOT;
	if (pointer == 0)
		return ZF_ROLE_NONE;
	return may_hold_data(role) ? role : ZF_ROLE_META;
}

static uint64_t resets_of(const struct zf_repair *repair, const struct zf_repair_zone *zone)
{
	uint64_t item = zone->has_item ? zf_le64_get(zone->item.reset_count) : 0;

	/* No counting reaches it. Above ZF_SUPER_COUNTER_MAX a superblock could not hold it. */
	if (item > ZF_REPAIR_NUMBER_MAX)
		item = 0;
	return repair->counts_resets && !zone->conventional && !zone->lost ? zone->resets : item;
}

static struct zf_le64 fit_generation(const struct zf_repair *repair,
				     const struct zf_repair_zone *zone, struct zf_le64 generation)
{
	bool known = zone->has_item && zf_le64_get(generation) <= repair->super.generation;

	return known ? generation : zf_le64_from(0);
}

void zf_repair_zone_item(const struct zf_repair *repair, uint32_t zone_no,
			 struct zf_disk_zone *ret_item)
{
	const struct zf_repair_zone *zone = zf_vector_at(&repair->zones, zone_no);
	uint64_t pointer = zone_no < ZF_SUPER_ZONES ? 0 : pointer_of(repair, zone);

	*ret_item = (struct zf_disk_zone){
		.role = role_of(repair, zone_no, zone, pointer),
		.pointer = zf_le64_from(pointer),
		.live = zf_le64_from(zone->live),
		.reset_count = zf_le64_from(resets_of(repair, zone)),
		.reset_generation = fit_generation(repair, zone, zone->item.reset_generation),
		.write_generation = fit_generation(repair, zone, zone->item.write_generation),
	};
}

/* ---- the log ---- */

static bool has_role(const struct zf_repair *repair, uint32_t zone_no)
{
	const struct zf_repair_zone *zone;

	if (zone_no < ZF_SUPER_ZONES || zone_no >= repair->zones.count)
		return false;
	zone = zf_vector_at(&repair->zones, zone_no);
	return old_role(zone) == ZF_ROLE_LOG;
}

/*
 * If the zone tree contradicts the superblock's log_zone[which], takes the first zone that has the
 * role LOG and is not the superblock's other log zone.
 */
static void find_zone(struct zf_repair *repair, unsigned int which)
{
	struct zf_super *super = &repair->super;

	if (super->log_zone[which] == ZF_SUPER_NO_ZONE || has_role(repair, super->log_zone[which]))
		return;
	for (uint32_t z = ZF_SUPER_ZONES; z < repair->zones.count; z++) {
		if (!has_role(repair, z) || super->log_zone[1 - which] == z)
			continue;
		zf_repair_tell(repair, "superblock: a zone of the log is %u, not %u", z,
			       super->log_zone[which]);
		super->log_zone[which] = z;
		super->log_pointer[which] = 0;
		return;
	}
}

/* A zone with a wrong role in the zone tree may stay a log zone, but not one written in place. */
static bool may_stay(const struct zf_repair *repair, unsigned int which)
{
	uint32_t zone_no = repair->super.log_zone[which];
	const struct zf_repair_zone *zone;

	if (zone_no == ZF_SUPER_NO_ZONE)
		return true;
	if (zone_no < ZF_SUPER_ZONES || zone_no >= repair->zones.count)
		return false;
	zone = zf_vector_at(&repair->zones, zone_no);
	return !zone->in_place;
}

static void correct(struct zf_repair *repair, unsigned int which)
{
	struct zf_super *super = &repair->super;
	const struct zf_repair_zone *zone;
	uint64_t resets;

	if (super->log_zone[which] == ZF_SUPER_NO_ZONE)
		return;
	zone = zf_vector_at(&repair->zones, super->log_zone[which]);
	resets = resets_of(repair, zone);
	if (!zone->lost && super->log_zone_resets[which] != resets) {
		zf_repair_tell(
			repair,
			"superblock: the reset count of the log's zone %u is set to %" PRIu64,
			super->log_zone[which], resets);
		super->log_zone_resets[which] = resets;
	}
	if (super->log_pointer[which] > pointer_of(repair, zone) ||
	    !zf_is_aligned(super->log_pointer[which], ZF_BLOCK_SIZE))
		super->log_pointer[which] = 0;
}

static void give_up(struct zf_repair *repair)
{
	for (unsigned int i = 0; i < 2; i++) {
		repair->super.log_zone[i] = ZF_SUPER_NO_ZONE;
		repair->super.log_zone_resets[i] = repair->super.log_pointer[i] = 0;
	}
	/* The next log must not take the old records in these zones for its own. */
	repair->super.log_epoch++;
	repair->counts.log_dropped = true;
}

void zf_repair_decide_log(struct zf_repair *repair)
{
	const struct zf_super *super = &repair->super;

	if (super->log_zone[0] == ZF_SUPER_NO_ZONE && super->log_zone[1] == ZF_SUPER_NO_ZONE)
		return;
	for (unsigned int i = 0; i < 2; i++)
		find_zone(repair, i);
	if (repair->keep_log && may_stay(repair, 0) && may_stay(repair, 1) &&
	    super->log_zone[0] != super->log_zone[1]) {
		for (unsigned int i = 0; i < 2; i++)
			correct(repair, i);
		return;
	}
	zf_repair_tell(repair,
		       "the log is discarded: changes after generation %" PRIu64
		       " that only the log holds are lost",
		       super->generation);
	give_up(repair);
}
