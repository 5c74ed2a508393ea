/* SPDX-License-Identifier: MIT */
/*
 * The trailer of an image in memory: the checked header, and the mapped zone table and state.
 * Format and reasons: io/image_format.h. Not thread-safe; the image calls it under its lock.
 *
 * The mapping is of a file, and the host's filesystem may be full or the file truncated: so every
 * function that touches the mapping may return -EIO (base/mapped.h). Then the change was stored in
 * part or not at all, as after a kill.
 */
#ifndef ZF_IO_IMAGE_TRAILER_H
#define ZF_IO_IMAGE_TRAILER_H

#include "io/image_format.h"
#include "io/zone_rules.h"

struct zf_image_trailer {
	struct zf_geometry geometry;
	uint64_t image_size, table_offset, table_size, state_offset;
	uint8_t uuid[16];
	uint64_t seed; /* made from the uuid */
	uint8_t boot_id[16];

	/* Mapped shared when writable, private memory when read-only. */
	void *map;
	uint64_t map_size;
	struct zf_image_zone *table;
	struct zf_image_state *state;
};

/* Lays out a trailer for a file or device of image_size bytes; 0: a file, as small as possible. */
int zf_image_trailer_layout(struct zf_image_trailer *trailer, const struct zf_geometry *geometry,
			    uint64_t image_size);

/* Writes a laid-out trailer to the file, header last, and makes it durable. Every zone is empty. */
int zf_image_trailer_write_new(const struct zf_image_trailer *trailer, const uint8_t *uuid, int fd);

/*
 * Lays out the trailer of the same image with more zones, in a file or device of `image_size`
 * bytes. The new table and state share no byte with the former ones. -ENOSPC: no room for them.
 */
int zf_image_trailer_layout_grown(const struct zf_image_trailer *former, uint32_t zone_count,
				  uint64_t image_size, struct zf_image_trailer *ret_trailer);

/*
 * Writes the table and state of such a trailer, durably, and maps them. The table has entries of
 * the new zones; the entries of the former zones are blank, until zf_image_trailer_take_over().
 */
int zf_image_trailer_prepare(struct zf_image_trailer *trailer, uint32_t former_count, int fd);
/* Copies the entries of the former zones, and the use, from the former trailer, durably. */
int zf_image_trailer_take_over(struct zf_image_trailer *trailer,
			       const struct zf_image_trailer *former);

/* Writes the header alone, durably: from then on this trailer's table is the valid one. */
int zf_image_trailer_write_header(const struct zf_image_trailer *trailer, int fd);

/*
 * Reads and checks the header in the last block of the file. -ENODEV: no header there (no message);
 * -EUCLEAN: the header does not verify.
 */
int zf_image_trailer_read(int fd, uint64_t file_size, const struct zf_report *report,
			  struct zf_image_trailer *ret_trailer);

/*
 * Searches [from, to) for a header: the first found, or the last of all. In a file the last header
 * is the valid one, because growing may leave the former one before it. -ENODEV: none found.
 */
int zf_image_trailer_search(int fd, uint64_t from, uint64_t to, bool last,
			    struct zf_image_trailer *ret_trailer);

/* The most zones of zf_image_trailer_peek(). */
#define ZF_IMAGE_PEEK_MAX 128u

/*
 * Reads the state of the first `count` zones of a trailer that was read and is not mapped. It may be
 * an old one if the image is in use. -EUCLEAN: an entry does not verify; -EIO; -ENOMEM.
 */
int zf_image_trailer_peek(const struct zf_image_trailer *trailer, int fd, unsigned int count,
			  struct zf_zone_state *ret_zones);

int zf_image_trailer_map(struct zf_image_trailer *trailer, int fd, bool writable);
void zf_image_trailer_unmap(struct zf_image_trailer *trailer);

/*
 * Fills the rules' zones from the table and decides whether pointers are lower bounds only. Zones
 * whose state cannot be read from the table are lost, and reported as warnings.
 */
int zf_image_trailer_load(struct zf_image_trailer *trailer, struct zf_zone_rules *rules,
			  const struct zf_report *report, bool *ret_lower_bounds);

/* Stores the zone's condition, pointer and reset count, atomically against a kill. */
int zf_image_trailer_store_zone(struct zf_image_trailer *trailer, uint32_t zone_no,
				const struct zf_zone_state *zone);

/*
 * The same, even if the other slot has a higher count. At worst, a kill in between leaves an entry
 * that does not verify.
 */
int zf_image_trailer_replace_zone(struct zf_image_trailer *trailer, uint32_t zone_no,
				  const struct zf_zone_state *zone);

/* Undoes a reset that could not be made durable: the former slot is in use again. */
int zf_image_trailer_revoke_reset(struct zf_image_trailer *trailer, uint32_t zone_no,
				  uint64_t reset_count);

int zf_image_trailer_store_use(struct zf_image_trailer *trailer, enum zf_image_use use);

/* The block of the file that holds the zone's entry. */
uint64_t zf_image_trailer_zone_block(const struct zf_image_trailer *trailer, uint32_t zone_no);

#endif
