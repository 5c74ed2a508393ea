/* SPDX-License-Identifier: MIT */
/* Queries of the drive and of the kernel: at open, and zone reports at any time. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "io/nvme_device.h"
#include "io/nvme_status.h"
#include "io/sysfs.h"

/* Bytes of one report: 1023 zones. */
#define REPORT_SIZE ((uint64_t)64 * 1024)

/* Every version of Linux's driver has accepted so many segments. */
#define SEGMENTS_DEFAULT 127

/* libnvme gives a status, or -1 and errno. */
static int status_of(int r)
{
	return r < 0 ? -errno : r;
}

static int failed(const char *path, const char *what, int status, const struct zf_report *report)
{
	char text[ZF_NVME_STATUS_TEXT_MAX];

	zf_report(report, ZF_REPORT_ERROR, "%s: %s: %s", path, what,
		  zf_nvme_status_text(status, text));
	return zf_nvme_status_error(status);
}

/* ---- the kernel ---- */

static void queue_directory(const char *block_name, char directory[PATH_MAX])
{
	snprintf(directory, PATH_MAX, "/sys/block/%s/queue", block_name);
}

static void ask_kernel(const char *block_name, struct zf_nvme_kernel_limits *ret_limits)
{
	char queue[PATH_MAX];
	uint64_t kilobytes, append;

	queue_directory(block_name, queue);
	kilobytes = zf_sysfs_read_number(queue, "max_hw_sectors_kb", UINT32_MAX);
	append = zf_sysfs_read_number(queue, "zone_append_max_bytes", 0);
	*ret_limits = (struct zf_nvme_kernel_limits){
		.transfer = kilobytes * 1024,
		.append = append ? append : UINT64_MAX,
		.zeroes = zf_sysfs_read_number(queue, "write_zeroes_max_bytes", 0),
		.segments = zf_sysfs_read_number(queue, "max_segments", SEGMENTS_DEFAULT),
	};
}

/* ---- the drive ---- */

/* The kernel lets only root read the list of descriptors; its own answer is as good. */
static bool kernel_says_zoned(const char *block_name)
{
	char queue[PATH_MAX], model[32];

	queue_directory(block_name, queue);
	return zf_sysfs_read(queue, "zoned", model, sizeof(model)) &&
	       strcmp(model, "host-managed") == 0;
}

static int check_zoned(int fd, const char *path, uint32_t nsid, const char *block_name,
		       const struct zf_report *report)
{
	_zf_free_ void *descriptors = calloc(1, NVME_IDENTIFY_DATA_SIZE);
	int status;
	bool zoned;

	if (!descriptors)
		return -ENOMEM;
	status = status_of(nvme_identify_ns_descs(fd, nsid, descriptors));
	if (status == -EACCES || status == -EPERM)
		zoned = kernel_says_zoned(block_name);
	else if (status != 0)
		return failed(path, "Identify (descriptors)", status, report);
	else
		zoned = zf_nvme_geometry_is_zoned(descriptors);
	if (zoned)
		return 0;
	zf_report(report, ZF_REPORT_ERROR, "%s: not a zoned namespace", path);
	return -EOPNOTSUPP;
}

static int ask_drive(int fd, const char *path, uint32_t nsid, const struct zf_report *report,
		     struct zf_nvme_identity *identity)
{
	int status = status_of(nvme_identify_ctrl(fd, &identity->ctrl));

	if (status != 0)
		return failed(path, "Identify (controller)", status, report);
	status = status_of(nvme_identify_ns(fd, nsid, &identity->ns));
	if (status != 0)
		return failed(path, "Identify (namespace)", status, report);
	status = status_of(nvme_zns_identify_ctrl(fd, &identity->zns_ctrl));
	if (status != 0)
		return failed(path, "Identify (controller of zoned namespaces)", status, report);
	status = status_of(nvme_zns_identify_ns(fd, nsid, &identity->zns_ns));
	if (status != 0)
		return failed(path, "Identify (zoned namespace)", status, report);
	return 0;
}

/* ---- zones ---- */

/* All layers above rely on the zones' data, so wrong data of a drive must be refused here. */
static bool is_sound(const struct zf_zone_info *info, const struct zf_geometry *geometry,
		     uint32_t zone_no)
{
	return info->start == zone_no * geometry->zone_size && info->capacity > 0 &&
	       info->capacity <= geometry->zone_size && info->wp >= info->start &&
	       info->wp <= info->start + info->capacity;
}

/* Fills `zones`, from zone_no on, from the report in `data`; at most `count`. Returns how many. */
static int take_zones(const struct nvme_zone_report *data, uint32_t room, const char *path,
		      const struct zf_geometry *geometry, uint32_t zone_no, uint32_t count,
		      const struct zf_report *report, struct zf_zone_info *zones)
{
	uint64_t n = zf_min_u64(le64toh(data->nr_zones), zf_min_u64(room, count));

	for (uint32_t i = 0; i < n; i++) {
		zf_nvme_geometry_zone_info(&data->entries[i], &zones[i]);
		if (!is_sound(&zones[i], geometry, zone_no + i)) {
			zf_report(report, ZF_REPORT_ERROR,
				  "%s: the drive reports zone %" PRIu32 " at %" PRIu64
				  " with capacity %" PRIu64 " and pointer %" PRIu64,
				  path, zone_no + i, zones[i].start, zones[i].capacity,
				  zones[i].wp);
			return -EIO;
		}
	}
	if (n == 0) {
		zf_report(report, ZF_REPORT_ERROR, "%s: the drive reports no zone %" PRIu32, path,
			  zone_no);
		return -EIO;
	}
	return (int)n;
}

int zf_nvme_report_zones(int fd, const char *path, uint32_t nsid, const struct zf_nvme_drive *drive,
			 uint32_t first, uint32_t count, const struct zf_report *report,
			 struct zf_zone_info *zones)
{
	const struct zf_geometry *geometry = &drive->geometry;
	uint64_t wanted = sizeof(struct nvme_zone_report) + count * sizeof(struct nvme_zns_desc);
	uint64_t size = zf_min_u64(zf_align_up(wanted, ZF_BLOCK_SIZE),
				   zf_min_u64(REPORT_SIZE, drive->transfer_max));
	uint32_t room =
		(uint32_t)((size - sizeof(struct nvme_zone_report)) / sizeof(struct nvme_zns_desc));
	_zf_free_ struct nvme_zone_report *data = aligned_alloc(ZF_BLOCK_SIZE, size);

	if (!data)
		return -ENOMEM;
	while (count > 0) {
		uint64_t lba = first * (geometry->zone_size >> ZF_BLOCK_SHIFT);
		int r = status_of(nvme_zns_report_zones(fd, nsid, lba, NVME_ZNS_ZRAS_REPORT_ALL,
							false, true, (uint32_t)size, data,
							NVME_DEFAULT_IOCTL_TIMEOUT, NULL));

		if (r != 0)
			return failed(path, "zone report", r, report);
		r = take_zones(data, room, path, geometry, first, count, report, zones);
		if (r < 0)
			return r;
		first += (uint32_t)r;
		zones += r;
		count -= (uint32_t)r;
	}
	return 0;
}

/* The one report of all zones that opening and mounting take. */
static int read_zones(int fd, const char *path, uint32_t nsid, const struct zf_nvme_drive *drive,
		      const struct zf_report *report, struct zf_zone_info **ret_zones)
{
	uint32_t count = drive->geometry.zone_count;
	_zf_free_ struct zf_zone_info *zones = calloc(count, sizeof(*zones));
	int r;

	if (!zones)
		return -ENOMEM;
	r = zf_nvme_report_zones(fd, path, nsid, drive, 0, count, report, zones);
	if (r == 0)
		*ret_zones = zf_steal_ptr(&zones);
	return r;
}

/* A zone's capacity is its own; the geometry names the largest. */
static void find_capacity(const struct zf_zone_info *zones, struct zf_geometry *geometry)
{
	for (uint32_t i = 0; i < geometry->zone_count; i++)
		geometry->zone_capacity = zf_max_u64(geometry->zone_capacity, zones[i].capacity);
}

/* ---- all ---- */

int zf_nvme_identify(int fd, const char *path, const char *block_name,
		     const struct zf_report *report, uint32_t *ret_nsid,
		     struct zf_nvme_drive *ret_drive, struct zf_zone_info **ret_zones)
{
	_zf_free_ struct zf_nvme_identity *identity = calloc(1, sizeof(*identity));
	struct zf_nvme_drive drive;
	uint32_t nsid;
	int r;

	if (!identity)
		return -ENOMEM;
	r = status_of(nvme_get_nsid(fd, &nsid));
	if (r != 0)
		return failed(path, "not an NVMe namespace", r, report);
	r = check_zoned(fd, path, nsid, block_name, report);
	if (r == 0)
		r = ask_drive(fd, path, nsid, report, identity);
	if (r < 0)
		return r;
	ask_kernel(block_name, &identity->kernel);
	r = zf_nvme_geometry_describe(identity, path, report, &drive);
	if (r == 0)
		r = read_zones(fd, path, nsid, &drive, report, ret_zones);
	if (r < 0)
		return r;
	find_capacity(*ret_zones, &drive.geometry);
	*ret_nsid = nsid;
	*ret_drive = drive;
	return 0;
}
