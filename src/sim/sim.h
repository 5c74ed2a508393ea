/* SPDX-License-Identifier: MIT */
/*
 * The adversarial device: a zoned device in memory with a volatile cache, whose power can be cut.
 *
 * FAULT MODEL. What a power cut may do to what was written, and what it may not:
 *
 *  1. Durable is a block whose write was FUA and has completed, or whose write completed before a
 * flush was submitted that has completed. (Without geometry.volatile_cache: whose write has
 * completed.) A durable block survives as it is, and its zone's pointer stays past it.
 *  2. In a sequential zone, every other block below the pointer that survives - a write that was
 * not flushed, or FUA but not completed, or still in flight - reads as what was written, zeroes,
 * the bytes of the zone's former life, garbage, or torn: each 512-byte sector one of these.
 *  3. The pointer survives anywhere between the end of the last durable block (or a completed
 *     finish, or where an earlier cut left it) and where it stood, counting writes in flight.
 *     What reads say above it is anybody's guess, there and at all times.
 *  4. Zones are independent: nothing about one follows from what happened to another.
 *  5. A reset or a finish is durable when it completes, as real devices do it. In flight, it may
 * have happened or not.
 *  6. Commands in flight may have been carried out or not, in any order, so appends in flight land
 * in any order, or not at all. Only writes at the pointer of one zone keep theirs.
 *  7. In a conventional zone, a block reads as its last durable version or any later one, or torn
 *     between two of these.
 *  8. A flush that fails may lose the cache (zf_sim_fault.loses_cache): of the blocks that have
 * completed and are not durable, in each zone all or some, each reads at once as clause 2 says, or
 * goes on reading as what was written; no later flush makes any of them durable. Pointers stay.
 *  9. In a cut of the host (ZF_SIM_CUT_HOST: the image backend after an unclean stop of the host),
 * the pointers that are reported moreover lie anywhere between the zone's start and where they
 * stood. The contents are as above; geometry.pointers_are_lower_bounds says that they have to be
 * raised.
 *
 * It never loses a durable block, never moves a pointer below one, never undoes a completed reset,
 * and never returns a block of one zone from another.
 *
 * Without a cut, it carries out and completes what is in flight in an order drawn from the seed,
 * and an append gets its address when it is carried out. The same seed and the same calls give the
 * same run. One thread only. All memory failures abort: it serves tests.
 *
 * Contents are shared block by block between clones, so a clone costs microseconds: explore every
 * cut of a workload by cloning in the observer (zf_sim_observe), then crash, open and check the
 * clone.
 */
#ifndef ZF_SIM_SIM_H
#define ZF_SIM_SIM_H

#include "io/dev.h"

struct zf_sim;

struct zf_sim *zf_sim_new(const struct zf_geometry *geometry, uint64_t seed);
void zf_sim_free(struct zf_sim *sim); /* no device may be open on it; takes NULL */

/* The state with all that is in flight, as a sim of its own without a device, faults or a cut set.
 */
struct zf_sim *zf_sim_clone(const struct zf_sim *sim);

/* One device at a time. Opening is a power cycle: open zones are closed. */
int zf_sim_open(struct zf_sim *sim, const struct zf_report *report, struct zf_dev **ret_dev);

/*
 * More zones, empty ones: at once and durably, with or without a device open on it. Also what
 * zf_dev_grow() does, if it is to grow to a count; it has no room of itself.
 */
void zf_sim_grow(struct zf_sim *sim, uint32_t zone_count);

/* ---- cutting the power ---- */

/* Commands submitted so far. Reads do not count: they change nothing. */
uint64_t zf_sim_commands(const struct zf_sim *sim);

/*
 * Cuts the power when the count reaches `n`: that command and all others in flight are caught by
 * the cut, and they and all later ones, reads too, fail with -EIO, so that whoever uses the device
 * can be taken down. 0: never.
 */
void zf_sim_set_cut(struct zf_sim *sim, uint64_t n);
bool zf_sim_is_cut(const struct zf_sim *sim);
/*
 * The device disappears when the count reaches `n`, or at once if it has: the same, but with this
 * error. Zones cannot be reported either.
 */
void zf_sim_vanish(struct zf_sim *sim, uint64_t n, int error);

/* Called with each command counted, when it has become one of those in flight. NULL: nobody. */
void zf_sim_observe(struct zf_sim *sim, void (*fn)(void *arg, const struct zf_sim *sim), void *arg);

enum zf_sim_cut {
	ZF_SIM_CUT_DEVICE, /* a device of its own: pointers are exact afterwards */
	ZF_SIM_CUT_HOST,   /* clause 9 */
};

/*
 * Replaces the state by one that may be found after a cut at this instant, drawn from the seed.
 * No device may be open. Faults, the cut and what is in flight are gone; the count of commands goes
 * on.
 */
void zf_sim_crash(struct zf_sim *sim, uint64_t seed, enum zf_sim_cut cut);

/*
 * The same, one outcome after the other, with each write that was not durable taken as a whole: it
 * made it, reads as zeroes or as the zone's former life, its last block is torn, its first block
 * alone is there, or the pointer stands before it; and each subset of the commands in flight was
 * carried out, appends also in the opposite order. Some of these are the same state.
 */
/* How many; `most` + 1 if there are more than `most`, or too many to tell. */
uint64_t zf_sim_outcomes(const struct zf_sim *sim, uint64_t most);
/* As zf_sim_crash(), of a device: outcome n, from 0. Not where zf_sim_outcomes() could not tell. */
void zf_sim_crash_nth(struct zf_sim *sim, uint64_t n);
/* One of them, drawn from the seed. */
void zf_sim_crash_some(struct zf_sim *sim, uint64_t seed);

/*
 * Of all that a mount could find out about the device: two states of one geometry with the same
 * digest are the same.
 */
uint64_t zf_sim_digest(const struct zf_sim *sim);

/* ---- late completions ---- */

/*
 * From now on each command of this kind (ZF_SIM_ANY_OP: any but reads) is late with this chance: it
 * stays in flight, neither carried out nor completed, until somebody waits and nothing else is left
 * to complete. Else a command may be overtaken by those in flight with it, but not by what its
 * submitter does without waiting for it.
 */
void zf_sim_set_late(struct zf_sim *sim, enum zf_io_op op, unsigned int percent);

/* ---- threads ---- */

/*
 * The device on it may have a thread of its own (zf_dev_start_thread()), if threads are fibers
 * (tests/support/fibers.h): `wait` is called where the thread has nothing to do, and returns when something
 * is in flight or the device is being closed. NULL: no threads.
 */
void zf_sim_set_thread(struct zf_sim *sim, void (*wait)(struct zf_dev *dev));

/* ---- other faults ---- */

#define ZF_SIM_ANY_OP ZF_IO_OP_COUNT

struct zf_sim_fault {
	enum zf_io_op
		op;   /* counts commands of this kind (zf_dev_read() is a READ), or ZF_SIM_ANY_OP */
	uint64_t nth; /* from now on, counted from 1 */
	int error;    /* -errno */
	bool moves_pointer; /* the write or append fails, but the pointer moves; the blocks are
			       garbage */
	bool loses_cache;   /* a flush: clause 8 */
	bool kills_zone;    /* its zone takes the condition below from then on */
	enum zf_zone_cond zone_cond; /* ZF_ZONE_READONLY, ZF_ZONE_OFFLINE */
	uint32_t zone_no;	     /* if not 0: this zone does, instead of the command's own */
	uint32_t first_zone;	     /* counts commands to this zone, and to those behind it */
};

/* Each fault strikes once. Several may be waiting. */
void zf_sim_add_fault(struct zf_sim *sim, const struct zf_sim_fault *fault);
unsigned int zf_sim_faults_left(const struct zf_sim *sim);

void zf_sim_set_zone_cond(struct zf_sim *sim, uint32_t zone_no, enum zf_zone_cond cond);

/*
 * Zones that wear out: each command that changes one, from `first` on, fails with this chance, and
 * its zone is read-only from then on, or offline.
 */
struct zf_sim_wear {
	uint32_t first;
	unsigned int readonly, offline; /* chances, of 10000 */
	unsigned int zones_max;		/* that fail in all */
};
void zf_sim_set_wear(struct zf_sim *sim, const struct zf_sim_wear *wear);

/* What is stored, past the device: a block at an address. */
void zf_sim_peek(const struct zf_sim *sim, uint64_t addr, void *ret_block);
void zf_sim_poke(struct zf_sim *sim, uint64_t addr, const void *block);

#endif
