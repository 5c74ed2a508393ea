/* SPDX-License-Identifier: MIT */
#include "udev/find.h"

#include <errno.h>
#include <linux/blkzoned.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <uuid.h>

#include "base/bits.h"
#include "io/image_trailer.h"
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
	_Alignas(ZF_BLOCK_SIZE) struct zf_disk_super disk;
	struct zf_found *found = &ret_record->found;
	struct zf_super super;

	if (pread(fd, &disk, sizeof(disk), (off_t)address) != sizeof(disk) ||
	    zf_super_decode_head(&disk, address, NULL, &ret_record->head) < 0)
		return -ENODEV;
	uuid_unparse_lower(ret_record->head.fsid, found->uuid);
	memset(found->label, 0, sizeof(found->label));
	if (zf_super_decode(&disk, address, NULL, &super) == 0)
		memcpy(found->label, super.label, sizeof(super.label));
	return 0;
}

/* Moves *slot to the first slot in [*slot, end) with a whole record. */
static int find_whole(int fd, uint64_t zone_start, uint64_t *slot, uint64_t end,
		      struct record *ret_record)
{
	int r = -ENODEV;

	end = zf_min_u64(end, *slot + SLOTS_MAX);
	for (; *slot < end; ++*slot) {
		r = read_record(fd, zone_start + *slot * ZF_SUPER_SIZE, ret_record);
		if (r == 0)
			break;
	}
	return r;
}

static bool is_newer(const struct record *a, const struct record *b)
{
	return memcmp(a->head.fsid, b->head.fsid, sizeof(a->head.fsid)) == 0 &&
	       a->head.generation > b->head.generation;
}

/*
 * Generations ascend from the first slot up to the newest record, so this is a binary search. Slots
 * behind that are empty, or have records that are older than the first one, because the zone had
 * them before its reset.
 */
static int find_newest(int fd, uint64_t zone_start, uint64_t slots, struct record *ret_newest)
{
	uint64_t low = 0, high = slots;
	int r = find_whole(fd, zone_start, &low, high, ret_newest);

	while (r == 0 && low + 1 < high) {
		uint64_t middle = low + (high - low) / 2, slot = middle;
		struct record record;

		if (find_whole(fd, zone_start, &slot, high, &record) == 0 &&
		    is_newer(&record, ret_newest)) {
			*ret_newest = record;
			low = slot;
		} else {
			high = middle;
		}
	}
	return r;
}

/* ---- zones ---- */

/* The zone size according to the kernel or the trailer of an image; 0: the disk has no zones. */
static uint64_t find_zone_size(int fd)
{
	struct zf_image_trailer trailer;
	uint32_t sectors = 0;
	off_t end;

	if (ioctl(fd, BLKGETZONESZ, &sectors) == 0 && sectors > 0)
		return (uint64_t)sectors * SECTOR_SIZE;
	end = lseek(fd, 0, SEEK_END);
	if (end < 0 || zf_image_trailer_read(fd, (uint64_t)end, NULL, &trailer) < 0)
		return 0;
	return trailer.geometry.zone_size;
}

struct one_zone {
	struct blk_zone_report report;
	struct blk_zone zone;
};

/* In sectors. The pointer of a full zone means nothing. */
static uint64_t written_len(const struct one_zone *one)
{
	const struct blk_zone *zone = &one->zone;

	if (zone->type != BLK_ZONE_TYPE_CONVENTIONAL && zone->cond != BLK_ZONE_COND_FULL)
		return zone->wp - zone->start;
	return one->report.flags & BLK_ZONE_REP_CAPACITY ? zone->capacity : zone->len;
}

/*
 * The slots of a zone that may have records. Some drives fail reads behind a write pointer, so the
 * kernel is asked for it; an image has zeroes or old bytes there.
 */
static uint64_t count_slots(int fd, uint64_t zone_start, uint64_t zone_size)
{
	struct one_zone one = {.report = {.sector = zone_start / SECTOR_SIZE, .nr_zones = 1}};

	if (zone_size == 0)
		return SLOTS_MAX;
	if (ioctl(fd, BLKREPORTZONE, &one) < 0 || one.report.nr_zones != 1)
		return zone_size / ZF_SUPER_SIZE;
	return written_len(&one) * SECTOR_SIZE / ZF_SUPER_SIZE;
}

int zf_find_super(int fd, struct zf_found *ret_found)
{
	uint64_t zone_size = find_zone_size(fd);
	struct record newest, record;
	int r = -ENODEV;

	for (unsigned int i = 0; i < (zone_size > 0 ? ZONES : 1); i++) {
		uint64_t start = i * zone_size;

		if (find_newest(fd, start, count_slots(fd, start, zone_size), &record) < 0 ||
		    (r == 0 && !is_newer(&record, &newest)))
			continue;
		newest = record;
		r = 0;
	}
	if (r == 0)
		*ret_found = newest.found;
	return r;
}
