/* SPDX-License-Identifier: MIT */
/*
 * The Nth command fails, for every N: short workloads on the simulator with one fault each.
 *
 *      test_faults [--seed S] [--workloads N] [--verbose]
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "explore.h"

static uint64_t seed = 1, workloads = 5;
static unsigned int ops, cuts = 1;

/* What a fault may lead to. */
enum outcome {
	UNNOTICED,	  /* no operation fails, nothing is lost */
	READ_ONLY,	  /* or the filesystem turns read-only, and acknowledged data stays */
	SURELY_READ_ONLY, /* it does so at once: nothing is acknowledged after the first error */
	AN_ANSWER,	  /* or one operation fails */
	DATA_IS_LOST	  /* but nothing crashes, and no wrong data is read as right */
};

static bool mark_answers(const struct record *record, enum outcome outcome)
{
	if (outcome == SURELY_READ_ONLY && record->struck) {
		const struct zf_op *unmount = &record->ops[record->count - 1];

		return (record->read_only || unmount->result < 0) && !record->told_durable;
	}
	if (!record->hurt || outcome >= AN_ANSWER)
		return true;
	return outcome != UNNOTICED && (record->hurt == -EROFS || record->hurt == -EIO);
}

/* Judges the device after the workload, once as it is and once after a cut. */
static bool judge_end(const struct record *record, uint64_t crash_seed)
{
	const struct judgement judgement = {
		.full = true, .go_on = true, .degraded = record->options.copies > 1};
	struct zf_sim *sim = zf_sim_clone(record->end);
	bool ok;

	if (crash_seed)
		zf_sim_crash(sim, crash_seed, ZF_SIM_CUT_DEVICE);
	ok = judge(record, record->count, sim, &judgement);
	zf_sim_free(sim);
	return ok;
}

/* False when the workload does not have so many commands. */
static bool strike(uint64_t run_seed, const struct zf_sim_fault *fault, uint8_t copies,
		   enum outcome outcome)
{
	const struct record_options options = {
		.name.seed = run_seed, .ops = ops, .fault = fault, .copies = copies};
	struct record record;
	bool ok = record_run(&record, &options), struck = record.struck;

	ok = ok && mark_answers(&record, outcome);
	if (ok && struck && outcome != DATA_IS_LOST)
		ok = judge_end(&record, 0);
	for (uint64_t i = 0; ok && struck && outcome != DATA_IS_LOST && i < cuts; i++)
		ok = judge_end(&record, run_seed + i);
	if (!ok)
		fprintf(stderr,
			"with seed %" PRIu64 ", %u copies, the %" PRIu64
			". command of kind %d failing with %d%s%s (condition %d): error %d\n",
			run_seed, copies, fault->nth, fault->op, fault->error,
			fault->moves_pointer ? ", the pointer moved" : "",
			fault->kills_zone ? ", its zone gone" : "", fault->zone_cond, record.hurt);
	record_free(&record);
	assert_true(ok);
	return struck;
}

/* Every command of this kind in turn, in every workload. */
static void strike_each(struct zf_sim_fault fault, uint8_t copies, enum outcome outcome)
{
	uint64_t strikes = 0;

	/* Zones are emptied late in a workload's life. */
	ops = fault.op == ZF_IO_RESET ? 400 : 80;
	for (uint64_t i = 0; i < workloads; i++) {
		for (fault.nth = 1; strike(seed + i, &fault, copies, outcome); fault.nth++)
			strikes++;
	}
	assert_true(strikes > 0);
}

static void an_append_that_fails_is_made_again_elsewhere(void **state)
{
	strike_each((struct zf_sim_fault){.op = ZF_IO_APPEND, .error = -EIO}, 1, UNNOTICED);
}

static void an_append_that_fails_and_moves_the_pointer_is_made_again(void **state)
{
	strike_each((struct zf_sim_fault){.op = ZF_IO_APPEND, .error = -EIO, .moves_pointer = true},
		    1, UNNOTICED);
}

static void data_goes_elsewhere_when_a_zone_turns_read_only(void **state)
{
	strike_each((struct zf_sim_fault){.op = ZF_IO_APPEND,
					  .error = -EROFS,
					  .kills_zone = true,
					  .zone_cond = ZF_ZONE_READONLY},
		    1, UNNOTICED);
}

static void a_zone_that_goes_offline_takes_only_its_own_data(void **state)
{
	strike_each((struct zf_sim_fault){.op = ZF_IO_APPEND,
					  .error = -ENXIO,
					  .kills_zone = true,
					  .zone_cond = ZF_ZONE_OFFLINE},
		    1, DATA_IS_LOST);
}

static void a_write_of_metadata_that_fails_turns_it_read_only_and_loses_nothing(void **state)
{
	strike_each((struct zf_sim_fault){.op = ZF_IO_WRITE, .error = -EIO}, 1, READ_ONLY);
	strike_each((struct zf_sim_fault){.op = ZF_IO_WRITE, .error = -EIO, .moves_pointer = true},
		    1, READ_ONLY);
}

static void with_two_copies_one_failed_write_loses_nothing(void **state)
{
	strike_each((struct zf_sim_fault){.op = ZF_IO_WRITE, .error = -EIO}, 2, READ_ONLY);
}

/* The fault kills the zone of a write, not only the write; it is a zone of metadata. */
static void with_two_copies_a_zone_that_fails_loses_nothing(void **state)
{
	strike_each((struct zf_sim_fault){.op = ZF_IO_WRITE,
					  .first_zone = 2,
					  .kills_zone = true,
					  .zone_cond = ZF_ZONE_READONLY},
		    2, UNNOTICED);
	strike_each((struct zf_sim_fault){.op = ZF_IO_WRITE,
					  .first_zone = 2,
					  .kills_zone = true,
					  .zone_cond = ZF_ZONE_OFFLINE},
		    2, UNNOTICED);
}

static void with_one_copy_a_zone_that_turns_read_only_loses_nothing(void **state)
{
	strike_each((struct zf_sim_fault){.op = ZF_IO_WRITE,
					  .first_zone = 2,
					  .kills_zone = true,
					  .zone_cond = ZF_ZONE_READONLY},
		    1, READ_ONLY);
	strike_each((struct zf_sim_fault){.op = ZF_IO_RESET,
					  .first_zone = 2,
					  .kills_zone = true,
					  .zone_cond = ZF_ZONE_READONLY},
		    1, UNNOTICED);
}

/* Acknowledged data is safe even if the device drops the data that it could not flush. */
static void a_flush_that_fails_turns_it_read_only_and_loses_nothing(void **state)
{
	struct zf_sim_fault fault = {.op = ZF_IO_FLUSH, .error = -EIO};

	strike_each(fault, 1, SURELY_READ_ONLY);
	fault.loses_cache = true;
	cuts = 4;
	strike_each(fault, 1, SURELY_READ_ONLY);
	strike_each(fault, 2, SURELY_READ_ONLY);
	cuts = 1;
}

static void a_reset_that_fails_is_no_error(void **state)
{
	strike_each((struct zf_sim_fault){.op = ZF_IO_RESET, .first_zone = 2, .error = -EIO}, 1,
		    UNNOTICED);
}

/* There is no other zone for the superblock. */
static void nor_does_a_reset_of_the_superblocks_zone_lose_anything(void **state)
{
	strike_each((struct zf_sim_fault){.op = ZF_IO_RESET, .error = -EIO}, 1, READ_ONLY);
}

static void a_read_that_fails_is_an_answer_and_loses_nothing(void **state)
{
	strike_each((struct zf_sim_fault){.op = ZF_IO_READ, .error = -EIO}, 1, AN_ANSWER);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_append_that_fails_is_made_again_elsewhere),
		cmocka_unit_test(an_append_that_fails_and_moves_the_pointer_is_made_again),
		cmocka_unit_test(data_goes_elsewhere_when_a_zone_turns_read_only),
		cmocka_unit_test(a_zone_that_goes_offline_takes_only_its_own_data),
		cmocka_unit_test(
			a_write_of_metadata_that_fails_turns_it_read_only_and_loses_nothing),
		cmocka_unit_test(with_two_copies_one_failed_write_loses_nothing),
		cmocka_unit_test(with_two_copies_a_zone_that_fails_loses_nothing),
		cmocka_unit_test(with_one_copy_a_zone_that_turns_read_only_loses_nothing),
		cmocka_unit_test(a_flush_that_fails_turns_it_read_only_and_loses_nothing),
		cmocka_unit_test(a_reset_that_fails_is_no_error),
		cmocka_unit_test(nor_does_a_reset_of_the_superblocks_zone_lose_anything),
		cmocka_unit_test(a_read_that_fails_is_an_answer_and_loses_nothing),
	};

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "0";

		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(value, NULL, 0);
		else if (strcmp(argv[i], "--workloads") == 0)
			workloads = strtoull(value, NULL, 0);
		else if (strcmp(argv[i], "--verbose") == 0)
			explore_verbose = true;
		else if (strcmp(argv[i], "--only") == 0)
			cmocka_set_test_filter(value);
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
