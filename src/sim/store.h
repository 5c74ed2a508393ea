/* SPDX-License-Identifier: MIT */
/*
 * The contents of the simulator's zones: blocks with reference counts; zones are copied on a change
 * if a clone shares them.
 *
 * A slot is one block of a zone. `now` is what was written in this life of the zone: one version in
 * a sequential zone; in a conventional zone the newest version, and behind it the versions that a
 * cut may bring back. `old` is what a sequential zone's former life left there.
 */
#ifndef ZF_SIM_STORE_H
#define ZF_SIM_STORE_H

#include <stdint.h>

#include "base/bits.h"

struct zf_sim_block {
	uint32_t refs;
	uint64_t digest; /* of the bytes; 0: not known yet */
	uint8_t bytes[ZF_BLOCK_SIZE];
};

#define SIM_STAMP_DURABLE 0
#define SIM_STAMP_FLIGHT  UINT64_MAX /* not completed, or failed */

struct zf_sim_version {
	uint32_t refs;
	struct zf_sim_block *block;
	uint64_t stamp; /* when the write completed, on the simulator's clock */
	struct zf_sim_version *before;
};

struct zf_sim_slot {
	struct zf_sim_version *now;
	struct zf_sim_block *old;
};

struct zf_sim_zone {
	uint32_t refs;
	uint32_t slot_count;
	uint32_t digest_count; /* `digest` covers so many slots; 0: not known */
	uint64_t digest;
	uint64_t floor; /* bytes: a cut lowers the pointer no further, nor below durable blocks */
	struct zf_sim_slot slots[];
};

void *zf_sim_alloc(size_t size); /* zeroed; aborts when there is no memory */

struct zf_sim_block *zf_sim_block_new(const void *bytes);
struct zf_sim_block *zf_sim_block_zero(void); /* the one block of zeroes */
struct zf_sim_block *zf_sim_block_ref(struct zf_sim_block *block);
void zf_sim_block_unref(struct zf_sim_block *block);

struct zf_sim_zone *zf_sim_zone_new(uint32_t slot_count);
struct zf_sim_zone *zf_sim_zone_ref(struct zf_sim_zone *zone);
void zf_sim_zone_unref(struct zf_sim_zone *zone);

/* Makes *zone unshared, by a copy if it is shared, and returns it. */
struct zf_sim_zone *zf_sim_zone_own(struct zf_sim_zone **zone);

/* A digest of the bytes that reads of the first `slot_count` slots give. */
uint64_t zf_sim_zone_digest(struct zf_sim_zone *zone, uint32_t slot_count);

/* The block that a read gives; NULL: never written. */
const struct zf_sim_block *zf_sim_slot_read(const struct zf_sim_slot *slot);

/*
 * A write lands in the slot. With `keep`, the former versions stay behind it, down to the first
 * that is durable at `flushed`.
 */
void zf_sim_slot_write(struct zf_sim_slot *slot, struct zf_sim_block *block, bool keep,
		       uint64_t flushed);

/* The write of this very block has completed. */
void zf_sim_slot_complete(struct zf_sim_slot *slot, const struct zf_sim_block *block,
			  uint64_t stamp);

/*
 * Versions that have completed since `flushed` will never become durable. The newest version reads
 * as `block` from now on; NULL: as before.
 */
void zf_sim_slot_lose(struct zf_sim_slot *slot, uint64_t flushed, struct zf_sim_block *block);

/* Makes `block` the slot's only content, and durable; NULL: unwritten in this life. */
void zf_sim_slot_settle(struct zf_sim_slot *slot, struct zf_sim_block *block);
void zf_sim_slot_set_old(struct zf_sim_slot *slot, struct zf_sim_block *block);

#endif
