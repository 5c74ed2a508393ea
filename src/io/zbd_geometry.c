/* SPDX-License-Identifier: MIT */
#include "io/zbd_geometry.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "io/append_queue.h"
#include "io/sysfs.h"
#include "io/zone_rules.h"

/* ---- the queue's limits ---- */

/* 0: this kernel does not tell. */
static uint64_t read_number(const char *directory, const char *name)
{
	return zf_sysfs_read_number(directory, name, 0);
}

int zf_zbd_geometry_read_limits(const char *directory, const char *path,
				const struct zf_report *report, struct zf_zbd_limits *ret_limits)
{
	char cache[64] = "";

	*ret_limits = (struct zf_zbd_limits){
		.max_sectors_kb = (uint32_t)read_number(directory, "max_sectors_kb"),
		.max_segments = (uint32_t)read_number(directory, "max_segments"),
		.write_granularity = (uint32_t)read_number(directory, "zone_write_granularity"),
		.zeroes_unmap_max = read_number(directory, "write_zeroes_unmap_max_bytes"),
		.rotational = read_number(directory, "rotational") != 0,
		.fua = read_number(directory, "fua") != 0,
	};
	if (ret_limits->max_sectors_kb == 0) {
		zf_report(report, ZF_REPORT_ERROR,
			  "%s: %s has no data about it: it is a partition, or /sys is not mounted; "
			  "zfuse takes whole disks",
			  path, directory);
		return -ENOENT;
	}
	zf_sysfs_read(directory, "write_cache", cache, sizeof(cache));
	ret_limits->volatile_cache = strncmp(cache, "write through", 13) != 0;
	return 0;
}

uint32_t zf_zbd_geometry_append_limit(const struct zf_zbd_limits *limits)
{
	uint64_t bytes = (uint64_t)limits->max_sectors_kb * 1024;

	/* Every block may lie in a segment of its own. */
	if (limits->max_segments > 0)
		bytes = zf_min_u64(bytes, (uint64_t)limits->max_segments * ZF_BLOCK_SIZE);
	bytes = zf_min_u64(bytes, ZF_APPEND_SEGMENTS_MAX * ZF_BLOCK_SIZE);
	return (uint32_t)zf_align_down(bytes, ZF_BLOCK_SIZE);
}

/* ---- the geometry ---- */

static int unusable(const struct zf_report *report, const char *path, const char *what,
		    uint64_t value, const char *expected)
{
	zf_report(report, ZF_REPORT_ERROR,
		  "%s: zfuse cannot use this disk: %s is %" PRIu64 ", expected %s", path, what,
		  value, expected);
	return -ENOTSUP;
}

int zf_zbd_geometry(const struct zbd_info *info, const struct zf_zbd_limits *limits,
		    const char *path, const struct zf_report *report,
		    struct zf_geometry *ret_geometry)
{
	uint64_t count = info->zone_size ? info->nr_sectors * 512 / info->zone_size : 0;
	uint32_t limit = zf_zbd_geometry_append_limit(limits);

	if (info->lblock_size > ZF_BLOCK_SIZE)
		return unusable(report, path, "its block size", info->lblock_size, "4096 or 512");
	if (limits->write_granularity > ZF_BLOCK_SIZE)
		return unusable(report, path, "its unit of writing", limits->write_granularity,
				"4096 or less");
	if (info->zone_size == 0 || (info->zone_size & (info->zone_size - 1)) != 0 ||
	    info->zone_size % ZF_BLOCK_SIZE != 0)
		return unusable(report, path, "its zone size", info->zone_size,
				"a power of two and a multiple of 4096");
	if (count == 0 || count > ZF_ZONE_COUNT_MAX)
		return unusable(report, path, "the number of its zones", count, "1 to 4194304");
	if (limit == 0)
		return unusable(report, path, "max_sectors_kb", limits->max_sectors_kb,
				"4 or more");
	*ret_geometry = (struct zf_geometry){
		.zone_size = info->zone_size,
		.zone_count = (uint32_t)count,
		.max_open = info->max_nr_open_zones == UINT32_MAX ? 0 : info->max_nr_open_zones,
		.max_active =
			info->max_nr_active_zones == UINT32_MAX ? 0 : info->max_nr_active_zones,
		.append_limit = limit,
		.volatile_cache = limits->volatile_cache,
		.unmapping_zeroes = limits->zeroes_unmap_max > 0,
		.rotational = limits->rotational,
	};
	return 0;
}

/* ---- zones ---- */

static bool is_conventional(const struct zbd_zone *zone)
{
	return zone->type == ZBD_ZONE_TYPE_CNV;
}

int zf_zbd_geometry_add_zones(const struct zbd_zone *zones, const char *path,
			      const struct zf_report *report, struct zf_geometry *geometry)
{
	uint32_t count = geometry->zone_count, first = 0;

	while (first < count && is_conventional(&zones[first]))
		first++;
	geometry->conventional = first;
	geometry->zone_capacity = first < count ? zones[first].capacity : geometry->zone_size;
	if (geometry->zone_capacity == 0 || geometry->zone_capacity > geometry->zone_size ||
	    geometry->zone_capacity % ZF_BLOCK_SIZE != 0)
		return unusable(report, path, "its zone capacity", geometry->zone_capacity,
				"a multiple of 4096 up to the zone size");
	for (uint32_t z = first; z < count; z++) {
		if (is_conventional(&zones[z]))
			return unusable(report, path, "a conventional zone", z,
					"only before all others");
		if (zones[z].cond != ZBD_ZONE_COND_OFFLINE &&
		    zones[z].capacity != geometry->zone_capacity)
			return unusable(report, path, "the capacity of a zone", zones[z].capacity,
					"that of the first one");
	}
	return 0;
}

static enum zf_zone_cond cond_of(unsigned int cond)
{
	switch (cond) {
	case ZBD_ZONE_COND_NOT_WP:
		return ZF_ZONE_NOT_WP;
	case ZBD_ZONE_COND_EMPTY:
		return ZF_ZONE_EMPTY;
	case ZBD_ZONE_COND_IMP_OPEN:
		return ZF_ZONE_IMP_OPEN;
	case ZBD_ZONE_COND_EXP_OPEN:
		return ZF_ZONE_EXP_OPEN;
	case ZBD_ZONE_COND_CLOSED:
		return ZF_ZONE_CLOSED;
	case ZBD_ZONE_COND_FULL:
		return ZF_ZONE_FULL;
	case ZBD_ZONE_COND_READONLY:
		return ZF_ZONE_READONLY;
	default: /* a condition of a later standard: the zone must not be written */
		return ZF_ZONE_OFFLINE;
	}
}

/* Full, read-only and offline zones have no pointer: disks report arbitrary ones. */
static uint64_t pointer_of(const struct zf_zone_info *info, uint64_t wp)
{
	switch (info->cond) {
	case ZF_ZONE_NOT_WP:
	case ZF_ZONE_EMPTY:
		return info->start;
	case ZF_ZONE_FULL:
		return info->start + info->capacity;
	default:
		/* Another program wrote a part of a block: zfuse cannot write the rest of it. */
		wp = zf_align_up(wp, ZF_BLOCK_SIZE);
		return wp < info->start || wp > info->start + info->capacity
			       ? info->start + info->capacity
			       : wp;
	}
}

void zf_zbd_geometry_zone_info(const struct zf_geometry *geometry, const struct zbd_zone *zone,
			       struct zf_zone_info *ret_info)
{
	*ret_info = (struct zf_zone_info){
		.start = zone->start,
		.capacity = geometry->zone_capacity,
		.type = is_conventional(zone) ? ZF_ZONE_CONVENTIONAL : ZF_ZONE_SEQUENTIAL,
		.cond = cond_of(zone->cond),
	};
	ret_info->wp = pointer_of(ret_info, zone->wp);
}
