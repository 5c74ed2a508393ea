/* SPDX-License-Identifier: MIT */
/*
 * A record of the intent log as it lies on disk. One record is one append with FUA:
 *
 *      header block(s): struct zf_disk_log_header | body | body | ... | zeroes up to a block's end
 *      data blocks:     content of files, which stays where it landed
 *
 * If the first data block, packed (LZ4), fits into the only header block, it is stored there,
 * directly behind the bodies, and not among the data blocks: carry.h.
 *
 * A body is an operation or the state of one inode (enum zf_log_body_type), and has a number: its
 * place in the order of all bodies. Bodies are whole multiples of 8 bytes.
 *
 * A record does not contain the address that the device chooses for it. A body says which of the
 * record's data blocks are its own, and a range that rides with the record gives its place among
 * those blocks.
 */
#ifndef ZF_LOG_LOG_FORMAT_H
#define ZF_LOG_LOG_FORMAT_H

#include "base/fields.h"
#include "base/le.h"

#define ZF_LOG_MAGIC	  "zfuse\0LG"
#define ZF_LOG_MAGIC_SIZE 8
#define ZF_LOG_HASH_SIZE  16
#define ZF_LOG_ALIGN	  8u /* of bodies and of all that is in them, bytes */
/* Header and data, bytes: larger appends are not worth it, and make other threads wait long. */
#define ZF_LOG_RECORD_MAX (UINT32_C(256) << 10)

struct zf_disk_log_header {
	/* XXH3, 128 bits, of the header blocks from byte 16 on, keyed with the superblock's
	 * log_secret: what a user writes into a file cannot pose as a record. */
	uint8_t hash[ZF_LOG_HASH_SIZE];
	uint8_t magic[ZF_LOG_MAGIC_SIZE];
	uint8_t fsid[16];
	struct zf_le64
		zone_address;	 /* of the zone's start: misdirected write, or a copy of a record.
				  * The record's own address is known only after the write. */
	struct zf_le64 epoch;	 /* changes with each recovery: an older record */
	struct zf_le64 sequence; /* one more than the record's before: a gap ends the log */
	struct zf_le64 zone_resets; /* as in the superblock: a record from before a reset */
	struct zf_le64 generation;  /* of the running transaction */
	struct zf_le32 bytes;	    /* header and bodies; then the carried block, and zeroes */
	struct zf_le32 data_blocks; /* behind the header blocks; the first may be carried */
	struct zf_le32 body_count;
	struct zf_le32 carried; /* bytes of the packed block, behind `bytes`; 0: there is none */
	uint8_t reserved[8];
};

enum zf_log_body_type {
	ZF_LOG_OPERATION = 1, /* edits of the fs tree, all or none: struct zf_disk_log_edit ... */
	ZF_LOG_EXTENTS = 2,   /* what has changed in one inode: struct zf_disk_log_inode ... */
};

#define ZF_LOG_BODY_VERSION 1u

struct zf_disk_log_body {
	uint8_t type;
	uint8_t version; /* ZF_LOG_BODY_VERSION; no mount replays another */
	uint8_t reserved_a[2];
	struct zf_le32 bytes;  /* of the body, this header included */
	struct zf_le64 number; /* in the order of all bodies; never twice within an epoch */
	/* The body's own ones of the record's data blocks: behind those of the bodies before it. */
	struct zf_le32 data_first, data_count;
};

/* ---- ZF_LOG_OPERATION ---- */

enum zf_log_edit_kind {
	ZF_LOG_SET = 1,	   /* the item has this value now (value_len bytes follow, padded to 8) */
	ZF_LOG_DELETE = 2, /* there is no such item now */
	ZF_LOG_RESIZE = 3, /* the size of inode `objectid` is `offset` now; first in its body */
};

struct zf_disk_log_edit {
	uint8_t kind;
	uint8_t key_type;
	struct zf_le16 value_len;
	uint8_t reserved[4];
	struct zf_le64 objectid;
	struct zf_le64 offset;
};

/* ---- ZF_LOG_EXTENTS ---- */

/* item_len bytes of the inode's item follow, padded to 8, then the ranges. */
struct zf_disk_log_inode {
	struct zf_le64 ino;
	struct zf_le16 item_len;
	uint8_t reserved[2];
	struct zf_le32 range_count;
};

/* Ranges end at or below this, both in a file and on the device. Bytes. */
#define ZF_LOG_END_MAX (UINT64_C(1) << 63)

/* The values of enum zf_extent_type. */
enum zf_log_range_type {
	ZF_LOG_RANGE_HOLE = 0,
	ZF_LOG_RANGE_INLINE = 1, /* inline_len bytes follow, padded to 8 */
	ZF_LOG_RANGE_DATA = 2,	 /* a checksum (zf_le64) for each block follows, if `csums` */
	ZF_LOG_RANGE_ZERO = 3,
};

struct zf_disk_log_range {
	uint8_t type;
	uint8_t flags;	/* ZF_EXTENT_* */
	uint8_t riding; /* 1: `address` counts bytes within the body's own data blocks */
	uint8_t csums;	/* 0: none, for DATA written in place; riding data always has them */
	struct zf_le32 inline_len;
	struct zf_le64 offset, len; /* in the file, bytes; block multiples */
	struct zf_le64 address;	    /* DATA: bytes on the device */
};

#define ZF_DISK_LOG_HEADER_FIELDS(F, T)                                                            \
	F(T, hash, 0, 16, BYTES)                                                                   \
	F(T, magic, 16, 8, TEXT)                                                                   \
	F(T, fsid, 24, 16, UUID)                                                                   \
	F(T, zone_address, 40, 8, U64)                                                             \
	F(T, epoch, 48, 8, U64)                                                                    \
	F(T, sequence, 56, 8, U64)                                                                 \
	F(T, zone_resets, 64, 8, U64)                                                              \
	F(T, generation, 72, 8, U64)                                                               \
	F(T, bytes, 80, 4, U32)                                                                    \
	F(T, data_blocks, 84, 4, U32)                                                              \
	F(T, body_count, 88, 4, U32)                                                               \
	F(T, carried, 92, 4, U32)                                                                  \
	F(T, reserved, 96, 8, ZERO)

#define ZF_DISK_LOG_BODY_FIELDS(F, T)                                                              \
	F(T, type, 0, 1, U8)                                                                       \
	F(T, version, 1, 1, U8)                                                                    \
	F(T, reserved_a, 2, 2, ZERO)                                                               \
	F(T, bytes, 4, 4, U32)                                                                     \
	F(T, number, 8, 8, U64)                                                                    \
	F(T, data_first, 16, 4, U32)                                                               \
	F(T, data_count, 20, 4, U32)

#define ZF_DISK_LOG_EDIT_FIELDS(F, T)                                                              \
	F(T, kind, 0, 1, U8)                                                                       \
	F(T, key_type, 1, 1, U8)                                                                   \
	F(T, value_len, 2, 2, U16)                                                                 \
	F(T, reserved, 4, 4, ZERO)                                                                 \
	F(T, objectid, 8, 8, U64)                                                                  \
	F(T, offset, 16, 8, U64)

#define ZF_DISK_LOG_INODE_FIELDS(F, T)                                                             \
	F(T, ino, 0, 8, U64)                                                                       \
	F(T, item_len, 8, 2, U16)                                                                  \
	F(T, reserved, 10, 2, ZERO)                                                                \
	F(T, range_count, 12, 4, U32)

#define ZF_DISK_LOG_RANGE_FIELDS(F, T)                                                             \
	F(T, type, 0, 1, U8)                                                                       \
	F(T, flags, 1, 1, U8)                                                                      \
	F(T, riding, 2, 1, U8)                                                                     \
	F(T, csums, 3, 1, U8)                                                                      \
	F(T, inline_len, 4, 4, U32)                                                                \
	F(T, offset, 8, 8, U64)                                                                    \
	F(T, len, 16, 8, U64)                                                                      \
	F(T, address, 24, 8, U64)

ZF_FIELDS_ASSERT(struct zf_disk_log_header, ZF_DISK_LOG_HEADER_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_log_body, ZF_DISK_LOG_BODY_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_log_edit, ZF_DISK_LOG_EDIT_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_log_inode, ZF_DISK_LOG_INODE_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_log_range, ZF_DISK_LOG_RANGE_FIELDS);

extern const struct zf_fields zf_disk_log_header_fields;
extern const struct zf_fields zf_disk_log_body_fields;
extern const struct zf_fields zf_disk_log_edit_fields;
extern const struct zf_fields zf_disk_log_inode_fields;
extern const struct zf_fields zf_disk_log_range_fields;

#endif
