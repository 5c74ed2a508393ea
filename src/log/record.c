/* SPDX-License-Identifier: MIT */
#include "log/record.h"

#include <string.h>

#include "base/bits.h"

static size_t hashed_bytes(uint32_t bytes)
{
	return zf_align_up(bytes, ZF_BLOCK_SIZE) - ZF_LOG_HASH_SIZE;
}

void zf_log_record_seal(const struct zf_hash_key *key, const struct zf_log_record *record,
			const uint8_t fsid[16], void *header_blocks)
{
	struct zf_disk_log_header *disk = header_blocks;

	*disk = (struct zf_disk_log_header){
		.zone_address = zf_le64_from(record->zone_address),
		.epoch = zf_le64_from(record->epoch),
		.sequence = zf_le64_from(record->sequence),
		.zone_resets = zf_le64_from(record->zone_resets),
		.generation = zf_le64_from(record->generation),
		.bytes = zf_le32_from(record->bytes),
		.data_blocks = zf_le32_from(record->data_blocks),
		.body_count = zf_le32_from(record->body_count),
	};
	memcpy(disk->magic, ZF_LOG_MAGIC, ZF_LOG_MAGIC_SIZE);
	memcpy(disk->fsid, fsid, sizeof(disk->fsid));
	zf_hash128_keyed(key, (uint8_t *)header_blocks + ZF_LOG_HASH_SIZE,
			 hashed_bytes(record->bytes), disk->hash);
}
