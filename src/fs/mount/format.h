/* SPDX-License-Identifier: MIT */
/* Makes an empty filesystem on a device: what mkfs.zfuse and the tests call. */
#ifndef ZF_FS_FORMAT_H
#define ZF_FS_FORMAT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/report.h"
#include "io/dev.h"
#include "superblock/super_format.h"

/*
 * A zone holds at least so many nodes, so that an ordinary transaction stays in one or two zones.
 */
#define ZF_FORMAT_ZONE_NODES_MIN    16u
#define ZF_FORMAT_NODE_SIZE_DEFAULT 16384u

/* The same options and device give the same bytes: the library adds nothing random. */
struct zf_format_options {
	char label[ZF_SUPER_LABEL_SIZE]; /* zf_super_label_is_valid() */
	uint8_t fsid[16];		 /* a UUID, not all zero */
	uint32_t node_size;		 /* bytes; 0: ZF_FORMAT_NODE_SIZE_DEFAULT */
	uint8_t metadata_copies;	 /* 1 or 2; 0: 1 */
	int64_t now_ns;			 /* since 1970: the root directory's times */
	uint64_t dir_hash_seed;
	uint8_t log_secret[32];
	uid_t root_uid; /* the root directory's owner */
	gid_t root_gid;
};

/* How a device's zones will be used. */
struct zf_format_plan {
	uint32_t node_size; /* the defaults filled in */
	uint8_t metadata_copies;
	uint32_t active_needed;	 /* zones that must be active at once */
	uint32_t active_limit;	 /* of the device: the lesser of max_open and max_active; 0: none */
	uint32_t ring_zones;	 /* for the superblock */
	uint32_t reserved_zones; /* kept empty for metadata, log and reclaim */
	uint32_t usable_zones;	 /* the rest, for data and metadata */
	uint64_t usable_bytes;	 /* their capacity */
};

/*
 * Says whether a device can hold a filesystem with these options. -EINVAL: the report names the
 * number that is wrong, what it has to be, and what to do about it.
 */
int zf_format_check(const struct zf_geometry *geometry, const struct zf_format_options *options,
		    const struct zf_report *report, struct zf_format_plan *ret_plan);

/*
 * Checks, resets every zone that is not empty, and commits an empty filesystem. All data is lost.
 */
int zf_fs_format(struct zf_dev *dev, const struct zf_format_options *options,
		 const struct zf_report *report);

#endif
