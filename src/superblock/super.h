/* SPDX-License-Identifier: MIT */
/*
 * The superblock in memory, and its translation to and from a record.
 *
 * A record is decoded once, here, with every field checked; the rest of zfuse sees this struct only.
 */
#ifndef ZF_SUPERBLOCK_SUPER_H
#define ZF_SUPERBLOCK_SUPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/report.h"
#include "superblock/super_format.h"

#define ZF_COPIES_MAX 2

/* A child or root pointer in memory; see struct zf_disk_node_ptr. */
struct zf_node_ptr {
	uint64_t address[ZF_COPIES_MAX];
	uint64_t generation;
	uint64_t csum;
};

struct zf_super {
	uint64_t address; /* where the record was read, or will be written */
	uint8_t fsid[16];
	uint64_t generation;
	uint64_t incompat, compat_ro, compat;
	uint64_t zone_size, zone_capacity;
	uint32_t zone_count, conventional;
	uint32_t node_size;
	uint8_t metadata_copies;
	uint64_t dir_hash_seed;
	uint8_t log_secret[32];
	uint64_t mkfs_time;
	char label[ZF_SUPER_LABEL_SIZE];
	struct zf_node_ptr root;
	uint8_t root_level;
	bool clean;
	uint64_t next_ino, inode_count, next_intent;
	uint64_t op_number, log_sequence, log_epoch;
	uint32_t log_zone[2];
	uint64_t log_zone_resets[2];
	uint32_t meta_zone[ZF_COPIES_MAX];
	uint64_t meta_pointer[ZF_COPIES_MAX];
};

/* Fills the record, checksum included. The caller has set super->address. */
void zf_super_encode(const struct zf_super *super, struct zf_disk_super *ret_disk);

/*
 * Checks every field of a record read at `address`. -ENOENT: not a superblock (no magic);
 * -EUCLEAN: damaged, the report says how; -EPROTONOSUPPORT: an unknown format version, checksum
 * type or incompat feature, the report says which and what to do.
 */
int zf_super_decode(const struct zf_disk_super *disk, uint64_t address,
		    const struct zf_report *report, struct zf_super *ret_super);

#endif
