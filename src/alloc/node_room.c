/* SPDX-License-Identifier: MIT */
/* How many nodes metadata has room for. Nothing here changes any state. */
#include "alloc/alloc_internal.h"

uint32_t zf_alloc_meta_keeps_locked(const struct zf_alloc *alloc)
{
	return zf_alloc_claimed_zones_locked(alloc) + zf_alloc_cold_zones_locked(alloc);
}

uint64_t zf_alloc_node_room_with_locked(const struct zf_alloc *alloc, uint32_t empty_count)
{
	uint32_t keeps = zf_alloc_meta_keeps_locked(alloc), empties = 0;

	if (empty_count > keeps)
		empties = empty_count - keeps;
	return empties / alloc->copies * blocks_to_nodes(alloc, capacity_blocks(alloc)) +
	       zf_alloc_nodes_in_streams_locked(alloc);
}

uint64_t zf_alloc_node_room_locked(const struct zf_alloc *alloc)
{
	return zf_alloc_node_room_with_locked(alloc, alloc->empty_count);
}

bool zf_alloc_can_spare_locked(const struct zf_alloc *alloc)
{
	return zf_alloc_node_room_locked(alloc) >=
	       alloc->promised_nodes + alloc->tail_max + alloc->nodes_kept;
}

/* ---- streams that could do without their zones ---- */

bool zf_alloc_can_close_streams_locked(const struct zf_alloc *alloc, uint64_t garbage_min,
				       uint32_t empty_count)
{
	uint64_t per_zone = blocks_to_nodes(alloc, capacity_blocks(alloc));
	uint64_t room = zf_alloc_node_room_with_locked(alloc, empty_count) -
			zf_alloc_nodes_in_streams_locked(alloc);

	for (unsigned int c = 0; c < alloc->copies; c++) {
		const struct zf_zone *zone;

		if (alloc->meta_zone[c] == NO_ZONE)
			return false;
		zone = &alloc->zones[alloc->meta_zone[c]];
		if (zone->pointer < zone->live + zone->system_live + garbage_min)
			return false;
	}
	return room >= alloc->promised_nodes + alloc->tail_max + per_zone;
}

bool zf_alloc_can_close_locked(struct zf_alloc *alloc, enum zf_role role)
{
	uint32_t zone_no = alloc->data_zone[role], zones;
	uint64_t node_room = zf_alloc_node_room_locked(alloc);
	bool r;

	alloc->data_zone[role] = NO_ZONE;
	zones = zf_alloc_zones_for_locked(alloc, ZF_ROLE_COLD, alloc->cold_blocks);
	r = alloc->empty_count >= zf_alloc_claimed_zones_locked(alloc) + (zones ? zones : 1) &&
	    (zf_alloc_node_room_locked(alloc) >= node_room || zf_alloc_can_spare_locked(alloc));
	alloc->data_zone[role] = zone_no;
	return r;
}
