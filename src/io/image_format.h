/* SPDX-License-Identifier: MIT */
/*
 * The trailer of an image, as it lies in the file. All integers little-endian.
 *
 *     0                         table                     state    header
 *     | zone 0 | zone 1 | ...    | zone table, 32 B a zone | 4 KiB | ... | 4 KiB |
 *                                zone_size * zone_count                          image_size
 *
 * The header is the last block, so a reader finds it without further information. It is written
 * anew only to make the image larger (io/image_grow.c), which may leave a gap before the table. In
 * a file the state block lies directly before the header, unless the file was longer than needed
 * when the image grew; then a gap lies between, as on a block device that is larger than needed.
 * Table and state change while the image is in use, through a shared mapping: if the process is
 * killed, at any instruction, the kernel keeps all bytes stored before. So every change that must
 * be atomic ends in one aligned 8-byte store.
 *
 * A zone has two slots, and its slot in use is the valid one with the higher reset count:
 *
 *     slot 0: reset_count (even) | word        slot 1: reset_count (odd) | word
 *     word:   bits 0-31 pointer in blocks, 32-39 condition + 1, 40-63 check of all the rest
 *
 * Moving the pointer is one store of the word. A reset writes the *other* slot: word := 0, then the
 * count, then the new word. With this last store the zone is empty.
 *
 * A slot with word 0 is not valid (yet). Any other word whose check fails is damage. The damaged
 * slot may have been the newer one, so the zone's state is unknown: the zone is *lost*. Both words
 * become 0, the zone is shown as empty with a count that it never had, and every pointer of the
 * device is treated as a lower bound. The next state stored is valid: a mount that may write stores
 * the state that it knows from the zone's item (zf_alloc_tell_device()), or a write to the zone
 * stores the state after it, as for an empty zone.
 */
#ifndef ZF_IO_IMAGE_FORMAT_H
#define ZF_IO_IMAGE_FORMAT_H

#include "base/fields.h"
#include "base/le.h"

#define ZF_IMAGE_MAGIC	     "ZFUSEIMG"
#define ZF_IMAGE_STATE_MAGIC "ZFUSESTA"
#define ZF_IMAGE_VERSION     1

#define ZF_IMAGE_ROTATIONAL  1u

struct zf_image_header {
	uint8_t magic[8];	 /* detects: no image at all */
	struct zf_le64 checksum; /* detects damage: XXH3 of the block from `version` on */
	struct zf_le32 version;	 /* detects a later layout */
	struct zf_le32 flags;	 /* ZF_IMAGE_ROTATIONAL */
	uint8_t uuid[16]; /* seeds the other checks: detects an older image's table in this place */
	struct zf_le64 image_size;   /* bytes, this block included: detects another file size */
	struct zf_le64 table_offset; /* bytes, at least zone_size * zone_count */
	struct zf_le64 zone_size;
	struct zf_le64 zone_capacity;
	struct zf_le32 zone_count;
	struct zf_le32 conventional;
	struct zf_le32 max_open;
	struct zf_le32 max_active;
	struct zf_le32 append_limit;
	uint8_t reserved[4096 - 92]; /* zero */
};

enum zf_image_use {
	ZF_IMAGE_CLEAN = 1,   /* closed; every pointer is exact */
	ZF_IMAGE_IN_USE = 2,  /* pointers are exact as long as the host has not restarted since */
	ZF_IMAGE_UNKNOWN = 3, /* the host has restarted, and pointers were not raised since */
};

struct zf_image_state {
	uint8_t magic[8];
	struct zf_le64 checksum;     /* detects a torn block: XXH3 from `boot_id` on, seeded. If it
					is wrong, the use is UNKNOWN */
	uint8_t boot_id[16];	     /* of the host that uses the image; zero if it is clean */
	struct zf_le32 use;	     /* enum zf_image_use */
	uint8_t reserved[4096 - 36]; /* zero */
};

struct zf_image_slot {
	struct zf_le64 reset_count;
	struct zf_le64 word;
};

struct zf_image_zone {
	struct zf_image_slot slots[2];
};

#define ZF_IMAGE_HEADER_FIELDS(F, T)                                                               \
	F(T, magic, 0, 8, TEXT)                                                                    \
	F(T, checksum, 8, 8, HEX64)                                                                \
	F(T, version, 16, 4, U32)                                                                  \
	F(T, flags, 20, 4, U32)                                                                    \
	F(T, uuid, 24, 16, UUID)                                                                   \
	F(T, image_size, 40, 8, U64)                                                               \
	F(T, table_offset, 48, 8, U64)                                                             \
	F(T, zone_size, 56, 8, U64)                                                                \
	F(T, zone_capacity, 64, 8, U64)                                                            \
	F(T, zone_count, 72, 4, U32)                                                               \
	F(T, conventional, 76, 4, U32)                                                             \
	F(T, max_open, 80, 4, U32)                                                                 \
	F(T, max_active, 84, 4, U32)                                                               \
	F(T, append_limit, 88, 4, U32)                                                             \
	F(T, reserved, 92, 4004, ZERO)

#define ZF_IMAGE_STATE_FIELDS(F, T)                                                                \
	F(T, magic, 0, 8, TEXT)                                                                    \
	F(T, checksum, 8, 8, HEX64)                                                                \
	F(T, boot_id, 16, 16, UUID)                                                                \
	F(T, use, 32, 4, U32)                                                                      \
	F(T, reserved, 36, 4060, ZERO)

#define ZF_IMAGE_SLOT_FIELDS(F, T)                                                                 \
	F(T, reset_count, 0, 8, U64)                                                               \
	F(T, word, 8, 8, HEX64)

ZF_FIELDS_ASSERT(struct zf_image_header, ZF_IMAGE_HEADER_FIELDS);
ZF_FIELDS_ASSERT(struct zf_image_state, ZF_IMAGE_STATE_FIELDS);
ZF_FIELDS_ASSERT(struct zf_image_slot, ZF_IMAGE_SLOT_FIELDS);
_Static_assert(sizeof(struct zf_image_zone) == 32, "never across a sector");

extern const struct zf_fields zf_image_header_fields;
extern const struct zf_fields zf_image_state_fields;
extern const struct zf_fields zf_image_slot_fields;

#endif
