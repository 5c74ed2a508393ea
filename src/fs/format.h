/* SPDX-License-Identifier: MIT */
/* Makes an empty filesystem on a device: what mkfs.zfuse and the tests call. */
#ifndef ZF_FS_FORMAT_H
#define ZF_FS_FORMAT_H

#include <stdint.h>
#include <sys/types.h>

#include "base/report.h"
#include "io/dev.h"
#include "superblock/super_format.h"

/* Fewer zones than this cannot hold the roles that a filesystem needs (alloc/alloc.h). */
#define ZF_FORMAT_ZONES_MIN 16u
/* So that a transaction of ordinary size does not need a zone for every other node. */
#define ZF_FORMAT_NODES_A_ZONE_MIN  16u
#define ZF_FORMAT_NODE_SIZE_DEFAULT 16384u

/* With the same options and device, the same bytes: nothing here is made up by the library. */
struct zf_format_options {
	char label[ZF_SUPER_LABEL_SIZE]; /* UTF-8, terminated */
	uint8_t fsid[16];
	uint32_t node_size;	 /* bytes; 0: ZF_FORMAT_NODE_SIZE_DEFAULT */
	uint8_t metadata_copies; /* 1 or 2; 0: 1 */
	int64_t now_ns;		 /* since 1970: the root directory's times */
	uint64_t dir_hash_seed;
	uint8_t log_secret[32];
	uid_t root_uid; /* the root directory's owner */
	gid_t root_gid;
};

/*
 * Says whether the device can hold a filesystem with these options, without touching it. -EINVAL:
 * the report names the number that is wrong and what it has to be.
 */
int zf_format_check(struct zf_dev *dev, const struct zf_format_options *options,
		    const struct zf_report *report);

/* Checks, resets every zone that is not empty, and commits an empty filesystem: all is lost. */
int zf_fs_format(struct zf_dev *dev, const struct zf_format_options *options,
		 const struct zf_report *report);

#endif
