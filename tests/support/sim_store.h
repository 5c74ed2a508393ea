/* SPDX-License-Identifier: MIT */
/*
 * What the simulator's zones hold: blocks with reference counts, copied when a clone shares them.
 *
 * A slot is one block of a zone. `now` is what was written in this life of the zone: one version in
 * a sequential zone; in a conventional one the newest, with those behind it that a cut may bring
 * back. `old` is what a sequential zone's former life left there.
 */
#ifndef ZF_TESTS_SIM_STORE_H
#define ZF_TESTS_SIM_STORE_H

#include <stdint.h>

#include "base/bits.h"

struct sim_block {
	uint32_t refs;
	uint64_t digest; /* of the bytes; 0: not known yet */
	uint8_t bytes[ZF_BLOCK_SIZE];
};

#define SIM_STAMP_DURABLE 0
#define SIM_STAMP_FLIGHT  UINT64_MAX /* not completed, or failed */

struct sim_version {
	uint32_t refs;
	struct sim_block *block;
	uint64_t stamp; /* when the write completed, on the simulator's clock */
	struct sim_version *before;
};

struct sim_slot {
	struct sim_version *now;
	struct sim_block *old;
};

struct sim_zone {
	uint32_t refs;
	uint32_t slot_count;
	uint32_t digest_count; /* `digest` is of so many slots; 0: not known */
	uint64_t digest;
	uint64_t floor; /* bytes: the pointer does not survive below it, durable blocks aside */
	struct sim_slot slots[];
};

void *sim_alloc(size_t size); /* zeroed; aborts when there is no memory */

struct sim_block *sim_block_new(const void *bytes);
struct sim_block *sim_block_zero(void); /* the one block of zeroes */
struct sim_block *sim_block_ref(struct sim_block *block);
void sim_block_unref(struct sim_block *block);

struct sim_zone *sim_zone_new(uint32_t slot_count);
struct sim_zone *sim_zone_ref(struct sim_zone *zone);
void sim_zone_unref(struct sim_zone *zone);

/* Makes *zone its holder's own, by a copy if it is shared, and returns it. */
struct sim_zone *sim_zone_own(struct sim_zone **zone);

/* Of what reads of the first `slot_count` slots find. */
uint64_t sim_zone_digest(struct sim_zone *zone, uint32_t slot_count);

/* What a read finds; NULL: never written. */
const struct sim_block *sim_slot_read(const struct sim_slot *slot);

/*
 * A write lands. With `keep`, versions down to the first that is durable at `flushed` stay behind
 * it.
 */
void sim_slot_write(struct sim_slot *slot, struct sim_block *block, bool keep, uint64_t flushed);

/* The write of this very block has completed. */
void sim_slot_complete(struct sim_slot *slot, const struct sim_block *block, uint64_t stamp);

/*
 * No version that has completed since `flushed` ever becomes durable. The newest reads as `block`
 * from now on; NULL: as before.
 */
void sim_slot_lose(struct sim_slot *slot, uint64_t flushed, struct sim_block *block);

/* The slot's only and durable content is from now on this; NULL: unwritten in this life. */
void sim_slot_settle(struct sim_slot *slot, struct sim_block *block);
void sim_slot_set_old(struct sim_slot *slot, struct sim_block *block);

#endif
