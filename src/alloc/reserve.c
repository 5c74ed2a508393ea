/* SPDX-License-Identifier: MIT */
/* Promises of room, and what is left to promise (P5). */
#include <assert.h>
#include <errno.h>

#include "alloc/alloc_internal.h"

uint64_t zf_alloc_stream_room_locked(const struct zf_alloc *alloc, enum zf_role role)
{
	uint32_t z = alloc->data_zone[role];

	if (z == NO_ZONE || alloc->zones[z].pointer_unknown)
		return 0;
	return alloc->zones[z].capacity - alloc->zones[z].pointer;
}

static uint64_t item_blocks(const struct zf_alloc *alloc, uint64_t items)
{
	return (items * ITEM_BYTES * alloc->copies + ZF_BLOCK_SIZE - 1) >> ZF_BLOCK_SHIFT;
}

/* Empty zones that `wanted` blocks take, beside what the stream has. */
static uint32_t zones_for(const struct zf_alloc *alloc, enum zf_role role, uint64_t wanted)
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

	return zones_for(alloc, ZF_ROLE_HOT, hot) +
	       zones_for(alloc, ZF_ROLE_COLD, alloc->cold_blocks);
}

uint32_t zf_alloc_kept_zones_locked(const struct zf_alloc *alloc, enum zf_reserve_class class)
{
	switch (class) {
	case ZF_RESERVE_NORMAL:
		return alloc->copies + zf_alloc_kept_for_log_locked(alloc) + KEPT_FOR_RECLAIM;
	case ZF_RESERVE_FREEING:
		return alloc->copies + zf_alloc_kept_for_log_locked(alloc);
	case ZF_RESERVE_SYSTEM:
		break;
	}
	return alloc->copies;
}

/* Blocks that a caller of this class may still reserve if it leaves `kept` empty zones alone. */
static uint64_t available_blocks(const struct zf_alloc *alloc, enum zf_reserve_class class,
				 uint32_t kept, uint32_t empty_count)
{
	uint64_t room = zf_alloc_stream_room_locked(alloc, ZF_ROLE_HOT);
	uint64_t used = alloc->reserved_blocks + item_blocks(alloc, alloc->reserved_items);

	/* Freeing must go on even when a crash took of what is kept. */
	used += class == ZF_RESERVE_NORMAL ? zf_alloc_kept_need_locked(alloc)
					   : zf_alloc_kept_claim_locked(alloc);
	if (empty_count > kept)
		room += (empty_count - kept) * capacity_blocks(alloc);
	return room > used ? room - used : 0;
}

int zf_alloc_reserve(struct zf_alloc *alloc, enum zf_reserve_class class, uint64_t data_blocks,
		     uint64_t items, uint64_t nodes)
{
	uint32_t kept;
	int r = 0;

	zf_mutex_lock(&alloc->lock);
	kept = zf_alloc_kept_zones_locked(alloc, class);
	/* What frees may have to write, but not so much that nothing can be freed any more. */
	if (class == ZF_RESERVE_FREEING && data_blocks > 0)
		kept++;
	if (data_blocks + item_blocks(alloc, items) >
	    available_blocks(alloc, class, kept, alloc->empty_count)) {
		r = -ENOSPC;
	} else {
		alloc->reserved_blocks += data_blocks;
		alloc->reserved_items += items;
		/* Not what transactions under way, or their commit, were promised. */
		if (data_blocks > 0 && zf_alloc_node_room_locked(alloc) <
					       alloc->promised_nodes + alloc->tail_max + nodes) {
			alloc->reserved_blocks -= data_blocks;
			alloc->reserved_items -= items;
			r = -ENOSPC;
		}
	}
	/* There was room beside all that is kept: so it is there. */
	if (r == 0 && class == ZF_RESERVE_NORMAL && data_blocks > 0)
		alloc->kept_spent = 0;
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

void zf_alloc_get_space(struct zf_alloc *alloc, struct zf_space *ret_space)
{
	struct zf_space space = {0};
	uint32_t emptied = 0;
	uint32_t kept;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count; z++) {
		const struct zf_zone *zone = &alloc->zones[z];
		uint64_t live = zone->live + zone->system_live;

		if (zone->unusable && !live)
			continue;
		space.total += zone->capacity;
		space.live += live;
		if (zone->role == ZF_ROLE_OVERWRITE)
			space.in_place += zone->pointer - live;
		else
			space.unusable += zone->pointer - live;
		emptied += zf_alloc_holds_nothing_locked(alloc, z);
	}
	/* A writer who needs them waits for the commits that give them back. */
	kept = zf_alloc_kept_zones_locked(alloc, ZF_RESERVE_NORMAL);
	space.available =
		available_blocks(alloc, ZF_RESERVE_NORMAL, kept, alloc->empty_count + emptied);
	if (kept > alloc->empty_count)
		kept = alloc->empty_count;
	space.reserved = alloc->reserved_blocks + item_blocks(alloc, alloc->reserved_items) +
			 kept * capacity_blocks(alloc) + zf_alloc_log_room_locked(alloc);
	space.kept = alloc->kept_blocks;
	zf_mutex_unlock(&alloc->lock);
	space.total <<= ZF_BLOCK_SHIFT;
	space.live <<= ZF_BLOCK_SHIFT;
	space.unusable <<= ZF_BLOCK_SHIFT;
	space.in_place <<= ZF_BLOCK_SHIFT;
	space.available <<= ZF_BLOCK_SHIFT;
	space.reserved <<= ZF_BLOCK_SHIFT;
	space.kept <<= ZF_BLOCK_SHIFT;
	*ret_space = space;
}
