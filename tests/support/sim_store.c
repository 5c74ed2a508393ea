/* SPDX-License-Identifier: MIT */
#include "support/sim_store.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

void *sim_alloc(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		abort();
	return p;
}

/* ---- blocks ---- */

struct sim_block *sim_block_new(const void *bytes)
{
	struct sim_block *block = malloc(sizeof(*block));

	if (!block)
		abort();
	block->refs = 1;
	block->digest = 0;
	memcpy(block->bytes, bytes, sizeof(block->bytes));
	return block;
}

struct sim_block *sim_block_zero(void)
{
	static struct sim_block zero = {.refs = 1};

	return sim_block_ref(&zero);
}

struct sim_block *sim_block_ref(struct sim_block *block)
{
	if (block)
		block->refs++;
	return block;
}

void sim_block_unref(struct sim_block *block)
{
	if (block && --block->refs == 0)
		free(block);
}

/* ---- versions ---- */

static struct sim_version *version_new(struct sim_block *block, uint64_t stamp,
				       struct sim_version *before)
{
	struct sim_version *v = sim_alloc(sizeof(*v));

	*v = (struct sim_version){.refs = 1, .block = block, .stamp = stamp, .before = before};
	return v;
}

static struct sim_version *version_ref(struct sim_version *v)
{
	if (v)
		v->refs++;
	return v;
}

static void version_unref(struct sim_version *v)
{
	while (v && --v->refs == 0) {
		struct sim_version *before = v->before;

		sim_block_unref(v->block);
		free(v);
		v = before;
	}
}

static struct sim_version *version_own(struct sim_version **link)
{
	struct sim_version *v = *link;

	if (v->refs > 1) {
		*link = version_new(sim_block_ref(v->block), v->stamp, version_ref(v->before));
		version_unref(v);
	}
	return *link;
}

/* ---- slots ---- */

const struct sim_block *sim_slot_read(const struct sim_slot *slot)
{
	return slot->now ? slot->now->block : slot->old;
}

/* Nothing behind a durable version can come back. */
static void forget_before_durable(struct sim_slot *slot, uint64_t flushed)
{
	struct sim_version **link = &slot->now;

	while (*link) {
		struct sim_version *v = *link;

		if (v->stamp <= flushed) {
			if (v->before) {
				v = version_own(link);
				version_unref(v->before);
				v->before = NULL;
			}
			return;
		}
		link = &version_own(link)->before;
	}
}

void sim_slot_write(struct sim_slot *slot, struct sim_block *block, bool keep, uint64_t flushed)
{
	if (keep) {
		forget_before_durable(slot, flushed);
	} else {
		version_unref(slot->now);
		slot->now = NULL;
	}
	slot->now = version_new(sim_block_ref(block), SIM_STAMP_FLIGHT, slot->now);
}

void sim_slot_complete(struct sim_slot *slot, const struct sim_block *block, uint64_t stamp)
{
	struct sim_version **link = &slot->now;

	while (*link) {
		struct sim_version *v = version_own(link);

		if (v->block == block && v->stamp == SIM_STAMP_FLIGHT) {
			v->stamp = stamp;
			return;
		}
		link = &v->before;
	}
}

void sim_slot_lose(struct sim_slot *slot, uint64_t flushed, struct sim_block *block)
{
	struct sim_version **link = &slot->now;
	struct sim_block *was;

	while (*link && (*link)->stamp > flushed) {
		version_own(link)->stamp = SIM_STAMP_FLIGHT;
		link = &(*link)->before;
	}
	if (!block)
		return;
	was = slot->now->block;
	slot->now->block = sim_block_ref(block);
	sim_block_unref(was);
}

void sim_slot_settle(struct sim_slot *slot, struct sim_block *block)
{
	struct sim_version *was = slot->now;

	slot->now = block ? version_new(sim_block_ref(block), SIM_STAMP_DURABLE, NULL) : NULL;
	version_unref(was);
}

void sim_slot_set_old(struct sim_slot *slot, struct sim_block *block)
{
	struct sim_block *was = slot->old;

	slot->old = sim_block_ref(block);
	sim_block_unref(was);
}

/* ---- zones ---- */

struct sim_zone *sim_zone_new(uint32_t slot_count)
{
	struct sim_zone *zone = sim_alloc(sizeof(*zone) + slot_count * sizeof(zone->slots[0]));

	zone->refs = 1;
	zone->slot_count = slot_count;
	return zone;
}

struct sim_zone *sim_zone_ref(struct sim_zone *zone)
{
	zone->refs++;
	return zone;
}

void sim_zone_unref(struct sim_zone *zone)
{
	if (--zone->refs > 0)
		return;
	for (uint32_t i = 0; i < zone->slot_count; i++) {
		version_unref(zone->slots[i].now);
		sim_block_unref(zone->slots[i].old);
	}
	free(zone);
}

struct sim_zone *sim_zone_own(struct sim_zone **zone)
{
	struct sim_zone *shared = *zone, *own;

	if (shared->refs == 1) {
		shared->digest_count = 0;
		return shared;
	}
	own = sim_zone_new(shared->slot_count);
	own->floor = shared->floor;
	for (uint32_t i = 0; i < shared->slot_count; i++) {
		own->slots[i].now = version_ref(shared->slots[i].now);
		own->slots[i].old = sim_block_ref(shared->slots[i].old);
	}
	shared->refs--;
	*zone = own;
	return own;
}

static uint64_t block_digest(struct sim_block *block)
{
	if (block && block->digest == 0)
		block->digest = zf_hash64(block->bytes, sizeof(block->bytes)) | 1;
	return block ? block->digest : 0;
}

uint64_t sim_zone_digest(struct sim_zone *zone, uint32_t slot_count)
{
	uint64_t digest = 0;

	if (slot_count == 0)
		return 0;
	if (zone->digest_count == slot_count)
		return zone->digest;
	for (uint32_t i = 0; i < slot_count; i++) {
		const struct sim_slot *slot = &zone->slots[i];

		digest = (digest ^ block_digest(slot->now ? slot->now->block : slot->old)) *
			 UINT64_C(0x9e3779b97f4a7c15);
		digest ^= digest >> 29;
	}
	zone->digest = digest;
	zone->digest_count = slot_count;
	return digest;
}
