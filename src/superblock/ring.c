/* SPDX-License-Identifier: MIT */
#include "superblock/ring.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "superblock/ring_slots.h"

struct zf_ring {
	struct zf_dev *dev;
	struct zf_report report;
	struct zf_ring_zone zones[ZF_SUPER_ZONES];
	unsigned int current;	  /* the zone that is written */
	unsigned int newest_zone; /* where the newest record is; not `current` if the first
				   * record after a switch was torn, or failed */
	bool withheld;		  /* nothing is written: zf_ring_withhold() */
	bool pointers_unknown;	  /* a write or reset failed: report the zones again */

	int newest_status; /* 0, -EUCLEAN, -EPROTONOSUPPORT */
	struct zf_super newest;
	unsigned int stepped_over;
	uint64_t highest;

	struct zf_disk_super *buf; /* the record being written; allocated early, so that no
				    * commit fails for want of memory */
};

static int ring_new(struct zf_dev *dev, const struct zf_report *report, struct zf_ring **ret_ring)
{
	struct zf_ring *ring = calloc(1, sizeof(*ring));
	int r;

	if (!ring)
		return -ENOMEM;
	ring->dev = dev;
	if (report)
		ring->report = *report;
	ring->buf = aligned_alloc(ZF_BLOCK_SIZE, sizeof(*ring->buf));
	if (!ring->buf) {
		zf_ring_close(ring);
		return -ENOMEM;
	}
	for (unsigned int i = 0; i < ZF_SUPER_ZONES; i++) {
		r = zf_ring_zone_init(&ring->zones[i], dev, i);
		if (r < 0) {
			zf_ring_close(ring);
			return r;
		}
	}
	*ret_ring = ring;
	return 0;
}

void zf_ring_close(struct zf_ring *ring)
{
	if (!ring)
		return;
	for (unsigned int i = 0; i < ZF_SUPER_ZONES; i++)
		zf_ring_zone_deinit(&ring->zones[i]);
	free(ring->buf);
	free(ring);
}

static enum zf_ring_state zone_state(const struct zf_ring_zone *zone)
{
	return zone->next == 0		  ? ZF_RING_EMPTY
	       : zone->next < zone->count ? ZF_RING_IN_USE
					  : ZF_RING_FULL;
}

enum zf_ring_state zf_ring_zone_state(const struct zf_ring *ring, unsigned int zone)
{
	assert(zone < ZF_SUPER_ZONES);
	return zone_state(&ring->zones[zone]);
}

static unsigned int other(unsigned int zone)
{
	return 1 - zone;
}

/* The zone whose last whole record is the newest; zone 0 if there is none at all. */
static unsigned int newest_zone(const struct zf_ring *ring)
{
	const struct zf_ring_zone *z = ring->zones;

	if (z[1].last == ZF_RING_NO_SLOT)
		return 0;
	if (z[0].last == ZF_RING_NO_SLOT)
		return 1;
	return z[0].last_generation >= z[1].last_generation ? 0 : 1;
}

/*
 * `zone` is the other zone when the newest record is in a full one. Counts the slots of `zone` in
 * which a newer record may have been torn: all used slots if no record in them is whole. Else in a
 * conventional zone the slots before the first whole record, and in a sequential zone the only
 * slot, or none if more are used.
 */
static uint32_t torn_after_full(struct zf_ring_zone *zone)
{
	struct zf_ring_record record;
	uint32_t slot;

	if (zone->last == ZF_RING_NO_SLOT)
		return zf_ring_zone_used(zone);
	/*
	 * A torn first record may leave in its slot what was there before the reset: a whole, older
	 * record.
	 */
	if (zone->type == ZF_ZONE_SEQUENTIAL)
		return zone->next == 1;
	for (slot = 0; slot < zone->next; slot++) {
		zf_ring_zone_read(zone, slot, NULL, &record);
		if (zf_ring_record_is_whole(&record))
			break;
	}
	return slot;
}

static void find_newest(struct zf_ring *ring)
{
	unsigned int newest = newest_zone(ring);
	struct zf_ring_zone *zone = &ring->zones[newest], *next_zone = &ring->zones[other(newest)];
	struct zf_ring_record record;

	ring->current = ring->newest_zone = newest;
	if (zone->last == ZF_RING_NO_SLOT) {
		ring->stepped_over = zf_ring_zone_used(zone) + zf_ring_zone_used(next_zone);
		ring->newest_status = -EUCLEAN;
		zf_report(&ring->report, ZF_REPORT_ERROR,
			  "no superblock record is whole: %u of them are damaged",
			  ring->stepped_over);
		return;
	}
	ring->stepped_over = zf_ring_zone_used(zone) - zone->last - 1;
	if (zone_state(zone) == ZF_RING_FULL) {
		ring->stepped_over += torn_after_full(next_zone);
		if (next_zone->last == ZF_RING_NO_SLOT && next_zone->next > 0 &&
		    !zf_ring_zone_is_retired(next_zone))
			ring->current = other(newest);
	}
	zf_ring_zone_read(zone, zone->last, &ring->report, &record);
	ring->newest_status = record.status;
	ring->newest = record.super;
	if (record.status == -EUCLEAN)
		zf_report(&ring->report, ZF_REPORT_ERROR,
			  "the newest superblock record, of generation %" PRIu64
			  ", is whole but has impossible values: mount an older one with -o "
			  "generation=N (`zfusectl super` lists them)",
			  record.generation);
}

/* ---- zones that failed ---- */

bool zf_ring_lacks_newest(const struct zf_ring *ring)
{
	return ring->zones[other(ring->current)].cond == ZF_ZONE_OFFLINE &&
	       zone_state(&ring->zones[ring->current]) == ZF_RING_FULL;
}

/* Would a reset of this zone erase the newest record before there is another one? */
static bool must_keep(const struct zf_ring *ring, unsigned int zone)
{
	return ring->zones[zone].type == ZF_ZONE_SEQUENTIAL && ring->zones[zone].next > 0 &&
	       zone == ring->newest_zone;
}

uint32_t zf_ring_room(const struct zf_ring *ring)
{
	const struct zf_ring_zone *zone = &ring->zones[ring->current];
	const struct zf_ring_zone *next = &ring->zones[other(ring->current)];
	bool has_next = !zf_ring_zone_is_retired(next);

	if (zf_ring_zone_is_retired(zone))
		return has_next && !must_keep(ring, other(ring->current)) ? next->count : 0;
	/* A conventional zone is written round and round. */
	if (has_next || zone->type == ZF_ZONE_CONVENTIONAL)
		return UINT32_MAX;
	return zone->count - zone->next;
}

static void tell_retired(const struct zf_ring *ring)
{
	uint32_t room = zf_ring_room(ring);

	for (unsigned int i = 0; i < ZF_SUPER_ZONES; i++)
		if (zf_ring_zone_is_retired(&ring->zones[i]))
			zf_report(&ring->report, ZF_REPORT_ERROR,
				  "zone %u, one of two that hold the superblock, is %s", i,
				  zf_zone_cond_name(ring->zones[i].cond));
	if (room < UINT32_MAX)
		zf_report(&ring->report, ZF_REPORT_ERROR,
			  "the superblock can be written %" PRIu32
			  " more times, once for each commit; then the filesystem is read-only: "
			  "copy it to another device",
			  room);
}

int zf_ring_open(struct zf_dev *dev, const struct zf_report *report, struct zf_ring **ret_ring)
{
	bool lower_bounds = zf_dev_geometry(dev)->pointers_are_lower_bounds;
	struct zf_ring *ring;
	bool has_record = false;
	uint64_t highest = 0;
	int r;

	r = ring_new(dev, report, &ring);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < ZF_SUPER_ZONES; i++) {
		r = zf_ring_zone_locate(&ring->zones[i], lower_bounds);
		if (r < 0) {
			zf_ring_close(ring);
			return r;
		}
		has_record |= ring->zones[i].has_record;
		highest = zf_max_u64(highest, ring->zones[i].highest);
	}
	if (!has_record) {
		zf_ring_close(ring);
		return -ENODEV;
	}
	find_newest(ring);
	tell_retired(ring);
	/* Each damaged record had a generation of its own. */
	ring->highest = zf_min_u64(highest + ring->stepped_over, ZF_SUPER_COUNTER_MAX);
	*ret_ring = ring;
	return 0;
}

int zf_ring_format(struct zf_dev *dev, const struct zf_report *report, struct zf_ring **ret_ring)
{
	struct zf_ring *old, *ring;
	unsigned int last = 0;
	int r;

	r = zf_ring_open(dev, NULL, &old);
	if (r == 0) {
		last = old->current;
		zf_ring_close(old);
	}
	r = ring_new(dev, report, &ring);
	if (r < 0)
		return r;
	r = zf_ring_zone_erase(&ring->zones[other(last)]);
	if (r == 0)
		r = zf_dev_flush(dev);
	if (r == 0)
		r = zf_ring_zone_erase(&ring->zones[last]);
	if (r == 0)
		r = zf_dev_flush(dev);
	if (r < 0) {
		zf_report(&ring->report, ZF_REPORT_ERROR,
			  "zones 0 and 1, which hold the superblock, cannot be emptied: %s",
			  strerror(-r));
		zf_ring_close(ring);
		return r;
	}
	ring->newest_status = -ENOENT;
	*ret_ring = ring;
	return 0;
}

int zf_ring_withhold(struct zf_ring *ring)
{
	int r = 0;

	ring->withheld = true;
	for (unsigned int i = 0; i < ZF_SUPER_ZONES && r == 0; i++)
		r = zf_ring_zone_erase(&ring->zones[i]);
	ring->current = ring->newest_zone = 0;
	return r < 0 ? r : zf_dev_flush(ring->dev);
}

void zf_ring_hold(struct zf_ring *ring)
{
	ring->withheld = true;
}

void zf_ring_publish(struct zf_ring *ring)
{
	ring->withheld = false;
}

int zf_ring_newest(const struct zf_ring *ring, const struct zf_super **ret_super,
		   unsigned int *ret_stepped_over)
{
	if (ring->newest_status < 0)
		return ring->newest_status;
	*ret_super = &ring->newest;
	*ret_stepped_over = ring->stepped_over;
	return 0;
}

uint64_t zf_ring_highest_generation(const struct zf_ring *ring)
{
	return ring->highest;
}

struct walk {
	int (*visit)(void *arg, const struct zf_ring_record *record);
	void *arg;
	const struct zf_super *newest; /* NULL: none, so no record is another filesystem's */
};

static int show(const struct walk *walk, struct zf_ring_zone *zone, uint32_t slot)
{
	struct zf_ring_record record;

	zf_ring_zone_read(zone, slot, NULL, &record);
	/* Slots behind the pointer of a conventional zone may never have been written. */
	if (zone->type == ZF_ZONE_CONVENTIONAL && record.status == -ENODATA)
		return 0;
	if (record.status == 0 && walk->newest &&
	    memcmp(record.super.fsid, walk->newest->fsid, sizeof(record.super.fsid)) != 0)
		record.status = -ESTALE;
	return walk->visit(walk->arg, &record);
}

/* Slots [first, end), the last one first. */
static int walk_slots(const struct walk *walk, struct zf_ring_zone *zone, uint32_t first,
		      uint32_t end)
{
	int r = 0;

	while (r == 0 && end-- > first)
		r = show(walk, zone, end);
	return r;
}

/* Behind the pointer of a conventional zone lie records from the last time around. */
static int walk_behind(const struct walk *walk, struct zf_ring_zone *zone)
{
	return zone->type == ZF_ZONE_CONVENTIONAL ? walk_slots(walk, zone, zone->next, zone->count)
						  : 0;
}

int zf_ring_walk(struct zf_ring *ring, int (*visit)(void *arg, const struct zf_ring_record *record),
		 void *arg)
{
	const struct walk walk = {
		.visit = visit,
		.arg = arg,
		.newest = ring->newest_status == 0 ? &ring->newest : NULL,
	};
	struct zf_ring_zone *current = &ring->zones[ring->current];
	struct zf_ring_zone *before = &ring->zones[other(ring->current)];
	int r = walk_slots(&walk, current, 0, zf_ring_zone_used(current));

	if (r == 0)
		r = walk_slots(&walk, before, 0, zf_ring_zone_used(before));
	if (r == 0)
		r = walk_behind(&walk, before);
	return r != 0 ? r : walk_behind(&walk, current);
}

struct search {
	uint64_t min, max; /* generations, both included */
	struct zf_super *super;
};

static int match(void *arg, const struct zf_ring_record *record)
{
	const struct search *search = arg;

	if (record->status != 0 || record->generation < search->min ||
	    record->generation > search->max)
		return 0;
	*search->super = record->super;
	return 1;
}

static int search(struct zf_ring *ring, uint64_t min, uint64_t max, struct zf_super *ret_super)
{
	struct search args = {.min = min, .max = max, .super = ret_super};

	return zf_ring_walk(ring, match, &args) == 1 ? 0 : -ENOENT;
}

int zf_ring_older(struct zf_ring *ring, uint64_t generation, struct zf_super *ret_super)
{
	return generation > 1 ? search(ring, 1, generation - 1, ret_super) : -ENOENT;
}

int zf_ring_find(struct zf_ring *ring, uint64_t generation, struct zf_super *ret_super)
{
	return search(ring, generation, generation, ret_super);
}

/* After an error only the device knows where its pointers are. */
static int refresh(struct zf_ring *ring)
{
	int r;

	if (!ring->pointers_unknown)
		return 0;
	for (unsigned int i = 0; i < ZF_SUPER_ZONES; i++) {
		r = zf_ring_zone_refresh(&ring->zones[i]);
		if (r < 0)
			return r;
	}
	ring->pointers_unknown = false;
	return 0;
}

/*
 * Empties the other zone, whose records are the oldest, and makes it current. The full zone keeps
 * its records until the next switch.
 */
static int switch_zone(struct zf_ring *ring)
{
	struct zf_ring_zone *zone = &ring->zones[other(ring->current)];
	int r;

	if (must_keep(ring, other(ring->current)))
		return -ENOSPC;
	if (zone->type == ZF_ZONE_CONVENTIONAL) {
		zone->next = 0;
	} else if (zone->next > 0) {
		r = zf_ring_zone_erase(zone);
		if (r < 0)
			return r;
	}
	ring->current = other(ring->current);
	return 0;
}

static int try_write(struct zf_ring *ring, struct zf_super *super)
{
	struct zf_ring_zone *zone;
	int r;

	r = refresh(ring);
	if (r < 0)
		return r;
	if (zone_state(&ring->zones[ring->current]) == ZF_RING_FULL) {
		r = switch_zone(ring);
		if (r < 0)
			return r;
	}
	zone = &ring->zones[ring->current];
	super->address = zf_ring_zone_address(zone, zone->next);
	if (ring->withheld)
		return 0;
	zf_super_encode(super, ring->buf);
	return zf_ring_zone_write(zone, ring->buf);
}

/*
 * Asks the device for the zones and reports retired ones. Returns whether the current zone has
 * failed for good and the other zone can take records.
 */
static bool has_another(struct zf_ring *ring)
{
	ring->pointers_unknown = true;
	if (refresh(ring) < 0)
		return false;
	tell_retired(ring);
	return zf_ring_zone_is_retired(&ring->zones[ring->current]) && zf_ring_room(ring) > 0;
}

static int write_record(struct zf_ring *ring, struct zf_super *super)
{
	int r = try_write(ring, super);

	if (r == 0 || !has_another(ring))
		return r;
	/* A retired conventional zone need not be full; then try_write() would not switch. */
	r = zone_state(&ring->zones[ring->current]) == ZF_RING_FULL ? 0 : switch_zone(ring);
	/* The record may be in the failed zone, too: then both zones have it. */
	return r < 0 ? r : try_write(ring, super);
}

int zf_ring_write(struct zf_ring *ring, struct zf_super *super)
{
	int r;

	assert(super->generation > ring->highest);
	r = zf_super_check(super, &ring->report);
	if (r < 0)
		return r;
	/* Even if the write fails, the record may be there: its generation is used up. */
	ring->highest = super->generation;
	r = write_record(ring, super);
	if (r < 0) {
		ring->pointers_unknown = true;
		zf_report(&ring->report, ZF_REPORT_ERROR,
			  "the superblock of generation %" PRIu64 " cannot be written: %s",
			  super->generation, strerror(-r));
		return r;
	}
	zf_super_trace(super);
	ring->newest = *super;
	ring->newest_zone = ring->current;
	ring->newest_status = 0;
	ring->stepped_over = 0;
	return 0;
}

int zf_ring_supersede(struct zf_ring *ring, struct zf_super *super)
{
	unsigned int before = ring->newest_zone;
	int r = zf_ring_zone_erase(&ring->zones[other(before)]);

	if (r == 0)
		r = zf_dev_flush(ring->dev);
	if (r < 0)
		return r;
	ring->current = other(before);
	ring->highest = super->generation - 1;
	r = zf_ring_write(ring, super);
	if (r == 0)
		r = zf_ring_zone_erase(&ring->zones[before]);
	return r < 0 ? r : zf_dev_flush(ring->dev);
}
