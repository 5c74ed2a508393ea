/* SPDX-License-Identifier: MIT */
/* The header of a log record, in memory and on disk. */
#ifndef ZF_LOG_RECORD_H
#define ZF_LOG_RECORD_H

#include <stdint.h>

#include "base/hash.h"
#include "log/log_format.h"

/* struct zf_disk_log_header, decoded. */
struct zf_log_record {
	uint64_t zone_address, epoch, sequence, zone_resets, generation;
	uint32_t bytes, data_blocks, body_count;
};

/*
 * Fills the header at the start of the header blocks, whose bodies stand behind it and whose rest
 * is zero, hash included.
 */
void zf_log_record_seal(const struct zf_hash_key *key, const struct zf_log_record *record,
			const uint8_t fsid[16], void *header_blocks);

#endif
