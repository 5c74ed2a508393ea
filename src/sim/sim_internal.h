/* SPDX-License-Identifier: MIT */
/* The simulator's inside, shared by the running device (sim.c) and the cut (crash.c). */
#ifndef ZF_SIM_INTERNAL_H
#define ZF_SIM_INTERNAL_H

#include "io/zone_rules.h"
#include "sim/rng.h"
#include "sim/sim.h"
#include "sim/store.h"

/* What was submitted; never changed, shared with clones. */
struct zf_sim_command {
	uint32_t refs;
	enum zf_io_op op;
	bool fua;
	uint64_t addr, len;
	uint64_t submitted; /* on the simulator's clock: a flush covers what completed up to then */
	int refused;	    /* decided at submission, by a fault or the request itself; or 0 */
	bool moves_pointer;
	bool loses_cache;
	uint32_t block_count;
	struct zf_sim_block *blocks[];
};

/* A command in flight. `io` is NULL in clones and after a cut. */
struct zf_sim_flight {
	struct zf_sim_command *command;
	struct zf_io *io;
	bool executed;
	bool late; /* completes when nothing else can, and somebody waits */
	int result;
	uint64_t addr; /* where it landed */
};

struct zf_sim_dev;

struct zf_sim {
	struct zf_zone_rules rules;
	struct zf_sim_zone **zones;
	struct zf_rng rng;
	uint64_t clock, flushed; /* completions so far; those up to `flushed` are durable */
	bool lower_bounds;	 /* since a cut of the host, until something is written */

	struct zf_sim_flight *flight; /* in order of submission */
	uint32_t flight_count, flight_room;

	enum zf_io_op late_op; /* with a chance of late_percent, such a command is late */
	unsigned int late_percent;

	uint64_t commands, cut_at;
	bool is_cut;
	int cut_error;
	struct zf_io_list dead; /* caught by the cut, still to be told */

	struct zf_sim_fault *faults;
	unsigned int fault_count;
	struct zf_sim_wear wear;
	void (*observe)(void *arg, const struct zf_sim *sim);
	void *observe_arg;
	void (*thread_wait)(struct zf_dev *dev);
	struct zf_sim_dev *dev;
};

static inline bool zf_sim_is_write(enum zf_io_op op)
{
	return op == ZF_IO_WRITE || op == ZF_IO_APPEND || op == ZF_IO_ZEROES;
}

void zf_sim_command_unref(struct zf_sim_command *command);

/*
 * Carries out flight[i], and before it those that the device may not overtake: earlier writes at
 * the pointer of the same zone.
 */
void zf_sim_execute(struct zf_sim *sim, uint32_t i);

/* ---- what carrying out consists of (sim.c) ---- */

/* The blocks are there, and not durable. */
void zf_sim_land(struct zf_sim *sim, uint64_t addr, const struct zf_sim_command *command);
/* From now on they are durable by the next flush, or at once. */
void zf_sim_complete_write(struct zf_sim *sim, uint64_t addr, const struct zf_sim_command *command);
/* A reset: what is in the zone becomes what a former life left. */
void zf_sim_begin_new_life(struct zf_sim *sim, uint32_t zone_no);

/* ---- what a cut leaves: drawn (crash.c), or outcome by outcome (outcomes.c) ---- */

static inline bool zf_sim_is_durable(const struct zf_sim *sim, const struct zf_sim_slot *slot)
{
	return slot->now && slot->now->stamp <= sim->flushed;
}

/* Garbage, as a cut leaves it: the same bytes each time. A reference. */
struct zf_sim_block *zf_sim_block_garbage(void);

/* In blocks: where a sequential zone's pointer survives at least; wp: where it stood. */
uint32_t zf_sim_lowest_pointer(const struct zf_sim *sim, const struct zf_sim_zone *zone,
			       uint32_t wp);
/* Whether the pointer may come back below that. */
bool zf_sim_may_shrink(const struct zf_sim *sim, uint32_t zone_no);
void zf_sim_set_pointer(struct zf_sim *sim, uint32_t zone_no, uint32_t pointer);

/* A flush failed and took the cache with it: clause 8. */
void zf_sim_lose_cache(struct zf_sim *sim);

/* What is found below a pointer that is only told, not kept by the device, stays as it is found. */
void zf_sim_settle_below(struct zf_sim *sim, uint32_t zone_no, uint32_t pointer);

/*
 * What a block of a conventional zone may come back as, newest first: down to the first durable
 * version, or to `base`, which was there before any. At most room + 1; returns how many.
 */
uint32_t zf_sim_versions(const struct zf_sim *sim, const struct zf_sim_slot *slot,
			 struct zf_sim_block *base, struct zf_sim_block **ret_blocks,
			 uint32_t room);

/* Nothing is in flight any more, whether it was carried out or not. */
void zf_sim_forget_flight(struct zf_sim *sim);
/* All that is there is durable; the cut and faults are gone. */
void zf_sim_power_cycle(struct zf_sim *sim);

#endif
