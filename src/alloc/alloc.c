/* SPDX-License-Identifier: MIT */
/* The zone table: made from the device's report and the zone tree; space and reservations. */
#include "alloc/alloc.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/alloc_internal.h"
#include "base/cleanup.h"

#define REPORT_CHUNK 1024u

/* ---- life ---- */

static uint32_t active_max(const struct zf_geometry *geometry)
{
	uint32_t max = geometry->max_active;

	if (geometry->max_open && (!max || geometry->max_open < max))
		max = geometry->max_open;
	return max ? max : UINT32_MAX;
}

/* The ring's zone, one zone a copy of metadata, one for data: with fewer nothing can be written. */
static int check_active(const struct zf_alloc *alloc)
{
	uint32_t needed = 1u + alloc->copies + 1u;

	if (alloc->active_max >= needed)
		return 0;
	zf_report(alloc->report, ZF_REPORT_ERROR,
		  "the device allows %u active zones, this filesystem needs %u", alloc->active_max,
		  needed);
	return -EINVAL;
}

static void zone_from_info(struct zf_zone *zone, const struct zf_zone_info *info)
{
	zone->capacity = (uint32_t)(info->capacity >> ZF_BLOCK_SHIFT);
	zone->pointer = (uint32_t)((info->wp - info->start) >> ZF_BLOCK_SHIFT);
	if (info->cond == ZF_ZONE_FULL)
		zone->pointer = zone->capacity;
	zone->reset_count = (uint32_t)info->reset_count;
	zone->unusable = info->cond == ZF_ZONE_READONLY || info->cond == ZF_ZONE_OFFLINE;
}

static int read_report(struct zf_alloc *alloc)
{
	_zf_free_ struct zf_zone_info *info = malloc(REPORT_CHUNK * sizeof(*info));

	if (!info)
		return -ENOMEM;
	for (uint32_t first = 0; first < alloc->zone_count; first += REPORT_CHUNK) {
		uint32_t n = alloc->zone_count - first;
		int r;

		if (n > REPORT_CHUNK)
			n = REPORT_CHUNK;
		r = zf_dev_report(alloc->dev, first, n, info);
		if (r < 0)
			return r;
		for (uint32_t i = 0; i < n; i++) {
			zone_from_info(&alloc->zones[first + i], &info[i]);
			alloc->counts_resets |= info[i].reset_count > 0;
		}
	}
	return 0;
}

int zf_alloc_new(struct zf_dev *dev, const struct zf_super *super, const struct zf_report *report,
		 struct zf_alloc **ret_alloc)
{
	struct zf_alloc *alloc = calloc(1, sizeof(*alloc));
	int r;

	if (!alloc)
		return -ENOMEM;
	alloc->dev = dev;
	alloc->geometry = zf_dev_geometry(dev);
	alloc->report = report;
	alloc->node_blocks = super->node_size >> ZF_BLOCK_SHIFT;
	alloc->copies = super->metadata_copies;
	alloc->active_max = active_max(alloc->geometry);
	alloc->zone_count = super->zone_count;
	zf_mutex_init(&alloc->lock, ZF_RANK_ALLOC);
	for (unsigned int c = 0; c < ZF_COPIES_MAX; c++)
		alloc->meta_zone[c] = NO_ZONE;
	for (unsigned int role = 0; role < ZF_ROLE_COUNT; role++)
		alloc->data_zone[role] = NO_ZONE;
	alloc->zones = calloc(alloc->zone_count, sizeof(*alloc->zones));
	r = alloc->zones ? check_active(alloc) : -ENOMEM;
	if (r == 0)
		r = read_report(alloc);
	if (r < 0) {
		zf_alloc_free(alloc);
		return r;
	}
	alloc->zones[0].role = ZF_ROLE_SUPER;
	alloc->zones[1].role = ZF_ROLE_SUPER;
	*ret_alloc = alloc;
	return 0;
}

void zf_alloc_free(struct zf_alloc *alloc)
{
	if (!alloc)
		return;
	for (unsigned int c = 0; c < ZF_COPIES_MAX; c++)
		free(alloc->meta_runs[c].runs);
	free(alloc->zones);
	zf_mutex_deinit(&alloc->lock);
	free(alloc);
}

uint32_t zf_alloc_zone_count(const struct zf_alloc *alloc)
{
	return alloc->zone_count;
}

void zf_alloc_get_zone(struct zf_alloc *alloc, uint32_t zone_no, struct zf_zone *ret_zone)
{
	assert(zone_no < alloc->zone_count);
	zf_mutex_lock(&alloc->lock);
	*ret_zone = alloc->zones[zone_no];
	zf_mutex_unlock(&alloc->lock);
}

/* ---- loading the committed state ---- */

static bool is_zero(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			return false;
	return true;
}

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
	if (!is_zero(disk->reserved_a, sizeof(disk->reserved_a)) ||
	    !is_zero(disk->reserved_b, sizeof(disk->reserved_b)))
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
		  "zone %u lacks metadata, of which there is one copy only", zone_no);
	alloc->zones[zone_no].pointer = alloc->zones[zone_no].capacity;
}

/*
 * The device's pointer against the item's. Ahead: a crash lost the transaction that knew; what lies
 * between is garbage. Behind: the zone was reset after this transaction (fine, if nothing in it was
 * live), or the pointer is a lower bound after the host stopped: then the item's stands, live bytes
 * or not, for there may be nodes of the root and zone trees, which the item does not count, and
 * summary entries.
 */
static int load_pointer(struct zf_alloc *alloc, uint32_t zone_no, uint32_t pointer, uint32_t live,
			uint32_t resets)
{
	struct zf_zone *zone = &alloc->zones[zone_no];
	uint64_t start = zone_no * alloc->geometry->zone_size;

	if (zone_is_conventional(alloc, zone_no)) {
		zone->pointer = pointer;
		return 0;
	}
	if (alloc->counts_resets && zone->reset_count != resets) {
		if (live == 0)
			return 0;
		return zf_report_corrupt(alloc->report, "zone", start,
					 "reset count has %u, expected %u: it was reset since",
					 zone->reset_count, resets);
	}
	if (zone->pointer >= pointer)
		return 0;
	/* A zone that cannot be written any more need not have a pointer, but can be read. */
	if (!alloc->geometry->pointers_are_lower_bounds && !zone->unusable) {
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
	uint32_t pointer, resets;
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
	zone->reset_generation = zf_le64_get(disk->reset_generation);
	zone->emptied_generation = zf_le64_get(disk->emptied_generation);
	zone->write_generation = zf_le64_get(disk->write_generation);
	pointer = (uint32_t)(zf_le64_get(disk->pointer) >> ZF_BLOCK_SHIFT);
	zone->written = pointer;
	resets = (uint32_t)zf_le64_get(disk->reset_count);
	r = zone_no < 2 ? 0 : load_pointer(alloc, zone_no, pointer, zone->live, resets);
	if (!alloc->counts_resets)
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
 * counts them. Neither holds anything live; they get a role again when they are opened.
 */
static void settle_zone(struct zf_alloc *alloc, uint32_t zone_no)
{
	struct zf_zone *zone = &alloc->zones[zone_no];

	if (zone->live || zone->system_live) {
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

/* After an unclean stop of the host: before anything is written. */
static int raise_pointer(struct zf_alloc *alloc, uint32_t zone_no)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];
	int r;

	if (!alloc->geometry->pointers_are_lower_bounds || zone->pointer == 0 || zone->unusable)
		return 0;
	r = zf_dev_raise_pointer(alloc->dev, zone_no,
				 zone_no * alloc->geometry->zone_size +
					 ((uint64_t)zone->pointer << ZF_BLOCK_SHIFT));
	/* A device that was opened for reading keeps its pointers; ours are good enough to read. */
	return r == -EROFS ? 0 : r;
}

int zf_alloc_start(struct zf_alloc *alloc, uint64_t committed, uint64_t running)
{
	int r = 0;

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
		if (r == 0 && z >= 2)
			r = raise_pointer(alloc, z);
	}
	zf_mutex_unlock(&alloc->lock);
	return r;
}

uint64_t zf_alloc_running(struct zf_alloc *alloc)
{
	uint64_t r;

	zf_mutex_lock(&alloc->lock);
	r = alloc->running;
	zf_mutex_unlock(&alloc->lock);
	return r;
}

/* ---- helpers of the other files ---- */

bool zf_alloc_is_stream_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	for (unsigned int c = 0; c < alloc->copies; c++)
		if (alloc->meta_zone[c] == zone_no)
			return true;
	return alloc->data_zone[ZF_ROLE_HOT] == zone_no ||
	       alloc->data_zone[ZF_ROLE_COLD] == zone_no;
}

void zf_alloc_dirty_locked(struct zf_alloc *alloc, uint32_t zone_no)
{
	alloc->zones[zone_no].dirty = true;
}

void zf_alloc_set_pointer_locked(struct zf_alloc *alloc, uint32_t zone_no, uint32_t pointer)
{
	alloc->zones[zone_no].pointer = pointer;
	zf_alloc_dirty_locked(alloc, zone_no);
}

struct zf_zone *zf_alloc_node_zone_locked(struct zf_alloc *alloc, uint64_t address)
{
	uint64_t zone_no = address / alloc->geometry->zone_size;
	uint64_t end =
		(address % alloc->geometry->zone_size >> ZF_BLOCK_SHIFT) + alloc->node_blocks;
	struct zf_zone *zone;

	if (zone_no < 2 || zone_no >= alloc->zone_count)
		return NULL;
	zone = &alloc->zones[zone_no];
	return zone->role == ZF_ROLE_META && end <= zone->pointer ? zone : NULL;
}

/* ---- zones that are active on the device ---- */

static bool is_garbage(const struct zf_zone *zone)
{
	return zone->live == 0 && zone->system_live == 0;
}

static bool is_meta_stream(const struct zf_alloc *alloc, uint32_t zone_no)
{
	for (unsigned int c = 0; c < alloc->copies; c++)
		if (alloc->meta_zone[c] == zone_no)
			return true;
	return false;
}

/*
 * Is this zone one of the device's active ones, besides those that are always set aside? A data
 * zone whose room is all promised stays active until its last append has ended. A metadata zone is
 * written by commits, which open the next one only when it is full: so however many zones a
 * transaction has filled in memory, each copy has one active, and a slot of its own for that.
 */
static bool counts_as_active(const struct zf_alloc *alloc, uint32_t zone_no)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	return zone_no >= 2 && !zone_is_conventional(alloc, zone_no) && !zone->unusable &&
	       !is_meta_stream(alloc, zone_no) &&
	       (zone_is_partial(zone) || zone->pending > 0 || zone->pointer_unknown);
}

/* How many zones may be active besides the ring's and the metadata streams', and still could be. */
static uint32_t active_left(const struct zf_alloc *alloc)
{
	uint32_t budget = alloc->active_max - 1 - alloc->copies, active = 0;

	if (alloc->active_max == UINT32_MAX)
		return UINT32_MAX;
	for (uint32_t z = 2; z < alloc->zone_count; z++)
		active += counts_as_active(alloc, z);
	return active < budget ? budget - active : 0;
}

int zf_alloc_next_finish(struct zf_alloc *alloc, uint32_t *ret_zone_no)
{
	uint32_t best = NO_ZONE;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count && active_left(alloc) == 0; z++) {
		const struct zf_zone *zone = &alloc->zones[z];
		const struct zf_zone *other = &alloc->zones[best == NO_ZONE ? z : best];

		if (!counts_as_active(alloc, z) || !zone_is_partial(zone) || zone->pending ||
		    zone->pointer_unknown || zone->resetting || zf_alloc_is_stream_locked(alloc, z))
			continue;
		/* Garbage first, it loses nothing; then the one with the least room. */
		if (best == NO_ZONE || is_garbage(zone) > is_garbage(other) ||
		    (is_garbage(zone) == is_garbage(other) && zone->pointer > other->pointer))
			best = z;
	}
	zf_mutex_unlock(&alloc->lock);
	if (best == NO_ZONE)
		return -ENOENT;
	*ret_zone_no = best;
	return 0;
}

void zf_alloc_finish_done(struct zf_alloc *alloc, uint32_t zone_no, int result)
{
	zf_mutex_lock(&alloc->lock);
	if (result < 0)
		alloc->zones[zone_no].pointer_unknown = true;
	else
		zf_alloc_set_pointer_locked(alloc, zone_no, alloc->zones[zone_no].capacity);
	zf_mutex_unlock(&alloc->lock);
}

/* ---- opening zones ---- */

/*
 * A metadata stream goes on in a fresh zone only: the one before it is active on the device until
 * the commit has written it, and beside it this one would be.
 */
static bool can_resume(const struct zf_alloc *alloc, uint32_t zone_no, enum zf_role role)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	return role != ZF_ROLE_META && zone->role == role && zone_is_partial(zone) &&
	       !zone->unusable && !zone->pointer_unknown && !zone->resetting &&
	       (zone->live || zone->system_live) && !zf_alloc_is_stream_locked(alloc, zone_no);
}

int zf_alloc_open_zone_locked(struct zf_alloc *alloc, enum zf_role role, uint32_t keep_empty,
			      uint32_t *ret_zone_no)
{
	uint32_t best = NO_ZONE;

	for (uint32_t i = 0; i < alloc->zone_count; i++) {
		uint32_t z = alloc->search_next + i;

		if (z >= alloc->zone_count)
			z -= alloc->zone_count;
		if (can_resume(alloc, z, role)) {
			*ret_zone_no = z;
			return 0;
		}
		/* Conventional zones last: what is written in place will want them. */
		if (zone_is_empty(&alloc->zones[z]) &&
		    (best == NO_ZONE ||
		     (zone_is_conventional(alloc, best) && !zone_is_conventional(alloc, z))))
			best = z;
	}
	if (best == NO_ZONE || alloc->empty_count <= keep_empty)
		return -ENOSPC;
	if (role != ZF_ROLE_META && !zone_is_conventional(alloc, best) && active_left(alloc) == 0)
		return -EAGAIN;
	alloc->empty_count--;
	alloc->search_next = best + 1 < alloc->zone_count ? best + 1 : 0;
	alloc->zones[best].role = (uint8_t)role;
	alloc->zones[best].emptied_generation = 0;
	zf_alloc_dirty_locked(alloc, best);
	*ret_zone_no = best;
	return 0;
}

/* ---- reservations ---- */

static uint64_t stream_room(const struct zf_alloc *alloc, enum zf_role role)
{
	uint32_t z = alloc->data_zone[role];

	if (z == NO_ZONE || alloc->zones[z].pointer_unknown)
		return 0;
	return alloc->zones[z].capacity - alloc->zones[z].pointer;
}

static uint64_t capacity_blocks(const struct zf_alloc *alloc)
{
	return alloc->geometry->zone_capacity >> ZF_BLOCK_SHIFT;
}

static uint64_t item_blocks(const struct zf_alloc *alloc, uint64_t items)
{
	return (items * ITEM_BYTES * alloc->copies + ZF_BLOCK_SIZE - 1) >> ZF_BLOCK_SHIFT;
}

uint32_t zf_alloc_claimed_zones_locked(const struct zf_alloc *alloc)
{
	uint64_t room = stream_room(alloc, ZF_ROLE_HOT);
	uint64_t per_zone = capacity_blocks(alloc);

	if (alloc->reserved_blocks <= room)
		return 0;
	return (uint32_t)((alloc->reserved_blocks - room + per_zone - 1) / per_zone);
}

static uint32_t kept_zones(const struct zf_alloc *alloc, enum zf_reserve_class class)
{
	switch (class) {
	case ZF_RESERVE_NORMAL:
		return alloc->copies + KEPT_FOR_LOG + KEPT_FOR_RECLAIM;
	case ZF_RESERVE_FREEING:
		return alloc->copies + KEPT_FOR_LOG;
	case ZF_RESERVE_SYSTEM:
		break;
	}
	return alloc->copies;
}

/* Blocks that a caller of this class may still reserve for data. */
static uint64_t available_blocks(const struct zf_alloc *alloc, enum zf_reserve_class class,
				 uint32_t empty_count)
{
	uint32_t kept = kept_zones(alloc, class);
	uint64_t room = stream_room(alloc, ZF_ROLE_HOT);
	uint64_t used = alloc->reserved_blocks + item_blocks(alloc, alloc->reserved_items);

	if (empty_count > kept)
		room += (empty_count - kept) * capacity_blocks(alloc);
	return room > used ? room - used : 0;
}

int zf_alloc_reserve(struct zf_alloc *alloc, enum zf_reserve_class class, uint64_t data_blocks,
		     uint64_t items, uint64_t nodes)
{
	int r = 0;

	zf_mutex_lock(&alloc->lock);
	if (data_blocks + item_blocks(alloc, items) >
	    available_blocks(alloc, class, alloc->empty_count)) {
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
	uint64_t kept;

	zf_mutex_lock(&alloc->lock);
	for (uint32_t z = 2; z < alloc->zone_count; z++) {
		const struct zf_zone *zone = &alloc->zones[z];
		uint64_t live = zone->live + zone->system_live;

		if (zone->unusable && !live)
			continue;
		space.total += zone->capacity;
		space.live += live;
		space.unusable += zone->pointer - live;
		emptied += zf_alloc_holds_nothing_locked(alloc, z);
	}
	/* A writer who needs them waits for the commits that give them back. */
	space.available = available_blocks(alloc, ZF_RESERVE_NORMAL, alloc->empty_count + emptied);
	kept = kept_zones(alloc, ZF_RESERVE_NORMAL);
	if (kept > alloc->empty_count)
		kept = alloc->empty_count;
	space.reserved = alloc->reserved_blocks + item_blocks(alloc, alloc->reserved_items) +
			 kept * capacity_blocks(alloc);
	zf_mutex_unlock(&alloc->lock);
	space.total <<= ZF_BLOCK_SHIFT;
	space.live <<= ZF_BLOCK_SHIFT;
	space.unusable <<= ZF_BLOCK_SHIFT;
	space.available <<= ZF_BLOCK_SHIFT;
	space.reserved <<= ZF_BLOCK_SHIFT;
	*ret_space = space;
}
