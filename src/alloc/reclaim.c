/* SPDX-License-Identifier: MIT */
/* Which zone of data is worth emptying next. */
#include "alloc/reclaim.h"

#include <assert.h>
#include <errno.h>

#include "alloc/alloc_internal.h"

/* While no writer waits for room, a zone with a smaller share of garbage than 1/16 is no victim. */
#define WORTH_SHARE 16u

/* The age, in transactions, above which live data does not get any more likely to stay. */
#define AGE_MAX (1u << 20)

/* Blocks that emptying and resetting the zone would give back. */
static uint32_t gain(const struct zf_zone *zone)
{
	return zone->capacity - zone->live;
}

/*
 * Benefit by cost, as in LFS: the garbage, times the age of the zone's youngest data, divided by
 * the blocks to be read and written. Data that was left alone for long is expected to stay as it
 * is. If all data is overwritten equally often, the oldest zones have the most garbage, and this is
 * the greedy choice. If some data is overwritten all the time, its zones are left until more of
 * them is garbage, which is soon.
 */
static uint64_t benefit(const struct zf_alloc *alloc, const struct zf_zone *zone)
{
	uint64_t age = 1;

	if (alloc->running > zone->write_generation)
		age += zf_min_u64(alloc->running - zone->write_generation, AGE_MAX);
	return ((uint64_t)gain(zone) << 10) * age / ((uint64_t)zone->capacity + zone->live);
}

static bool is_free(const struct zf_zone *zone)
{
	return !zone->reclaimed && !zone->passed_over;
}

static bool can_begin(const struct zf_alloc *alloc, uint32_t zone_no)
{
	return zf_alloc_is_victim_locked(alloc, zone_no) && is_free(&alloc->zones[zone_no]);
}

uint32_t zf_alloc_best_gain_locked(const struct zf_alloc *alloc)
{
	uint32_t best = 0;

	for (uint32_t z = 2; z < alloc->zone_count; z++)
		if (can_begin(alloc, z))
			best = (uint32_t)zf_max_u64(best, gain(&alloc->zones[z]));
	return best;
}

static void begin(struct zf_alloc *alloc, uint32_t zone_no)
{
	uint32_t garbage = gain(&alloc->zones[zone_no]);

	alloc->victim_gain = alloc->victim_gain ? (3 * alloc->victim_gain + garbage) / 4 : garbage;
	alloc->zones[zone_no].reclaimed = true;
	alloc->zones[zone_no].readers++;
	zf_alloc_trace_victim_locked(alloc, zone_no);
}

/* 0: the zone is not worth emptying. */
static uint64_t score(const struct zf_alloc *alloc, uint32_t zone_no, enum zf_reclaim_need need)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	if (!can_begin(alloc, zone_no))
		return 0;
	if (need == ZF_RECLAIM_URGENT)
		return gain(zone);
	return gain(zone) >= zone->capacity / WORTH_SHARE ? benefit(alloc, zone) : 0;
}

static uint32_t choose(const struct zf_alloc *alloc, enum zf_reclaim_need need)
{
	uint32_t best = NO_ZONE;
	uint64_t best_score = 0;

	for (uint32_t z = 2; z < alloc->zone_count; z++) {
		uint64_t zone_score = score(alloc, z, need);

		if (zone_score > best_score) {
			best_score = zone_score;
			best = z;
		}
	}
	return best;
}

static void close_stream(struct zf_alloc *alloc, enum zf_role role)
{
	uint32_t zone_no = alloc->data_zone[role];

	alloc->data_zone[role] = NO_ZONE;
	zf_alloc_note_emptied_locked(alloc, zone_no, alloc->running);
	zf_alloc_recount_locked(alloc);
}

/*
 * Closes the open zone of one stream, if the zone has more than `least` blocks of garbage. Normally
 * a stream fills its zone first. But if other zones have next to no garbage, the rest of the
 * garbage may be in the open zone: data that was written last, and removed again.
 */
static void close_streams(struct zf_alloc *alloc, uint32_t least)
{
	static const enum zf_role roles[] = {ZF_ROLE_HOT, ZF_ROLE_COLD};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(roles); i++) {
		const struct zf_zone *zone;

		if (alloc->data_zone[roles[i]] == NO_ZONE)
			continue;
		zone = &alloc->zones[alloc->data_zone[roles[i]]];
		if (zone->pending == 0 && !zone->pointer_unknown &&
		    zone->pointer - zone->live > least &&
		    zf_alloc_can_close_locked(alloc, roles[i])) {
			close_stream(alloc, roles[i]);
			return;
		}
	}
}

int zf_alloc_reclaim_begin(struct zf_alloc *alloc, enum zf_reclaim_need need, uint32_t *ret_zone_no)
{
	uint32_t best, best_gain;

	zf_mutex_lock(&alloc->lock);
	best = choose(alloc, need);
	best_gain = best == NO_ZONE ? 0 : gain(&alloc->zones[best]);
	if (need == ZF_RECLAIM_URGENT && best_gain < capacity_blocks(alloc) / WORTH_SHARE) {
		close_streams(alloc, best_gain);
		best = choose(alloc, need);
	}
	if (best != NO_ZONE)
		begin(alloc, best);
	zf_mutex_unlock(&alloc->lock);
	return zf_alloc_found(best, ret_zone_no);
}

int zf_alloc_reclaim_begin_zone(struct zf_alloc *alloc, uint32_t zone_no)
{
	int r = -EBUSY;

	zf_mutex_lock(&alloc->lock);
	if (zone_no < alloc->zone_count && can_begin(alloc, zone_no)) {
		begin(alloc, zone_no);
		r = 0;
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

int zf_alloc_reclaim_begin_retired(struct zf_alloc *alloc, uint32_t *ret_zone_no)
{
	int r = -ENOENT;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count && r < 0; z++) {
		if (!zf_alloc_is_rescuable_locked(alloc, z) || !is_free(&alloc->zones[z]) ||
		    alloc->zones[z].live > zf_alloc_available_locked(alloc))
			continue;
		begin(alloc, z);
		*ret_zone_no = z;
		r = 0;
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_reclaim_end(struct zf_alloc *alloc, uint32_t zone_no, bool stuck)
{
	struct zf_zone *zone = &alloc->zones[zone_no];

	zf_mutex_lock(&alloc->lock);
	assert(zone->reclaimed && zone->readers > 0);
	zone->reclaimed = false;
	zone->readers--;
	zone->stuck |= stuck;
	zone->passed_over = zone->live > 0;
	zf_alloc_recount_locked(alloc);
	zf_mutex_unlock(&alloc->lock);
}
