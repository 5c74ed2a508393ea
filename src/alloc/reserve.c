/* SPDX-License-Identifier: MIT */
/* Reservations of blocks and items, and promises of nodes (P5). */
#include <assert.h>
#include <errno.h>

#include "alloc/alloc_internal.h"

/* Short kept blocks are not subtracted: removals must work after a crash, too. */
static uint64_t other_blocks(const struct zf_alloc *alloc, const struct zf_data_room *room,
			     uint32_t kept)
{
	uint64_t used = alloc->reserved_blocks +
			zf_alloc_item_blocks_locked(alloc, alloc->reserved_items) +
			zf_alloc_kept_claim_locked(alloc);
	uint64_t empty = sub_blocks(room->empty, kept);

	return sub_blocks(room->hot + empty * capacity_blocks(alloc), used);
}

static uint64_t blocks_for(const struct zf_alloc *alloc, enum zf_reserve_class class,
			   const struct zf_data_room *room, bool data)
{
	uint32_t kept = zf_alloc_kept_zones_locked(alloc, class);

	if (zf_reserve_is_of_user(class))
		return zf_alloc_user_blocks_locked(alloc, class, room);
	/* A removal may have to write data, but must leave room for further removals. */
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
	/* Room that was promised to joins under way, or to their commit, is left alone. */
	nodes += alloc->promised_nodes + alloc->tail_max;
	return data_blocks == 0 ||
	       data_blocks <= zf_alloc_blocks_beside_nodes_locked(alloc, &room, nodes);
}

int zf_alloc_reserve(struct zf_alloc *alloc, enum zf_reserve_class class, uint64_t data_blocks,
		     uint64_t items, uint64_t nodes)
{
	int r = -ENOSPC;

	zf_mutex_lock(&alloc->lock);
	if (zf_reserve_is_of_user(class) && data_blocks > 0)
		alloc->data_nodes[class == ZF_RESERVE_OVERWRITE] = nodes;
	if (can_reserve(alloc, class, data_blocks, items, nodes)) {
		alloc->reserved_blocks += data_blocks;
		alloc->reserved_items += items;
		/* There was room beside all kept blocks, so none of them is short. */
		if (class == ZF_RESERVE_NORMAL && data_blocks > 0)
			alloc->kept_short = 0;
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

/* ---- nodes ---- */

void zf_alloc_set_tail_max(struct zf_alloc *alloc, unsigned int nodes)
{
	zf_mutex_lock(&alloc->lock);
	alloc->tail_max = nodes;
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_set_nodes_kept(struct zf_alloc *alloc, uint64_t nodes)
{
	zf_mutex_lock(&alloc->lock);
	alloc->nodes_kept = nodes;
	zf_alloc_cold_rearm_locked(alloc);
	zf_mutex_unlock(&alloc->lock);
}

/* May NORMAL have `nodes` more nodes? Only if the room for overwriting guaranteed blocks stays. */
static bool leaves_slack(const struct zf_alloc *alloc, uint64_t nodes)
{
	struct zf_data_room room = zf_alloc_data_room_locked(alloc);
	uint64_t blocks = zf_alloc_user_blocks_locked(alloc, ZF_RESERVE_OVERWRITE, &room);
	uint64_t need = zf_alloc_overwrite_need_locked(alloc);
	bool opens = nodes + alloc->promised_nodes + alloc->tail_max > room.nodes;

	return blocks >= need + (opens ? alloc->copies * capacity_blocks(alloc) : 0);
}

int zf_alloc_promise_nodes(struct zf_alloc *alloc, enum zf_reserve_class class, uint64_t nodes,
			   uint64_t keep)
{
	uint64_t need = nodes + keep, room;
	int r = 0;

	zf_mutex_lock(&alloc->lock);
	need += alloc->tail_max;
	room = zf_alloc_node_room_locked(alloc);
	if (room < need || (class == ZF_RESERVE_NORMAL && alloc->guaranteed_blocks > 0 &&
			    !leaves_slack(alloc, nodes)))
		r = -ENOSPC;
	else if (room < need + alloc->promised_nodes)
		r = -EBUSY;
	else
		alloc->promised_nodes += nodes;
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_promise_over(struct zf_alloc *alloc, uint64_t nodes)
{
	zf_mutex_lock(&alloc->lock);
	assert(alloc->promised_nodes >= nodes);
	alloc->promised_nodes -= nodes;
	zf_mutex_unlock(&alloc->lock);
}

static uint64_t nodes_for(const struct zf_alloc *alloc, uint64_t blocks)
{
	return blocks_to_nodes(alloc, blocks + alloc->node_blocks - 1);
}

struct zf_node_counts zf_alloc_count_nodes(struct zf_alloc *alloc)
{
	uint64_t live, kept, overwrites, garbage;

	zf_mutex_lock(&alloc->lock);
	live = alloc->node_live_blocks / alloc->copies;
	kept = zf_alloc_kept_item_blocks_locked(alloc);
	overwrites = zf_alloc_overwrite_need_locked(alloc) / alloc->copies;
	garbage = meta_move_costs(alloc);
	zf_mutex_unlock(&alloc->lock);
	return (struct zf_node_counts){
		.live = blocks_to_nodes(alloc, live),
		.kept = nodes_for(alloc, kept),
		.overwrites = nodes_for(alloc, overwrites),
		.garbage_min = nodes_for(alloc, garbage),
	};
}

bool zf_alloc_can_freeze(struct zf_alloc *alloc)
{
	bool r;

	zf_mutex_lock(&alloc->lock);
	r = zf_alloc_node_room_locked(alloc) >= alloc->tail_max;
	zf_mutex_unlock(&alloc->lock);
	return r;
}
