/* SPDX-License-Identifier: MIT */
/* The geometry of a zoned block device: from libzbd, /sys, and a report of its zones. */
#ifndef ZF_IO_ZBD_GEOMETRY_H
#define ZF_IO_ZBD_GEOMETRY_H

#include <libzbd/zbd.h>

#include "io/dev.h"

/* From /sys/dev/block/MAJOR:MINOR/queue. 0: the (older) kernel does not tell. */
struct zf_zbd_limits {
	uint32_t max_sectors_kb;
	uint32_t max_segments;
	uint32_t write_granularity; /* bytes */
	uint64_t zeroes_unmap_max;  /* bytes */
	bool volatile_cache;
	bool fua;
	bool rotational;
};

/* `directory` is that queue directory. -ENOENT: not a whole disk, which is reported. */
int zf_zbd_geometry_read_limits(const char *directory, const char *path,
				const struct zf_report *report, struct zf_zbd_limits *ret_limits);

/*
 * The most bytes of one append: the kernel does not split a request of this size. Parts of a split
 * request could overtake each other.
 */
uint32_t zf_zbd_geometry_append_limit(const struct zf_zbd_limits *limits);

/*
 * Fills the geometry, except for what zf_zbd_geometry_add_zones() adds. zone_count is the number of
 * whole zones: a last, smaller one is not used. -ENOTSUP, reported: blocks or zones that zfuse
 * cannot use.
 */
int zf_zbd_geometry(const struct zbd_info *info, const struct zf_zbd_limits *limits,
		    const char *path, const struct zf_report *report,
		    struct zf_geometry *ret_geometry);

/*
 * Adds the number of conventional zones and the capacity, from a report of all zones. -ENOTSUP,
 * reported: conventional zones do not come first, or sequential zones differ in capacity. Bytes of
 * a conventional zone above this capacity are not used, so that all zones are alike.
 */
int zf_zbd_geometry_add_zones(const struct zbd_zone *zones, const char *path,
			      const struct zf_report *report, struct zf_geometry *geometry);

void zf_zbd_geometry_zone_info(const struct zf_geometry *geometry, const struct zbd_zone *zone,
			       struct zf_zone_info *ret_info);

#endif
