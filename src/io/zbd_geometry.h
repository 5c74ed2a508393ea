/* SPDX-License-Identifier: MIT */
/* What a zoned block device is like: from libzbd, its queue in /sys, and a report of its zones. */
#ifndef ZF_IO_ZBD_GEOMETRY_H
#define ZF_IO_ZBD_GEOMETRY_H

#include <libzbd/zbd.h>

#include "io/dev.h"

/* Of /sys/dev/block/MAJOR:MINOR/queue. What an older kernel does not say is 0. */
struct zf_zbd_limits {
	uint32_t max_sectors_kb;
	uint32_t max_segments;
	uint32_t write_granularity; /* bytes */
	uint64_t zeroes_unmap_max;  /* bytes */
	bool volatile_cache;
	bool fua;
	bool rotational;
};

/* `directory` is the queue's. -ENOENT: no whole disk; the report says so. */
int zf_zbd_geometry_read_limits(const char *directory, const char *path,
				const struct zf_report *report, struct zf_zbd_limits *ret_limits);

/*
 * Bytes that one request takes without the kernel cutting it, which would let the parts overtake
 * each other: so the most of one append.
 */
uint32_t zf_zbd_geometry_append_limit(const struct zf_zbd_limits *limits);

/*
 * The geometry, the zones that there are left to find out about; zone_count is that of whole zones:
 * a last, smaller one is not used. -ENOTSUP, reported: blocks or zones that zfuse cannot use.
 */
int zf_zbd_geometry(const struct zbd_info *info, const struct zf_zbd_limits *limits,
		    const char *path, const struct zf_report *report,
		    struct zf_geometry *ret_geometry);

/*
 * Conventional zones and capacity, from a report of all zones. Conventional zones must come first,
 * and sequential ones have one capacity: -ENOTSUP, reported. What a conventional zone has above
 * that is not used, so that all zones are alike.
 */
int zf_zbd_geometry_add_zones(const struct zbd_zone *zones, const char *path,
			      const struct zf_report *report, struct zf_geometry *geometry);

void zf_zbd_geometry_zone_info(const struct zf_geometry *geometry, const struct zbd_zone *zone,
			       struct zf_zone_info *ret_info);

#endif
