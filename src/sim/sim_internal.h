/* SPDX-License-Identifier: MIT */
/* The simulator's internals, shared by the running device (sim.c) and the cut (crash.c). */
#ifndef ZF_SIM_INTERNAL_H
#define ZF_SIM_INTERNAL_H

#include "io/zone_rules.h"
#include "sim/rng.h"
#include "sim/sim.h"
#include "sim/store.h"

/* A submitted command; never changed, shared with clones. */
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
	bool late; /* completes only if no other command can, and a thread waits */
	int result;
	uint64_t addr; /* the address where it landed */
};

struct zf_sim_dev;

struct zf_sim {
	struct zf_zone_rules rules;
	struct zf_sim_zone **zones;
	struct zf_rng rng;
	uint64_t clock, flushed; /* completions so far; writes up to `flushed` are durable */
	bool lower_bounds;	 /* since a cut of the host, until the first change */

	struct zf_sim_flight *flight; /* in order of submission */
	uint32_t flight_count, flight_room;

	enum zf_io_op late_op; /* with a chance of late_percent, such a command is late */
	unsigned int late_percent;

	uint64_t commands, cut_at;
	bool is_cut;
	int cut_error;
	struct zf_io_list dead; /* caught by the cut; their submitters do not know yet */

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
 * Carries out flight[i], and before it the commands that it may not overtake: earlier writes at the
 * pointer of the same zone.
 */
void zf_sim_execute(struct zf_sim *sim, uint32_t i);

/* ---- the parts of carrying out (sim.c) ---- */

/* The blocks can be read from now on, and are not durable. */
void zf_sim_land(struct zf_sim *sim, uint64_t addr, const struct zf_sim_command *command);
/* From now on the next flush makes the blocks durable, or they are durable at once. */
void zf_sim_complete_write(struct zf_sim *sim, uint64_t addr, const struct zf_sim_command *command);
/* A reset: the zone's blocks become those of its former life. */
void zf_sim_begin_new_life(struct zf_sim *sim, uint32_t zone_no);

/* ---- states after a cut: drawn (crash.c), or outcome by outcome (outcomes.c) ---- */

static inline bool zf_sim_is_durable(const struct zf_sim *sim, const struct zf_sim_slot *slot)
{
	return slot->now && slot->now->stamp <= sim->flushed;
}

/* Garbage, as a cut leaves it: always the same bytes. Returns a reference. */
struct zf_sim_block *zf_sim_block_garbage(void);

/* In blocks: the lowest pointer of a sequential zone after a cut; wp: the pointer before it. */
uint32_t zf_sim_lowest_pointer(const struct zf_sim *sim, const struct zf_sim_zone *zone,
			       uint32_t wp);
/* Whether the cut may lower the zone's pointer at all. */
bool zf_sim_may_shrink(const struct zf_sim *sim, uint32_t zone_no);
void zf_sim_set_pointer(struct zf_sim *sim, uint32_t zone_no, uint32_t pointer);

/* A flush failed and took the cache with it: clause 8. */
void zf_sim_lose_cache(struct zf_sim *sim);

/*
 * After a cut of the host: blocks below the reported pointer that read as a former life or as
 * zeroes stay as they are.
 */
void zf_sim_settle_below(struct zf_sim *sim, uint32_t zone_no, uint32_t pointer);

/*
 * The versions that a block of a conventional zone may have after a cut, newest first: down to the
 * first durable version, or to `base`, the block before all versions. At most room + 1 versions.
 * Returns how many.
 */
uint32_t zf_sim_versions(const struct zf_sim *sim, const struct zf_sim_slot *slot,
			 struct zf_sim_block *base, struct zf_sim_block **ret_blocks,
			 uint32_t room);

/* Removes all commands in flight, whether they were carried out or not. */
void zf_sim_forget_flight(struct zf_sim *sim);
/* All present blocks become durable; the cut and faults are removed. */
void zf_sim_power_cycle(struct zf_sim *sim);

#endif
