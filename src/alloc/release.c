/* SPDX-License-Identifier: MIT */
/*
 * Getting zones back. Nothing may be reset that the last durable superblock, or the one before it,
 * still needs:
 *
 *   - a zone that transaction N emptied stays until N+1 is durable, so that a torn superblock N+1
 * can be stepped over; when space is short, until N is durable;
 *   - until a durable superblock's summary tree has no entry of it, or a later mount would take
 *     old entries for the new data's;
 *   - until no append is in flight to it and no read that looked up an address in it is;
 *   - as long as it is the log's, or a record that a mount will replay names bytes in it.
 */
#include <assert.h>
#include <errno.h>

#include "alloc/alloc_internal.h"
#include "base/plant.h"

/* Zones that dead nodes may take beyond what live ones do, before any are emptied. */
#define MUCH_GARBAGE	4u
#define MUCH_WHEN_SHORT 2u
/* A zone of data is emptied rather than one of metadata that would give back so many times as much.
 */
#define DATA_FIRST 2u

/* A retired zone, too. */
static bool is_unneeded(const struct zf_alloc *alloc, uint32_t zone_no)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	return zone_no >= 2 && zone->pointer > 0 && zone->live == 0 && zone->system_live == 0 &&
	       zone->pending == 0 && !zone->resetting && !zone->held &&
	       !zf_alloc_is_stream_locked(alloc, zone_no) &&
	       !zf_alloc_is_log_locked(alloc, zone_no);
}

bool zf_alloc_holds_nothing_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	return is_unneeded(alloc, zone_no) && !alloc->zones[zone_no].unusable;
}

void zf_alloc_note_emptied_locked(struct zf_alloc *alloc, uint32_t zone_no, uint64_t generation)
{
	struct zf_zone *zone = &alloc->zones[zone_no];

	if (zf_alloc_holds_nothing_locked(alloc, zone_no) && zone->emptied_generation == 0) {
		zone->emptied_generation = generation;
		zf_alloc_dirty_locked(alloc, zone_no);
		zf_alloc_recount_locked(alloc);
	}
}

void zf_alloc_touch_zone(struct zf_alloc *alloc, uint32_t zone_no)
{
	zf_mutex_lock(&alloc->lock);
	if (zone_no < alloc->zone_count)
		zf_alloc_dirty_locked(alloc, zone_no);
	zf_mutex_unlock(&alloc->lock);
}

/*
 * Its only writes failed. If the device says that the pointer has not moved, the zone is anybody's to
 * write at once: entries that are dropped from then on could be those of new data.
 */
static bool may_be_empty(const struct zf_zone *zone)
{
	return zone->pointer_unknown && zone->written == 0;
}

int zf_alloc_next_unsummarise(struct zf_alloc *alloc, uint32_t *ret_zone_no)
{
	int r = -ENOENT;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count && r < 0; z++) {
		const struct zf_zone *zone = &alloc->zones[z];

		/* A reader may still want the checksums. */
		if (zone->summary == ZF_SUMMARY_PRESENT && zone->readers == 0 &&
		    !zone->passed_over && !may_be_empty(zone) && is_unneeded(alloc, z)) {
			*ret_zone_no = z;
			alloc->zones[z].summary = ZF_SUMMARY_DROPPING;
			r = 0;
		}
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_summary_dropped(struct zf_alloc *alloc, uint32_t zone_no, int result)
{
	zf_mutex_lock(&alloc->lock);
	assert(alloc->zones[zone_no].summary == ZF_SUMMARY_DROPPING);
	alloc->zones[zone_no].summary = result < 0 ? ZF_SUMMARY_PRESENT : ZF_SUMMARY_DROPPED;
	alloc->zones[zone_no].passed_over = result == -EUCLEAN || result == -EIO;
	zf_mutex_unlock(&alloc->lock);
}

static bool has_no_summary(const struct zf_zone *zone)
{
	if (ZF_PLANTED(ZF_BUG_ZONE_REUSED_EARLY) && zone->summary == ZF_SUMMARY_DROPPED)
		return true;
	return zone->summary == ZF_SUMMARY_NONE;
}

static bool may_reset(const struct zf_alloc *alloc, uint32_t zone_no, bool urgent)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];
	uint64_t committed = alloc->committed;

	if (ZF_PLANTED(ZF_BUG_RESET_BEFORE_COMMIT))
		committed = UINT64_MAX;
	urgent = urgent || ZF_PLANTED(ZF_BUG_RESET_ONE_COMMIT_EARLY);
	return zf_alloc_holds_nothing_locked(alloc, zone_no) && zone->readers == 0 &&
	       has_no_summary(zone) && zone->emptied_generation != 0 &&
	       !zf_alloc_overwrite_in_use_locked(alloc, zone_no) &&
	       zone->emptied_generation + (urgent ? 0 : 1) <= committed;
}

int zf_alloc_next_reset(struct zf_alloc *alloc, bool urgent, uint32_t *ret_zone_no)
{
	int r = -ENOENT;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count && r < 0; z++) {
		if (!may_reset(alloc, z, urgent))
			continue;
		alloc->zones[z].resetting = true;
		*ret_zone_no = z;
		r = 0;
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_reset_done(struct zf_alloc *alloc, uint32_t zone_no, int result)
{
	struct zf_zone *zone = &alloc->zones[zone_no];

	zf_mutex_lock(&alloc->lock);
	assert(zone->resetting);
	zone->resetting = false;
	if (zone_is_partial(zone))
		zf_alloc_limit_event_locked(alloc);
	if (result < 0) {
		/* Trying again and again would keep whoever waits for room from ever giving up. */
		zone->unusable = zone->suspect = true;
	} else {
		bool data = zone->role != ZF_ROLE_META;
		uint64_t blocks = data ? zone->pointer : 0;

		zf_alloc_overwrite_left_locked(alloc, zone_no);
		zf_alloc_set_pointer_locked(alloc, zone_no, 0);
		zone->role = ZF_ROLE_NONE;
		zone->written = 0;
		zone->emptied_generation = 0;
		zone->stuck = zone->damaged = false;
		zone->unfinishable = zone->pointer_unknown = false;
		zone->reset_generation = alloc->committed;
		zone->reset_count++;
		alloc->empty_count++;
		zf_alloc_kept_regain_locked(alloc, zf_alloc_cold_returned_locked(alloc, blocks));
		/* The zone that reclaim has opened is made good before anybody else gets one. */
		alloc->cold_zone |= data;
	}
	zf_alloc_recount_locked(alloc);
	zf_mutex_unlock(&alloc->lock);
}

void zf_alloc_set_warm(struct zf_alloc *alloc, uint32_t zone_no, bool warm)
{
	zf_mutex_lock(&alloc->lock);
	alloc->zones[zone_no].warm = warm;
	zf_mutex_unlock(&alloc->lock);
}

uint32_t zf_alloc_emptied_zones(struct zf_alloc *alloc)
{
	uint32_t n = 0;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count; z++)
		n += zf_alloc_holds_nothing_locked(alloc, z);
	zf_mutex_unlock(&alloc->lock);
	return n;
}

/* Moving nodes writes new parents and a tail too, which are garbage a transaction later. */
uint64_t zf_alloc_meta_move_costs_locked(const struct zf_alloc *alloc)
{
	uint64_t per_zone = capacity_blocks(alloc);

	return (4 + zf_min_u64(alloc->tail_max, 8)) * alloc->node_blocks + per_zone / 16;
}

/*
 * Emptying a metadata zone pays when it gives back more than it costs. Nodes die by themselves, the
 * sooner the more is written, and each one that is moved is written once more by the commit that
 * this takes. So that is left until dead nodes take more room than live ones, by some zones: fewer
 * where few empty ones are left.
 */
static bool has_much_garbage(const struct zf_alloc *alloc, uint64_t live, uint64_t written,
			     uint32_t coming)
{
	uint32_t watermark = zf_alloc_claimed_zones_locked(alloc) +
			     zf_alloc_kept_zones_locked(alloc, ZF_RESERVE_NORMAL);
	uint64_t zones = alloc->empty_count + coming > watermark ? MUCH_GARBAGE : MUCH_WHEN_SHORT;

	return written >= 2 * live + zones * capacity_blocks(alloc);
}

/* Room that is wanted comes from elsewhere: by a commit alone, or out of zones of data. */
static bool others_have_more(const struct zf_alloc *alloc, uint64_t gain, uint32_t coming)
{
	return zf_alloc_can_spare_locked(alloc) &&
	       zf_alloc_best_gain_locked(alloc) > gain / DATA_FIRST;
}

/* What is not written yet cannot be read, to be moved; nor what could not be: that is scrubbed. */
static bool can_move_nodes(const struct zf_alloc *alloc, uint32_t zone_no)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	return zone->role == ZF_ROLE_META && !zf_alloc_is_stream_locked(alloc, zone_no) &&
	       !zone->resetting && !zone->unusable && !zone->damaged && !zone->stuck &&
	       zone->write_generation <= alloc->committed;
}

/*
 * Nodes of trees that are written all over die soon; those of the summary tree, which only grows,
 * stay. So zones are left with a few nodes each. Moving these gives nearly a zone.
 */
int zf_alloc_meta_victim_begin(struct zf_alloc *alloc, uint32_t *ret_zone_no)
{
	uint32_t best = NO_ZONE, best_live = (uint32_t)capacity_blocks(alloc) / 2;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count; z++) {
		const struct zf_zone *zone = &alloc->zones[z];

		if (can_move_nodes(alloc, z) && !zone->passed_over && zone->live > 0 &&
		    zone->live < best_live) {
			best_live = zone->live;
			best = z;
		}
	}
	if (best != NO_ZONE &&
	    alloc->zones[best].capacity - best_live <= zf_alloc_best_gain_locked(alloc))
		best = NO_ZONE;
	if (best != NO_ZONE)
		alloc->zones[best].readers++;
	zf_mutex_unlock(&alloc->lock);
	if (best == NO_ZONE)
		return -ENOENT;
	*ret_zone_no = best;
	return 0;
}

void zf_alloc_meta_victim_end(struct zf_alloc *alloc, uint32_t zone_no)
{
	zf_mutex_lock(&alloc->lock);
	alloc->zones[zone_no].passed_over = alloc->zones[zone_no].live > 0;
	alloc->zones[zone_no].readers--;
	zf_mutex_unlock(&alloc->lock);
}

int zf_alloc_meta_victim(struct zf_alloc *alloc, bool urgent, uint32_t *ret_zone_no)
{
	uint32_t best = NO_ZONE, best_live = UINT32_MAX, coming = 0;
	uint64_t live = 0, written = 0, per_zone = capacity_blocks(alloc);
	uint64_t used_max = per_zone / 2, costs;
	bool closed = false;

	zf_mutex_lock(&alloc->lock);
	/* In peace half a zone must come back, or nearly full filesystems would go round for ever.
	 */
	costs = zf_alloc_meta_move_costs_locked(alloc);
	if (urgent)
		used_max = per_zone - zf_min_u64(costs, per_zone);
	for (uint32_t z = 2; z < alloc->zone_count; z++) {
		const struct zf_zone *zone = &alloc->zones[z];
		uint32_t used = zone->live + zone->system_live;

		coming += zf_alloc_holds_nothing_locked(alloc, z);
		if (zone->role != ZF_ROLE_META || used == 0)
			continue;
		live += used;
		written += zone->pointer;
		if (!can_move_nodes(alloc, z))
			continue;
		if (used < best_live && used <= used_max) {
			best_live = used;
			best = z;
		}
	}
	if (best == NO_ZONE && urgent)
		closed = zf_alloc_close_streams_locked(alloc, 2 * costs);
	if (best != NO_ZONE && !has_much_garbage(alloc, live, written, coming) &&
	    (!urgent || others_have_more(alloc, per_zone - best_live, coming)))
		best = NO_ZONE;
	if (best != NO_ZONE)
		alloc->zones[best].readers++;
	zf_mutex_unlock(&alloc->lock);
	if (closed)
		return ZF_META_CLOSED;
	if (best == NO_ZONE)
		return -ENOENT;
	*ret_zone_no = best;
	return 0;
}

void zf_alloc_meta_stuck(struct zf_alloc *alloc, uint32_t zone_no, uint64_t reset_count)
{
	struct zf_zone *zone = &alloc->zones[zone_no];

	zf_mutex_lock(&alloc->lock);
	if (zone->reset_count == reset_count && (zone->live || zone->system_live))
		zone->stuck = true;
	zf_mutex_unlock(&alloc->lock);
}
