/* SPDX-License-Identifier: MIT */
/*
 * One record of the log as blocks in memory: sealing it before it is written, and checking it when
 * it is read. body.h has what its bodies contain.
 *
 * `blocks` is the header blocks in one piece: struct zf_disk_log_header, the bodies, the carried
 * block (carry.h), zeroes.
 */
#ifndef ZF_LOG_RECORD_H
#define ZF_LOG_RECORD_H

#include "base/bits.h"
#include "base/hash.h"
#include "log/body.h"
#include "superblock/super.h"

/* Fields that all records of a zone have in common between two resets of the zone. */
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

/* Bytes from the start of the record to its data. A carried block lies at the record's start. */
static inline uint32_t zf_log_record_data(const struct zf_log_record *record)
{
	return (zf_log_header_blocks(record->bytes) - (record->carried > 0)) << ZF_BLOCK_SHIFT;
}

/* All blocks of the record, in bytes. */
static inline uint32_t zf_log_record_len(const struct zf_log_record *record)
{
	return zf_log_record_data(record) + (record->data_blocks << ZF_BLOCK_SHIFT);
}

/* `which` of the two zones that the superblock names. */
void zf_log_place_init(struct zf_log_place *place, const struct zf_super *super,
		       unsigned int which);

/*
 * Fills the header at the start of the header blocks, with its hash. The caller has put the bodies
 * and the carried block behind it, and zeroes into the rest.
 */
void zf_log_record_seal(const struct zf_hash_key *key, const struct zf_log_record *record,
			const uint8_t fsid[16], void *blocks);

/*
 * Returns whether the block looks like the first one of a record. *ret_record then has the lengths
 * that the record claims.
 */
bool zf_log_record_peek(const void *block, struct zf_log_record *ret_record);

/*
 * Checks all header blocks of a record for which zf_log_record_peek() returned true. 0: the record
 * is whole, belongs to this place, and its bodies are well formed. -EBADMSG: torn, or no record.
 * -ESTALE: of another filesystem, zone, reset count or epoch. -EUCLEAN: whole and of this place,
 * but a value is impossible; no power cut causes that. -EPROTONOSUPPORT: the same, with a body of
 * an unknown kind.
 */
int zf_log_record_open(const void *blocks, const struct zf_log_place *place,
		       const struct zf_hash_key *key);

/*
 * After zf_log_record_open(): returns whether the record's data blocks match the checksums in its
 * bodies. `following`: the blocks behind the header blocks.
 */
bool zf_log_record_data_matches(const void *blocks, const void *following);

/*
 * After zf_log_record_open(). *at begins as 0; `address` is the record's. False: that was the last.
 */
bool zf_log_record_next_body(const void *blocks, uint64_t address, size_t *at,
			     struct zf_log_body_view *ret_body);

#endif
