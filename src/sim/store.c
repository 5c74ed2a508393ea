/* SPDX-License-Identifier: MIT */
#include "sim/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

void *zf_sim_alloc(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		abort();
	return p;
}

/* ---- blocks ---- */

struct zf_sim_block *zf_sim_block_new(const void *bytes)
{
	struct zf_sim_block *block = malloc(sizeof(*block));

	if (!block)
		abort();
	block->refs = 1;
	block->digest = 0;
	memcpy(block->bytes, bytes, sizeof(block->bytes));
	return block;
}

struct zf_sim_block *zf_sim_block_zero(void)
{
	static struct zf_sim_block zero = {.refs = 1};

	return zf_sim_block_ref(&zero);
}

struct zf_sim_block *zf_sim_block_ref(struct zf_sim_block *block)
{
	if (block)
		block->refs++;
	return block;
}

void zf_sim_block_unref(struct zf_sim_block *block)
{
	if (block && --block->refs == 0)
		free(block);
}

/* ---- versions ---- */

static struct zf_sim_version *version_new(struct zf_sim_block *block, uint64_t stamp,
					  struct zf_sim_version *before)
{
	struct zf_sim_version *v = zf_sim_alloc(sizeof(*v));

	*v = (struct zf_sim_version){.refs = 1, .block = block, .stamp = stamp, .before = before};
	return v;
}

static struct zf_sim_version *version_ref(struct zf_sim_version *v)
{
	if (v)
		v->refs++;
	return v;
}

static void version_unref(struct zf_sim_version *v)
{
	while (v && --v->refs == 0) {
		struct zf_sim_version *before = v->before;

		zf_sim_block_unref(v->block);
		free(v);
		v = before;
	}
}

static struct zf_sim_version *version_own(struct zf_sim_version **link)
{
	struct zf_sim_version *v = *link;

	if (v->refs > 1) {
		*link = version_new(zf_sim_block_ref(v->block), v->stamp, version_ref(v->before));
		version_unref(v);
	}
	return *link;
}

/* ---- slots ---- */

const struct zf_sim_block *zf_sim_slot_read(const struct zf_sim_slot *slot)
{
	return slot->now ? slot->now->block : slot->old;
}

/* Versions before a durable one cannot come back. */
static void forget_before_durable(struct zf_sim_slot *slot, uint64_t flushed)
{
	struct zf_sim_version **link = &slot->now;

	while (*link) {
		struct zf_sim_version *v = *link;

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

void zf_sim_slot_write(struct zf_sim_slot *slot, struct zf_sim_block *block, bool keep,
		       uint64_t flushed)
{
	if (keep) {
		forget_before_durable(slot, flushed);
	} else {
		version_unref(slot->now);
		slot->now = NULL;
	}
	slot->now = version_new(zf_sim_block_ref(block), SIM_STAMP_FLIGHT, slot->now);
}

void zf_sim_slot_complete(struct zf_sim_slot *slot, const struct zf_sim_block *block,
			  uint64_t stamp)
{
	struct zf_sim_version **link = &slot->now;

	while (*link) {
		struct zf_sim_version *v = version_own(link);

		if (v->block == block && v->stamp == SIM_STAMP_FLIGHT) {
			v->stamp = stamp;
			return;
		}
		link = &v->before;
	}
}

void zf_sim_slot_lose(struct zf_sim_slot *slot, uint64_t flushed, struct zf_sim_block *block)
{
	struct zf_sim_version **link = &slot->now;
	struct zf_sim_block *was;

	while (*link && (*link)->stamp > flushed) {
		version_own(link)->stamp = SIM_STAMP_FLIGHT;
		link = &(*link)->before;
	}
	if (!block)
		return;
	was = slot->now->block;
	slot->now->block = zf_sim_block_ref(block);
	zf_sim_block_unref(was);
}

void zf_sim_slot_settle(struct zf_sim_slot *slot, struct zf_sim_block *block)
{
	struct zf_sim_version *was = slot->now;

	slot->now = block ? version_new(zf_sim_block_ref(block), SIM_STAMP_DURABLE, NULL) : NULL;
	version_unref(was);
}

void zf_sim_slot_set_old(struct zf_sim_slot *slot, struct zf_sim_block *block)
{
	struct zf_sim_block *was = slot->old;

	slot->old = zf_sim_block_ref(block);
	zf_sim_block_unref(was);
}

/* ---- zones ---- */

struct zf_sim_zone *zf_sim_zone_new(uint32_t slot_count)
{
	struct zf_sim_zone *zone =
		zf_sim_alloc(sizeof(*zone) + slot_count * sizeof(zone->slots[0]));

	zone->refs = 1;
	zone->slot_count = slot_count;
	return zone;
}

struct zf_sim_zone *zf_sim_zone_ref(struct zf_sim_zone *zone)
{
	zone->refs++;
	return zone;
}

void zf_sim_zone_unref(struct zf_sim_zone *zone)
{
	if (--zone->refs > 0)
		return;
	for (uint32_t i = 0; i < zone->slot_count; i++) {
		version_unref(zone->slots[i].now);
		zf_sim_block_unref(zone->slots[i].old);
	}
	free(zone);
}

struct zf_sim_zone *zf_sim_zone_own(struct zf_sim_zone **zone)
{
	struct zf_sim_zone *shared = *zone, *own;

	if (shared->refs == 1) {
		shared->digest_count = 0;
		return shared;
	}
	own = zf_sim_zone_new(shared->slot_count);
	own->floor = shared->floor;
	for (uint32_t i = 0; i < shared->slot_count; i++) {
		own->slots[i].now = version_ref(shared->slots[i].now);
		own->slots[i].old = zf_sim_block_ref(shared->slots[i].old);
	}
	shared->refs--;
	*zone = own;
	return own;
}

static uint64_t block_digest(struct zf_sim_block *block)
{
	if (block && block->digest == 0)
		block->digest = zf_hash64(block->bytes, sizeof(block->bytes)) | 1;
	return block ? block->digest : 0;
}

uint64_t zf_sim_zone_digest(struct zf_sim_zone *zone, uint32_t slot_count)
{
	uint64_t digest = 0;

	if (slot_count == 0)
		return 0;
	if (zone->digest_count == slot_count)
		return zone->digest;
	for (uint32_t i = 0; i < slot_count; i++) {
		const struct zf_sim_slot *slot = &zone->slots[i];

		digest = (digest ^ block_digest(slot->now ? slot->now->block : slot->old)) *
			 UINT64_C(0x9e3779b97f4a7c15);
		digest ^= digest >> 29;
	}
	zone->digest = digest;
	zone->digest_count = slot_count;
	return digest;
}
