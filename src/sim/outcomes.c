/* SPDX-License-Identifier: MIT */
/*
 * The cut, outcome by outcome: which commands in flight were carried out, and the fate of each
 * write that was not durable. Each write is taken as a whole, so there are few outcomes.
 * zf_sim_crash() draws combinations of single blocks and sectors.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "sim/sim_internal.h"

/* ---- the writes that a cut decides on ---- */

enum fate {
	FATE_WHOLE,
	FATE_ZEROES,
	FATE_TORN,  /* half of the sectors of its last block are missing */
	FATE_LOST,  /* the pointer stands before the write, if nothing behind it survived */
	FATE_OLD,   /* the zone's former life is read again */
	FATE_FIRST, /* only its first block survived */
	FATE_COUNT,
};

#define VERSIONS_MAX 16u

/* Blocks of one zone that one command wrote; one block if the zone is conventional. */
struct unit {
	uint32_t zone_no, first, count;
	unsigned int fate_count;
	enum fate fates[FATE_COUNT]; /* sequential zones; in others a choice is a version's index,
					the last a torn one */
};

struct units {
	struct unit *unit;
	uint32_t count, room;
};

static struct unit *add_unit(struct units *units, uint32_t zone_no, uint32_t first, uint32_t count)
{
	if (units->count == units->room) {
		units->room = units->room * 2 + 8;
		units->unit = realloc(units->unit, units->room * sizeof(*units->unit));
		if (!units->unit)
			abort();
	}
	units->unit[units->count] =
		(struct unit){.zone_no = zone_no, .first = first, .count = count};
	return &units->unit[units->count++];
}

static void add_fate(struct unit *unit, enum fate fate)
{
	unit->fates[unit->fate_count++] = fate;
}

static uint32_t pointer_of(const struct zf_sim *sim, uint32_t zone_no)
{
	return (uint32_t)(sim->rules.zones[zone_no].wp / ZF_BLOCK_SIZE);
}

static void find_fates(const struct zf_sim *sim, const struct zf_sim_zone *zone, struct unit *unit)
{
	uint32_t lowest = zf_sim_lowest_pointer(sim, zone, pointer_of(sim, unit->zone_no));
	bool has_old = false;

	for (uint32_t i = 0; i < unit->count; i++)
		has_old |= zone->slots[unit->first + i].old != NULL;
	add_fate(unit, FATE_WHOLE);
	add_fate(unit, FATE_ZEROES);
	add_fate(unit, FATE_TORN);
	if (unit->first >= lowest && zf_sim_may_shrink(sim, unit->zone_no))
		add_fate(unit, FATE_LOST);
	if (has_old)
		add_fate(unit, FATE_OLD);
	if (unit->count > 1)
		add_fate(unit, FATE_FIRST);
}

static bool begins_command(const struct zf_sim *sim, uint64_t addr)
{
	for (uint32_t i = 0; i < sim->flight_count; i++) {
		if (sim->flight[i].executed && sim->flight[i].addr == addr)
			return true;
	}
	return false;
}

/* Each completion has its own stamp, so blocks with the same stamp are of one command. */
static uint32_t unit_end(const struct zf_sim *sim, uint32_t zone_no, uint32_t first, uint32_t wp)
{
	const struct zf_sim_slot *slots = sim->zones[zone_no]->slots;
	uint64_t start = zone_no * sim->rules.geometry.zone_size;
	uint32_t end = first + 1;

	while (end < wp && slots[end].now && slots[end].now->stamp == slots[first].now->stamp &&
	       !begins_command(sim, start + end * (uint64_t)ZF_BLOCK_SIZE))
		end++;
	return end;
}

static void find_sequential(const struct zf_sim *sim, uint32_t zone_no, struct units *units)
{
	const struct zf_sim_zone *zone = sim->zones[zone_no];
	uint32_t wp = pointer_of(sim, zone_no), end;

	for (uint32_t i = 0; i < wp; i = end) {
		end = i + 1;
		/* Blocks never written stay as they are (the zone may have been finished). */
		if (!zone->slots[i].now || zf_sim_is_durable(sim, &zone->slots[i]))
			continue;
		end = unit_end(sim, zone_no, i, wp);
		find_fates(sim, zone, add_unit(units, zone_no, i, end - i));
	}
}

static void find_conventional(const struct zf_sim *sim, uint32_t zone_no, struct units *units)
{
	struct zf_sim_block *blocks[VERSIONS_MAX + 1];

	for (uint32_t i = 0; i < sim->zones[zone_no]->slot_count; i++) {
		const struct zf_sim_slot *slot = &sim->zones[zone_no]->slots[i];

		if (!slot->now || zf_sim_is_durable(sim, slot))
			continue;
		add_unit(units, zone_no, i, 1)->fate_count =
			1 + zf_sim_versions(sim, slot, NULL, blocks, VERSIONS_MAX);
	}
}

static struct units find_units(const struct zf_sim *sim)
{
	struct units units = {0};

	for (uint32_t i = 0; i < sim->rules.geometry.zone_count; i++) {
		if (i < sim->rules.geometry.conventional)
			find_conventional(sim, i, &units);
		else
			find_sequential(sim, i, &units);
	}
	return units;
}

/* ---- the fates of these writes ---- */

static struct zf_sim_block *half(struct zf_sim_block *written, struct zf_sim_block *other)
{
	struct zf_sim_block *zero = zf_sim_block_zero();
	struct zf_sim_block *torn = zf_sim_block_new(written->bytes);

	memcpy(torn->bytes + ZF_BLOCK_SIZE / 2, (other ? other : zero)->bytes + ZF_BLOCK_SIZE / 2,
	       ZF_BLOCK_SIZE / 2);
	zf_sim_block_unref(zero);
	return torn;
}

static struct zf_sim_block *fated(const struct zf_sim_slot *slot, enum fate fate, uint32_t index,
				  uint32_t count)
{
	switch (fate) {
	case FATE_WHOLE:
		return zf_sim_block_ref(slot->now->block);
	case FATE_TORN:
		return index == count - 1 ? half(slot->now->block, slot->old)
					  : zf_sim_block_ref(slot->now->block);
	case FATE_OLD:
		return slot->old ? zf_sim_block_ref(slot->old) : zf_sim_block_zero();
	case FATE_FIRST:
		return index == 0 ? zf_sim_block_ref(slot->now->block) : zf_sim_block_zero();
	default:
		return zf_sim_block_zero();
	}
}

static void settle_unit(struct zf_sim *sim, const struct unit *unit, enum fate fate)
{
	struct zf_sim_zone *zone = zf_sim_zone_own(&sim->zones[unit->zone_no]);

	for (uint32_t i = 0; i < unit->count; i++) {
		struct zf_sim_slot *slot = &zone->slots[unit->first + i];
		struct zf_sim_block *block = fated(slot, fate, i, unit->count);

		zf_sim_slot_settle(slot, block);
		zf_sim_block_unref(block);
	}
}

static void lose_unit(struct zf_sim *sim, const struct unit *unit)
{
	struct zf_sim_zone *zone = zf_sim_zone_own(&sim->zones[unit->zone_no]);

	for (uint32_t i = 0; i < unit->count; i++) {
		struct zf_sim_slot *slot = &zone->slots[unit->first + i];

		zf_sim_slot_set_old(slot, slot->now->block);
		zf_sim_slot_settle(slot, NULL);
	}
	zf_sim_set_pointer(sim, unit->zone_no, unit->first);
}

static void settle_version(struct zf_sim *sim, const struct unit *unit, unsigned int which)
{
	struct zf_sim_slot *slot = &zf_sim_zone_own(&sim->zones[unit->zone_no])->slots[unit->first];
	struct zf_sim_block *blocks[VERSIONS_MAX + 1], *zero = zf_sim_block_zero(), *block;
	uint32_t n = zf_sim_versions(sim, slot, zero, blocks, VERSIONS_MAX);

	block = which < n ? zf_sim_block_ref(blocks[which]) : half(blocks[0], blocks[n - 1]);
	zf_sim_slot_settle(slot, block);
	zf_sim_block_unref(block);
	zf_sim_block_unref(zero);
}

/* From the last write to the first: only writes at the zone's end can be lost with the pointer. */
static void settle(struct zf_sim *sim, const struct units *units, const unsigned int *choices)
{
	for (uint32_t i = units->count; i-- > 0;) {
		const struct unit *unit = &units->unit[i];
		enum fate fate = unit->fates[choices[i]];

		if (unit->zone_no < sim->rules.geometry.conventional)
			settle_version(sim, unit, choices[i]);
		else if (fate == FATE_LOST &&
			 unit->first + unit->count == pointer_of(sim, unit->zone_no))
			lose_unit(sim, unit);
		else
			settle_unit(sim, unit, fate);
	}
}

/* ---- which commands were carried out, and in which order ---- */

#define FLIGHT_MAX  5u	/* most undecided commands for which all subsets are listed */
#define FLIGHT_ROOM 32u /* most undecided commands from which a subset is drawn */

struct order {
	uint32_t mask; /* the undecided commands in flight that are carried out */
	bool backwards;
};

/* Indices of the commands that a cut decides on: not yet carried out, no reads, no flushes. */
static uint32_t undecided(const struct zf_sim *sim, uint32_t *ret_index, uint32_t room)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < sim->flight_count; i++) {
		const struct zf_sim_flight *f = &sim->flight[i];

		if (f->executed || f->command->op == ZF_IO_READ || f->command->op == ZF_IO_FLUSH)
			continue;
		if (n < room)
			ret_index[n] = i;
		n++;
	}
	return n;
}

/* Only appends can change places, so the opposite order needs two of them to differ. */
static bool has_two_appends(const struct zf_sim *sim, const uint32_t *index, uint32_t n,
			    uint32_t mask)
{
	unsigned int appends = 0;

	for (uint32_t i = 0; i < n; i++)
		appends += (mask >> i & 1) && sim->flight[index[i]].command->op == ZF_IO_APPEND;
	return appends > 1;
}

static void carry_out(struct zf_sim *sim, struct order order)
{
	uint32_t index[FLIGHT_ROOM];
	uint32_t n = undecided(sim, index, FLIGHT_ROOM);

	n = n < FLIGHT_ROOM ? n : FLIGHT_ROOM;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t k = order.backwards ? n - 1 - i : i;

		if (order.mask >> k & 1)
			zf_sim_execute(sim, index[k]);
	}
}

/* Subtracts the outcomes of this order from *n. False: the nth outcome is one of this order. */
static bool skip_order(const struct zf_sim *sim, struct order order, uint64_t *n)
{
	struct zf_sim *clone = zf_sim_clone(sim);
	struct units units;
	uint64_t product = 1;

	carry_out(clone, order);
	units = find_units(clone);
	for (uint32_t i = 0; i < units.count && product <= *n; i++)
		product *= units.unit[i].fate_count;
	free(units.unit);
	zf_sim_free(clone);
	if (product > *n)
		return false;
	*n -= product;
	return true;
}

/* The order of the nth outcome; *n becomes its number within that order. False: there is none. */
static bool find_order(const struct zf_sim *sim, uint64_t *n, struct order *ret_order)
{
	uint32_t index[FLIGHT_MAX];
	uint32_t count = undecided(sim, index, FLIGHT_MAX);

	assert(count <= FLIGHT_MAX);
	for (uint32_t mask = 0; mask < UINT32_C(1) << count; mask++) {
		for (unsigned int back = 0; back < 2; back++) {
			*ret_order = (struct order){.mask = mask, .backwards = back};
			if (back && !has_two_appends(sim, index, count, mask))
				continue;
			if (!skip_order(sim, *ret_order, n))
				return true;
		}
	}
	return false;
}

/* ---- one outcome ---- */

uint64_t zf_sim_outcomes(const struct zf_sim *sim, uint64_t most)
{
	struct order order;
	uint64_t left = most;

	if (undecided(sim, NULL, 0) > FLIGHT_MAX || find_order(sim, &left, &order))
		return most + 1;
	return most - left;
}

static void crash(struct zf_sim *sim, struct order order, uint64_t n, struct zf_rng *rng)
{
	struct units units;
	unsigned int *choices;

	carry_out(sim, order);
	units = find_units(sim);
	choices = zf_sim_alloc(units.count * sizeof(*choices) + 1);
	for (uint32_t i = 0; i < units.count; i++) {
		unsigned int count = units.unit[i].fate_count;

		choices[i] = (unsigned int)(rng ? zf_rng_below(rng, count) : n % count);
		n /= count;
	}
	zf_sim_forget_flight(sim);
	settle(sim, &units, choices);
	zf_sim_power_cycle(sim);
	free(choices);
	free(units.unit);
}

void zf_sim_crash_nth(struct zf_sim *sim, uint64_t n)
{
	struct order order;
	bool found = find_order(sim, &n, &order);

	assert(found && !sim->dev);
	crash(sim, order, n, NULL);
}

void zf_sim_crash_some(struct zf_sim *sim, uint64_t seed)
{
	struct zf_rng rng;
	struct order order;

	assert(!sim->dev);
	zf_rng_seed(&rng, seed);
	order.mask = (uint32_t)zf_rng_next(&rng);
	order.backwards = zf_rng_chance(&rng, 50);
	crash(sim, order, 0, &rng);
}
