/* SPDX-License-Identifier: MIT */
#include "sim/sim.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "io/dev_ops.h"
#include "sim/sim_internal.h"

struct zf_sim_dev {
	struct zf_dev dev;
	struct zf_sim *sim;
};

static struct zf_sim *sim_of(struct zf_dev *dev)
{
	return ZF_CONTAINER_OF(dev, struct zf_sim_dev, dev)->sim;
}

/* ---- life ---- */

static struct zf_sim *sim_new(const struct zf_geometry *geometry)
{
	struct zf_sim *sim = zf_sim_alloc(sizeof(*sim));

	if (zf_zone_rules_init(&sim->rules, geometry) < 0)
		abort();
	sim->zones = zf_sim_alloc(geometry->zone_count * sizeof(*sim->zones));
	STAILQ_INIT(&sim->dead);
	return sim;
}

struct zf_sim *zf_sim_new(const struct zf_geometry *geometry, uint64_t seed)
{
	struct zf_sim *sim;

	assert(zf_geometry_check(geometry, NULL) == 0);
	sim = sim_new(geometry);
	for (uint32_t i = 0; i < geometry->zone_count; i++)
		sim->zones[i] = zf_sim_zone_new((uint32_t)(geometry->zone_size / ZF_BLOCK_SIZE));
	zf_rng_seed(&sim->rng, seed);
	return sim;
}

struct zf_sim *zf_sim_clone(const struct zf_sim *sim)
{
	const struct zf_geometry *g = &sim->rules.geometry;
	struct zf_sim *clone = sim_new(g);

	memcpy(clone->rules.zones, sim->rules.zones, g->zone_count * sizeof(*sim->rules.zones));
	zf_zone_rules_recount(&clone->rules);
	for (uint32_t i = 0; i < g->zone_count; i++)
		clone->zones[i] = zf_sim_zone_ref(sim->zones[i]);
	clone->rng = sim->rng;
	clone->clock = sim->clock;
	clone->flushed = sim->flushed;
	clone->lower_bounds = sim->lower_bounds;
	clone->late_op = sim->late_op;
	clone->late_percent = sim->late_percent;
	clone->commands = sim->commands;
	clone->flight_count = clone->flight_room = sim->flight_count;
	clone->flight = zf_sim_alloc(sim->flight_count * sizeof(*clone->flight) + 1);
	for (uint32_t i = 0; i < sim->flight_count; i++) {
		clone->flight[i] = sim->flight[i];
		clone->flight[i].io = NULL;
		clone->flight[i].command->refs++;
	}
	return clone;
}

void zf_sim_grow(struct zf_sim *sim, uint32_t zone_count)
{
	struct zf_zone_state *states = zf_sim_alloc(zone_count * sizeof(*states));
	uint32_t i = sim->rules.geometry.zone_count;

	assert(zone_count >= i);
	sim->zones = realloc(sim->zones, zone_count * sizeof(*sim->zones));
	if (!sim->zones)
		abort();
	for (; i < zone_count; i++)
		sim->zones[i] =
			zf_sim_zone_new((uint32_t)(sim->rules.geometry.zone_size / ZF_BLOCK_SIZE));
	free(zf_zone_rules_grow(&sim->rules, states, zone_count));
	if (sim->dev)
		sim->dev->dev.geometry.zone_count = zone_count;
}

void zf_sim_free(struct zf_sim *sim)
{
	if (!sim)
		return;
	assert(!sim->dev);
	for (uint32_t i = 0; i < sim->flight_count; i++)
		zf_sim_command_unref(sim->flight[i].command);
	for (uint32_t i = 0; i < sim->rules.geometry.zone_count; i++)
		zf_sim_zone_unref(sim->zones[i]);
	zf_zone_rules_deinit(&sim->rules);
	free(sim->flight);
	free(sim->faults);
	free(sim->zones);
	free(sim);
}

/* ---- knobs ---- */

uint64_t zf_sim_commands(const struct zf_sim *sim)
{
	return sim->commands;
}

void zf_sim_set_cut(struct zf_sim *sim, uint64_t n)
{
	sim->cut_at = n;
	sim->cut_error = -EIO;
}

bool zf_sim_is_cut(const struct zf_sim *sim)
{
	return sim->is_cut;
}

void zf_sim_observe(struct zf_sim *sim, void (*fn)(void *arg, const struct zf_sim *sim), void *arg)
{
	sim->observe = fn;
	sim->observe_arg = arg;
}

void zf_sim_set_late(struct zf_sim *sim, enum zf_io_op op, unsigned int percent)
{
	sim->late_op = op;
	sim->late_percent = percent;
}

void zf_sim_set_thread(struct zf_sim *sim, void (*wait)(struct zf_dev *dev))
{
	sim->thread_wait = wait;
}

void zf_sim_add_fault(struct zf_sim *sim, const struct zf_sim_fault *fault)
{
	assert(fault->nth > 0 && (fault->error < 0 || fault->kills_zone));
	sim->faults = realloc(sim->faults, (sim->fault_count + 1) * sizeof(*fault));
	if (!sim->faults)
		abort();
	sim->faults[sim->fault_count++] = *fault;
}

void zf_sim_set_wear(struct zf_sim *sim, const struct zf_sim_wear *wear)
{
	sim->wear = *wear;
}

unsigned int zf_sim_faults_left(const struct zf_sim *sim)
{
	return sim->fault_count;
}

void zf_sim_set_zone_cond(struct zf_sim *sim, uint32_t zone_no, enum zf_zone_cond cond)
{
	sim->rules.zones[zone_no].cond = cond;
	zf_zone_rules_recount(&sim->rules);
}

static const struct zf_sim_slot *slot_at(const struct zf_sim *sim, uint64_t addr)
{
	uint64_t zone_size = sim->rules.geometry.zone_size;

	return &sim->zones[addr / zone_size]->slots[addr % zone_size / ZF_BLOCK_SIZE];
}

static struct zf_sim_slot *own_slot_at(struct zf_sim *sim, uint64_t addr)
{
	uint64_t zone_size = sim->rules.geometry.zone_size;
	struct zf_sim_zone *zone = zf_sim_zone_own(&sim->zones[addr / zone_size]);

	return &zone->slots[addr % zone_size / ZF_BLOCK_SIZE];
}

void zf_sim_peek(const struct zf_sim *sim, uint64_t addr, void *ret_block)
{
	const struct zf_sim_block *block = zf_sim_slot_read(slot_at(sim, addr));

	if (block)
		memcpy(ret_block, block->bytes, ZF_BLOCK_SIZE);
	else
		memset(ret_block, 0, ZF_BLOCK_SIZE);
}

void zf_sim_poke(struct zf_sim *sim, uint64_t addr, const void *block)
{
	struct zf_sim_block *b = zf_sim_block_new(block);

	zf_sim_slot_settle(own_slot_at(sim, addr), b);
	zf_sim_block_unref(b);
}

uint64_t zf_sim_digest(const struct zf_sim *sim)
{
	const struct zf_geometry *g = &sim->rules.geometry;
	uint64_t digest = sim->lower_bounds;

	for (uint32_t i = 0; i < g->zone_count; i++) {
		const struct zf_zone_state *state = &sim->rules.zones[i];
		bool whole = i < g->conventional || sim->lower_bounds;
		uint32_t slots =
			whole ? sim->zones[i]->slot_count : (uint32_t)(state->wp / ZF_BLOCK_SIZE);

		digest = (digest ^ zf_sim_zone_digest(sim->zones[i], slots)) *
			 UINT64_C(0xd6e8feb86659fd93);
		digest ^= digest >> 32 ^ state->wp ^ (uint64_t)state->cond << 60;
	}
	return digest;
}

/* Removes the first fault that strikes now from the list. Every matching fault counts down. */
static bool strike(struct zf_sim *sim, enum zf_io_op op, uint64_t addr,
		   struct zf_sim_fault *ret_fault)
{
	uint64_t zone_no = addr / sim->rules.geometry.zone_size;
	bool struck = false;

	for (unsigned int i = 0; i < sim->fault_count; i++) {
		struct zf_sim_fault *fault = &sim->faults[i];

		if ((fault->op != ZF_SIM_ANY_OP && fault->op != op) || zone_no < fault->first_zone)
			continue;
		if (fault->nth > 1) {
			fault->nth--;
		} else if (!struck) {
			struck = true;
			*ret_fault = *fault;
			sim->faults[i--] = sim->faults[--sim->fault_count];
		}
	}
	return struck;
}

/* ---- submission ---- */

void zf_sim_command_unref(struct zf_sim_command *command)
{
	if (--command->refs > 0)
		return;
	for (uint32_t i = 0; i < command->block_count; i++)
		zf_sim_block_unref(command->blocks[i]);
	free(command);
}

/* Zeroes are one new block per command, so that versions of two commands have different blocks. */
static void take_blocks(struct zf_sim_command *command, const struct zf_io *io)
{
	static const uint8_t zeroes[ZF_BLOCK_SIZE];
	struct zf_sim_block *zero;
	uint32_t n = 0;

	if (io->op == ZF_IO_ZEROES) {
		zero = zf_sim_block_new(zeroes);
		while (n < command->block_count)
			command->blocks[n++] = zf_sim_block_ref(zero);
		zf_sim_block_unref(zero);
		return;
	}
	for (unsigned int i = 0; i < io->iovcnt; i++) {
		const char *from = io->iov[i].iov_base;

		for (size_t at = 0; at < io->iov[i].iov_len; at += ZF_BLOCK_SIZE)
			command->blocks[n++] = zf_sim_block_new(from + at);
	}
}

static int check_request(const struct zf_io *io)
{
	switch (io->op) {
	case ZF_IO_READ:
	case ZF_IO_WRITE:
	case ZF_IO_APPEND:
		return zf_zone_rules_check_iov(io->iov, io->iovcnt, io->len);
	default:
		return 0;
	}
}

static struct zf_sim_command *command_new(struct zf_sim *sim, const struct zf_io *io)
{
	int refused = check_request(io);
	uint32_t block_count = 0;
	struct zf_sim_command *command;

	if (refused == 0 && zf_sim_is_write(io->op))
		block_count = (uint32_t)(io->len / ZF_BLOCK_SIZE);
	command = zf_sim_alloc(sizeof(*command) + block_count * sizeof(command->blocks[0]));
	command->refs = 1;
	command->op = io->op;
	command->fua = io->fua;
	command->addr = io->addr;
	command->len = io->len;
	command->submitted = sim->clock;
	command->refused = refused;
	command->block_count = block_count;
	if (block_count > 0)
		take_blocks(command, io);
	return command;
}

static void kill_zone(struct zf_sim *sim, uint64_t addr, const struct zf_sim_fault *fault)
{
	uint64_t zone_no = fault->zone_no ? fault->zone_no : addr / sim->rules.geometry.zone_size;

	if (fault->kills_zone && zone_no < sim->rules.geometry.zone_count)
		zf_sim_set_zone_cond(sim, (uint32_t)zone_no, fault->zone_cond);
}

static bool wear_out(struct zf_sim *sim, const struct zf_sim_command *command,
		     struct zf_sim_fault *ret_fault)
{
	struct zf_sim_wear *wear = &sim->wear;
	uint64_t dice;

	if (wear->zones_max == 0 || command->op == ZF_IO_READ || command->op == ZF_IO_FLUSH ||
	    command->addr / sim->rules.geometry.zone_size < wear->first)
		return false;
	dice = zf_rng_below(&sim->rng, 10000);
	if (dice >= wear->readonly + wear->offline)
		return false;
	wear->zones_max--;
	*ret_fault = (struct zf_sim_fault){
		.kills_zone = true,
		.zone_cond = dice < wear->readonly ? ZF_ZONE_READONLY : ZF_ZONE_OFFLINE,
	};
	return true;
}

static void apply_fault(struct zf_sim *sim, struct zf_sim_command *command)
{
	struct zf_sim_fault fault = {0};

	if (!strike(sim, command->op, command->addr, &fault) && !wear_out(sim, command, &fault))
		return;
	if (command->op != ZF_IO_FLUSH || fault.zone_no)
		kill_zone(sim, command->addr, &fault);
	if (fault.error < 0 && command->refused == 0) {
		command->refused = fault.error;
		command->moves_pointer = fault.moves_pointer && zf_sim_is_write(command->op);
		command->loses_cache = fault.loses_cache && command->op == ZF_IO_FLUSH;
	}
}

static bool draw_late(struct zf_sim *sim, enum zf_io_op op)
{
	if (sim->late_percent == 0 || op == ZF_IO_READ ||
	    (sim->late_op != ZF_SIM_ANY_OP && sim->late_op != op))
		return false;
	return zf_rng_chance(&sim->rng, sim->late_percent);
}

static void add_flight(struct zf_sim *sim, struct zf_sim_command *command, struct zf_io *io)
{
	if (sim->flight_count == sim->flight_room) {
		sim->flight_room = sim->flight_room * 2 + 16;
		sim->flight = realloc(sim->flight, sim->flight_room * sizeof(*sim->flight));
		if (!sim->flight)
			abort();
	}
	sim->flight[sim->flight_count++] = (struct zf_sim_flight){
		.command = command, .io = io, .late = draw_late(sim, command->op)};
}

static void add_dead(struct zf_sim *sim, struct zf_io *io)
{
	STAILQ_INSERT_TAIL(&sim->dead, io, link);
}

/* Commands in flight stay, for zf_sim_crash() to decide on; their submitters get an error. */
static void cut(struct zf_sim *sim)
{
	sim->is_cut = true;
	for (uint32_t i = 0; i < sim->flight_count; i++) {
		add_dead(sim, sim->flight[i].io);
		sim->flight[i].io = NULL;
	}
}

void zf_sim_vanish(struct zf_sim *sim, uint64_t n, int error)
{
	zf_sim_set_cut(sim, n);
	sim->cut_error = error;
	if (n <= sim->commands)
		cut(sim);
}

static void sim_submit(struct zf_dev *dev, struct zf_io *io)
{
	struct zf_sim *sim = sim_of(dev);
	struct zf_sim_command *command;

	if (sim->is_cut) {
		add_dead(sim, io);
		return;
	}
	command = command_new(sim, io);
	apply_fault(sim, command);
	add_flight(sim, command, io);
	if (io->op == ZF_IO_READ)
		return;
	sim->commands++;
	if (sim->observe)
		sim->observe(sim->observe_arg, sim);
	if (sim->commands == sim->cut_at)
		cut(sim);
}

/* ---- carrying out ---- */

static void land_block(struct zf_sim *sim, uint64_t addr, struct zf_sim_block *block)
{
	bool keep = addr / sim->rules.geometry.zone_size < sim->rules.geometry.conventional;

	zf_sim_slot_write(own_slot_at(sim, addr), block, keep, sim->flushed);
}

void zf_sim_land(struct zf_sim *sim, uint64_t addr, const struct zf_sim_command *command)
{
	for (uint32_t i = 0; i < command->block_count; i++)
		land_block(sim, addr + i * (uint64_t)ZF_BLOCK_SIZE, command->blocks[i]);
}

/* The write has failed but moved the pointer: it leaves garbage that no flush makes durable. */
static void land_garbage(struct zf_sim *sim, uint64_t addr, const struct zf_sim_command *command)
{
	for (uint32_t i = 0; i < command->block_count; i++) {
		uint8_t bytes[ZF_BLOCK_SIZE];
		struct zf_sim_block *garbage;

		zf_rng_fill(&sim->rng, bytes, sizeof(bytes));
		garbage = zf_sim_block_new(bytes);
		land_block(sim, addr + i * (uint64_t)ZF_BLOCK_SIZE, garbage);
		zf_sim_block_unref(garbage);
	}
}

static void forget_slot(struct zf_sim_slot *slot)
{
	if (slot->now)
		zf_sim_slot_set_old(slot, slot->now->block);
	zf_sim_slot_settle(slot, NULL);
}

/* A block below a raised pointer has survived the cut, so it survives another cut too. */
static void keep_slot(struct zf_sim_slot *slot)
{
	if (!slot->now)
		zf_sim_slot_settle(slot, slot->old);
}

/*
 * Called at the first change after a cut of the host: all pointers that had to be raised were
 * raised before, so blocks above the pointers belong to a former life from now on.
 */
static void accept_pointers(struct zf_sim *sim)
{
	const struct zf_geometry *g = &sim->rules.geometry;

	for (uint32_t i = g->conventional; i < g->zone_count; i++) {
		uint64_t wp = sim->rules.zones[i].wp;
		struct zf_sim_zone *zone = zf_sim_zone_own(&sim->zones[i]);

		for (uint64_t b = zone->floor / ZF_BLOCK_SIZE; b < wp / ZF_BLOCK_SIZE; b++)
			keep_slot(&zone->slots[b]);
		zone->floor = wp;
		for (uint32_t b = (uint32_t)(wp / ZF_BLOCK_SIZE); b < zone->slot_count; b++)
			forget_slot(&zone->slots[b]);
	}
	sim->lower_bounds = false;
}

void zf_sim_begin_new_life(struct zf_sim *sim, uint32_t zone_no)
{
	struct zf_sim_zone *zone = zf_sim_zone_own(&sim->zones[zone_no]);

	zone->floor = 0;
	for (uint32_t i = 0; i < zone->slot_count; i++)
		forget_slot(&zone->slots[i]);
}

static void execute_change(struct zf_sim *sim, struct zf_sim_flight *f)
{
	const struct zf_sim_command *command = f->command;
	/* The segments were checked at submission, and their memory may be freed by now. */
	struct iovec iov = {.iov_base = (void *)(uintptr_t)ZF_BLOCK_SIZE, .iov_len = command->len};
	struct zf_io io = {
		.op = command->op,
		.addr = command->addr,
		.len = command->len,
		.iov = &iov,
		.iovcnt = 1,
	};
	uint32_t zone_no = (uint32_t)(command->addr / sim->rules.geometry.zone_size);
	int r;

	if (sim->lower_bounds)
		accept_pointers(sim);
	r = zf_zone_rules_apply(&sim->rules, &io, &f->addr);
	if (command->refused < 0) {
		if (r == 0)
			land_garbage(sim, f->addr, command);
		f->result = command->refused;
		return;
	}
	f->result = r;
	if (r < 0)
		return;
	if (zf_sim_is_write(command->op))
		zf_sim_land(sim, f->addr, command);
	else if (command->op == ZF_IO_RESET)
		zf_sim_begin_new_life(sim, zone_no);
	else
		zf_sim_zone_own(&sim->zones[zone_no])->floor = sim->rules.geometry.zone_capacity;
}

static void execute_one(struct zf_sim *sim, struct zf_sim_flight *f)
{
	f->executed = true;
	f->addr = f->command->addr;
	if (f->command->refused < 0 && !f->command->moves_pointer)
		f->result = f->command->refused;
	else if (f->command->op != ZF_IO_READ && f->command->op != ZF_IO_FLUSH)
		execute_change(sim, f);
}

static bool is_write_at_pointer(const struct zf_sim_command *command)
{
	return command->op == ZF_IO_WRITE || command->op == ZF_IO_ZEROES;
}

void zf_sim_execute(struct zf_sim *sim, uint32_t i)
{
	const struct zf_sim_command *command = sim->flight[i].command;
	uint64_t zone_size = sim->rules.geometry.zone_size;

	for (uint32_t j = 0; j < i && is_write_at_pointer(command); j++) {
		const struct zf_sim_command *earlier = sim->flight[j].command;

		if (!sim->flight[j].executed && is_write_at_pointer(earlier) &&
		    earlier->addr / zone_size == command->addr / zone_size)
			execute_one(sim, &sim->flight[j]);
	}
	if (!sim->flight[i].executed)
		execute_one(sim, &sim->flight[i]);
}

/* ---- completing ---- */

/* A device may read the buffers at any time until completion: they must not have changed. */
static void check_buffers(const struct zf_sim_flight *f)
{
	const struct zf_io *io = f->io;
	uint32_t n = 0;

	if (f->command->block_count == 0 || io->op == ZF_IO_ZEROES)
		return;
	for (unsigned int i = 0; i < io->iovcnt; i++) {
		const char *now = io->iov[i].iov_base;

		for (size_t at = 0; at < io->iov[i].iov_len; at += ZF_BLOCK_SIZE) {
			if (memcmp(now + at, f->command->blocks[n++]->bytes, ZF_BLOCK_SIZE) == 0)
				continue;
			fprintf(stderr, "sim: the buffer of a write changed while in flight\n");
			abort();
		}
	}
}

static int read_blocks(const struct zf_sim *sim, uint64_t addr, const struct iovec *iov,
		       unsigned int iovcnt, uint64_t len)
{
	uint64_t zone_size = sim->rules.geometry.zone_size;
	int r;

	r = zf_zone_rules_check_read(&sim->rules, addr, len);
	if (r < 0)
		return r;
	for (unsigned int i = 0; i < iovcnt; i++) {
		char *to = iov[i].iov_base;

		for (size_t at = 0; at < iov[i].iov_len; at += ZF_BLOCK_SIZE) {
			if (sim->rules.zones[addr / zone_size].cond == ZF_ZONE_OFFLINE)
				return -ENXIO;
			zf_sim_peek(sim, addr, to + at);
			addr += ZF_BLOCK_SIZE;
		}
	}
	return 0;
}

void zf_sim_complete_write(struct zf_sim *sim, uint64_t addr, const struct zf_sim_command *command)
{
	bool durable = command->fua || !sim->rules.geometry.volatile_cache;
	uint64_t stamp = durable ? SIM_STAMP_DURABLE : sim->clock;

	for (uint32_t i = 0; i < command->block_count; i++)
		zf_sim_slot_complete(own_slot_at(sim, addr + i * (uint64_t)ZF_BLOCK_SIZE),
				     command->blocks[i], stamp);
}

static void complete(struct zf_sim *sim, struct zf_sim_flight *f)
{
	const struct zf_sim_command *command = f->command;

	sim->clock++;
	check_buffers(f);
	if (command->loses_cache)
		zf_sim_lose_cache(sim);
	if (f->result < 0)
		return;
	f->io->addr = f->addr;
	if (command->op == ZF_IO_READ)
		f->result =
			read_blocks(sim, command->addr, f->io->iov, f->io->iovcnt, command->len);
	else if (command->op == ZF_IO_FLUSH)
		sim->flushed = zf_max_u64(sim->flushed, command->submitted);
	else if (zf_sim_is_write(command->op))
		zf_sim_complete_write(sim, f->addr, command);
}

static void tell_dead(struct zf_sim *sim, struct zf_dev *dev)
{
	struct zf_io *io;

	while ((io = STAILQ_FIRST(&sim->dead))) {
		STAILQ_REMOVE_HEAD(&sim->dead, link);
		zf_dev_complete(dev, io, sim->cut_error);
	}
}

/* Index of the command that completes next; flight_count: none. Late commands only with `wait`. */
static uint32_t draw_next(struct zf_sim *sim, bool wait)
{
	uint32_t punctual = 0, n;

	for (uint32_t i = 0; i < sim->flight_count; i++)
		punctual += !sim->flight[i].late;
	if (punctual == 0)
		return wait && sim->flight_count > 0
			       ? (uint32_t)zf_rng_below(&sim->rng, sim->flight_count)
			       : sim->flight_count;
	n = (uint32_t)zf_rng_below(&sim->rng, punctual);
	for (uint32_t i = 0;; i++) {
		if (!sim->flight[i].late && n-- == 0)
			return i;
	}
}

static void sim_poll(struct zf_dev *dev, bool wait)
{
	struct zf_sim *sim = sim_of(dev);
	struct zf_sim_flight f;
	uint32_t i;

	assert(!dev->threaded || sim->thread_wait);
	if (wait && dev->threaded)
		sim->thread_wait(dev);
	tell_dead(sim, dev);
	if (sim->is_cut)
		return;
	i = draw_next(sim, wait);
	if (i == sim->flight_count)
		return;
	zf_sim_execute(sim, i);
	f = sim->flight[i];
	sim->flight_count--;
	memmove(&sim->flight[i], &sim->flight[i + 1], (sim->flight_count - i) * sizeof(f));
	complete(sim, &f);
	zf_sim_command_unref(f.command);
	zf_dev_complete(dev, f.io, f.result);
}

/* ---- the other operations ---- */

/* The device's thread polls by itself. */
static void sim_wake(struct zf_dev *dev)
{
}

static int sim_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov, unsigned int iovcnt)
{
	struct zf_sim *sim = sim_of(dev);
	struct zf_sim_fault fault = {0};
	uint64_t len = 0;

	if (sim->is_cut)
		return sim->cut_error;
	for (unsigned int i = 0; i < iovcnt; i++)
		len += iov[i].iov_len;
	if (strike(sim, ZF_IO_READ, addr, &fault)) {
		kill_zone(sim, addr, &fault);
		if (fault.error < 0)
			return fault.error;
	}
	return read_blocks(sim, addr, iov, iovcnt, len);
}

static int sim_report(struct zf_dev *dev, uint32_t first, uint32_t count,
		      struct zf_zone_info *zones)
{
	struct zf_sim *sim = sim_of(dev);

	if (sim->is_cut)
		return sim->cut_error;
	for (uint32_t i = 0; i < count; i++)
		zf_zone_rules_report(&sim->rules, first + i, &zones[i]);
	return 0;
}

static int sim_raise_pointer(struct zf_dev *dev, uint32_t zone_no, uint64_t wp)
{
	struct zf_sim *sim = sim_of(dev);
	int r;

	if (sim->is_cut)
		return sim->cut_error;
	r = zf_zone_rules_raise(&sim->rules, zone_no, wp);
	if (r == 0)
		zf_sim_settle_below(sim, zone_no,
				    (uint32_t)(sim->rules.zones[zone_no].wp / ZF_BLOCK_SIZE));
	return r;
}

static int sim_set_reset_count(struct zf_dev *dev, uint32_t zone_no, uint64_t reset_count)
{
	struct zf_sim *sim = sim_of(dev);

	return sim->is_cut ? -EIO
			   : zf_zone_rules_set_reset_count(&sim->rules, zone_no, reset_count);
}

static void sim_close(struct zf_dev *dev)
{
	struct zf_sim_dev *sd = ZF_CONTAINER_OF(dev, struct zf_sim_dev, dev);

	sd->sim->dev = NULL;
	zf_dev_deinit(dev);
	free(sd);
}

static int sim_grow(struct zf_dev *dev, uint32_t zone_count)
{
	if (zone_count != 0)
		zf_sim_grow(sim_of(dev), zone_count);
	return 0;
}

static const struct zf_dev_ops sim_ops = {
	.kind = "sim",
	.submit = sim_submit,
	.poll = sim_poll,
	.wake = sim_wake,
	.read = sim_read,
	.report = sim_report,
	.raise_pointer = sim_raise_pointer,
	.set_reset_count = sim_set_reset_count,
	.grow = sim_grow,
	.close = sim_close,
};

int zf_sim_open(struct zf_sim *sim, const struct zf_report *report, struct zf_dev **ret_dev)
{
	struct zf_sim_dev *sd;
	int r;

	assert(!sim->dev && !sim->is_cut && sim->flight_count == 0);
	sd = zf_sim_alloc(sizeof(*sd));
	r = zf_dev_init(&sd->dev, &sim_ops, "sim", &sim->rules.geometry, report);
	if (r < 0) {
		free(sd);
		return r;
	}
	sd->dev.geometry.pointers_are_lower_bounds = sim->lower_bounds;
	sd->sim = sim;
	sim->dev = sd;
	zf_zone_rules_power_cycle(&sim->rules);
	*ret_dev = &sd->dev;
	return 0;
}
