/* SPDX-License-Identifier: MIT */
#include "fs/mount/trace_data.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "trace/data.h"

#define PIECE (UINT64_C(1) << 20)

static struct zf_disk_trace_data_header header_of(const struct zf_geometry *geometry,
						  const uint8_t fsid[16])
{
	struct zf_disk_trace_data_header header = {
		.zone_size = zf_le64_from(geometry->zone_size),
		.zone_capacity = zf_le64_from(geometry->zone_capacity),
		.zone_count = zf_le32_from(geometry->zone_count),
		.conventional = zf_le32_from(geometry->conventional),
		.max_open = zf_le32_from(geometry->max_open),
		.max_active = zf_le32_from(geometry->max_active),
		.append_limit = zf_le32_from(geometry->append_limit),
		.volatile_cache = geometry->volatile_cache,
	};

	memcpy(header.fsid, fsid, sizeof(header.fsid));
	return header;
}

/* Returns how many bytes of a zone can be read. */
static uint64_t written(const struct zf_zone_info *zone)
{
	if (zone->cond == ZF_ZONE_OFFLINE)
		return 0;
	return zone->type == ZF_ZONE_CONVENTIONAL || zone->cond == ZF_ZONE_FULL
		       ? zone->capacity
		       : zone->wp - zone->start;
}

/* Returns the length of the run of blocks from `at` on that are all zero, or all not zero. */
static uint64_t run_len(const uint8_t *buf, uint64_t at, uint64_t len, bool zero)
{
	uint64_t end = at;

	while (end < len && zf_is_zero(buf + end, ZF_BLOCK_SIZE) == zero)
		end += ZF_BLOCK_SIZE;
	return end - at;
}

static int copy_piece(int fd, uint64_t address, const uint8_t *buf, uint64_t len)
{
	uint64_t at = 0, run;
	int r = 0;

	while (r == 0 && at < len) {
		at += run_len(buf, at, len, true);
		run = run_len(buf, at, len, false);
		if (run > 0)
			r = zf_trace_data_write(fd, address + at, buf + at, run);
		at += run;
	}
	return r;
}

static int copy_zone(struct zf_dev *dev, const struct zf_zone_info *zone, uint8_t *buf, int fd)
{
	uint64_t end = zf_align_down(written(zone), ZF_BLOCK_SIZE);
	int r = 0;

	for (uint64_t at = 0; r == 0 && at < end; at += PIECE) {
		uint64_t len = zf_min_u64(PIECE, end - at);

		r = zf_dev_read_buf(dev, zone->start + at, buf, len);
		if (r == 0)
			r = copy_piece(fd, zone->start + at, buf, len);
	}
	return r;
}

static int begin(const struct zf_geometry *geometry, const uint8_t fsid[16],
		 const struct zf_zone_info *zones, int fd)
{
	const struct zf_disk_trace_data_header header = header_of(geometry, fsid);
	_zf_free_ struct zf_disk_trace_data_zone *states =
		calloc(geometry->zone_count, sizeof(*states));

	if (!states)
		return -ENOMEM;
	for (uint32_t i = 0; i < geometry->zone_count; i++) {
		states[i].written = zf_le64_from(written(&zones[i]));
		states[i].resets = zf_le64_from(zones[i].reset_count);
		states[i].condition = (uint8_t)zones[i].cond;
	}
	return zf_trace_data_begin(fd, &header, states);
}

int zf_fs_trace_data(struct zf_dev *dev, const uint8_t fsid[16], int fd)
{
	const struct zf_geometry *geometry = zf_dev_geometry(dev);
	uint32_t count = geometry->zone_count;
	_zf_free_ struct zf_zone_info *zones = calloc(count, sizeof(*zones));
	_zf_free_ uint8_t *buf = aligned_alloc(ZF_BLOCK_SIZE, PIECE);
	int r;

	if (!zones || !buf)
		return -ENOMEM;
	r = zf_dev_report(dev, 0, count, zones);
	if (r == 0)
		r = begin(geometry, fsid, zones, fd);
	for (uint32_t i = 0; r == 0 && i < count; i++)
		r = copy_zone(dev, &zones[i], buf, fd);
	return r;
}
