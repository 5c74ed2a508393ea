/* SPDX-License-Identifier: MIT */
/*
 * The adversarial device: a zoned device in memory with a volatile cache, whose power can be cut.
 *
 * FAULT MODEL. What a power cut may and may not do to written blocks:
 *
 *  1. A block is durable if its write was FUA and has completed, or if its write completed before
 *     the submission of a flush that has completed. (Without geometry.volatile_cache: if its write
 *     has completed.) A durable block survives as it is, and its zone's pointer stays past it.
 *  2. Consider any other block of a sequential zone below the surviving pointer: its write was not
 *     flushed, or was FUA but not completed, or was in flight. The block reads as what was written,
 *     zeroes, the bytes of the zone's former life, garbage, or torn: each 512-byte sector is one of
 *     these.
 *  3. The pointer survives anywhere between the end of the last durable block (or a completed
 *     finish, or the place where an earlier cut left the pointer) and its place before the cut,
 *     counting writes in flight. Reads above the pointer may give any bytes, with or without a cut.
 *  4. Zones are independent: the fate of one zone implies nothing about another.
 *  5. A reset or a finish is durable when it completes, as on real devices. If it is in flight, it
 *     may have happened or not.
 *  6. Commands in flight may have been carried out or not, in any order; so appends in flight land
 *     in any order, or not at all. Only writes at the pointer of one zone keep their order.
 *  7. In a conventional zone, a block reads as its last durable version or any later one, or torn
 *     between two of these.
 *  8. A failed flush may lose the cache (zf_sim_fault.loses_cache). In each zone this concerns all
 *     or some of the blocks that have completed and are not durable: each of them reads at once as
 *     clause 2 says, or goes on reading as what was written. No later flush makes any of these
 *     blocks durable. Pointers stay.
 *  9. In a cut of the host (ZF_SIM_CUT_HOST: the image backend after an unclean stop of the host),
 *     the reported pointers, moreover, lie anywhere between the zone's start and their places
 *     before the cut. The contents are as above; geometry.pointers_are_lower_bounds says that the
 *     pointers have to be raised.
 *
 * The device never loses a durable block, never moves a pointer below one, never undoes a completed
 * reset, and never returns a block of one zone from another.
 *
 * Without a cut, the device carries out and completes commands in flight in an order drawn from the
 * seed, and an append gets its address when it is carried out. The same seed and the same calls
 * give the same run. One thread only. All memory failures abort, because this serves tests.
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

/* A copy of the state with all commands in flight, but without a device, faults or a cut set. */
struct zf_sim *zf_sim_clone(const struct zf_sim *sim);

/* One device at a time. Opening is a power cycle: open zones are closed. */
int zf_sim_open(struct zf_sim *sim, const struct zf_report *report, struct zf_dev **ret_dev);

/*
 * Adds empty zones, at once and durably, with or without a device open on the sim. zf_dev_grow()
 * does the same if it is called with a count; with 0 it adds none, because a sim has no room of its
 * own.
 */
void zf_sim_grow(struct zf_sim *sim, uint32_t zone_count);

/* ---- cutting the power ---- */

/* Commands submitted so far. Reads do not count: they change nothing. */
uint64_t zf_sim_commands(const struct zf_sim *sim);

/*
 * Cuts the power when the count reaches `n`: that command and all others in flight are caught by
 * the cut. They and all later commands, reads too, fail with -EIO, so that the user of the device
 * can be taken down. 0: never.
 */
void zf_sim_set_cut(struct zf_sim *sim, uint64_t n);
bool zf_sim_is_cut(const struct zf_sim *sim);
/*
 * The device disappears when the count reaches `n`, or at once if the count is there already: like
 * a cut, but with this error. Zones cannot be reported either.
 */
void zf_sim_vanish(struct zf_sim *sim, uint64_t n, int error);

/* Calls fn for each counted command, when the command is in flight. NULL: no observer. */
void zf_sim_observe(struct zf_sim *sim, void (*fn)(void *arg, const struct zf_sim *sim), void *arg);

enum zf_sim_cut {
	ZF_SIM_CUT_DEVICE, /* a cut of a real device: pointers are exact afterwards */
	ZF_SIM_CUT_HOST,   /* clause 9 */
};

/*
 * Replaces the state by one that may be found after a cut at this instant, drawn from the seed.
 * No device may be open. Faults, the cut and the commands in flight are removed; the count of
 * commands goes on.
 */
void zf_sim_crash(struct zf_sim *sim, uint64_t seed, enum zf_sim_cut cut);

/*
 * The outcomes of a cut, one by one. Each write that was not durable is taken as a whole: it
 * survived, it reads as zeroes or as the zone's former life, its last block is torn, only its first
 * block survived, or the pointer stands before it. Each subset of the commands in flight was
 * carried out, and appends also in the opposite order. Some outcomes are the same state.
 */
/* The number of outcomes; `most` + 1 if it is above `most`, or too large to tell. */
uint64_t zf_sim_outcomes(const struct zf_sim *sim, uint64_t most);
/*
 * Like zf_sim_crash() with ZF_SIM_CUT_DEVICE, for outcome n, from 0. Not if zf_sim_outcomes() could
 * not tell the number.
 */
void zf_sim_crash_nth(struct zf_sim *sim, uint64_t n);
/* The same for an outcome drawn from the seed. */
void zf_sim_crash_some(struct zf_sim *sim, uint64_t seed);

/*
 * A digest of all that a mount could find out about the device: two states of one geometry with the
 * same digest are the same.
 */
uint64_t zf_sim_digest(const struct zf_sim *sim);

/* ---- late completions ---- */

/*
 * From now on each command of this kind (ZF_SIM_ANY_OP: any but reads) is late with this chance: it
 * stays in flight, neither carried out nor completed, until a thread waits and no other command is
 * left to complete. Without this, commands in flight may overtake a command, but commands that its
 * submitter sends later, without waiting for it, may not.
 */
void zf_sim_set_late(struct zf_sim *sim, enum zf_io_op op, unsigned int percent);

/* ---- threads ---- */

/*
 * Lets the device have a thread of its own (zf_dev_start_thread()), if threads are fibers
 * (tests/support/fibers.h): `wait` is called when the thread has nothing to do, and returns when a
 * command is in flight or the device is being closed. NULL: no threads.
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
	bool kills_zone;    /* the command's zone has the condition zone_cond from then on */
	enum zf_zone_cond zone_cond; /* ZF_ZONE_READONLY, ZF_ZONE_OFFLINE */
	uint32_t zone_no;	     /* not 0: kills this zone instead of the command's */
	uint32_t first_zone;	     /* counts only commands to this zone and later ones */
};

/* Each fault strikes once. Several faults may be pending. */
void zf_sim_add_fault(struct zf_sim *sim, const struct zf_sim_fault *fault);
unsigned int zf_sim_faults_left(const struct zf_sim *sim);

void zf_sim_set_zone_cond(struct zf_sim *sim, uint32_t zone_no, enum zf_zone_cond cond);

/*
 * Zones wear out: each command that changes a zone, from zone `first` on, fails with this chance,
 * and the zone is read-only or offline from then on.
 */
struct zf_sim_wear {
	uint32_t first;
	unsigned int readonly, offline; /* chances, of 10000 */
	unsigned int zones_max;		/* the most zones that fail */
};
void zf_sim_set_wear(struct zf_sim *sim, const struct zf_sim_wear *wear);

/* Reads or replaces the stored block at an address, without the device. */
void zf_sim_peek(const struct zf_sim *sim, uint64_t addr, void *ret_block);
void zf_sim_poke(struct zf_sim *sim, uint64_t addr, const void *block);

#endif
