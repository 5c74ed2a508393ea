/* SPDX-License-Identifier: MIT */
/*
 * A mount fills the zone table from the committed zone items, compared with the device's own
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
					 "role has %u (%s), expected %s", disk->role,
					 zf_zone_role_name(disk->role),
					 zone_no < 2 ? "1 (super)" : "0 or 2 to 6");
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
					 "role has 0 (none), expected another one for %" PRIu64
					 " written bytes",
					 pointer);
	if (disk->role == ZF_ROLE_OVERWRITE &&
	    (!zone_is_conventional(alloc, zone_no) || pointer != capacity))
		return zf_report_corrupt(
			alloc->report, "zone item", zone_no,
			"role has %u (overwrite), expected another one for pointer %" PRIu64
			" of a %s zone",
			disk->role, pointer,
			zone_is_conventional(alloc, zone_no) ? "conventional" : "sequential");
	if (!zf_is_zero(disk->reserved_a, sizeof(disk->reserved_a)) ||
	    !zf_is_zero(disk->reserved_b, sizeof(disk->reserved_b)))
		return zf_report_corrupt(alloc->report, "zone item", zone_no,
					 "reserved has bits set, expected 0");
	return 0;
}

/*
 * A commit goes on when only one copy of its nodes could be written. This zone should hold the
 * other copy: the nodes behind its pointer are missing. Nothing is written to the zone before its
 * reset.
 */
static void note_missing_copy(struct zf_alloc *alloc, uint32_t zone_no)
{
	zf_report(alloc->report, ZF_REPORT_WARNING,
		  "zone %u lacks part of one metadata copy: only the other copy can be read",
		  zone_no);
	alloc->zones[zone_no].pointer = alloc->zones[zone_no].capacity;
	alloc->zones[zone_no].damaged = true;
}

/*
 * Loads a zone that the device has lost. No zone is reset while the durable superblock names
 * anything in it. So a zone with live bytes was not reset since its item was written, and has the
 * item's reset count. The same holds for a metadata zone, because it may hold nodes of the root and
 * zone trees, which the item does not count. Any other zone may have been reset since. It keeps the
 * count that the device gave the lost zone, which the zone never had before: so data written from
 * now on cannot pass for older data. In each case the item's pointer is used, because the summary
 * tree may name bytes below it; these entries are dropped before the zone is reset and used again.
 * (Zones that the superblock names for the log: load_zone() in log_zone.c.)
 */
static void find_lost(struct zf_zone *zone, uint32_t pointer, uint32_t live, uint64_t resets)
{
	zone->pointer = pointer;
	if (live > 0 || zone->role == ZF_ROLE_META)
		zone->reset_count = resets;
}

/*
 * Compares the device's pointer with the item's. Device ahead: a crash lost the transaction that
 * wrote the bytes in between, and these are garbage. Device behind: either the zone was reset after
 * this transaction, which is right only if nothing in it was live; or the device's pointer is a
 * lower bound after the host stopped. Then the item's pointer is used, even without live bytes,
 * because the zone may hold summary entries, and nodes of the root and zone trees, which the item
 * does not count.
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
					 ": the zone was reset after this commit",
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
	/*
	 * The filesystem's count holds if the device counts no resets, and for conventional zones.
	 */
	if (!alloc->counts_resets || zone_is_conventional(alloc, zone_no))
		zone->reset_count = resets;
	zf_mutex_unlock(&alloc->lock);
	return r;
}

/*
 * The zone of a node, or NULL. With two copies, a node behind the device's pointer is a copy that
 * this zone lacks.
 */
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
					      "address has no metadata, expected one below the "
					      "write pointer of a metadata zone");
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

/*
 * A crash may leave zones that a lost transaction has written, and zones that were reset after the
 * committed transaction counted them as written. Such a zone holds nothing live, unless a log
 * record names it. It gets a role again when it is opened.
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
	/* Nothing durable names bytes of the zone, so the committed state allows its reset. */
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
 * Tells the device the pointer of a zone after an unclean stop of the host, and the reset count of
 * a lost zone. Called before anything is written, and after everything that may raise the pointer
 * is read: the zone's item, the superblock, the log's records.
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
