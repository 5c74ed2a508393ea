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

/*
 * All records of a filesystem have the same UUID, so the first whole record is taken. Its label may
 * be an old one, because a change of the label is only in later records. The first slots of a zone
 * have a record unless the zone is empty. Several slots are read because a power cut may have torn
 * the first record.
 */
#define SLOTS_MAX 4u

/* 0, or -ENODEV if there is no whole record. */
static int read_record(int fd, uint64_t address, struct zf_found *ret_found)
{
	_Alignas(ZF_BLOCK_SIZE) struct zf_disk_super disk;
	struct zf_super_head head;
	struct zf_super super;

	if (pread(fd, &disk, sizeof(disk), (off_t)address) != sizeof(disk) ||
	    zf_super_decode_head(&disk, address, NULL, &head) < 0)
		return -ENODEV;
	uuid_unparse_lower(head.fsid, ret_found->uuid);
	memset(ret_found->label, 0, sizeof(ret_found->label));
	if (zf_super_decode(&disk, address, NULL, &super) == 0)
		memcpy(ret_found->label, super.label, sizeof(super.label));
	return 0;
}

static int read_zone(int fd, uint64_t start, struct zf_found *ret_found)
{
	int r = -ENODEV;

	for (uint64_t slot = 0; slot < SLOTS_MAX && r < 0; slot++)
		r = read_record(fd, start + slot * ZF_SUPER_SIZE, ret_found);
	return r;
}

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

int zf_find_super(int fd, struct zf_found *ret_found)
{
	uint64_t zone_size;

	if (read_zone(fd, 0, ret_found) == 0)
		return 0;
	zone_size = find_zone_size(fd);
	return zone_size > 0 ? read_zone(fd, zone_size, ret_found) : -ENODEV;
}
