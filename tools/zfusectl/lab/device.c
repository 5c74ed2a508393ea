/* SPDX-License-Identifier: MIT */
#include "lab/device.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "sim/sim_internal.h"

/* ---- the beginning ---- */

static void begin_zone(struct zf_sim *sim, const struct zf_lab_run *run, uint32_t zone_no)
{
	const struct zf_disk_trace_data_zone *zone = &run->zones[zone_no];
	uint64_t written = zf_le64_get(zone->written);

	sim->rules.zones[zone_no].reset_count = zf_le64_get(zone->resets);
	if (zone_no < run->geometry.conventional)
		return;
	sim->zones[zone_no]->floor = written;
	/* Blocks that are not in the file of data are zeroes. */
	for (uint64_t i = 0; i < written / ZF_BLOCK_SIZE; i++) {
		struct zf_sim_block *zero = zf_sim_block_zero();

		zf_sim_slot_settle(&sim->zones[zone_no]->slots[i], zero);
		zf_sim_block_unref(zero);
	}
	zf_sim_set_pointer(sim, zone_no, (uint32_t)(written / ZF_BLOCK_SIZE));
}

void zf_lab_device_init(struct zf_lab_device *device, const struct zf_lab_run *run)
{
	struct zf_geometry geometry = run->geometry;

	/* The number of open zones does not matter for the state after a power cut. */
	geometry.max_open = 0;
	*device = (struct zf_lab_device){.run = run, .sim = zf_sim_new(&geometry, 0)};
	for (uint32_t i = 0; i < geometry.zone_count; i++)
		begin_zone(device->sim, run, i);
	for (size_t i = 0; i < run->lay_count; i++) {
		const struct zf_lab_piece *piece = &run->lay[i];

		for (uint64_t at = 0; at < piece->bytes; at += ZF_BLOCK_SIZE)
			zf_sim_poke(device->sim, piece->address + at, piece->data + at);
	}
}

void zf_lab_device_deinit(struct zf_lab_device *device)
{
	zf_sim_free(device->sim);
}

/* ---- commands ---- */

static struct zf_sim_command *command_of(const struct zf_lab_command *command)
{
	uint32_t count = 0;
	struct zf_sim_command *made;

	if (zf_sim_is_write(command->op))
		count = (uint32_t)(command->bytes / ZF_BLOCK_SIZE);
	made = zf_sim_alloc(sizeof(*made) + count * sizeof(made->blocks[0]));
	*made = (struct zf_sim_command){
		.refs = 1,
		.op = command->op,
		.fua = command->fua,
		.addr = command->address,
		.len = command->bytes,
		.submitted = command->submitted,
		.block_count = count,
	};
	for (uint32_t i = 0; i < count; i++)
		made->blocks[i] = command->data
					  ? zf_sim_block_new(command->data + i * ZF_BLOCK_SIZE)
					  : zf_sim_block_zero();
	return made;
}

static uint32_t zone_of(const struct zf_sim *sim, uint64_t address)
{
	return (uint32_t)(address / sim->rules.geometry.zone_size);
}

/* All partly written zones count as closed: here that makes no difference. */
static void set_pointer(struct zf_sim *sim, uint32_t zone_no, uint64_t wp)
{
	struct zf_zone_state *state = &sim->rules.zones[zone_no];

	if (state->cond == ZF_ZONE_NOT_WP)
		return;
	state->wp = wp;
	state->cond = wp == sim->rules.geometry.zone_capacity ? ZF_ZONE_FULL
		      : wp > 0				      ? ZF_ZONE_CLOSED
							      : ZF_ZONE_EMPTY;
}

/* Appends complete in any order: the pointer is behind the highest one. */
static void move_pointer(struct zf_sim *sim, uint64_t end)
{
	uint32_t zone_no = zone_of(sim, end - 1);
	uint64_t wp = end - zone_no * sim->rules.geometry.zone_size;

	set_pointer(sim, zone_no, zf_max_u64(wp, sim->rules.zones[zone_no].wp));
}

static void reset_zone(struct zf_sim *sim, uint32_t zone_no)
{
	zf_sim_begin_new_life(sim, zone_no);
	sim->rules.zones[zone_no].reset_count++;
	set_pointer(sim, zone_no, 0);
}

static void finish_zone(struct zf_sim *sim, uint32_t zone_no)
{
	zf_sim_zone_own(&sim->zones[zone_no])->floor = sim->rules.geometry.zone_capacity;
	set_pointer(sim, zone_no, sim->rules.geometry.zone_capacity);
}

/* The simulator's clock is the sequence number of the event. */
static void complete(struct zf_sim *sim, const struct zf_lab_command *command)
{
	struct zf_sim_command *made = command_of(command);

	sim->clock = command->completed;
	if (command->op == ZF_IO_FLUSH) {
		sim->flushed = zf_max_u64(sim->flushed, command->submitted);
	} else if (zf_sim_is_write(command->op)) {
		zf_sim_land(sim, command->landed, made);
		zf_sim_complete_write(sim, command->landed, made);
		move_pointer(sim, command->landed + command->bytes);
	} else if (command->op == ZF_IO_RESET) {
		reset_zone(sim, zone_of(sim, command->address));
	} else {
		finish_zone(sim, zone_of(sim, command->address));
	}
	zf_sim_command_unref(made);
}

void zf_lab_device_play(struct zf_lab_device *device, uint64_t at)
{
	const struct zf_lab_run *run = device->run;

	for (; device->next < run->completion_count; device->next++) {
		const struct zf_lab_command *command =
			&run->commands[run->completions[device->next]];

		if (command->completed > at)
			return;
		/* The effect of a failed command is unknown; the simulator assumes none. */
		if (command->result == 0)
			complete(device->sim, command);
	}
}

/* ---- in flight ---- */

/*
 * The write pointer is already above the command's place, because a command behind it has
 * completed. So the command was carried out, at the place that its later completion tells.
 */
static bool must_have_landed(const struct zf_sim *sim, const struct zf_lab_command *command)
{
	const struct zf_zone_rules *rules = &sim->rules;
	uint64_t zone_no = command->address / rules->geometry.zone_size;

	return zf_sim_is_write(command->op) && zone_no >= rules->geometry.conventional &&
	       command->completed != UINT64_MAX && command->result == 0 &&
	       command->landed % rules->geometry.zone_size < rules->zones[zone_no].wp;
}

static struct zf_sim_flight flight_of(struct zf_sim *sim, const struct zf_lab_command *command)
{
	struct zf_sim_flight flight = {.command = command_of(command), .addr = command->address};

	flight.executed = must_have_landed(sim, command);
	if (flight.executed) {
		flight.addr = command->landed;
		zf_sim_land(sim, flight.addr, flight.command);
	}
	return flight;
}

static bool is_in_flight(const struct zf_lab_command *command, uint64_t at)
{
	return command->submitted <= at && command->completed > at;
}

void zf_lab_device_fly(struct zf_lab_device *device, uint64_t at)
{
	const struct zf_lab_run *run = device->run;
	struct zf_sim *sim = device->sim;
	uint32_t count = 0;

	zf_zone_rules_recount(&sim->rules);
	for (size_t i = 0; i < run->command_count; i++)
		count += is_in_flight(&run->commands[i], at);
	sim->flight = zf_sim_alloc(count * sizeof(*sim->flight) + 1);
	sim->flight_room = count;
	for (size_t i = 0; i < run->command_count; i++)
		if (is_in_flight(&run->commands[i], at))
			sim->flight[sim->flight_count++] = flight_of(sim, &run->commands[i]);
}
