/* SPDX-License-Identifier: MIT */
#include "udev/find.h"

#include <errno.h>
#include <linux/blkzoned.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <uuid.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "io/image_trailer.h"
#include "io/zbd_geometry.h"
#include "superblock/ring.h"
#include "superblock/super.h"

#define SECTOR_SIZE 512
#define ZONES	    2u

/* So many slots are read for a whole record, because power cuts may have torn the first ones. */
#define SLOTS_MAX 4u

struct record {
	struct zf_super_head head;
	struct zf_found found;
};

/* ---- records ---- */

/* 0, or -ENODEV if there is no whole record. */
static int read_record(int fd, uint64_t address, struct record *ret_record)
{
	_zf_free_ struct zf_disk_super *disk = aligned_alloc(ZF_BLOCK_SIZE, sizeof(*disk));
	struct zf_found *found = &ret_record->found;
	struct zf_super super;

	if (!disk || pread(fd, disk, sizeof(*disk), (off_t)address) != sizeof(*disk) ||
	    zf_super_decode_head(disk, address, NULL, &ret_record->head) < 0)
		return -ENODEV;
	uuid_unparse_lower(ret_record->head.fsid, found->uuid);
	memset(found->label, 0, sizeof(found->label));
	if (zf_super_decode(disk, address, NULL, &super) == 0)
		memcpy(found->label, super.label, sizeof(super.label));
	return 0;
}

static bool is_newer(const struct record *a, const struct record *b)
{
	return memcmp(a->head.fsid, b->head.fsid, sizeof(a->head.fsid)) == 0 &&
	       a->head.generation > b->head.generation;
}

/*
 * Moves *slot to the first slot in [*slot, end) with a whole record that is newer than *than. NULL:
 * any record is.
 */
static int find_newer(int fd, uint64_t zone_start, uint64_t *slot, uint64_t end,
		      const struct record *than, struct record *ret_record)
{
	end = zf_min_u64(end, *slot + SLOTS_MAX);
	for (; *slot < end; ++*slot)
		if (read_record(fd, zone_start + *slot * ZF_SUPER_SIZE, ret_record) == 0 &&
		    (!than || is_newer(ret_record, than)))
			return 0;
	return -ENODEV;
}

/*
 * Generations ascend from the first slot up to the newest record, so this is a binary search. Slots
 * behind it are empty, or have older records that a torn write or a conventional zone has left.
 */
static int find_newest(int fd, uint64_t zone_start, uint64_t slots, struct record *ret_newest)
{
	uint64_t low = 0, high = slots;
	int r = find_newer(fd, zone_start, &low, high, NULL, ret_newest);

	while (r == 0 && low + 1 < high) {
		uint64_t middle = low + (high - low) / 2, slot = middle;
		struct record record;

		if (find_newer(fd, zone_start, &slot, high, ret_newest, &record) == 0) {
			*ret_newest = record;
			low = slot;
		} else {
			high = middle;
		}
	}
	return r;
}

/* ---- zones ---- */

/*
 * The zones of the ring, and how many slots of each are written. Only these are read: an image may
 * have bytes of an earlier life behind a write pointer, and some drives fail reads there.
 */
struct ring_zones {
	uint64_t start[ZONES], slots[ZONES];
	unsigned int count;
};

static uint64_t count_slots(const struct zf_zone_info *zone)
{
	uint64_t capacity = zone->capacity / ZF_SUPER_SIZE;

	switch (zone->cond) {
	case ZF_ZONE_EMPTY:
	case ZF_ZONE_OFFLINE:
		return 0;
	case ZF_ZONE_NOT_WP:
		return zf_min_u64(capacity, ZF_RING_CONVENTIONAL_SLOTS);
	case ZF_ZONE_FULL:
	case ZF_ZONE_READONLY:
		return capacity;
	default:
		return zf_min_u64(capacity, (zone->wp - zone->start) / ZF_SUPER_SIZE);
	}
}

static void add_zone(struct ring_zones *zones, const struct zf_zone_info *zone)
{
	zones->start[zones->count] = zone->start;
	zones->slots[zones->count] = count_slots(zone);
	zones->count++;
}

/* A zoned disk, by the kernel's report. */
static bool ask_kernel(int fd, struct ring_zones *ret_zones)
{
	struct {
		struct blk_zone_report report;
		struct blk_zone zones[ZONES];
	} all = {.report = {.nr_zones = ZONES}};

	if (ioctl(fd, BLKREPORTZONE, &all) < 0 || all.report.nr_zones != ZONES)
		return false;
	for (unsigned int i = 0; i < ZONES; i++) {
		const struct blk_zone *zone = &all.zones[i];
		bool has_capacity = all.report.flags & BLK_ZONE_REP_CAPACITY;
		const struct zf_geometry geometry = {
			.zone_capacity = (has_capacity ? zone->capacity : zone->len) * SECTOR_SIZE};
		const struct zbd_zone in_bytes = {.start = zone->start * SECTOR_SIZE,
						  .wp = zone->wp * SECTOR_SIZE,
						  .type = zone->type,
						  .cond = zone->cond};
		struct zf_zone_info info;

		zf_zbd_geometry_zone_info(&geometry, &in_bytes, &info);
		add_zone(ret_zones, &info);
	}
	return true;
}

/* An image, by its trailer. */
static bool ask_trailer(int fd, struct ring_zones *ret_zones)
{
	struct zf_zone_state states[ZONES];
	struct zf_image_trailer trailer;
	off_t end = lseek(fd, 0, SEEK_END);

	if (end < 0 || zf_image_trailer_read(fd, (uint64_t)end, NULL, &trailer) < 0 ||
	    zf_image_trailer_peek(&trailer, fd, ZONES, states) < 0)
		return false;
	for (unsigned int i = 0; i < ZONES; i++) {
		uint64_t start = i * trailer.geometry.zone_size;

		add_zone(ret_zones, &(struct zf_zone_info){
					    .start = start,
					    .wp = start + states[i].wp,
					    .capacity = trailer.geometry.zone_capacity,
					    .cond = states[i].cond,
				    });
	}
	return true;
}

static int search(int fd, const struct ring_zones *zones, struct zf_found *ret_found)
{
	struct record newest, record;
	int r = -ENODEV;

	for (unsigned int i = 0; i < zones->count; i++) {
		if (find_newest(fd, zones->start[i], zones->slots[i], &record) < 0 ||
		    (r == 0 && !is_newer(&record, &newest)))
			continue;
		newest = record;
		r = 0;
	}
	if (r == 0)
		*ret_found = newest.found;
	return r;
}

int zf_find_super(int fd, struct zf_found *ret_found)
{
	const struct ring_zones start_of_disk = {.slots = {SLOTS_MAX}, .count = 1};
	struct ring_zones zones = {0};

	if ((ask_kernel(fd, &zones) || ask_trailer(fd, &zones)) &&
	    search(fd, &zones, ret_found) == 0)
		return 0;
	/* Without zones, or if what is said of them is wrong, the disk may begin with a record. */
	return search(fd, &start_of_disk, ret_found);
}
