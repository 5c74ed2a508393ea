/* SPDX-License-Identifier: MIT */
#include "io/disk.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/bits.h"
#include "io/nvme_name.h"
#include "io/sysfs.h"

#define SECTOR_SIZE 512u /* the unit of all sizes in /sys */

/* ---- /sys ---- */

/* 0: there is no such attribute. */
static uint64_t read_number(const struct zf_disk *disk, const char *name)
{
	return zf_sysfs_read_number(disk->sys, name, 0);
}

static bool is_zoned(const struct zf_disk *disk, const char *queue)
{
	char text[32];

	return zf_sysfs_read(disk->sys, queue, text, sizeof(text)) && strcmp(text, "none") != 0;
}

/* ---- finding ---- */

static int not_a_disk(const struct zf_report *report, const char *path)
{
	zf_report(report, ZF_REPORT_ERROR,
		  "%s: neither a regular file nor a disk: give an image, a block device, or an "
		  "NVMe namespace (/dev/ng0n1)",
		  path);
	return -EINVAL;
}

/* The kernel's name of a device, "ng0n1", whatever path leads to it. */
static bool kernel_name(const struct zf_disk *disk, char *buf, size_t size)
{
	char path[PATH_MAX + 64], line[256];
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "%s/uevent", disk->sys);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file)) {
		line[strcspn(line, "\n")] = '\0';
		found = strncmp(line, "DEVNAME=", 8) == 0;
	}
	fclose(file);
	return found && snprintf(buf, size, "%s", line + 8) < (int)size;
}

/* From the character device of an NVMe namespace to its block device. */
static int find_by_nvme(struct zf_disk *disk, const char *path, const struct zf_report *report)
{
	char name[64], device[PATH_MAX], block[PATH_MAX];

	if (!kernel_name(disk, name, sizeof(name)))
		return not_a_disk(report, path);
	snprintf(device, sizeof(device), "%s/dev/%s", disk->root, name);
	if (zf_nvme_block_name(device, block, sizeof(block)) < 0)
		return not_a_disk(report, path);
	snprintf(disk->sys, sizeof(disk->sys), "%s/sys/class/block/%s", disk->root,
		 strrchr(block, '/') + 1);
	snprintf(disk->path, sizeof(disk->path), "%s", block);
	return 0;
}

/* From the block device to the character device, if it has one. */
static void find_nvme_path(struct zf_disk *disk)
{
	char name[64], device[PATH_MAX];

	if (!kernel_name(disk, name, sizeof(name)))
		return;
	snprintf(device, sizeof(device), "%s/dev/%s", disk->root, name);
	if (zf_nvme_char_name(device, disk->nvme_path, sizeof(disk->nvme_path)) < 0)
		disk->nvme_path[0] = '\0';
}

/* ---- what zfuse can use ---- */

/*
 * The step of the write pointer: on a disk that emulates small blocks, the physical block size. If
 * the step were smaller than ZF_BLOCK_SIZE, a power cut could leave a pointer inside a block of
 * zfuse for good.
 */
static uint64_t write_step(const struct zf_disk *disk)
{
	uint64_t step = read_number(disk, "queue/zone_write_granularity"); /* since Linux 5.12 */

	return step ? step : read_number(disk, "queue/logical_block_size");
}

static int check_zoned(const struct zf_disk *disk, const struct zf_report *report)
{
	uint64_t zone_size = read_number(disk, "queue/chunk_sectors") * SECTOR_SIZE;
	uint64_t step = write_step(disk);

	if (step != ZF_BLOCK_SIZE) {
		zf_report(report, ZF_REPORT_ERROR,
			  "%s: this disk writes blocks of %" PRIu64
			  " bytes, zfuse needs %d: change "
			  "the disk's format if it has one with such blocks (nvme format, "
			  "sg_format); that erases the disk",
			  disk->path, step, ZF_BLOCK_SIZE);
		return -ENOTSUP;
	}
	if (zone_size == 0 || (zone_size & (zone_size - 1)) != 0) {
		zf_report(report, ZF_REPORT_ERROR,
			  "%s: the zones of this disk have %" PRIu64 " bytes, no power of two: "
			  "zfuse cannot use it",
			  disk->path, zone_size);
		return -ENOTSUP;
	}
	return 0;
}

static int refuse_partition(const struct zf_disk *disk, const struct zf_report *report)
{
	zf_report(report, ZF_REPORT_ERROR,
		  "%s is a partition of a zoned disk, which zfuse cannot use: give the whole disk",
		  disk->path);
	return -ENOTSUP;
}

int zf_disk_find(const char *root, const char *path, const struct stat *st,
		 const struct zf_report *report, struct zf_disk *ret_disk)
{
	struct zf_disk disk = {.root = root, .kind = ZF_DISK_FILE};
	int r = 0;

	snprintf(disk.path, sizeof(disk.path), "%s", path);
	if (S_ISREG(st->st_mode)) {
		*ret_disk = disk;
		return 0;
	}
	if (!S_ISBLK(st->st_mode) && !S_ISCHR(st->st_mode))
		return not_a_disk(report, path);
	snprintf(disk.sys, sizeof(disk.sys), "%s/sys/dev/%s/%u:%u", root,
		 S_ISBLK(st->st_mode) ? "block" : "char", major(st->st_rdev), minor(st->st_rdev));
	if (S_ISCHR(st->st_mode))
		r = find_by_nvme(&disk, path, report);
	if (r < 0)
		return r;
	if (read_number(&disk, "partition") != 0 && is_zoned(&disk, "../queue/zoned"))
		return refuse_partition(&disk, report);
	disk.kind = is_zoned(&disk, "queue/zoned") ? ZF_DISK_ZONED : ZF_DISK_PLAIN;
	if (disk.kind == ZF_DISK_ZONED) {
		find_nvme_path(&disk);
		r = check_zoned(&disk, report);
	}
	if (r == 0)
		*ret_disk = disk;
	return r;
}

int zf_disk_check_for_image(const struct zf_disk *disk, const struct zf_report *report)
{
	if (disk->kind != ZF_DISK_ZONED)
		return 0;
	zf_report(report, ZF_REPORT_ERROR,
		  "%s is a zoned disk, so no zones need be emulated: use it as it is (mkfs.zfuse "
		  "without --image)",
		  disk->path);
	return -EINVAL;
}

/* ---- programs that use the disk ---- */

/*
 * A line of mountinfo: "36 35 98:0 /root /where options - type source super-options". A filesystem
 * over several devices has a device number of its own there, and names one device as the source.
 */
static bool find_mount(const struct zf_disk *disk, char *buf, size_t size)
{
	char number[32] = "", path[PATH_MAX], line[2 * PATH_MAX];
	bool found = false;
	FILE *mounts;

	zf_sysfs_read(disk->sys, "dev", number, sizeof(number));
	snprintf(path, sizeof(path), "%s/proc/self/mountinfo", disk->root);
	mounts = fopen(path, "re");
	if (!mounts)
		return false;
	while (!found && fgets(line, sizeof(line), mounts)) {
		char device[32], where[PATH_MAX], source[PATH_MAX] = "";
		const char *rest = strstr(line, " - ");

		if (sscanf(line, "%*s %*s %31s %*s %4095s", device, where) != 2)
			continue;
		if (rest)
			sscanf(rest, " - %*s %4095s", source);
		found = strcmp(device, number) == 0 || strcmp(source, disk->path) == 0;
		if (found)
			snprintf(buf, size, "mounted at %s: unmount it first", where);
	}
	fclose(mounts);
	return found;
}

static bool find_holder(const struct zf_disk *disk, char *buf, size_t size)
{
	char path[PATH_MAX + 64];
	struct dirent *entry;
	bool found = false;
	DIR *holders;

	snprintf(path, sizeof(path), "%s/holders", disk->sys);
	holders = opendir(path);
	if (!holders)
		return false;
	while (!found && (entry = readdir(holders))) {
		found = entry->d_name[0] != '.';
		if (found)
			snprintf(buf, size, "used by %s: release it there first", entry->d_name);
	}
	closedir(holders);
	return found;
}

bool zf_disk_user(const struct zf_disk *disk, char *buf, size_t size)
{
	return find_mount(disk, buf, size) || find_holder(disk, buf, size);
}
