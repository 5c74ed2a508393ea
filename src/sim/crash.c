/* SPDX-License-Identifier: MIT */
/* The cut: draws one of the states that the fault model in sim.h allows afterwards. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "sim/sim_internal.h"

#define SECTOR 512

/*
 * If each block were drawn by itself, the extremes would never occur: a long zone that survives
 * completely, or not at all. So a mood is drawn for each zone first.
 */
enum mood {
	MOOD_ALL,  /* everything survives */
	MOOD_NONE, /* only durable parts survive */
	MOOD_DICE,
	MOOD_COUNT,
};

static enum mood draw_mood(struct zf_rng *rng)
{
	return (enum mood)zf_rng_below(rng, MOOD_COUNT);
}

/* ---- what was in flight ---- */

static uint32_t *shuffled(struct zf_rng *rng, uint32_t n)
{
	uint32_t *order = zf_sim_alloc(n * sizeof(*order) + 1);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t j = (uint32_t)zf_rng_below(rng, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	return order;
}

static void execute_some(struct zf_sim *sim, struct zf_rng *rng)
{
	uint32_t *order = shuffled(rng, sim->flight_count);
	enum mood mood = draw_mood(rng);

	for (uint32_t i = 0; i < sim->flight_count; i++) {
		if (mood == MOOD_ALL || (mood == MOOD_DICE && zf_rng_chance(rng, 50)))
			zf_sim_execute(sim, order[i]);
	}
	zf_sim_forget_flight(sim);
	free(order);
}

/* ---- one block ---- */

/* Always the same bytes, so that two states that differ only in garbage count as one. */
struct zf_sim_block *zf_sim_block_garbage(void)
{
	static struct zf_sim_block *block;
	uint8_t bytes[ZF_BLOCK_SIZE];
	struct zf_rng rng;

	if (!block) {
		zf_rng_seed(&rng, 0);
		zf_rng_fill(&rng, bytes, sizeof(bytes));
		block = zf_sim_block_new(bytes);
	}
	return zf_sim_block_ref(block);
}

/* Draws what a non-durable block below the pointer may hold. Returns a reference. */
static struct zf_sim_block *draw_loss(struct zf_rng *rng, struct zf_sim_block *written,
				      struct zf_sim_block *old)
{
	switch (zf_rng_below(rng, 4)) {
	case 0:
		return old ? zf_sim_block_ref(old) : zf_sim_block_zero();
	case 1:
		return zf_sim_block_garbage();
	case 2:
		return zf_sim_block_zero();
	default:
		return written ? zf_sim_block_ref(written) : zf_sim_block_zero();
	}
}

static struct zf_sim_block *tear(struct zf_rng *rng, struct zf_sim_block *a, struct zf_sim_block *b)
{
	struct zf_sim_block *torn = zf_sim_block_new(a->bytes);

	for (size_t at = 0; at < ZF_BLOCK_SIZE; at += SECTOR) {
		if (zf_rng_chance(rng, 50))
			memcpy(torn->bytes + at, b->bytes + at, SECTOR);
	}
	return torn;
}

static struct zf_sim_block *draw_block(struct zf_rng *rng, const struct zf_sim_slot *slot)
{
	struct zf_sim_block *written = slot->now ? slot->now->block : NULL;
	struct zf_sim_block *loss = draw_loss(rng, written, slot->old);
	struct zf_sim_block *torn;

	if (!written || zf_rng_chance(rng, 75))
		return loss;
	torn = tear(rng, written, loss);
	zf_sim_block_unref(loss);
	return torn;
}

/* ---- a sequential zone ---- */

uint32_t zf_sim_lowest_pointer(const struct zf_sim *sim, const struct zf_sim_zone *zone,
			       uint32_t wp)
{
	uint32_t lowest = (uint32_t)(zone->floor / ZF_BLOCK_SIZE);

	for (uint32_t i = wp; i > lowest; i--) {
		if (zf_sim_is_durable(sim, &zone->slots[i - 1]))
			return i;
	}
	return lowest;
}

static uint32_t draw_pointer(struct zf_rng *rng, enum mood mood, uint32_t lowest, uint32_t wp)
{
	switch (mood) {
	case MOOD_ALL:
		return wp;
	case MOOD_NONE:
		return lowest;
	default:
		return lowest + (uint32_t)zf_rng_below(rng, wp - lowest + 1);
	}
}

static void settle_slot(const struct zf_sim *sim, struct zf_rng *rng, enum mood mood,
			struct zf_sim_slot *slot)
{
	struct zf_sim_block *block;

	if (zf_sim_is_durable(sim, slot))
		return;
	if (mood == MOOD_ALL && slot->now)
		block = zf_sim_block_ref(slot->now->block);
	else
		block = draw_block(rng, slot);
	zf_sim_slot_settle(slot, block);
	zf_sim_block_unref(block);
}

/* For a slot above the pointer: reads may still show the lost block, or the former contents. */
static void lose_slot(struct zf_rng *rng, struct zf_sim_slot *slot)
{
	if (slot->now && zf_rng_chance(rng, 50))
		zf_sim_slot_set_old(slot, slot->now->block);
	zf_sim_slot_settle(slot, NULL);
}

/*
 * In blocks: the end of what was written. After a cut of the host, until the first change, the
 * pointer in the rules is only a lower bound of it.
 */
static uint32_t highest_pointer(const struct zf_sim *sim, uint32_t zone_no)
{
	const struct zf_sim_zone *zone = sim->zones[zone_no];
	uint32_t wp = (uint32_t)(sim->rules.zones[zone_no].wp / ZF_BLOCK_SIZE);

	for (uint32_t i = zone->slot_count; sim->lower_bounds && i > wp; i--) {
		if (zone->slots[i - 1].now)
			return i;
	}
	return wp;
}

static bool is_settled(const struct zf_sim *sim, const struct zf_sim_zone *zone, uint32_t wp)
{
	for (uint32_t i = 0; i < wp; i++) {
		if (!zf_sim_is_durable(sim, &zone->slots[i]))
			return false;
	}
	return true;
}

/* Returns the surviving pointer, in blocks. */
static uint32_t settle_zone(struct zf_sim *sim, struct zf_rng *rng, uint32_t zone_no, uint32_t wp,
			    bool may_shrink)
{
	enum mood mood = draw_mood(rng);
	struct zf_sim_zone *zone;
	uint32_t pointer;

	if (is_settled(sim, sim->zones[zone_no], wp))
		return wp;
	zone = zf_sim_zone_own(&sim->zones[zone_no]);
	pointer = draw_pointer(rng, may_shrink ? mood : MOOD_ALL,
			       zf_sim_lowest_pointer(sim, zone, wp), wp);
	for (uint32_t i = 0; i < pointer; i++)
		settle_slot(sim, rng, mood, &zone->slots[i]);
	for (uint32_t i = pointer; i < zone->slot_count; i++)
		lose_slot(rng, &zone->slots[i]);
	zone->floor = pointer * (uint64_t)ZF_BLOCK_SIZE;
	return pointer;
}

void zf_sim_set_pointer(struct zf_sim *sim, uint32_t zone_no, uint32_t pointer)
{
	struct zf_zone_state *state = &sim->rules.zones[zone_no];

	state->wp = pointer * (uint64_t)ZF_BLOCK_SIZE;
	if (state->cond == ZF_ZONE_READONLY || state->cond == ZF_ZONE_OFFLINE)
		return;
	if (pointer == 0)
		state->cond = ZF_ZONE_EMPTY;
	else if (state->wp == sim->rules.geometry.zone_capacity)
		state->cond = ZF_ZONE_FULL;
	else
		state->cond = ZF_ZONE_CLOSED;
	zf_zone_rules_recount(&sim->rules);
}

/* A full zone whose pointer shrinks becomes active; a device never has too many active zones. */
bool zf_sim_may_shrink(const struct zf_sim *sim, uint32_t zone_no)
{
	const struct zf_zone_rules *rules = &sim->rules;

	return rules->zones[zone_no].cond != ZF_ZONE_FULL || rules->geometry.max_active == 0 ||
	       rules->active_count < rules->geometry.max_active;
}

void zf_sim_settle_below(struct zf_sim *sim, uint32_t zone_no, uint32_t pointer)
{
	for (uint32_t i = 0; i < pointer; i++) {
		const struct zf_sim_slot *slot = &sim->zones[zone_no]->slots[i];
		struct zf_sim_block *block;

		if (slot->now)
			continue;
		block = slot->old ? zf_sim_block_ref(slot->old) : zf_sim_block_zero();
		zf_sim_slot_settle(&zf_sim_zone_own(&sim->zones[zone_no])->slots[i], block);
		zf_sim_block_unref(block);
	}
}

static void crash_sequential(struct zf_sim *sim, struct zf_rng *rng, uint32_t zone_no,
			     enum zf_sim_cut cut)
{
	uint32_t wp = highest_pointer(sim, zone_no), pointer;

	if (wp == 0)
		return;
	pointer = settle_zone(sim, rng, zone_no, wp, zf_sim_may_shrink(sim, zone_no));
	if (cut == ZF_SIM_CUT_HOST) {
		pointer = draw_pointer(rng, draw_mood(rng), 0, wp);
		zf_sim_settle_below(sim, zone_no, pointer);
	}
	zf_sim_set_pointer(sim, zone_no, pointer);
}

/* ---- a conventional zone ---- */

uint32_t zf_sim_versions(const struct zf_sim *sim, const struct zf_sim_slot *slot,
			 struct zf_sim_block *base, struct zf_sim_block **ret_blocks, uint32_t room)
{
	uint32_t n = 0;

	for (const struct zf_sim_version *v = slot->now; v; v = v->before) {
		ret_blocks[n++] = v->block;
		if (v->stamp <= sim->flushed || n == room)
			return n;
	}
	ret_blocks[n++] = base;
	return n;
}

#define CANDIDATES 16

static struct zf_sim_block *draw_version(const struct zf_sim *sim, struct zf_rng *rng,
					 enum mood mood, const struct zf_sim_slot *slot)
{
	struct zf_sim_block *zero = zf_sim_block_zero();
	struct zf_sim_block *blocks[CANDIDATES + 1];
	uint32_t n = zf_sim_versions(sim, slot, zero, blocks, CANDIDATES);
	struct zf_sim_block *a = blocks[zf_rng_below(rng, n)], *b = blocks[zf_rng_below(rng, n)];
	struct zf_sim_block *drawn;

	if (mood == MOOD_ALL)
		drawn = zf_sim_block_ref(blocks[0]);
	else if (mood == MOOD_NONE)
		drawn = zf_sim_block_ref(blocks[n - 1]);
	else
		drawn = zf_rng_chance(rng, 50) ? zf_sim_block_ref(a) : tear(rng, a, b);
	zf_sim_block_unref(zero);
	return drawn;
}

static void crash_conventional(struct zf_sim *sim, struct zf_rng *rng, uint32_t zone_no)
{
	enum mood mood = draw_mood(rng);

	for (uint32_t i = 0; i < sim->zones[zone_no]->slot_count; i++) {
		const struct zf_sim_slot *slot = &sim->zones[zone_no]->slots[i];
		struct zf_sim_block *block;

		if (!slot->now || zf_sim_is_durable(sim, slot))
			continue;
		block = draw_version(sim, rng, mood, slot);
		zf_sim_slot_settle(&zf_sim_zone_own(&sim->zones[zone_no])->slots[i], block);
		zf_sim_block_unref(block);
	}
}

/* ---- a cache that a failed flush has lost ---- */

static bool is_cached(const struct zf_sim *sim, const struct zf_sim_slot *slot)
{
	return slot->now && slot->now->stamp > sim->flushed && slot->now->stamp != SIM_STAMP_FLIGHT;
}

/* In a conventional zone (clause 7) reads stay the same; a cut may bring an older version back. */
static void lose_cached(struct zf_sim *sim, uint32_t zone_no, uint32_t i, enum mood mood)
{
	struct zf_sim_slot *slot = &zf_sim_zone_own(&sim->zones[zone_no])->slots[i];
	struct zf_sim_block *block = NULL;

	if (zone_no >= sim->rules.geometry.conventional &&
	    (mood == MOOD_NONE || (mood == MOOD_DICE && zf_rng_chance(&sim->rng, 50))))
		block = draw_block(&sim->rng, slot);
	zf_sim_slot_lose(slot, sim->flushed, block);
	zf_sim_block_unref(block);
}

void zf_sim_lose_cache(struct zf_sim *sim)
{
	for (uint32_t z = 0; z < sim->rules.geometry.zone_count; z++) {
		enum mood mood = draw_mood(&sim->rng);

		for (uint32_t i = 0; i < sim->zones[z]->slot_count; i++) {
			if (is_cached(sim, &sim->zones[z]->slots[i]))
				lose_cached(sim, z, i, mood);
		}
	}
}

/* ---- the cut ---- */

void zf_sim_power_cycle(struct zf_sim *sim)
{
	zf_zone_rules_power_cycle(&sim->rules);
	sim->flushed = sim->clock;
	sim->is_cut = false;
	sim->cut_at = 0;
	sim->fault_count = 0;
	sim->wear.zones_max = 0;
}

void zf_sim_forget_flight(struct zf_sim *sim)
{
	for (uint32_t i = 0; i < sim->flight_count; i++)
		zf_sim_command_unref(sim->flight[i].command);
	sim->flight_count = 0;
}

void zf_sim_crash(struct zf_sim *sim, uint64_t seed, enum zf_sim_cut cut)
{
	const struct zf_geometry *g = &sim->rules.geometry;
	struct zf_rng rng;

	assert(!sim->dev);
	zf_rng_seed(&rng, seed);
	execute_some(sim, &rng);
	for (uint32_t i = 0; i < g->zone_count; i++) {
		if (i < g->conventional)
			crash_conventional(sim, &rng, i);
		else
			crash_sequential(sim, &rng, i, cut);
	}
	sim->lower_bounds = sim->lower_bounds || cut == ZF_SIM_CUT_HOST;
	zf_sim_power_cycle(sim);
}
