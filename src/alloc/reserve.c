/* SPDX-License-Identifier: MIT */
/* Promises of room, and what is left to promise (P5). */
#include <assert.h>
#include <errno.h>

#include "alloc/alloc_internal.h"
#include "base/plant.h"

uint64_t zf_alloc_stream_room_locked(const struct zf_alloc *alloc, enum zf_role role)
{
	uint32_t z = alloc->data_zone[role];

	if (z == NO_ZONE || alloc->zones[z].pointer_unknown)
		return 0;
	return alloc->zones[z].capacity - alloc->zones[z].pointer;
}

uint64_t zf_alloc_item_blocks_locked(const struct zf_alloc *alloc, uint64_t items)
{
	return (items * ITEM_BYTES * alloc->copies + ZF_BLOCK_SIZE - 1) >> ZF_BLOCK_SHIFT;
}

uint32_t zf_alloc_zones_for_locked(const struct zf_alloc *alloc, enum zf_role role, uint64_t wanted)
{
	uint64_t room = zf_alloc_stream_room_locked(alloc, role);
	uint64_t per_zone = capacity_blocks(alloc);

	if (wanted <= room)
		return 0;
	return (uint32_t)((wanted - room + per_zone - 1) / per_zone);
}

uint32_t zf_alloc_claimed_zones_locked(const struct zf_alloc *alloc)
{
	uint64_t hot = alloc->reserved_blocks + zf_alloc_kept_claim_locked(alloc);

	return zf_alloc_zones_for_locked(alloc, ZF_ROLE_HOT, hot);
}

uint32_t zf_alloc_kept_zones_locked(const struct zf_alloc *alloc, enum zf_reserve_class class)
{
	switch (class) {
	case ZF_RESERVE_NORMAL:
		return alloc->copies + zf_alloc_kept_for_log_locked(alloc) +
		       zf_alloc_kept_for_reclaim_locked(alloc);
	case ZF_RESERVE_FREEING:
		return alloc->copies + zf_alloc_kept_for_log_locked(alloc);
	case ZF_RESERVE_SYSTEM:
		break;
	}
	return alloc->copies;
}

static uint64_t sub_blocks(uint64_t from, uint64_t blocks)
{
	return from > blocks ? from - blocks : 0;
}

/* What data was promised that has no zone yet. */
static uint64_t promised_blocks(const struct zf_alloc *alloc)
{
	return ZF_PLANTED(ZF_BUG_ROOM_UNCOUNTED) ? 0 : alloc->reserved_blocks;
}

/*
 * What is left alone counts in blocks: the zones of metadata and the log, and of reclaim's three
 * zones what the COLD stream has not used. So moving what is live, and getting its zone back,
 * change what is available by exactly the garbage that is gone.
 */
uint64_t zf_alloc_normal_blocks_locked(const struct zf_alloc *alloc,
				       const struct zf_data_room *room)
{
	uint64_t per_zone = capacity_blocks(alloc);
	uint64_t kept = alloc->copies + zf_alloc_kept_for_log_locked(alloc) + KEPT_FOR_RECLAIM;
	uint64_t used = promised_blocks(alloc) +
			zf_alloc_item_blocks_locked(alloc, alloc->reserved_items) +
			zf_alloc_kept_need_locked(alloc);

	return sub_blocks(room->hot + zf_min_u64(room->cold, per_zone) + room->empty * per_zone,
			  kept * per_zone + used);
}

/* Freeing must go on even when a crash took of what is kept. */
static uint64_t other_blocks(const struct zf_alloc *alloc, const struct zf_data_room *room,
			     uint32_t kept)
{
	uint64_t used = alloc->reserved_blocks +
			zf_alloc_item_blocks_locked(alloc, alloc->reserved_items) +
			zf_alloc_kept_claim_locked(alloc);
	uint64_t empty = sub_blocks(room->empty, kept);

	return sub_blocks(room->hot + empty * capacity_blocks(alloc), used);
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

static uint64_t blocks_for(const struct zf_alloc *alloc, enum zf_reserve_class class,
			   const struct zf_data_room *room, bool data)
{
	uint32_t kept = zf_alloc_kept_zones_locked(alloc, class);

	if (class == ZF_RESERVE_NORMAL)
		return zf_alloc_normal_blocks_locked(alloc, room);
	/* What frees may have to write, but not so much that nothing can be freed any more. */
	if (class == ZF_RESERVE_FREEING && data)
		kept++;
	return other_blocks(alloc, room, kept);
}

static bool can_reserve(const struct zf_alloc *alloc, enum zf_reserve_class class,
			uint64_t data_blocks, uint64_t items, uint64_t nodes)
{
	struct zf_data_room room = zf_alloc_data_room_locked(alloc);

	if (data_blocks + zf_alloc_item_blocks_locked(alloc, items) >
	    blocks_for(alloc, class, &room, data_blocks > 0))
		return false;
	/* Not what transactions under way, or their commit, were promised. */
	nodes += alloc->promised_nodes + alloc->tail_max;
	return data_blocks == 0 ||
	       data_blocks <= zf_alloc_blocks_beside_nodes_locked(alloc, &room, nodes);
}

int zf_alloc_reserve(struct zf_alloc *alloc, enum zf_reserve_class class, uint64_t data_blocks,
		     uint64_t items, uint64_t nodes)
{
	int r = -ENOSPC;

	zf_mutex_lock(&alloc->lock);
	if (class == ZF_RESERVE_NORMAL && data_blocks > 0)
		alloc->data_nodes = nodes;
	if (can_reserve(alloc, class, data_blocks, items, nodes)) {
		alloc->reserved_blocks += data_blocks;
		alloc->reserved_items += items;
		/* There was room beside all that is kept: so it is there. */
		if (class == ZF_RESERVE_NORMAL && data_blocks > 0)
			alloc->kept_spent = 0;
		r = 0;
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_unreserve(struct zf_alloc *alloc, uint64_t data_blocks, uint64_t items)
{
	zf_mutex_lock(&alloc->lock);
	assert(alloc->reserved_blocks >= data_blocks && alloc->reserved_items >= items);
	alloc->reserved_blocks -= data_blocks;
	alloc->reserved_items -= items;
	zf_mutex_unlock(&alloc->lock);
}
