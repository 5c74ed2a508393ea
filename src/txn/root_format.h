/* SPDX-License-Identifier: MIT */
/* The root tree's items: (tree id, ZF_KEY_ROOT, 0) -> struct zf_disk_root. */
#ifndef ZF_TXN_ROOT_FORMAT_H
#define ZF_TXN_ROOT_FORMAT_H

#include "superblock/super_format.h"

#define ZF_KEY_ROOT 1u

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

extern const struct zf_fields zf_disk_root_fields;

#endif
