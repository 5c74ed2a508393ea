/* SPDX-License-Identifier: MIT */
/*
 * The data of a trace: the bytes of each of its writes, in a file of its own. A header, the state
 * of each zone, then pieces until the end. Integers little-endian (docs/trace.md).
 */
#ifndef ZF_TRACE_DATA_FORMAT_H
#define ZF_TRACE_DATA_FORMAT_H

#include "base/fields.h"
#include "base/le.h"

#define ZF_TRACE_DATA_MAGIC   "zfbytes\n"
#define ZF_TRACE_DATA_VERSION 1u

struct zf_disk_trace_data_header {
	uint8_t magic[8];
	struct zf_le32 version;
	struct zf_le32 header_size; /* bytes; the zones follow */
	uint8_t fsid[16];
	struct zf_le64 zone_size;     /* bytes */
	struct zf_le64 zone_capacity; /* bytes */
	struct zf_le32 zone_count;
	struct zf_le32 conventional; /* zones, from zone 0 on, are conventional */
	struct zf_le32 max_open;     /* zones; 0: no limit */
	struct zf_le32 max_active;   /* zones; 0: no limit */
	struct zf_le32 append_limit; /* bytes */
	uint8_t volatile_cache;	     /* 0: a completed write is durable */
	uint8_t reserved[3];
};

#define ZF_DISK_TRACE_DATA_HEADER_FIELDS(F, T)                                                     \
	F(T, magic, 0, 8, TEXT)                                                                    \
	F(T, version, 8, 4, U32)                                                                   \
	F(T, header_size, 12, 4, U32)                                                              \
	F(T, fsid, 16, 16, UUID)                                                                   \
	F(T, zone_size, 32, 8, U64)                                                                \
	F(T, zone_capacity, 40, 8, U64)                                                            \
	F(T, zone_count, 48, 4, U32)                                                               \
	F(T, conventional, 52, 4, U32)                                                             \
	F(T, max_open, 56, 4, U32)                                                                 \
	F(T, max_active, 60, 4, U32)                                                               \
	F(T, append_limit, 64, 4, U32)                                                             \
	F(T, volatile_cache, 68, 1, U8)                                                            \
	F(T, reserved, 69, 3, ZERO)
ZF_FIELDS_ASSERT(struct zf_disk_trace_data_header, ZF_DISK_TRACE_DATA_HEADER_FIELDS);

/* A zone when the trace began. */
struct zf_disk_trace_data_zone {
	struct zf_le64
		written; /* bytes from its start to the pointer; conventional: its capacity */
	struct zf_le64 resets;
	uint8_t condition; /* enum zf_zone_cond */
	uint8_t reserved[7];
};

#define ZF_DISK_TRACE_DATA_ZONE_FIELDS(F, T)                                                       \
	F(T, written, 0, 8, U64)                                                                   \
	F(T, resets, 8, 8, U64)                                                                    \
	F(T, condition, 16, 1, U8)                                                                 \
	F(T, reserved, 17, 7, ZERO)
ZF_FIELDS_ASSERT(struct zf_disk_trace_data_zone, ZF_DISK_TRACE_DATA_ZONE_FIELDS);

/* `bytes` bytes follow. */
struct zf_disk_trace_data_piece {
	struct zf_le64 submitted; /* sequence of command_submitted; 0: there before the trace */
	struct zf_le64 address;
	struct zf_le64 bytes; /* a multiple of the block size, at most ZF_TRACE_DATA_PIECE_MAX */
};

#define ZF_DISK_TRACE_DATA_PIECE_FIELDS(F, T)                                                      \
	F(T, submitted, 0, 8, U64)                                                                 \
	F(T, address, 8, 8, U64)                                                                   \
	F(T, bytes, 16, 8, U64)
ZF_FIELDS_ASSERT(struct zf_disk_trace_data_piece, ZF_DISK_TRACE_DATA_PIECE_FIELDS);

/* More than any command has. It bounds what a reader allocates for a damaged file. */
#define ZF_TRACE_DATA_PIECE_MAX (UINT64_C(1) << 30)

extern const struct zf_fields zf_trace_data_header_fields, zf_trace_data_zone_fields,
	zf_trace_data_piece_fields;

#endif
