/* SPDX-License-Identifier: MIT */
/*
 * The root tree's items:
 *
 *      (tree id, ZF_KEY_ROOT, 0)         -> struct zf_disk_root
 *      (ZF_TREE_ROOT, ZF_KEY_FAULTS, 0)  -> struct zf_disk_faults, once there was a fault
 *      (ZF_TREE_ROOT, ZF_KEY_SCRUB, 0)   -> struct zf_disk_scrub, once there was a scrub
 *
 * All of them fit one leaf of the smallest node, so a commit never splits it.
 */
#ifndef ZF_TXN_ROOT_FORMAT_H
#define ZF_TXN_ROOT_FORMAT_H

#include "btree/node_format.h"
#include "superblock/super_format.h"

#define ZF_KEY_ROOT   1u
#define ZF_KEY_FAULTS 2u
#define ZF_KEY_SCRUB  3u

struct zf_disk_root {
	struct zf_disk_node_ptr ptr;
	uint8_t level;
	uint8_t reserved[31];
};

#define ZF_DISK_ROOT_FIELDS(F, T)                                                                  \
	F(T, ptr.address, 0, 16, U64)                                                              \
	F(T, ptr.generation, 16, 8, U64)                                                           \
	F(T, ptr.csum, 24, 8, HEX64)                                                               \
	F(T, level, 32, 1, U8)                                                                     \
	F(T, reserved, 33, 31, ZERO)

ZF_FIELDS_ASSERT(struct zf_disk_root, ZF_DISK_ROOT_FIELDS);

/* The faults that were met since `since`, over all mounts (txn/health.h). */
struct zf_disk_faults {
	struct zf_le64 since; /* seconds since 1970: the last reset; 0: since mkfs */
	struct zf_le64 read_errors;
	struct zf_le64 write_errors;
	struct zf_le64 other_errors;
	struct zf_le64 data_checksum;
	struct zf_le64 damaged_nodes;
	struct zf_le64 repaired_nodes;
	struct zf_le64 zones_known; /* failed zones that the last reset has seen */
	uint8_t reserved[64];
};

#define ZF_DISK_FAULTS_FIELDS(F, T)                                                                \
	F(T, since, 0, 8, U64)                                                                     \
	F(T, read_errors, 8, 8, U64)                                                               \
	F(T, write_errors, 16, 8, U64)                                                             \
	F(T, other_errors, 24, 8, U64)                                                             \
	F(T, data_checksum, 32, 8, U64)                                                            \
	F(T, damaged_nodes, 40, 8, U64)                                                            \
	F(T, repaired_nodes, 48, 8, U64)                                                           \
	F(T, zones_known, 56, 8, U64)                                                              \
	F(T, reserved, 64, 64, ZERO)

ZF_FIELDS_ASSERT(struct zf_disk_faults, ZF_DISK_FAULTS_FIELDS);

/* The newest scrub, and how far it was at this commit (txn/health.h). */
struct zf_disk_scrub {
	uint8_t state; /* enum zf_scrub_state */
	uint8_t reserved_a[7];
	struct zf_le64 rate;	  /* bytes per second; 0: makes way for other I/O */
	struct zf_le64 started;	  /* seconds since 1970 */
	struct zf_le64 ended;	  /* seconds since 1970; 0: the scrub runs or is paused */
	struct zf_le64 completed; /* when a scrub last came to its end; 0: none has */
	struct zf_le64 active_ms; /* for how long the scrub has run */
	struct zf_le32 tree;	  /* where the scrub goes on: struct zf_scrub_place */
	struct zf_le32 height;
	struct zf_disk_key from;
	uint8_t reserved_b[7];
	struct zf_le64 address;
	struct zf_le64 data_bytes; /* verified so far */
	struct zf_le64 node_bytes;
	struct zf_le64 skipped;
	struct zf_le64 errors;
	struct zf_le64 repaired;
	uint8_t reserved_c[32];
};

#define ZF_DISK_SCRUB_FIELDS(F, T)                                                                 \
	F(T, state, 0, 1, U8)                                                                      \
	F(T, reserved_a, 1, 7, ZERO)                                                               \
	F(T, rate, 8, 8, U64)                                                                      \
	F(T, started, 16, 8, U64)                                                                  \
	F(T, ended, 24, 8, U64)                                                                    \
	F(T, completed, 32, 8, U64)                                                                \
	F(T, active_ms, 40, 8, U64)                                                                \
	F(T, tree, 48, 4, U32)                                                                     \
	F(T, height, 52, 4, U32)                                                                   \
	F(T, from.objectid, 56, 8, U64)                                                            \
	F(T, from.type, 64, 1, U8)                                                                 \
	F(T, from.offset, 65, 8, U64)                                                              \
	F(T, reserved_b, 73, 7, ZERO)                                                              \
	F(T, address, 80, 8, U64)                                                                  \
	F(T, data_bytes, 88, 8, U64)                                                               \
	F(T, node_bytes, 96, 8, U64)                                                               \
	F(T, skipped, 104, 8, U64)                                                                 \
	F(T, errors, 112, 8, U64)                                                                  \
	F(T, repaired, 120, 8, U64)                                                                \
	F(T, reserved_c, 128, 32, ZERO)

ZF_FIELDS_ASSERT(struct zf_disk_scrub, ZF_DISK_SCRUB_FIELDS);

extern const struct zf_fields zf_disk_root_fields;
extern const struct zf_fields zf_disk_faults_fields;
extern const struct zf_fields zf_disk_scrub_fields;

#endif
