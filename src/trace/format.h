/* SPDX-License-Identifier: MIT */
/*
 * The file of a trace: a header, then records of one size. Integers little-endian (docs/trace.md).
 */
#ifndef ZF_TRACE_FORMAT_H
#define ZF_TRACE_FORMAT_H

#include "base/fields.h"
#include "base/le.h"

#define ZF_TRACE_MAGIC	 "zftrace\n"
#define ZF_TRACE_VERSION 1u
#define ZF_TRACE_PAYLOAD 40u

enum zf_trace_clock {
	ZF_TRACE_MONOTONIC, /* nanoseconds of CLOCK_MONOTONIC */
	ZF_TRACE_LOGICAL, /* counts events: repeating a run without threads gives the same trace */
};

struct zf_disk_trace_header {
	uint8_t magic[8];
	struct zf_le32 version;
	struct zf_le32 header_size; /* bytes; the first record follows */
	struct zf_le32 record_size; /* bytes */
	uint8_t clock;		    /* enum zf_trace_clock */
	uint8_t copies;		    /* of metadata */
	uint8_t seeded;		    /* 1: `workload` and `seed` say how to repeat the run */
	uint8_t reserved;
	uint8_t fsid[16];
	struct zf_le64 zone_size;     /* bytes */
	struct zf_le64 zone_capacity; /* bytes */
	struct zf_le32 zone_count;
	struct zf_le32 conventional; /* zones, from zone 0 on */
	struct zf_le32 active_max;   /* zones; 0: no limit */
	struct zf_le32 block_size;   /* bytes */
	struct zf_le32 node_size;    /* bytes */
	struct zf_le32 reserved2;
	struct zf_le64 seed;
	uint8_t program[32];  /* text: the version of zfuse */
	uint8_t workload[64]; /* text */
	uint8_t reserved3[64];
};

#define ZF_DISK_TRACE_HEADER_FIELDS(F, T)                                                          \
	F(T, magic, 0, 8, TEXT)                                                                    \
	F(T, version, 8, 4, U32)                                                                   \
	F(T, header_size, 12, 4, U32)                                                              \
	F(T, record_size, 16, 4, U32)                                                              \
	F(T, clock, 20, 1, U8)                                                                     \
	F(T, copies, 21, 1, U8)                                                                    \
	F(T, seeded, 22, 1, U8)                                                                    \
	F(T, reserved, 23, 1, ZERO)                                                                \
	F(T, fsid, 24, 16, UUID)                                                                   \
	F(T, zone_size, 40, 8, U64)                                                                \
	F(T, zone_capacity, 48, 8, U64)                                                            \
	F(T, zone_count, 56, 4, U32)                                                               \
	F(T, conventional, 60, 4, U32)                                                             \
	F(T, active_max, 64, 4, U32)                                                               \
	F(T, block_size, 68, 4, U32)                                                               \
	F(T, node_size, 72, 4, U32)                                                                \
	F(T, reserved2, 76, 4, ZERO)                                                               \
	F(T, seed, 80, 8, U64)                                                                     \
	F(T, program, 88, 32, TEXT)                                                                \
	F(T, workload, 120, 64, TEXT)                                                              \
	F(T, reserved3, 184, 64, ZERO)
ZF_FIELDS_ASSERT(struct zf_disk_trace_header, ZF_DISK_TRACE_HEADER_FIELDS);

struct zf_disk_trace_record {
	struct zf_le64 sequence; /* 1, 2, ...: the order of all events; a gap is a dropped event */
	struct zf_le64 time;	 /* by the header's clock */
	struct zf_le32 thread;	 /* 0: a run without threads */
	struct zf_le16 event;	 /* the event's number in events.h */
	struct zf_le16 reserved;
	uint8_t payload[ZF_TRACE_PAYLOAD]; /* the event's fields, then zeroes */
};

#define ZF_DISK_TRACE_RECORD_FIELDS(F, T)                                                          \
	F(T, sequence, 0, 8, U64)                                                                  \
	F(T, time, 8, 8, U64)                                                                      \
	F(T, thread, 16, 4, U32)                                                                   \
	F(T, event, 20, 2, U16)                                                                    \
	F(T, reserved, 22, 2, ZERO)                                                                \
	F(T, payload, 24, 40, BYTES)
ZF_FIELDS_ASSERT(struct zf_disk_trace_record, ZF_DISK_TRACE_RECORD_FIELDS);

extern const struct zf_fields zf_trace_header_fields, zf_trace_record_fields;

/* ---- the fields of an event ---- */

enum zf_trace_kind {
	ZF_TRACE_NUMBER,    /* le64 */
	ZF_TRACE_NUMBER32,  /* le32 */
	ZF_TRACE_NUMBER8,   /* u8 */
	ZF_TRACE_SIGNED,    /* le64 in two's complement: bytes, or -errno of Linux */
	ZF_TRACE_ADDRESS,   /* le64: bytes from the start of the device */
	ZF_TRACE_FLAG,	    /* u8: 0 or 1 */
	ZF_TRACE_TEXT,	    /* 16 bytes, zeroes behind the text */
	ZF_TRACE_OPERATION, /* u8, like the kinds below: enum zf_trace_operation */
	ZF_TRACE_COMMAND,   /* enum zf_io_op */
	ZF_TRACE_PURPOSE,   /* enum zf_trace_purpose */
	ZF_TRACE_ROLE,	    /* enum zf_role */
	ZF_TRACE_TREE,	    /* enum zf_tree_id */
	ZF_TRACE_EXTENT,    /* enum zf_extent_type */
	ZF_TRACE_BODY,	    /* enum zf_log_body_type */
	ZF_TRACE_KIND_COUNT,
};

struct zf_trace_field {
	const char *name;
	enum zf_trace_kind kind;
};

#define ZF_TRACE_FIELDS_MAX 8u

struct zf_trace_event {
	const char *name; /* NULL: there is no event of this number */
	const char *text;
	struct zf_trace_field field[ZF_TRACE_FIELDS_MAX]; /* name NULL: there are no more */
};

#define ZF_TRACE_EVENT_MAX 96u /* numbers are below it */

extern const struct zf_trace_event zf_trace_events[ZF_TRACE_EVENT_MAX];

/* The bytes that a field of this kind takes in the payload. */
unsigned int zf_trace_kind_size(enum zf_trace_kind kind);
/* "number", "address", ...: the name of the kind in docs/trace.md. */
const char *zf_trace_kind_name(enum zf_trace_kind kind);
/* The number at `at`, of any kind but TEXT; a SIGNED one in two's complement. */
uint64_t zf_trace_value(enum zf_trace_kind kind, const uint8_t *at);

#endif
