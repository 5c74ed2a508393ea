/* SPDX-License-Identifier: MIT */
#include "age/plan.h"

#include "base/bits.h"

/* 2 for the superblock, 2 for the log; kept: 1 for metadata, 3 for reclaim (docs/design.md, space).
 */
#define FIXED_ZONES 8u

/*
 * Of nodes for each block of data: an extent's row in a packed leaf and a summary entry with its
 * checksum, that is 12 + (21 + 32) bytes, in nodes that are two thirds full, twice, for half of
 * what metadata zones hold is garbage.
 */
#define META_BYTES_PER_BLOCK 195u

#define BLOCK_BYTES	     4096u

void age_plan(const struct zf_geometry *geometry, double percent, struct age_plan *ret_plan)
{
	uint64_t zones =
		geometry->zone_count > FIXED_ZONES ? geometry->zone_count - FIXED_ZONES : 0;
	double meta_part = percent / 100 * META_BYTES_PER_BLOCK / BLOCK_BYTES;
	uint64_t meta =
		zf_min_u64((uint64_t)((double)zones * meta_part / (1 + meta_part)) + 1, zones);
	uint64_t data = (zones - meta) * geometry->zone_capacity;

	*ret_plan = (struct age_plan){
		.fixed_zones = FIXED_ZONES,
		.meta_zones = (uint32_t)meta,
		.data_bytes = data,
		.bytes = (uint64_t)((double)data * percent / 100) / BLOCK_BYTES * BLOCK_BYTES,
	};
}
