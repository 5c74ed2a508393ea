/* SPDX-License-Identifier: MIT */
/*
 * One record of the log as blocks in memory: closing it before it is written, opening it when it is
 * read. What is in its bodies: body.h.
 *
 * `blocks` is the header blocks in one piece: struct zf_disk_log_header, the bodies, what is
 * carried (carry.h), zeroes.
 */
#ifndef ZF_LOG_RECORD_H
#define ZF_LOG_RECORD_H

#include "base/bits.h"
#include "base/hash.h"
#include "log/body.h"
#include "superblock/super.h"

/* What all records in one life of a zone have in common. */
struct zf_log_place {
	uint8_t fsid[16];
	uint64_t zone_address; /* of the zone's start */
	uint64_t zone_resets;
	uint64_t epoch;
};

/* struct zf_disk_log_header, decoded. */
struct zf_log_record {
	uint64_t zone_address, epoch, sequence, zone_resets, generation;
	uint32_t bytes; /* header and bodies */
	uint32_t data_blocks, body_count;
	uint32_t carried; /* bytes that the first data block takes in the header block; 0: it
			     follows */
};

static inline uint32_t zf_log_header_blocks(uint32_t bytes)
{
	return (uint32_t)(zf_align_up(bytes, ZF_BLOCK_SIZE) >> ZF_BLOCK_SHIFT);
}

/* From the start of the record to its data, bytes: the one that is carried lies where it begins. */
static inline uint32_t zf_log_record_data(const struct zf_log_record *record)
{
	return (zf_log_header_blocks(record->bytes) - (record->carried > 0)) << ZF_BLOCK_SHIFT;
}

/* All of its blocks, in bytes. */
static inline uint32_t zf_log_record_len(const struct zf_log_record *record)
{
	return zf_log_record_data(record) + (record->data_blocks << ZF_BLOCK_SHIFT);
}

/* `which` of the two zones that the superblock names. */
void zf_log_place_init(struct zf_log_place *place, const struct zf_super *super,
		       unsigned int which);

/*
 * Fills the header at the start of the header blocks, hash included. Behind it stand the bodies and
 * what is carried; their rest is zero.
 */
void zf_log_record_seal(const struct zf_hash_key *key, const struct zf_log_record *record,
			const uint8_t fsid[16], void *blocks);

/* Is this the first block of a record, by its looks? Then how long the record says that it is. */
bool zf_log_record_peek(const void *block, struct zf_log_record *ret_record);

/*
 * All header blocks of what zf_log_record_peek() saw. 0: whole, of this place, and its bodies are
 * well formed. -EBADMSG: torn, or never a record. -ESTALE: of another filesystem, zone, life or
 * epoch. -EUCLEAN: whole, of this place, but with a value that no record has, which no power cut
 * makes. -EPROTONOSUPPORT: the same, with a body of an unknown kind.
 */
int zf_log_record_open(const void *blocks, const struct zf_log_place *place,
		       const struct zf_hash_key *key);

/*
 * After that: do its data blocks match the checksums of the ranges that ride with it? `following`:
 * those behind the header blocks.
 */
bool zf_log_record_data_matches(const void *blocks, const void *following);

/*
 * After zf_log_record_open(). *at begins as 0; `address` is the record's. False: that was the last.
 */
bool zf_log_record_next_body(const void *blocks, uint64_t address, size_t *at,
			     struct zf_log_body_view *ret_body);

#endif
