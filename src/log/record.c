/* SPDX-License-Identifier: MIT */
#include "log/record.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/plant.h"
#include "log/carry.h"

#define HEADER_SIZE   ((uint32_t)sizeof(struct zf_disk_log_header))
#define HASHED_FROM   ZF_LOG_HASH_SIZE
#define RECORD_BLOCKS (ZF_LOG_RECORD_MAX >> ZF_BLOCK_SHIFT)

void zf_log_place_init(struct zf_log_place *place, const struct zf_super *super, unsigned int which)
{
	memcpy(place->fsid, super->fsid, sizeof(place->fsid));
	place->zone_address = super->log_zone[which] * super->zone_size;
	place->zone_resets = super->log_zone_resets[which];
	place->epoch = super->log_epoch;
}

static void hash_blocks(const void *blocks, uint32_t bytes, const struct zf_hash_key *key,
			uint8_t ret_hash[ZF_LOG_HASH_SIZE])
{
	uint32_t len = zf_log_header_blocks(bytes) << ZF_BLOCK_SHIFT;

	zf_hash128_keyed(key, (const uint8_t *)blocks + HASHED_FROM, len - HASHED_FROM, ret_hash);
}

/* Are the header blocks zero behind the bodies and the carried block? */
static bool is_padded(const uint8_t *blocks, const struct zf_log_record *record)
{
	uint32_t end = record->bytes + record->carried;

	return zf_is_zero(blocks + end,
			  (zf_log_header_blocks(record->bytes) << ZF_BLOCK_SHIFT) - end);
}

void zf_log_record_seal(const struct zf_hash_key *key, const struct zf_log_record *record,
			const uint8_t fsid[16], void *blocks)
{
	struct zf_disk_log_header *header = blocks;

	assert(record->bytes >= HEADER_SIZE && zf_log_record_len(record) <= ZF_LOG_RECORD_MAX);
	*header = (struct zf_disk_log_header){
		.zone_address = zf_le64_from(record->zone_address),
		.epoch = zf_le64_from(record->epoch),
		.sequence = zf_le64_from(record->sequence),
		.zone_resets = zf_le64_from(record->zone_resets),
		.generation = zf_le64_from(record->generation),
		.bytes = zf_le32_from(record->bytes),
		.data_blocks = zf_le32_from(record->data_blocks),
		.body_count = zf_le32_from(record->body_count),
		.carried = zf_le32_from(record->carried),
	};
	memcpy(header->magic, ZF_LOG_MAGIC, ZF_LOG_MAGIC_SIZE);
	memcpy(header->fsid, fsid, sizeof(header->fsid));
	hash_blocks(blocks, record->bytes, key, header->hash);
}

static struct zf_log_record decode(const struct zf_disk_log_header *header)
{
	return (struct zf_log_record){
		.zone_address = zf_le64_get(header->zone_address),
		.epoch = zf_le64_get(header->epoch),
		.sequence = zf_le64_get(header->sequence),
		.zone_resets = zf_le64_get(header->zone_resets),
		.generation = zf_le64_get(header->generation),
		.bytes = zf_le32_get(header->bytes),
		.data_blocks = zf_le32_get(header->data_blocks),
		.body_count = zf_le32_get(header->body_count),
		.carried = zf_le32_get(header->carried),
	};
}

/* A carried block is the first of the record, and lies in its only header block. */
static bool carried_is_good(const struct zf_log_record *record)
{
	if (record->carried == 0)
		return true;
	return record->data_blocks > 0 && record->bytes < ZF_BLOCK_SIZE &&
	       record->carried <= ZF_BLOCK_SIZE - record->bytes;
}

bool zf_log_record_peek(const void *block, struct zf_log_record *ret_record)
{
	const struct zf_disk_log_header *header = block;
	struct zf_log_record record;

	if (memcmp(header->magic, ZF_LOG_MAGIC, ZF_LOG_MAGIC_SIZE) != 0)
		return false;
	record = decode(header);
	if (record.bytes < HEADER_SIZE || record.bytes > ZF_LOG_RECORD_MAX ||
	    !carried_is_good(&record) ||
	    record.data_blocks > RECORD_BLOCKS - (zf_log_record_data(&record) >> ZF_BLOCK_SHIFT))
		return false;
	*ret_record = record;
	return true;
}

static bool place_is_right(const struct zf_disk_log_header *header,
			   const struct zf_log_record *record, const struct zf_log_place *place)
{
	return memcmp(header->fsid, place->fsid, sizeof(place->fsid)) == 0 &&
	       record->zone_address == place->zone_address &&
	       record->zone_resets == place->zone_resets &&
	       (record->epoch == place->epoch || ZF_PLANTED(ZF_BUG_STALE_RECORD));
}

static bool is_counter(uint64_t value)
{
	return value > 0 && value <= ZF_SUPER_COUNTER_MAX;
}

/* Is the body's number possible, and are its data blocks behind those of the bodies before it? */
static bool body_fits(const struct zf_disk_log_body *body, uint32_t *data_used,
		      uint32_t data_blocks)
{
	uint32_t first = zf_le32_get(body->data_first), count = zf_le32_get(body->data_count);

	if (!is_counter(zf_le64_get(body->number)))
		return false;
	if (count == 0)
		return true;
	if (first < *data_used || first > data_blocks || count > data_blocks - first)
		return false;
	*data_used = first + count;
	return true;
}

static int check_bodies(const uint8_t *blocks, const struct zf_log_record *record)
{
	uint32_t at = HEADER_SIZE, data_used = 0;

	for (uint32_t i = 0; i < record->body_count; i++) {
		const struct zf_disk_log_body *body = (const void *)(blocks + at);
		size_t len;
		int r = zf_log_body_check(blocks + at, record->bytes - at, &len);

		if (r < 0)
			return r;
		if (!body_fits(body, &data_used, record->data_blocks))
			return -EUCLEAN;
		at += (uint32_t)len;
	}
	return at == record->bytes ? 0 : -EUCLEAN;
}

int zf_log_record_open(const void *blocks, const struct zf_log_place *place,
		       const struct zf_hash_key *key)
{
	const struct zf_disk_log_header *header = blocks;
	struct zf_log_record record = decode(header);
	uint8_t hash[ZF_LOG_HASH_SIZE];

	hash_blocks(blocks, record.bytes, key, hash);
	if (memcmp(hash, header->hash, sizeof(hash)) != 0)
		return -EBADMSG;
	if (!place_is_right(header, &record, place))
		return -ESTALE;
	if (!is_counter(record.sequence) || !is_counter(record.generation) ||
	    zf_fields_check_zero(&zf_disk_log_header_fields, header) || !is_padded(blocks, &record))
		return -EUCLEAN;
	return check_bodies(blocks, &record);
}

/* Where a record's data is in memory. */
struct record_data {
	const uint8_t *first;	  /* the block that is carried; NULL: none */
	const uint8_t *following; /* the other blocks */
};

/* `at`: bytes, from the first block on. */
static const uint8_t *data_at(const struct record_data *data, uint64_t at)
{
	if (!data->first)
		return data->following + at;
	return at == 0 ? data->first : data->following + (at - ZF_BLOCK_SIZE);
}

static bool range_matches(const struct zf_log_range_view *range, const struct record_data *data)
{
	uint64_t count = range->range.len >> ZF_BLOCK_SHIFT;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t at = range->range.address + (i << ZF_BLOCK_SHIFT);

		if (zf_hash64(data_at(data, at), ZF_BLOCK_SIZE) != zf_le64_get(range->csums[i]))
			return false;
	}
	return true;
}

bool zf_log_record_data_matches(const void *blocks, const void *following)
{
	struct zf_log_record record = decode(blocks);
	/*
	 * The record's address if its data were at address 0: range.address then counts from the
	 * data.
	 */
	uint64_t address = 0 - (uint64_t)zf_log_record_data(&record);
	struct record_data data = {.following = following};
	struct zf_log_body_view body;
	struct zf_log_range_view range;
	uint8_t first[ZF_BLOCK_SIZE];

	if (record.carried > 0) {
		if (!zf_log_carry_unpack(blocks, first))
			return false;
		data.first = first;
	}
	for (size_t at = 0; zf_log_record_next_body(blocks, address, &at, &body);) {
		if (body.type != ZF_LOG_EXTENTS)
			continue;
		for (size_t next = 0; zf_log_next_range(&body, &next, &range);)
			if (range.range.riding && !range_matches(&range, &data))
				return false;
	}
	return true;
}

bool zf_log_record_next_body(const void *blocks, uint64_t address, size_t *at,
			     struct zf_log_body_view *ret_body)
{
	struct zf_log_record record = decode(blocks);
	size_t from = *at == 0 ? HEADER_SIZE : *at;
	const struct zf_disk_log_body *body = (const void *)((const uint8_t *)blocks + from);

	if (from >= record.bytes)
		return false;
	*ret_body = (struct zf_log_body_view){
		.bytes = (const uint8_t *)body,
		.len = zf_le32_get(body->bytes),
		.type = (enum zf_log_body_type)body->type,
		.number = zf_le64_get(body->number),
		.data_address = address + zf_log_record_data(&record) +
				((uint64_t)zf_le32_get(body->data_first) << ZF_BLOCK_SHIFT),
		.data_count = zf_le32_get(body->data_count),
	};
	*at = from + ret_body->len;
	return true;
}
