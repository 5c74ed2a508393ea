/* SPDX-License-Identifier: MIT */
/*
 * Commands fail, and later the power is cut. A run has one fault, one that lasts, or two. The cuts
 * are at the commands after the first fault, while the filesystem recovers from the fault or turns
 * read-only.
 *
 *      test_fault_cuts [--seed S] [--runs N] [--verbose]
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "explore.h"

#define OPS	      150u
#define COMMANDS_LOG  8u  /* the fault strikes one of the first 2^7 of a kind, early ones often */
#define CUTS_MAX      12u /* that are judged of one run */
#define CUT_EVERY_MAX 5u
#define RUNS_DEFAULT  2000u

static const struct zf_sim_fault kinds[] = {
	{.op = ZF_IO_APPEND, .error = -EIO},
	{.op = ZF_IO_APPEND, .error = -EIO, .moves_pointer = true},
	{.op = ZF_IO_APPEND, .error = -EROFS, .kills_zone = true, .zone_cond = ZF_ZONE_READONLY},
	{.op = ZF_IO_WRITE, .error = -EIO},
	{.op = ZF_IO_WRITE, .error = -EIO, .moves_pointer = true},
	{.op = ZF_IO_FLUSH, .error = -EIO},
	{.op = ZF_IO_FLUSH, .error = -EIO, .loses_cache = true},
	{.op = ZF_IO_RESET, .error = -EIO},
	{.op = ZF_IO_READ, .error = -EIO},
	{.op = ZF_SIM_ANY_OP, .error = -EIO},
};

struct tallied {
	uint64_t struck, hurt, cuts;
};

static struct zf_sim_fault draw_fault(struct zf_rng *rng)
{
	struct zf_sim_fault fault = kinds[zf_rng_below(rng, ZF_ARRAY_SIZE(kinds))];
	uint64_t limit = UINT64_C(1) << zf_rng_below(rng, COMMANDS_LOG);

	fault.nth = 1 + zf_rng_below(rng, limit);
	return fault;
}

/*
 * Data whose append fails twice is given up: fsync reports that, and a read finds the former
 * content. The oracle does not model this, so a run has at most one such fault.
 */
static bool loses_data(const struct zf_sim_fault *fault)
{
	return (fault->op == ZF_IO_APPEND || fault->op == ZF_SIM_ANY_OP) && !fault->kills_zone;
}

/* Few repeats if zones die or cannot be emptied: a small device runs out of room, rightly. */
static uint32_t repeats_max(const struct zf_sim_fault *fault)
{
	if (loses_data(fault))
		return 0;
	return fault->kills_zone || fault->op == ZF_IO_RESET ? 2 : 20;
}

static bool judge_cut(const struct record *record, const struct cut *cut, uint64_t seed)
{
	const struct judgement judgement = {.full = true, .degraded = record->options.copies > 1};
	struct zf_sim *sim = zf_sim_clone(cut->sim);
	bool ok;

	zf_sim_crash(sim, seed, ZF_SIM_CUT_DEVICE);
	ok = judge(record, cut->op, sim, &judgement);
	zf_sim_free(sim);
	return ok;
}

/*
 * Several faults may lose data all the same, and then an operation returns an error. From then on
 * the oracle, which still has that data, cannot judge.
 */
static uint32_t last_op_to_judge(const struct record *record)
{
	uint32_t i = 0;

	while (i < record->count && record->ops[i].result != -EIO)
		i++;
	return i;
}

static bool judge_cuts(const struct record *record, struct zf_rng *rng, struct tallied *tallied)
{
	uint32_t last = last_op_to_judge(record);

	for (uint32_t i = 0; i < record->cut_count && i < CUTS_MAX; i++) {
		uint32_t at = (uint32_t)zf_rng_below(rng, record->cut_count);

		if (record->cuts[at].op > last && record->faults > 1)
			continue;
		tallied->cuts++;
		if (!judge_cut(record, &record->cuts[at], zf_rng_next(rng))) {
			fprintf(stderr, "wrong at cut %u of %u\n", at, record->cut_count);
			return false;
		}
	}
	return true;
}

static bool run(uint64_t seed, struct tallied *tallied)
{
	struct zf_sim_fault faults[2];
	struct record_options options = {.name.seed = seed, .ops = OPS, .fault = &faults[0]};
	struct record record;
	struct zf_rng rng;
	bool ok;

	zf_rng_seed(&rng, ~seed);
	faults[0] = draw_fault(&rng);
	faults[1] = draw_fault(&rng);
	options.cut_every = 1 + (uint32_t)zf_rng_below(&rng, CUT_EVERY_MAX);
	options.copies = zf_rng_chance(&rng, 30) ? 2 : 1;
	if (zf_rng_chance(&rng, 40))
		options.repeats = (uint32_t)zf_rng_below(&rng, 1 + repeats_max(&faults[0]));
	if (zf_rng_chance(&rng, 40) && !(loses_data(&faults[0]) && loses_data(&faults[1])))
		options.second = &faults[1];
	ok = record_run(&record, &options);
	tallied->struck += record.struck;
	tallied->hurt += record.hurt != 0;
	ok = ok && judge_cuts(&record, &rng, tallied);
	if (!ok)
		fprintf(stderr,
			"seed %" PRIu64 ": command %" PRIu64 " of kind %d fails with %d, and %u "
			"after it; second: %s, %" PRIu64 " of kind %d; %u copies; error %d\n",
			seed, faults[0].nth, faults[0].op, faults[0].error, options.repeats,
			options.second ? "yes" : "no", faults[1].nth, faults[1].op, options.copies,
			record.hurt);
	record_free(&record);
	return ok;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, runs = RUNS_DEFAULT, failures = 0;
	struct tallied tallied = {0};

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "0";

		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(value, NULL, 0);
		else if (strcmp(argv[i], "--runs") == 0)
			runs = strtoull(value, NULL, 0);
		else if (strcmp(argv[i], "--verbose") == 0)
			explore_verbose = true;
	}
	for (uint64_t i = 0; i < runs; i++)
		failures += !run(seed + i, &tallied);
	printf("%" PRIu64 " runs: %" PRIu64 " met a fault, %" PRIu64 " an error; %" PRIu64
	       " cuts, %" PRIu64 " failures\n",
	       runs, tallied.struck, tallied.hurt, tallied.cuts, failures);
	return failures != 0 || tallied.cuts == 0;
}
