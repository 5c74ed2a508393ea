/* SPDX-License-Identifier: MIT */
/*
 * The zone table from what a mount finds: the committed zone items against the device's own
 * pointers.
 */
#include <errno.h>
#include <inttypes.h>

#include "alloc/alloc_internal.h"

static int check_item(struct zf_alloc *alloc, uint32_t zone_no, const struct zf_disk_zone *disk,
		      size_t len)
{
	uint64_t capacity = (uint64_t)alloc->zones[zone_no].capacity << ZF_BLOCK_SHIFT;
	uint64_t pointer, live;

	if (len != sizeof(*disk))
		return zf_report_corrupt(alloc->report, "zone item", zone_no,
					 "size has %zu, expected %zu", len, sizeof(*disk));
	pointer = zf_le64_get(disk->pointer);
	live = zf_le64_get(disk->live);
	if (disk->role >= ZF_ROLE_COUNT || (disk->role == ZF_ROLE_SUPER) != (zone_no < 2))
		return zf_report_corrupt(alloc->report, "zone item", zone_no,
					 "role has %u, expected %s", disk->role,
					 zone_no < 2 ? "the superblock's" : "another one");
	if (pointer > capacity || !zf_is_aligned(pointer, ZF_BLOCK_SIZE))
		return zf_report_corrupt(alloc->report, "zone item", zone_no,
					 "pointer has %" PRIu64 ", expected at most %" PRIu64,
					 pointer, capacity);
	if (live > pointer || !zf_is_aligned(live, ZF_BLOCK_SIZE))
		return zf_report_corrupt(alloc->report, "zone item", zone_no,
					 "live has %" PRIu64 ", expected at most %" PRIu64, live,
					 pointer);
	if (disk->role == ZF_ROLE_NONE && (live || pointer))
		return zf_report_corrupt(alloc->report, "zone item", zone_no,
					 "role has none, expected one for %" PRIu64 " bytes",
					 pointer);
	if (disk->role == ZF_ROLE_OVERWRITE &&
	    (!zone_is_conventional(alloc, zone_no) || pointer != capacity))
		return zf_report_corrupt(
			alloc->report, "zone item", zone_no,
			"role has %u, expected another one for pointer %" PRIu64 " of a %s zone",
			disk->role, pointer,
			zone_is_conventional(alloc, zone_no) ? "conventional" : "sequential");
	if (!zf_is_zero(disk->reserved_a, sizeof(disk->reserved_a)) ||
	    !zf_is_zero(disk->reserved_b, sizeof(disk->reserved_b)))
		return zf_report_corrupt(alloc->report, "zone item", zone_no,
					 "reserved has other bytes, expected 0");
	return 0;
}

/*
 * A commit goes on when only one copy of its nodes could be written: this zone has the other. What
 * lies behind its pointer is not there, and nothing is written to it before its reset.
 */
static void note_missing_copy(struct zf_alloc *alloc, uint32_t zone_no)
{
	zf_report(alloc->report, ZF_REPORT_WARNING,
		  "zone %u lacks a part of its metadata: only the other copy has it", zone_no);
	alloc->zones[zone_no].pointer = alloc->zones[zone_no].capacity;
	alloc->zones[zone_no].damaged = true;
}

/*
 * A zone that the device has lost. No zone is reset while the durable superblock names anything in
 * it, so what has live bytes, or may have nodes of the root and zone trees, which the item does not
 * count, is in the life that the item tells, and written at least as far. Any other zone may have
 * been reset since, and keeps the count that it never had: what is written there now cannot pass
 * for what was there before. It counts as written as far as the item tells all the same: the
 * summary tree may name what was there, and is rid of that before the zone is reset and used again.
 * (A named log zone: load_zone() in log.c.)
 */
static void find_lost(struct zf_zone *zone, uint32_t pointer, uint32_t live, uint64_t resets)
{
	zone->pointer = pointer;
	if (live > 0 || zone->role == ZF_ROLE_META)
		zone->reset_count = resets;
}

/*
 * The device's pointer against the item's. Ahead: a crash lost the transaction that knew; what lies
 * between is garbage. Behind: the zone was reset after this transaction (fine, if nothing in it was
 * live), or the pointer is a lower bound after the host stopped: then the item's stands, live bytes
 * or not, for there may be nodes of the root and zone trees, which the item does not count, and
 * summary entries.
 */
static int load_pointer(struct zf_alloc *alloc, uint32_t zone_no, uint32_t pointer, uint32_t live,
			uint64_t resets)
{
	struct zf_zone *zone = &alloc->zones[zone_no];
	uint64_t start = zone_no * alloc->geometry->zone_size;

	if (zone_is_conventional(alloc, zone_no)) {
		zone->pointer = pointer;
		return 0;
	}
	if (zone->lost) {
		find_lost(zone, pointer, live, resets);
		return 0;
	}
	if (alloc->counts_resets && zone->reset_count != resets) {
		if (live == 0)
			return 0;
		return zf_report_corrupt(alloc->report, "zone", start,
					 "reset count has %" PRIu64 ", expected %" PRIu64
					 ": it was reset since",
					 zone->reset_count, resets);
	}
	if (zone->pointer >= pointer)
		return 0;
	if (!alloc->geometry->pointers_are_lower_bounds) {
		if (live == 0)
			return 0;
		if (zone->role == ZF_ROLE_META && alloc->copies > 1) {
			note_missing_copy(alloc, zone_no);
			return 0;
		}
		return zf_report_corrupt(alloc->report, "zone", start,
					 "write pointer has %u blocks, expected at least %u",
					 zone->pointer, pointer);
	}
	zone->pointer = pointer;
	return 0;
}

int zf_alloc_load(struct zf_alloc *alloc, uint32_t zone_no, const void *item, size_t len)
{
	const struct zf_disk_zone *disk = item;
	struct zf_zone *zone;
	uint32_t pointer;
	uint64_t resets;
	int r;

	if (zone_no >= alloc->zone_count)
		return zf_report_corrupt(alloc->report, "zone item", zone_no,
					 "number has %u, expected below %u", zone_no,
					 alloc->zone_count);
	r = check_item(alloc, zone_no, disk, len);
	if (r < 0)
		return r;
	zf_mutex_lock(&alloc->lock);
	zone = &alloc->zones[zone_no];
	zone->role = disk->role;
	zone->live = (uint32_t)(zf_le64_get(disk->live) >> ZF_BLOCK_SHIFT);
	if (zone->role == ZF_ROLE_META)
		alloc->node_live_blocks += zone->live;
	if (zone->role == ZF_ROLE_OVERWRITE)
		atomic_fetch_add(&alloc->overwrite.zone_count, 1);
	zone->reset_generation = zf_le64_get(disk->reset_generation);
	zone->emptied_generation = zf_le64_get(disk->emptied_generation);
	zone->write_generation = zf_le64_get(disk->write_generation);
	pointer = (uint32_t)(zf_le64_get(disk->pointer) >> ZF_BLOCK_SHIFT);
	zone->written = pointer;
	resets = zf_le64_get(disk->reset_count);
	r = zone_no < 2 ? 0 : load_pointer(alloc, zone_no, pointer, zone->live, resets);
	/* Of what the device does not count, conventional zones always, the filesystem's count holds. */
	if (!alloc->counts_resets || zone_is_conventional(alloc, zone_no))
		zone->reset_count = resets;
	zf_mutex_unlock(&alloc->lock);
	return r;
}

/* The zone of a node, written or not as far as the device's pointer tells; or NULL. */
static struct zf_zone *find_node_zone(struct zf_alloc *alloc, uint64_t address)
{
	struct zf_zone *zone = zf_alloc_node_zone_locked(alloc, address);
	uint64_t zone_no = address / alloc->geometry->zone_size;

	if (zone || alloc->copies < 2 || zone_no < 2 || zone_no >= alloc->zone_count ||
	    alloc->zones[zone_no].role != ZF_ROLE_META)
		return zone;
	note_missing_copy(alloc, (uint32_t)zone_no);
	return zf_alloc_node_zone_locked(alloc, address);
}

int zf_alloc_load_system_node(struct zf_alloc *alloc, const uint64_t address[ZF_COPIES_MAX])
{
	int r = 0;

	zf_mutex_lock(&alloc->lock);
	for (unsigned int c = 0; c < alloc->copies && r == 0; c++) {
		struct zf_zone *zone = find_node_zone(alloc, address[c]);

		if (zone)
			zone->system_live += alloc->node_blocks;
		else
			r = zf_report_corrupt(alloc->report, "node", address[c],
					      "address has another place, expected one below the "
					      "pointer of a metadata zone");
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

/*
 * What a crash left: zones written by a transaction that was lost, and zones reset after one that
 * counts them. Neither holds anything live, unless a log record names it; they get a role again
 * when they are opened.
 */
static void settle_zone(struct zf_alloc *alloc, uint32_t zone_no)
{
	struct zf_zone *zone = &alloc->zones[zone_no];
	bool is_log = zf_alloc_is_log_locked(alloc, zone_no);

	if (zone->role == ZF_ROLE_LOG && !is_log)
		zone->role = ZF_ROLE_HOT;
	if (zone->live || zone->system_live || zone->held || is_log) {
		zone->emptied_generation = 0;
		return;
	}
	if (zone->pointer == 0) {
		zone->role = ZF_ROLE_NONE;
		zone->emptied_generation = 0;
		zone->written = 0;
		return;
	}
	/* Nothing durable names it: the committed state is reason enough to reset it. */
	if (zone->emptied_generation == 0 || zone->emptied_generation > alloc->committed)
		zone->emptied_generation = alloc->committed;
}

static void choose_streams(struct zf_alloc *alloc)
{
	for (uint32_t z = 2; z < alloc->zone_count; z++) {
		struct zf_zone *zone = &alloc->zones[z];
		uint32_t *stream = NULL;

		if (zone->unusable || !zone_is_partial(zone) || (!zone->live && !zone->system_live))
			continue;
		if (zone->role == ZF_ROLE_HOT || zone->role == ZF_ROLE_COLD)
			stream = &alloc->data_zone[zone->role];
		else if (zone->role == ZF_ROLE_META)
			for (unsigned int c = 0; c < alloc->copies && !stream; c++)
				if (alloc->meta_zone[c] == NO_ZONE)
					stream = &alloc->meta_zone[c];
		if (stream && *stream == NO_ZONE)
			*stream = z;
	}
}

/*
 * After an unclean stop of the host, and of zones that the device has lost: before anything is
 * written, and after all that may tell how far a zone is written: its item, the superblock, the
 * log's records.
 */
static int tell_device(struct zf_alloc *alloc, uint32_t zone_no)
{
	struct zf_zone *zone = &alloc->zones[zone_no];
	int r;

	if (!alloc->geometry->pointers_are_lower_bounds || zone->unusable)
		return 0;
	if (zone->lost) {
		r = zf_dev_set_reset_count(alloc->dev, zone_no, zone->reset_count);
		if (r < 0)
			return r;
		zone->lost = false;
	}
	if (zone->pointer == 0)
		return 0;
	return zf_dev_raise_pointer(alloc->dev, zone_no,
				    zone_no * alloc->geometry->zone_size +
					    ((uint64_t)zone->pointer << ZF_BLOCK_SHIFT));
}

int zf_alloc_tell_device(struct zf_alloc *alloc)
{
	int r = 0;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 0; z < alloc->zone_count && r == 0; z++)
		r = tell_device(alloc, z);
	zf_mutex_unlock(&alloc->lock);
	return r;
}

void zf_alloc_start(struct zf_alloc *alloc, uint64_t committed, uint64_t running)
{
	zf_mutex_lock(&alloc->lock);
	alloc->committed = committed;
	alloc->running = running;
	for (uint32_t z = 2; z < alloc->zone_count; z++)
		settle_zone(alloc, z);
	choose_streams(alloc);
	for (uint32_t z = 0; z < alloc->zone_count; z++) {
		struct zf_zone *zone = &alloc->zones[z];
		bool data = zone->role == ZF_ROLE_HOT || zone->role == ZF_ROLE_COLD ||
			    zone->role == ZF_ROLE_LOG;

		if (zone->written > zone->pointer)
			zone->written = zone->pointer;
		zone->summary = data && zone->pointer ? ZF_SUMMARY_PRESENT : ZF_SUMMARY_NONE;
		alloc->empty_count += zone_is_empty(zone);
		zf_alloc_tell_retired_locked(alloc, z);
	}
	zf_alloc_kept_start_locked(alloc);
	zf_alloc_recount_locked(alloc);
	zf_mutex_unlock(&alloc->lock);
}

uint64_t zf_alloc_running(struct zf_alloc *alloc)
{
	uint64_t r;

	zf_mutex_lock(&alloc->lock);
	r = alloc->running;
	zf_mutex_unlock(&alloc->lock);
	return r;
}
