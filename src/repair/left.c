/* SPDX-License-Identifier: MIT */
/*
 * Resets the zones that an interrupted repair or commit has written, so that repairs that are
 * interrupted again and again do not use up all empty zones.
 *
 * Such a zone holds nothing of the state that is repaired: the zone's item says that it was empty,
 * no kept extent and no log record names it, and each node in it is newer than the state. If the
 * caller asked for an older state, newer nodes may belong to the newest state, and nothing is
 * reset.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "log/read.h"
#include "repair/state.h"
#include "salvage/found.h"

static int hold(void *arg, const struct zf_log_range *range)
{
	struct zf_repair *repair = arg;
	uint64_t zone_no = range->address / zf_dev_geometry(repair->dev)->zone_size;

	if (zone_no < repair->zones.count)
		((struct zf_repair_zone *)zf_vector_at(&repair->zones, zone_no))->held = true;
	return 0;
}

/* Marks the zones that log records name. False: the log cannot be read, and may name any zone. */
static bool hold_logged(struct zf_repair *repair)
{
	struct zf_log_found found;
	int r;

	if (repair->counts.log_dropped)
		return true;
	r = zf_log_read(repair->dev, &repair->super, NULL, &found);
	if (r < 0)
		return false;
	r = found.unreadable > 0 ? -EIO : zf_log_found_ranges(&found, hold, repair);
	zf_log_found_free(&found);
	return r == 0;
}

static bool was_empty(const struct zf_repair *repair, uint32_t zone_no)
{
	const struct zf_repair_zone *zone = zf_vector_at(&repair->zones, zone_no);
	const struct zf_super *super = &repair->super;

	return zone_no >= ZF_SUPER_ZONES && zone->has_item && zone->item.role == ZF_ROLE_NONE &&
	       zf_le64_get(zone->item.pointer) == 0 && zf_le64_get(zone->item.live) == 0 &&
	       zone->pointer > 0 && zone->live == 0 && !zone->held && !zone->conventional &&
	       !zone->lost && !zone->unwritable && super->log_zone[0] != zone_no &&
	       super->log_zone[1] != zone_no;
}

static void skip_zone_of(const struct zf_node_shape *shape, uint64_t address, bool *skip)
{
	uint64_t zone_no = address / shape->geometry->zone_size;

	if (zone_no < shape->geometry->zone_count)
		skip[zone_no] = true;
}

/* Sets skip[] for zones that have nodes of the state: they are not reset. */
static int keep_nodes(struct zf_repair *repair, bool *skip)
{
	struct zf_vector found = ZF_VECTOR(struct zf_found);
	struct zf_node_shape shape;
	int r;

	zf_repair_shape(repair, &shape);
	r = zf_found_scan(repair->dev, &shape, skip, NULL, &found);
	ZF_VECTOR_FOREACH (&found, struct zf_found, node) {
		if (r < 0 || node->ptr.generation > repair->super.generation)
			continue;
		for (unsigned int c = 0; c < shape.copies; c++)
			skip_zone_of(&shape, node->ptr.address[c], skip);
	}
	zf_vector_deinit(&found);
	return r;
}

static int reset(struct zf_repair *repair, uint32_t zone_no)
{
	struct zf_repair_zone *zone = zf_vector_at(&repair->zones, zone_no);
	struct zf_zone_info info;
	int r = zf_dev_reset(repair->dev, zone_no);

	if (r == 0)
		r = zf_dev_report(repair->dev, zone_no, 1, &info);
	if (r < 0)
		return r;
	zone->pointer = 0;
	zone->resets = info.reset_count;
	repair->counts_resets |= info.reset_count > 0;
	return 0;
}

int zf_repair_reset_left(struct zf_repair *repair)
{
	_zf_free_ bool *skip = calloc(zf_dev_geometry(repair->dev)->zone_count, sizeof(*skip));
	uint32_t count = (uint32_t)repair->zones.count, left = 0;
	int r;

	if (!skip)
		return -ENOMEM;
	if (repair->options->generation != 0 || !hold_logged(repair))
		return 0;
	memset(skip, true, zf_dev_geometry(repair->dev)->zone_count);
	for (uint32_t z = 0; z < count; z++) {
		skip[z] = !was_empty(repair, z);
		left += !skip[z];
	}
	r = left > 0 ? keep_nodes(repair, skip) : 0;
	for (uint32_t z = 0; z < count && r == 0 && left > 0; z++)
		if (!skip[z])
			r = reset(repair, z);
	return r;
}
