/* SPDX-License-Identifier: MIT */
/* The numbers of a device. */
#ifndef ZF_IO_GEOMETRY_H
#define ZF_IO_GEOMETRY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/report.h"

struct zf_geometry {
	uint64_t zone_size;	/* bytes, a multiple of ZF_BLOCK_SIZE */
	uint64_t zone_capacity; /* bytes, the largest of any zone */
	/* The one number that changes while the device is open: see zf_dev_grow(). */
	_Atomic uint32_t zone_count;
	uint32_t conventional; /* how many zones, from zone 0 on, are conventional */
	uint32_t max_open;     /* zones, 0: no limit */
	uint32_t max_active;   /* zones, 0: no limit */
	uint32_t append_limit; /* bytes of one append */
	bool volatile_cache;   /* writes become durable by a flush; false: when they complete */
	bool unmapping_zeroes; /* ZEROES in conventional zones write nothing, and keep the space */
	bool rotational;
	/*
	 * The host stopped uncleanly since the pointers were recorded: every pointer is a lower
	 * bound only, to be raised with zf_dev_raise_pointer() before the zone is written.
	 */
	bool pointers_are_lower_bounds;
};

/* The geometry from a structure on disk that has fields of the same names (base/le.h). */
#define ZF_GEOMETRY_OF(disk)                                                                       \
	((struct zf_geometry){                                                                     \
		.zone_size = zf_le64_get((disk)->zone_size),                                       \
		.zone_capacity = zf_le64_get((disk)->zone_capacity),                               \
		.zone_count = zf_le32_get((disk)->zone_count),                                     \
		.conventional = zf_le32_get((disk)->conventional),                                 \
		.max_open = zf_le32_get((disk)->max_open),                                         \
		.max_active = zf_le32_get((disk)->max_active),                                     \
		.append_limit = zf_le32_get((disk)->append_limit),                                 \
	})

/* 0, or -EINVAL with a message that says which number is wrong and what it may be. */
int zf_geometry_check(const struct zf_geometry *geometry, const struct zf_report *report);

#endif
