/* SPDX-License-Identifier: MIT */
/*
 * A B-tree node as it lies on disk and in memory (node_size bytes, 16 KiB by default).
 *
 *      leaf         | header | item 0 | item 1 | ... |  free  | ... | value 1 | value 0 |
 *      packed leaf  | header | packing | base | columns | row 0 | row 1 | ...      free |
 *      internal     | header | child 0 | child 1 | ...                    free          |
 *
 * Item headers grow up, values grow down from the end, in the same order and without gaps: value i
 * ends where value i-1 begins. Free bytes are zero. A child's key is a lower bound of the keys in
 * that child. (On the leftmost path it need not be ZF_KEY_MIN.)
 *
 * A packed leaf holds items of one objectid and type, with values of one size, which differ in few
 * of their bytes. A record is a key and its value. The base holds the bytes that are the same in
 * all records. The columns are the positions of the other bytes, ascending; these bytes are zero in
 * the base. A row holds the bytes of one record at the columns.
 */
#ifndef ZF_BTREE_NODE_FORMAT_H
#define ZF_BTREE_NODE_FORMAT_H

#include "base/fields.h"
#include "base/le.h"
#include "superblock/super_format.h"

#define ZF_NODE_MAGIC "ZFND"

struct zf_disk_key {
	struct zf_le64 objectid;
	uint8_t type;
	struct zf_le64 offset;
};

struct zf_disk_node_header {
	struct zf_le64 csum; /* XXH3 of bytes 8..node_size; detects a torn or rotten node */
	uint8_t magic[4];    /* detects: not a node */
	uint8_t level;	     /* 0: leaf; detects a pointer into another level */
	uint8_t packed;	     /* 1: a packed leaf */
	uint8_t reserved_a[2];
	uint8_t fsid[16];	   /* detects a node of another filesystem */
	struct zf_le64 address[2]; /* own addresses; detects a misdirected write or read */
	struct zf_le64 generation; /* of the transaction that wrote it; detects a stale node */
	struct zf_le64 owner;	   /* tree id; detects a pointer into another tree */
	struct zf_le32 count;	   /* items or children */
	uint8_t reserved_b[4];
};

struct zf_disk_child {
	struct zf_disk_key key;
	uint8_t reserved[7];
	struct zf_disk_node_ptr ptr;
};

struct zf_disk_item {
	struct zf_disk_key key;
	struct zf_le16 offset; /* of the value, bytes from the start of the node */
	struct zf_le16 size;   /* bytes */
};

/* In a packed leaf; the base (key and value) and `width` columns, a byte each, follow. */
struct zf_disk_packing {
	uint8_t value_size; /* bytes of each value, at most ZF_PACKED_VALUE_MAX */
	uint8_t width;	    /* columns: bytes of a row */
};

/* The size of an extent: no other items are worth packing, and items with names vary in size. */
#define ZF_PACKED_VALUE_MAX 24u

#define ZF_DISK_NODE_HEADER_FIELDS(F, T)                                                           \
	F(T, csum, 0, 8, HEX64)                                                                    \
	F(T, magic, 8, 4, TEXT)                                                                    \
	F(T, level, 12, 1, U8)                                                                     \
	F(T, packed, 13, 1, U8)                                                                    \
	F(T, reserved_a, 14, 2, ZERO)                                                              \
	F(T, fsid, 16, 16, UUID)                                                                   \
	F(T, address, 32, 16, U64)                                                                 \
	F(T, generation, 48, 8, U64)                                                               \
	F(T, owner, 56, 8, U64)                                                                    \
	F(T, count, 64, 4, U32)                                                                    \
	F(T, reserved_b, 68, 4, ZERO)

#define ZF_DISK_KEY_FIELDS(F, T)                                                                   \
	F(T, objectid, 0, 8, U64)                                                                  \
	F(T, type, 8, 1, U8)                                                                       \
	F(T, offset, 9, 8, U64)

#define ZF_DISK_CHILD_FIELDS(F, T)                                                                 \
	F(T, key.objectid, 0, 8, U64)                                                              \
	F(T, key.type, 8, 1, U8)                                                                   \
	F(T, key.offset, 9, 8, U64)                                                                \
	F(T, reserved, 17, 7, ZERO)                                                                \
	F(T, ptr.address, 24, 16, U64)                                                             \
	F(T, ptr.generation, 40, 8, U64)                                                           \
	F(T, ptr.csum, 48, 8, HEX64)

#define ZF_DISK_ITEM_FIELDS(F, T)                                                                  \
	F(T, key.objectid, 0, 8, U64)                                                              \
	F(T, key.type, 8, 1, U8)                                                                   \
	F(T, key.offset, 9, 8, U64)                                                                \
	F(T, offset, 17, 2, U16)                                                                   \
	F(T, size, 19, 2, U16)

#define ZF_DISK_PACKING_FIELDS(F, T)                                                               \
	F(T, value_size, 0, 1, U8)                                                                 \
	F(T, width, 1, 1, U8)

ZF_FIELDS_ASSERT(struct zf_disk_node_header, ZF_DISK_NODE_HEADER_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_key, ZF_DISK_KEY_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_child, ZF_DISK_CHILD_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_item, ZF_DISK_ITEM_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_packing, ZF_DISK_PACKING_FIELDS);

extern const struct zf_fields zf_disk_node_header_fields;
extern const struct zf_fields zf_disk_key_fields;
extern const struct zf_fields zf_disk_child_fields;
extern const struct zf_fields zf_disk_item_fields;
extern const struct zf_fields zf_disk_packing_fields;

#endif
