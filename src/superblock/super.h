/* SPDX-License-Identifier: MIT */
/*
 * The superblock in memory, and its translation to and from a record.
 *
 * A record is decoded once, here, with every field checked; the rest of zfuse sees this struct
 * only.
 */
#ifndef ZF_SUPERBLOCK_SUPER_H
#define ZF_SUPERBLOCK_SUPER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/report.h"
#include "io/dev.h"
#include "superblock/node_ptr.h"
#include "superblock/super_format.h"

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
	uint64_t kept_bytes;
	uint64_t guaranteed_bytes;
	uint64_t kept_guaranteed_bytes;
	uint64_t op_number, log_sequence, log_epoch;
	uint32_t log_zone[2]; /* ZF_SUPER_NO_ZONE: none */
	uint64_t log_zone_resets[2];
	uint64_t log_pointer[2]; /* bytes from the zone's start */
	uint32_t meta_zone[ZF_COPIES_MAX];
	uint64_t meta_pointer[ZF_COPIES_MAX]; /* bytes from the zone's start */
};

/* Every field of a record, for the dump and for the test of docs/format.md. */
extern const struct zf_fields zf_super_fields;
extern const struct zf_fields zf_disk_node_ptr_fields;

/* Fills the record, checksum included. The caller has set super->address. */
void zf_super_encode(const struct zf_super *super, struct zf_disk_super *ret_disk);

/*
 * Checks every field of a record read at `address`. -ENOENT: not a superblock (no magic);
 * -EUCLEAN: damaged, the report says how; -EPROTONOSUPPORT: an unknown format version, checksum
 * type or incompat feature, the report says which and what to do.
 */
int zf_super_decode(const struct zf_disk_super *disk, uint64_t address,
		    const struct zf_report *report, struct zf_super *ret_super);

/*
 * For a repair: decodes a record whose checksum is right and whose format is known. Checks none of
 * its values, not even its address and magic. -EUCLEAN: the checksum is wrong; -EPROTONOSUPPORT as
 * above.
 */
int zf_super_decode_sealed(const struct zf_disk_super *disk, struct zf_super *ret_super);

/*
 * The part of a record that every version of the format has: enough to tell whether the bytes are a
 * whole record at its own place, and which record. 0, -ENOENT or -EUCLEAN as above.
 */
struct zf_super_head {
	uint8_t fsid[16];
	uint64_t generation;
};
int zf_super_decode_head(const struct zf_disk_super *disk, uint64_t address,
			 const struct zf_report *report, struct zf_super_head *ret_head);

/*
 * Checks the values alone, as zf_super_decode() does. The writer of a record calls this first. 0 or
 * -EUCLEAN.
 */
int zf_super_check(const struct zf_super *super, const struct zf_report *report);

/* Tells a trace that this superblock is durable. */
static inline void zf_super_trace(const struct zf_super *super)
{
	ZF_TRACE(committed, .generation = super->generation, .address = super->address,
		 .root = super->root.address[0], .log_sequence = super->log_sequence,
		 .log_number = super->op_number);
}

/*
 * Is this the device that the superblock describes? -EUCLEAN, with both numbers in the message,
 * if not. A device with more zones than the filesystem uses is right.
 */
int zf_super_check_geometry(const struct zf_super *super, const struct zf_geometry *geometry,
			    const struct zf_report *report);

/* At most ZF_SUPER_LABEL_SIZE - 1 bytes of UTF-8 without control characters, zero-padded. */
bool zf_super_label_is_valid(const char label[ZF_SUPER_LABEL_SIZE]);

#endif
