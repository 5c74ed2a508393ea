/* SPDX-License-Identifier: MIT */
/*
 * The crash explorer: a workload on the simulator, the power cut at every command of it, and what
 * is found afterwards judged by the oracle.
 *
 *      record: operations run on the simulator; at each command a clone of it is kept (struct cut)
 *      explore: clone --zf_sim_crash--> mount (recovery) --> checker, oracle
 *                                         +--> cuts of the recovery's own commands, and once more
 *
 * What is right after a cut. Let K be the last operation that is to be seen (every one has a time
 * of its own, and leaves it on something that has a name), or the last that was acknowledged as
 * durable, whichever is later. Then
 *
 *  P1  everything acknowledged is there: K is at least that, and files that were synced have their
 *      bytes;
 *  P2  names and attributes, the size after a truncation too, are the result of all operations up
 *      to K and of none behind it. Content may be older: what writes, fallocate and reflinks did to
 *      a file is durable by that file's own fsync, by syncfs, or by a commit, and its times with
 *      it. But a rename over a file is not seen without the content that its source had;
 *  P3  every byte of a file is one that a write put there: the last that was made durable, or a
 *      later one up to K's successor; or zero where nothing was;
 *  P4  nothing that is read fails.
 *
 * And what has no name is gone, whoever held it: inodes are counted. It makes no difference whether
 * something became durable by a commit or by a record of the intent log.
 */
#ifndef ZF_TESTS_EXPLORE_H
#define ZF_TESTS_EXPLORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/plant.h"
#include "support/sim.h"
#include "support/workload.h"

/* ---- planted bugs, to see whether they are found ---- */

/* Below the filesystem, or in its answers: what it is told is not what is done. */
enum lie {
	LIE_NONE,
	LIE_FLUSH, /* flushes do nothing: the superblock is durable before what it names */
	LIE_FUA,   /* FUA is ignored: zones are reset before the superblock that frees them is
		    * durable */
	LIE_ACK, /* an fsync counts as answered when it begins */
	LIE_COUNT,
};

struct zf_dev;

/* Makes the device lie from now on. */
void lie_begin(struct zf_dev *dev, enum lie lie);

/* A planted bug by name (plants.c): where it is, and what finds it. */
struct plant {
	const char *name;
	enum lie lie;
	enum zf_bug bug; /* in the code (base/plant.h) */
	uint64_t seed;	 /* of the first record */
	unsigned int ops;
	uint64_t cuts; /* by then it must have been found */
};

extern const struct plant plants[];
extern const unsigned int plant_count;

/* NULL: there is none of that name, or not in this build. */
const struct plant *plant_find(const char *name);
/* Turns on its bug in the code, and turns off all others. */
void plant_begin(const struct plant *plant);

/* ---- recording ---- */

struct cut {
	struct zf_sim *sim;
	uint32_t op; /* index of the operation that ran */
};

struct record_options {
	uint64_t seed;
	unsigned int ops;
	const struct plant *plant;	  /* NULL: none */
	const struct zf_sim_fault *fault; /* NULL: none. Then no cuts are kept, only the end. */
	uint8_t copies;			  /* of metadata; 0: drawn */
};

struct record {
	struct record_options options;
	struct workload workload;
	struct zf_op *ops;
	uint32_t count; /* of ops run; ops[count] is running */
	struct cut *cuts;
	uint32_t cut_count, cut_room;
	struct zf_sim *end; /* when all was done */
	int hurt;    /* the first error that the fault led to: the operations ended soon after */
	bool struck; /* the fault came to pass */
};

/*
 * False: the workload itself went wrong, with messages. With a fault, errors of the device are no
 * wrong answers.
 */
bool record_run(struct record *record, const struct record_options *options);
void record_free(struct record *record);

/* ---- judging (judge.c) ---- */

struct judgement {
	bool host; /* the host's power was cut: what the device says of pointers is a lower bound */
	bool degraded; /* a copy of metadata is known to be missing: the checker would say so */
	bool full;     /* the checker compares all data with its checksums */
	bool go_on;    /* write, unmount and mount again afterwards */
	uint64_t second_cut; /* the seed of a power cut in place of that unmount; 0: none */
	/* If set: sees every command of the mount's recovery. */
	void (*observe)(void *arg, const struct zf_sim *sim);
	void *observe_arg;
};

/* The simulator after a crash, at the cut of operation `op`. False: a promise is broken. */
bool judge(const struct record *record, uint32_t op, struct zf_sim *sim,
	   const struct judgement *judgement);

/* ---- exploring (explore.c) ---- */

struct tally {
	uint64_t records, cuts, nested, failures;
};

/* One state after a cut, by numbers alone. */
struct cut_name {
	uint64_t seed; /* of the record */
	uint32_t cut, variant;
	uint32_t nested, nested_variant; /* of the recovery's commands; nested 0: none */
};

/* As `scripts/crash --repeat` takes it. */
void cut_name_print(FILE *out, const struct cut_name *name);
bool cut_name_parse(const char *text, struct cut_name *ret_name);

/*
 * Records the workload of the seed and judges its cuts, `variants` of each, until tally->cuts
 * reaches `most`. Failures are printed with the line that repeats them; the first one ends it.
 */
bool explore(const struct record_options *options, unsigned int variants, uint64_t most,
	     struct tally *tally);
bool explore_one(const struct record_options *options, const struct cut_name *name);

extern const struct zf_report explore_report; /* prints if explore_verbose */
extern bool explore_verbose;

#endif
