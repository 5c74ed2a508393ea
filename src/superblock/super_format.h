/* SPDX-License-Identifier: MIT */
/*
 * A superblock record as it lies on disk: one block, appended to the ring (superblock/ring.h).
 *
 * Every field's comment names what it is for or which fault it defends against. In every future
 * version of the format, bytes 0..63 stay as they are, and a record is one block with its XXH3 at
 * the start. So an old program can tell a newer filesystem from a damaged one.
 */
#ifndef ZF_SUPERBLOCK_SUPER_FORMAT_H
#define ZF_SUPERBLOCK_SUPER_FORMAT_H

#include "base/bits.h"
#include "base/fields.h"
#include "base/le.h"

#define ZF_SUPER_MAGIC	    "zfuse\0SB"
#define ZF_SUPER_MAGIC_SIZE 8
#define ZF_SUPER_SIZE	    ZF_BLOCK_SIZE
#define ZF_SUPER_VERSION    1u
#define ZF_SUPER_LABEL_SIZE 64 /* UTF-8, padded with zero bytes, the last one always zero */
#define ZF_SUPER_ZONES	    2  /* zones 0 and 1 are the ring */
#define ZF_SUPER_NO_ZONE    UINT32_MAX

/* Counters stay below this, so that adding to a counter from a disk cannot overflow. */
#define ZF_SUPER_COUNTER_MAX (UINT64_C(1) << 62)

/* The smallest filesystem: 2 zones of the ring, 6 more active, 7 in reserve, and one to spare. */
#define ZF_ZONE_COUNT_MIN 16u

#define ZF_NODE_SIZE_MIN  4096u
#define ZF_NODE_SIZE_MAX  32768u /* so that an offset in a node fits 16 bits */
#define ZF_TREE_LEVEL_MAX                                                                          \
	12 /* levels 0..11: more than 2^64 bytes of items at the least fan-out                     \
	    */

#define ZF_CSUM_XXH3 1u /* of nodes and data; the only checksum type so far */
#define ZF_DIR_HASH_XXH3_SEED                                                                      \
	1u /* the only directory hash so far: XXH3 with seed dir_hash_seed                         \
	    */

/* Feature words. Unknown bit in incompat: refuse. In compat_ro: read-only only. In compat: go on.
 *
 * GUARANTEE: kept_bytes counts ZERO extents once, and guaranteed_bytes and kept_guaranteed_bytes
 * exist. Without this bit kept_bytes counts a GUARANTEED extent once more, because older versions
 * kept space for overwriting the extent.
 */
#define ZF_INCOMPAT_GUARANTEE UINT64_C(0x1)
#define ZF_INCOMPAT_KNOWN     ZF_INCOMPAT_GUARANTEE
#define ZF_COMPAT_RO_KNOWN    UINT64_C(0)
/* The root tree may hold counters of faults and the place of a scrub (txn/root_format.h). */
#define ZF_COMPAT_HEALTH UINT64_C(0x1)

/* Where a metadata node lies, and what must be found there. Also the root's in the superblock. */
struct zf_disk_node_ptr {
	struct zf_le64 address[2]; /* bytes; [1] is 0 with one metadata copy */
	struct zf_le64 generation; /* a lost write leaves an older node: wrong generation */
	struct zf_le64 csum;	   /* of the whole node but its csum field: torn or rotten node */
};

struct zf_disk_super {
	struct zf_le64 csum;		    /* XXH3 of bytes 8..4095: torn or rotten record */
	uint8_t magic[ZF_SUPER_MAGIC_SIZE]; /* not a zfuse device */
	struct zf_le64 address;		    /* of this record: misdirected write */
	uint8_t fsid[16];		    /* record of another filesystem */
	struct zf_le64 generation;	    /* of the transaction; the newest record wins */
	struct zf_le32 version;		    /* of the format */
	struct zf_le16 csum_type;
	struct zf_le16 dir_hash_version;
	struct zf_le64 incompat;
	struct zf_le64 compat_ro;
	struct zf_le64 compat;

	/* Geometry at mkfs (zone_count grows with `grow`): another or a truncated device. */
	struct zf_le64 zone_size;     /* bytes */
	struct zf_le64 zone_capacity; /* bytes, the largest of any zone */
	struct zf_le32 zone_count;
	struct zf_le32 conventional; /* zones */
	struct zf_le32 block_size;   /* 4096 */
	struct zf_le32 node_size;    /* bytes: 4096 to 32768, a power of two */
	uint8_t metadata_copies;     /* 1 or 2 */
	uint8_t reserved_a[7];

	struct zf_le64 dir_hash_seed;
	uint8_t log_secret[32];	  /* keys the hash of log records */
	struct zf_le64 mkfs_time; /* seconds since 1970 */
	char label[ZF_SUPER_LABEL_SIZE];

	/* The committed state. */
	struct zf_disk_node_ptr root; /* of the root tree */
	uint8_t root_level;
	uint8_t clean; /* 1: written by an unmount; the log may hold records of the next mount */
	uint8_t reserved_b[6];
	struct zf_le64 next_ino; /* inode numbers are never reused */
	struct zf_le64 inode_count;
	struct zf_le64 next_intent;
	struct zf_le64 op_number;    /* O: the last operation that is in the trees */
	struct zf_le64 log_sequence; /* S: the last log record that is in the trees */
	struct zf_le64 log_epoch;
	struct zf_le32 log_zone[2];	   /* current, next; UINT32_MAX: none */
	struct zf_le64 log_zone_resets[2]; /* the reset counts of these zones */
	struct zf_le32 meta_zone[2];	   /* each copy's stream at commit; UINT32_MAX: none */
	struct zf_le64 meta_pointer[2];	   /* bytes in the zone, after this commit */

	struct zf_le64 kept_bytes; /* of ZERO extents: space that no other data may take */

	struct zf_le64 log_pointer[2]; /* bytes in each log zone: what lies below is in the trees */

	struct zf_le64 guaranteed_bytes;      /* of GUARANTEED extents */
	struct zf_le64 kept_guaranteed_bytes; /* of ZERO extents that are GUARANTEED: in both */

	uint8_t reserved_c[ZF_SUPER_SIZE - 408];
};

#define ZF_DISK_NODE_PTR_FIELDS(F, T)                                                              \
	F(T, address, 0, 16, U64)                                                                  \
	F(T, generation, 16, 8, U64)                                                               \
	F(T, csum, 24, 8, HEX64)

#define ZF_DISK_SUPER_FIELDS(F, T)                                                                 \
	F(T, csum, 0, 8, HEX64)                                                                    \
	F(T, magic, 8, 8, TEXT)                                                                    \
	F(T, address, 16, 8, U64)                                                                  \
	F(T, fsid, 24, 16, UUID)                                                                   \
	F(T, generation, 40, 8, U64)                                                               \
	F(T, version, 48, 4, U32)                                                                  \
	F(T, csum_type, 52, 2, U16)                                                                \
	F(T, dir_hash_version, 54, 2, U16)                                                         \
	F(T, incompat, 56, 8, HEX64)                                                               \
	F(T, compat_ro, 64, 8, HEX64)                                                              \
	F(T, compat, 72, 8, HEX64)                                                                 \
	F(T, zone_size, 80, 8, U64)                                                                \
	F(T, zone_capacity, 88, 8, U64)                                                            \
	F(T, zone_count, 96, 4, U32)                                                               \
	F(T, conventional, 100, 4, U32)                                                            \
	F(T, block_size, 104, 4, U32)                                                              \
	F(T, node_size, 108, 4, U32)                                                               \
	F(T, metadata_copies, 112, 1, U8)                                                          \
	F(T, reserved_a, 113, 7, ZERO)                                                             \
	F(T, dir_hash_seed, 120, 8, HEX64)                                                         \
	F(T, log_secret, 128, 32, BYTES)                                                           \
	F(T, mkfs_time, 160, 8, U64)                                                               \
	F(T, label, 168, 64, TEXT)                                                                 \
	F(T, root.address, 232, 16, U64)                                                           \
	F(T, root.generation, 248, 8, U64)                                                         \
	F(T, root.csum, 256, 8, HEX64)                                                             \
	F(T, root_level, 264, 1, U8)                                                               \
	F(T, clean, 265, 1, U8)                                                                    \
	F(T, reserved_b, 266, 6, ZERO)                                                             \
	F(T, next_ino, 272, 8, U64)                                                                \
	F(T, inode_count, 280, 8, U64)                                                             \
	F(T, next_intent, 288, 8, U64)                                                             \
	F(T, op_number, 296, 8, U64)                                                               \
	F(T, log_sequence, 304, 8, U64)                                                            \
	F(T, log_epoch, 312, 8, U64)                                                               \
	F(T, log_zone, 320, 8, U32)                                                                \
	F(T, log_zone_resets, 328, 16, U64)                                                        \
	F(T, meta_zone, 344, 8, U32)                                                               \
	F(T, meta_pointer, 352, 16, U64)                                                           \
	F(T, kept_bytes, 368, 8, U64)                                                              \
	F(T, log_pointer, 376, 16, U64)                                                            \
	F(T, guaranteed_bytes, 392, 8, U64)                                                        \
	F(T, kept_guaranteed_bytes, 400, 8, U64)                                                   \
	F(T, reserved_c, 408, 3688, ZERO)

ZF_FIELDS_ASSERT(struct zf_disk_node_ptr, ZF_DISK_NODE_PTR_FIELDS);
ZF_FIELDS_ASSERT(struct zf_disk_super, ZF_DISK_SUPER_FIELDS);

#endif
