/* SPDX-License-Identifier: MIT */
/*
 * How many zones are ready to be opened, how many reclaim should make ready, and how many come back
 * with the next commit.
 */
#include "alloc/alloc_internal.h"

/* Reclaim holds one zone in 64 ready above low, but at least 1 and at most 8. */
#define TARGET_SHARE 64u
#define TARGET_MIN   1u
#define TARGET_MAX   8u
/*
 * Reclaim holds as many zones ready as are worth a commit, if that is more, but at most one zone
 * in 8. The zones that a commit takes count towards low, but at most one zone in 25.
 */
#define MOST_SHARE 8u
#define LOW_SHARE  25u

uint32_t zf_alloc_default_target(uint32_t zone_count)
{
	uint32_t zones = zone_count / TARGET_SHARE;

	return zones < TARGET_MIN ? TARGET_MIN : zones > TARGET_MAX ? TARGET_MAX : zones;
}

void zf_alloc_set_reclaim_target(struct zf_alloc *alloc, uint32_t zones)
{
	zf_mutex_lock(&alloc->lock);
	alloc->reclaim_target = zones;
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_note_live_locked(struct zf_alloc *alloc, uint32_t zone_no, uint32_t live)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	if (alloc->tally.stale)
		return;
	if (zone->live == 0 || live == 0)
		zf_alloc_recount_locked(alloc);
	else if (zf_alloc_is_victim_locked(alloc, zone_no))
		alloc->tally.garbage += (uint64_t)zone->live - live;
}

static void tally_locked(struct zf_alloc *alloc)
{
	struct zf_tally tally = {0};

	for (uint32_t z = 2; z < alloc->zone_count; z++) {
		const struct zf_zone *zone = &alloc->zones[z];

		tally.zones += !zone->unusable && zone->role != ZF_ROLE_META &&
			       zone->role != ZF_ROLE_OVERWRITE && !zf_alloc_is_log_locked(alloc, z);
		tally.coming += zf_alloc_is_coming_locked(alloc, z);
		tally.retired += zf_alloc_is_rescuable_locked(alloc, z);
		if (zf_alloc_is_victim_locked(alloc, z))
			tally.garbage += zone->capacity - zone->live;
	}
	alloc->tally = tally;
}

uint32_t zf_alloc_coming_locked(struct zf_alloc *alloc)
{
	if (alloc->tally.stale)
		tally_locked(alloc);
	return alloc->tally.coming;
}

/* Zones that a commit takes, by the average of the last ones. */
static uint32_t zones_of_commit(const struct zf_alloc *alloc)
{
	uint64_t per_zone = capacity_blocks(alloc);

	return (uint32_t)zf_min_u64((alloc->commit_blocks + per_zone - 1) / per_zone,
				    alloc->zone_count / LOW_SHARE);
}

static uint64_t square_root(uint64_t v)
{
	uint64_t root = 0;

	for (uint64_t bit = UINT64_C(1) << 31; bit > 0; bit >>= 1)
		if ((root | bit) * (root | bit) <= v)
			root |= bit;
	return root;
}

/*
 * How many waiting zones are worth a commit. A commit writes about the same however few zones wait
 * for it. But the more zones wait, the fuller the other zones are, and the more it costs to empty
 * them. Let n be the number of zones of data, c the zones that a commit writes, and g the garbage
 * of a victim as a part of it. Both costs together are lowest when about
 * sqrt(c * n * g / (1 - g) / 2) zones wait. Half of that square did best in measurements, because
 * zones wait to be written, too (docs/decisions/0016).
 */
static uint32_t zones_worth_a_commit(const struct zf_alloc *alloc)
{
	uint64_t gain = alloc->victim_gain, per_zone = capacity_blocks(alloc);
	uint64_t live = zf_max_u64(per_zone - zf_min_u64(gain, per_zone), 1);
	uint64_t square = alloc->commit_blocks * alloc->tally.zones / per_zone * gain / live / 4;

	return (uint32_t)zf_min_u64(square_root(square), alloc->zone_count / MOST_SHARE);
}

void zf_alloc_reclaim_room(struct zf_alloc *alloc, struct zf_reclaim_room *ret_room)
{
	uint32_t kept;

	zf_mutex_lock(&alloc->lock);
	if (alloc->tally.stale)
		tally_locked(alloc);
	*ret_room = (struct zf_reclaim_room){
		.zones = alloc->tally.zones,
		.coming = alloc->tally.coming,
		.retired = alloc->tally.retired,
		.low = KEPT_FOR_RECLAIM + zones_of_commit(alloc),
		.commit_bytes = alloc->commit_blocks << ZF_BLOCK_SHIFT,
		.reclaimable = alloc->tally.garbage << ZF_BLOCK_SHIFT,
		.waiting = zones_worth_a_commit(alloc),
		.victim_bytes = (uint64_t)alloc->victim_gain << ZF_BLOCK_SHIFT,
	};
	ret_room->target =
		ret_room->low + (uint32_t)zf_max_u64(alloc->reclaim_target, ret_room->waiting);
	kept = zf_alloc_claimed_zones_locked(alloc) + alloc->copies +
	       zf_alloc_kept_for_log_locked(alloc);
	/* The COLD stream's open zone counts as empty until it is used up. */
	ret_room->empty = (uint32_t)sub_blocks(alloc->empty_count, kept) +
			  (KEPT_FOR_RECLAIM - zf_alloc_kept_for_reclaim_locked(alloc));
	zf_mutex_unlock(&alloc->lock);
}
