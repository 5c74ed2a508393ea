/* SPDX-License-Identifier: MIT */
/*
 * How full the filesystem is: how much a user could write if all garbage were reclaimed.
 *
 * Reclaim moves the live data that lies beside garbage. When it has reclaimed all garbage, every
 * zone of data but the one that was filled last is full of live bytes. The room that is free then
 * is what `df` shows. A writer that is refused although it wants less than that waits for reclaim;
 * a writer that wants more gets ENOSPC without reclaim, after the other steps of fs/space/room.h
 * (P5).
 */
#include "alloc/alloc_internal.h"

/*
 * Sums over all zones but the ring's. All are blocks, except `coming`, `movable` and `meta`, which
 * count zones.
 */
struct count {
	uint64_t total, live, in_place, dead, garbage, free, retired;
	uint32_t coming, movable;
	uint64_t movable_live; /* in the movable zones */
	uint32_t meta;	       /* closed metadata zones: emptying them gives more than it costs */
	uint64_t meta_capacity, meta_used;
};

static bool is_in_place(const struct zf_zone *zone)
{
	return zone->role == ZF_ROLE_OVERWRITE;
}

/*
 * Reclaim will have to move the blocks of pending appends, too, so they are part of movable_live,
 * and are shown as unusable. Those in COLD zones are not: reclaim moves that data, which is still
 * live in the zone it comes from, and each block counts once.
 */
static void count_movable(const struct zf_zone *zone, struct count *count)
{
	uint64_t used = zone->live + (zone->role == ZF_ROLE_COLD ? 0 : zone->pending);

	used = zf_min_u64(used, zone->capacity);
	count->movable++;
	count->movable_live += used;
	count->dead += used - zone->live;
	count->garbage += zone->capacity - used;
}

static bool is_data_stream(const struct zf_alloc *alloc, uint32_t zone_no)
{
	return zone_no == alloc->data_zone[ZF_ROLE_HOT] ||
	       zone_no == alloc->data_zone[ZF_ROLE_COLD];
}

static void count_stream(const struct zf_zone *zone, struct count *count)
{
	uint64_t used = zf_min_u64(zone->live + (uint64_t)zone->pending, zone->pointer);

	count->free += zone->capacity - zone->pointer;
	count->dead += used - zone->live;
	count->garbage += zone->pointer - used;
}

static bool is_meta_stream(const struct zf_alloc *alloc, uint32_t zone_no)
{
	return zone_no == alloc->meta_zone[0] || zone_no == alloc->meta_zone[1];
}

static bool count_meta(const struct zf_alloc *alloc, const struct zf_zone *zone,
		       struct count *count)
{
	uint64_t live = (uint64_t)zone->live + zone->system_live;

	if (zone->stuck || zone->damaged || live + meta_move_costs(alloc) >= zone->capacity)
		return false;
	count->meta++;
	count->meta_capacity += zone->capacity;
	count->meta_used += live;
	return true;
}

/*
 * The costs of emptying a metadata zone are garbage beside the moved nodes. This garbage goes when
 * the zone to which the nodes moved is emptied in its turn. When no metadata zone is worth emptying
 * any more, each zone that then holds moved nodes has the costs of one move as garbage: as many
 * zones as the live nodes need, at most as many as were emptied.
 */
static void count_costs(const struct zf_alloc *alloc, struct count *count)
{
	uint64_t costs = meta_move_costs(alloc), live = count->meta_used, zones;

	if (count->meta == 0)
		return;
	zones = (live / alloc->copies) / (capacity_blocks(alloc) - costs) + 1;
	count->meta_used += zf_min_u64(zones * alloc->copies, count->meta) * costs;
	count->dead += count->meta_used - live;
	count->garbage += count->meta_capacity - count->meta_used;
}

static void count_zone(const struct zf_alloc *alloc, uint32_t zone_no, struct count *count)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];
	uint64_t live = zone->live + zone->system_live;

	count->live += live;
	if (zone->unusable) {
		count->total += live;
		count->retired += zone->capacity - live;
		return;
	}
	count->total += zone->capacity;
	if (is_in_place(zone)) {
		count->in_place += zone->pointer - live;
	} else if (zf_alloc_is_coming_locked(alloc, zone_no)) {
		count->garbage += zone->capacity;
	} else if (zf_alloc_is_movable_locked(alloc, zone_no)) {
		count_movable(zone, count);
	} else if (is_data_stream(alloc, zone_no)) {
		count_stream(zone, count);
	} else if (zone->role != ZF_ROLE_META || is_meta_stream(alloc, zone_no) ||
		   !count_meta(alloc, zone, count)) {
		count->dead += zone->pointer - live;
		count->free += zone->capacity - zone->pointer;
	}
	count->coming += zf_alloc_is_coming_locked(alloc, zone_no);
}

static struct count count_all(const struct zf_alloc *alloc)
{
	struct count count = {0};

	for (uint32_t z = 2; z < alloc->zone_count; z++)
		count_zone(alloc, z, &count);
	count_costs(alloc, &count);
	return count;
}

/* ---- when all garbage has come back ---- */

/* Garbage in the stream's open zone comes back if the zone is closed and its live data moved. */
static void close_then(struct zf_alloc *alloc, enum zf_role role, struct zf_data_room *room,
		       uint64_t *stream_room, uint64_t *moved)
{
	const struct zf_zone *zone;
	uint64_t used;

	if (alloc->data_zone[role] == NO_ZONE || !zf_alloc_can_close_locked(alloc, role))
		return;
	zone = &alloc->zones[alloc->data_zone[role]];
	used = zone->live + (uint64_t)zone->pending;
	if (zone->pointer <= used)
		return;
	*moved += used;
	*stream_room = 0;
	room->empty++;
}

/*
 * If zf_alloc_can_close_streams_locked() allows it, the open zones of all copies are closed, and
 * each is emptied into a next zone. That zone then has room for as many nodes as the live nodes and
 * the costs leave. Otherwise 0.
 */
static uint64_t nodes_then(const struct zf_alloc *alloc, uint32_t empty_count)
{
	uint64_t costs = meta_move_costs(alloc), least = UINT64_MAX;

	if (!zf_alloc_can_close_streams_locked(alloc, 2 * costs, empty_count))
		return 0;
	for (unsigned int c = 0; c < alloc->copies; c++) {
		const struct zf_zone *zone = &alloc->zones[alloc->meta_zone[c]];
		uint64_t used = (uint64_t)zone->live + zone->system_live + costs;

		least = zf_min_u64(least, sub_blocks(zone->capacity, used) / alloc->node_blocks);
	}
	return least;
}

/* Zones of metadata are emptied into the open ones first, then into others. */
static void move_nodes_then(const struct zf_alloc *alloc, const struct count *count,
			    struct zf_data_room *room)
{
	uint64_t blocks = alloc->node_blocks * alloc->copies, per_zone = capacity_blocks(alloc);
	uint64_t open, zones = 0;

	room->nodes = zf_max_u64(room->nodes, nodes_then(alloc, room->empty));
	open = room->nodes * blocks;
	if (count->meta_used > open)
		zones = (count->meta_used - open + per_zone - 1) / per_zone;
	room->nodes = (open + zones * per_zone - count->meta_used) / blocks;
	room->empty = (uint32_t)sub_blocks(room->empty + count->meta, zones);
}

/*
 * The room when all movable data has moved to the COLD stream, one zone after the other. With
 * streams_too, the open zones of the data streams are closed and emptied, too, if they have garbage
 * and can be closed.
 */
static struct zf_data_room room_then(struct zf_alloc *alloc, const struct count *count,
				     bool streams_too)
{
	struct zf_data_room room = zf_alloc_data_room_locked(alloc);
	uint64_t moved = count->movable_live, per_zone = capacity_blocks(alloc), zones = 0;
	uint32_t cold = alloc->data_zone[ZF_ROLE_COLD];

	/* Pending data is in the COLD zone already, and is counted in the zone it comes from. */
	if (cold != NO_ZONE)
		moved = sub_blocks(moved, alloc->zones[cold].pending);
	room.empty += count->coming + count->movable;
	if (streams_too) {
		close_then(alloc, ZF_ROLE_HOT, &room, &room.hot, &moved);
		close_then(alloc, ZF_ROLE_COLD, &room, &room.cold, &moved);
	}
	if (moved > room.cold)
		zones = (moved - room.cold + per_zone - 1) / per_zone;
	room.cold += zones * per_zone - moved;
	room.empty = (uint32_t)sub_blocks(room.empty, zones);
	move_nodes_then(alloc, count, &room);
	/*
	 * If more zones are empty then than now, one is set aside for reclaim, as
	 * zf_alloc_reset_done() does when a zone of data comes back.
	 */
	if (room.empty > alloc->empty_count)
		room.cold_zones = 1;
	return room;
}

/* The number of nodes that a reservation of data leaves room for. */
static uint64_t data_nodes(const struct zf_alloc *alloc, enum zf_reserve_class class)
{
	uint64_t nodes = alloc->data_nodes[class == ZF_RESERVE_OVERWRITE];

	return alloc->tail_max + (nodes ? nodes : alloc->nodes_kept);
}

static uint64_t beside_nodes(const struct zf_alloc *alloc, enum zf_reserve_class class,
			     const struct zf_data_room *room)
{
	return zf_alloc_blocks_beside_nodes_locked(alloc, room, data_nodes(alloc, class));
}

static uint64_t available_in(const struct zf_alloc *alloc, enum zf_reserve_class class,
			     const struct zf_data_room *room, uint64_t items)
{
	uint64_t blocks = zf_alloc_user_blocks_locked(alloc, class, room);

	/*
	 * Nodes promised to joins under way (promised_nodes) are not subtracted, because the joins
	 * give them back.
	 */
	return zf_min_u64(sub_blocks(blocks, zf_alloc_item_blocks_locked(alloc, items)),
			  beside_nodes(alloc, class, room));
}

/* The most blocks that fallocate can get in this room, with ZF_KEPT_ITEMS items for each. */
static uint64_t allocatable_in(const struct zf_alloc *alloc, const struct zf_data_room *room)
{
	uint64_t items = ZF_KEPT_ITEMS * ZF_RESERVE_ITEM_BYTES * alloc->copies;
	/* One block is left for the items of the extent itself, and for rounding. */
	uint64_t blocks = zf_alloc_user_blocks_locked(alloc, ZF_RESERVE_NORMAL, room);

	return zf_min_u64(sub_blocks(blocks, 1) * ZF_BLOCK_SIZE / (ZF_BLOCK_SIZE + items),
			  beside_nodes(alloc, ZF_RESERVE_NORMAL, room));
}

/* The better of closing the streams or not: closing may not help if metadata is short of room. */
static uint64_t available(struct zf_alloc *alloc, enum zf_reserve_class class,
			  const struct count *count, uint64_t items)
{
	struct zf_data_room room = room_then(alloc, count, true);
	struct zf_data_room other = room_then(alloc, count, false);

	return zf_max_u64(available_in(alloc, class, &room, items),
			  available_in(alloc, class, &other, items));
}

/*
 * How many of the `most` available blocks can be allocated in one step. If that takes reclaim,
 * metadata may take one more zone in each copy, because it is written while data moves.
 */
static uint64_t allocatable(struct zf_alloc *alloc, const struct count *count, uint64_t most)
{
	struct zf_data_room now = zf_alloc_data_room_locked(alloc);
	struct zf_data_room room = room_then(alloc, count, true);
	struct zf_data_room other = room_then(alloc, count, false);
	uint64_t then = zf_max_u64(allocatable_in(alloc, &room), allocatable_in(alloc, &other));

	then = sub_blocks(then, alloc->copies * capacity_blocks(alloc));
	return zf_min_u64(most, zf_max_u64(allocatable_in(alloc, &now), then));
}

/*
 * Returns whether too few kept blocks can be lent because some are short, and there is garbage.
 * Whether the garbage suffices is not computed. The check is made for every writer, although only
 * the owner of kept blocks profits.
 */
static bool could_lend(const struct zf_alloc *alloc, const struct count *count,
		       uint64_t data_blocks)
{
	return zf_alloc_kept_claim_locked(alloc) < data_blocks &&
	       kept_unlent(alloc) >= data_blocks && count->garbage > 0;
}

uint64_t zf_alloc_available_locked(struct zf_alloc *alloc)
{
	struct count count = count_all(alloc);

	return available(alloc, ZF_RESERVE_NORMAL, &count, 0);
}

bool zf_alloc_could_reserve(struct zf_alloc *alloc, enum zf_reserve_class class,
			    uint64_t data_blocks, uint64_t items)
{
	struct count count;
	struct zf_data_room room;
	bool could;

	zf_mutex_lock(&alloc->lock);
	count = count_all(alloc);
	room = room_then(alloc, &count, true);
	if (data_blocks > 0)
		could = data_blocks <= available(alloc, class, &count, items) ||
			could_lend(alloc, &count, data_blocks);
	else
		could = zf_alloc_item_blocks_locked(alloc, items) <=
			zf_alloc_user_blocks_locked(alloc, class, &room);
	zf_mutex_unlock(&alloc->lock);
	return could;
}

void zf_alloc_get_space(struct zf_alloc *alloc, struct zf_space *ret_space)
{
	uint64_t available_blocks, allocatable_blocks, kept;
	struct count count;

	zf_mutex_lock(&alloc->lock);
	count = count_all(alloc);
	available_blocks = available(alloc, ZF_RESERVE_NORMAL, &count, 0);
	allocatable_blocks = allocatable(alloc, &count, available_blocks);
	kept = alloc->kept_blocks;
	zf_mutex_unlock(&alloc->lock);
	*ret_space = (struct zf_space){
		.total = count.total << ZF_BLOCK_SHIFT,
		.live = count.live << ZF_BLOCK_SHIFT,
		.in_place = count.in_place << ZF_BLOCK_SHIFT,
		.unusable = count.dead << ZF_BLOCK_SHIFT,
		.reclaimable = count.garbage << ZF_BLOCK_SHIFT,
		.free = count.free << ZF_BLOCK_SHIFT,
		.reserved = sub_blocks(count.free + count.garbage, available_blocks)
			    << ZF_BLOCK_SHIFT,
		.kept = kept << ZF_BLOCK_SHIFT,
		.available = available_blocks << ZF_BLOCK_SHIFT,
		.allocatable = allocatable_blocks << ZF_BLOCK_SHIFT,
		.retired = count.retired << ZF_BLOCK_SHIFT,
	};
}
