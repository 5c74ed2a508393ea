/* SPDX-License-Identifier: MIT */
/* The zone tree's items: (zone number, ZF_KEY_ZONE, 0) -> struct zf_disk_zone. */
#ifndef ZF_ALLOC_ZONE_FORMAT_H
#define ZF_ALLOC_ZONE_FORMAT_H

#include "base/fields.h"
#include "base/le.h"

#define ZF_KEY_ZONE 1u

/* What a zone is for, from its first write to its reset. */
enum zf_role {
	ZF_ROLE_NONE = 0,      /* empty, or nothing known to be in it */
	ZF_ROLE_SUPER = 1,     /* zones 0 and 1 */
	ZF_ROLE_META = 2,      /* nodes */
	ZF_ROLE_LOG = 3,       /* the intent log */
	ZF_ROLE_HOT = 4,       /* data as it comes */
	ZF_ROLE_COLD = 5,      /* data that survived a reclaim */
	ZF_ROLE_OVERWRITE = 6, /* conventional zones written in place */
	ZF_ROLE_COUNT,
};
/* "none", "super", ...; "unknown" for any other number. */
const char *zf_zone_role_name(uint8_t role);

struct zf_disk_zone {
	uint8_t role;
	uint8_t reserved_a[7];
	struct zf_le64 pointer; /* bytes from the zone's start: a lower bound for the device's */
	struct zf_le64
		live; /* bytes that extents or nodes (not those of the root and zone trees) name */
	struct zf_le64 reset_generation;   /* of the superblock that allowed the last reset */
	struct zf_le64 reset_count;	   /* the device's, if it counts: shows a stale zone */
	struct zf_le64 emptied_generation; /* the transaction in which live became 0; 0: none */
	struct zf_le64 write_generation;   /* of the newest data in it: its age, for reclaim */
	uint8_t reserved_b[8];
};

#define ZF_DISK_ZONE_FIELDS(F, T)                                                                  \
	F(T, role, 0, 1, U8)                                                                       \
	F(T, reserved_a, 1, 7, ZERO)                                                               \
	F(T, pointer, 8, 8, U64)                                                                   \
	F(T, live, 16, 8, U64)                                                                     \
	F(T, reset_generation, 24, 8, U64)                                                         \
	F(T, reset_count, 32, 8, U64)                                                              \
	F(T, emptied_generation, 40, 8, U64)                                                       \
	F(T, write_generation, 48, 8, U64)                                                         \
	F(T, reserved_b, 56, 8, ZERO)

ZF_FIELDS_ASSERT(struct zf_disk_zone, ZF_DISK_ZONE_FIELDS);

extern const struct zf_fields zf_disk_zone_fields;

#endif
