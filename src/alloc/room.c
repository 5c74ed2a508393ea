/* SPDX-License-Identifier: MIT */
/*
 * How much room there is, in zones and blocks, and how much of it is set aside for whom. Nothing
 * here changes any state.
 */
#include "alloc/alloc_internal.h"
#include "base/plant.h"

uint64_t zf_alloc_stream_room_locked(const struct zf_alloc *alloc, enum zf_role role)
{
	uint32_t z = alloc->data_zone[role];

	if (z == NO_ZONE || alloc->zones[z].pointer_unknown)
		return 0;
	return alloc->zones[z].capacity - alloc->zones[z].pointer;
}

uint32_t zf_alloc_zones_for_locked(const struct zf_alloc *alloc, enum zf_role role, uint64_t wanted)
{
	uint64_t room = zf_alloc_stream_room_locked(alloc, role);
	uint64_t per_zone = capacity_blocks(alloc);

	if (wanted <= room)
		return 0;
	return (uint32_t)((wanted - room + per_zone - 1) / per_zone);
}

/* ---- blocks that are kept for their owners ---- */

static uint64_t item_blocks_of(uint64_t kept)
{
	return (kept * ZF_RESERVE_KEPT_BYTES + ZF_BLOCK_SIZE - 1) >> ZF_BLOCK_SHIFT;
}

uint64_t zf_alloc_kept_claim_locked(const struct zf_alloc *alloc)
{
	return sub_blocks(kept_unlent(alloc), alloc->kept_short);
}

uint64_t zf_alloc_kept_item_blocks_locked(const struct zf_alloc *alloc)
{
	/* Short blocks are left out: the garbage in their place still has its entries. */
	return item_blocks_of(zf_alloc_kept_claim_locked(alloc));
}

uint64_t zf_alloc_slack_locked(const struct zf_alloc *alloc)
{
	return alloc->guaranteed_blocks > 0 ? slack_max(alloc) : 0;
}

uint64_t zf_alloc_overwrite_need_locked(const struct zf_alloc *alloc)
{
	uint64_t blocks = sub_blocks(alloc->guaranteed_blocks, alloc->kept_guaranteed_blocks);

	return zf_alloc_slack_locked(alloc) + item_blocks_of(blocks) * alloc->copies;
}

/* Blocks that data leaves alone for kept and guaranteed blocks and for their items. */
static uint64_t set_aside_blocks(const struct zf_alloc *alloc, enum zf_reserve_class class)
{
	uint64_t kept = kept_unlent(alloc), blocks = kept + item_blocks_of(kept) * alloc->copies;

	if (class == ZF_RESERVE_OVERWRITE)
		return blocks;
	return blocks + zf_alloc_overwrite_need_locked(alloc);
}

/* ---- empty zones that are set aside ---- */

uint32_t zf_alloc_claimed_zones_locked(const struct zf_alloc *alloc)
{
	uint64_t hot = alloc->reserved_blocks + zf_alloc_kept_claim_locked(alloc);

	return zf_alloc_zones_for_locked(alloc, ZF_ROLE_HOT, hot);
}

uint32_t zf_alloc_kept_for_log_locked(const struct zf_alloc *alloc)
{
	uint32_t missing = KEPT_FOR_LOG;

	for (unsigned int i = 0; i < 2; i++)
		if (alloc->log_chosen[i] != NO_ZONE &&
		    log_zone_has_room(&alloc->zones[alloc->log_chosen[i]]))
			missing--;
	return missing;
}

uint32_t zf_alloc_kept_for_reclaim_locked(const struct zf_alloc *alloc)
{
	return zf_alloc_stream_room_locked(alloc, ZF_ROLE_COLD) > 0 ? KEPT_FOR_RECLAIM - 1
								    : KEPT_FOR_RECLAIM;
}

uint32_t zf_alloc_cold_zones_locked(const struct zf_alloc *alloc)
{
	uint32_t zones = zf_alloc_zones_for_locked(alloc, ZF_ROLE_COLD, alloc->cold_blocks);

	return alloc->cold_zone && zones == 0 ? 1 : zones;
}

uint32_t zf_alloc_kept_zones_locked(const struct zf_alloc *alloc, enum zf_reserve_class class)
{
	switch (class) {
	case ZF_RESERVE_NORMAL:
	case ZF_RESERVE_OVERWRITE:
		return alloc->copies + zf_alloc_kept_for_log_locked(alloc) +
		       zf_alloc_kept_for_reclaim_locked(alloc);
	case ZF_RESERVE_FREEING:
		return alloc->copies + zf_alloc_kept_for_log_locked(alloc);
	case ZF_RESERVE_SYSTEM:
		break;
	}
	return alloc->copies;
}

/* ---- room for data ---- */

uint64_t zf_alloc_item_blocks_locked(const struct zf_alloc *alloc, uint64_t items)
{
	return (items * ZF_RESERVE_ITEM_BYTES * alloc->copies + ZF_BLOCK_SIZE - 1) >>
	       ZF_BLOCK_SHIFT;
}

uint64_t zf_alloc_nodes_in_streams_locked(const struct zf_alloc *alloc)
{
	uint64_t least = UINT64_MAX;

	for (unsigned int c = 0; c < alloc->copies; c++) {
		uint64_t n = 0;

		if (alloc->meta_zone[c] != NO_ZONE) {
			const struct zf_zone *zone = &alloc->zones[alloc->meta_zone[c]];

			n = blocks_to_nodes(alloc, zone->capacity - zone->pointer);
		}
		least = n < least ? n : least;
	}
	return least;
}

/* Blocks reserved for data that has no zone yet. */
static uint64_t promised_blocks(const struct zf_alloc *alloc)
{
	return ZF_PLANTED(ZF_BUG_ROOM_UNCOUNTED) ? 0 : alloc->reserved_blocks;
}

struct zf_data_room zf_alloc_data_room_locked(const struct zf_alloc *alloc)
{
	return (struct zf_data_room){
		.hot = zf_alloc_stream_room_locked(alloc, ZF_ROLE_HOT),
		.cold = zf_alloc_stream_room_locked(alloc, ZF_ROLE_COLD),
		.empty = alloc->empty_count,
		.cold_zones = zf_alloc_cold_zones_locked(alloc),
		.nodes = zf_alloc_nodes_in_streams_locked(alloc),
	};
}

/*
 * The zones that users leave alone are counted in blocks: those of metadata and the log, and the
 * part of reclaim's three zones that the COLD stream has not used. So moving the live data of a
 * zone and resetting the zone changes the result by exactly the zone's garbage.
 */
uint64_t zf_alloc_user_blocks_locked(const struct zf_alloc *alloc, enum zf_reserve_class class,
				     const struct zf_data_room *room)
{
	uint64_t per_zone = capacity_blocks(alloc);
	uint64_t kept = alloc->copies + zf_alloc_kept_for_log_locked(alloc) + KEPT_FOR_RECLAIM;
	uint64_t used = promised_blocks(alloc) +
			zf_alloc_item_blocks_locked(alloc, alloc->reserved_items) +
			set_aside_blocks(alloc, class);

	return sub_blocks(room->hot + zf_min_u64(room->cold, per_zone) + room->empty * per_zone,
			  kept * per_zone + used);
}

uint64_t zf_alloc_blocks_beside_nodes_locked(const struct zf_alloc *alloc,
					     const struct zf_data_room *room, uint64_t nodes)
{
	uint64_t used = promised_blocks(alloc) + zf_alloc_kept_claim_locked(alloc);
	uint64_t per_zone = capacity_blocks(alloc) / alloc->node_blocks;
	uint64_t zones = (sub_blocks(nodes, room->nodes) + per_zone - 1) / per_zone;
	uint64_t keep = room->cold_zones + zones * alloc->copies;

	if (room->empty < keep)
		return 0;
	return sub_blocks(room->hot + (room->empty - keep) * capacity_blocks(alloc), used);
}
