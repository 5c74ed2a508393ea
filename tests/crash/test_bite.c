/* SPDX-License-Identifier: MIT */
/* The crash explorer must find every planted bug (plants.c), and nothing else. */
#include <assert.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "explore.h"

#define PLANTS_MAX 64u

static uint64_t number_of(const struct plant *plant, uint64_t seed)
{
	if (plant->number)
		return plant->number;
	return plant->reclaim ? sequence_draw_reclaim(seed, plant->length)
			      : sequence_draw(seed, plant->length);
}

static bool is_found(const struct plant *plant)
{
	int out = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct record_options options = {
		.name = {.seed = plant->seed, .length = plant->length},
		.ops = plant->ops,
		.plant = plant,
	};
	const struct explore_limits limits = {.cuts = plant->cuts, .samples = 16};
	struct tally tally = {0};
	struct cut_name failed;

	plant_begin(plant);
	/* Messages of a failure are not shown, because here a failure is expected. */
	fflush(stderr);
	dup2(null, STDERR_FILENO);
	for (; tally.failures == 0 && tally.cuts < plant->cuts; options.name.seed++) {
		options.name.number = number_of(plant, options.name.seed);
		explore(&options, &limits, &tally, &failed);
	}
	fflush(stderr);
	dup2(out, STDERR_FILENO);
	close(out);
	close(null);
	plant_begin(NULL);
	return tally.failures > 0;
}

static void is_found_if_it_is_there(void **state)
{
	const struct plant *plant = *state;

	if (plant->elsewhere)
		return;
	assert_int_equal(is_found(plant), plant->lie != LIE_NONE || plant->bug != ZF_BUG_NONE);
}

/* No test would look for a bug without a row. */
static void every_bug_has_a_row(void **state)
{
	for (unsigned int bug = ZF_BUG_NONE + 1; bug < ZF_BUG_COUNT; bug++) {
		unsigned int rows = 0;

		for (unsigned int i = 0; i < plant_count; i++)
			rows += plants[i].bug == bug;
		assert_int_not_equal(rows, 0);
	}
}

int main(void)
{
	struct CMUnitTest tests[PLANTS_MAX] = {cmocka_unit_test(every_bug_has_a_row)};

	assert(plant_count < PLANTS_MAX);
	for (unsigned int i = 0; i < plant_count; i++)
		tests[1 + i] = (struct CMUnitTest){.name = plants[i].name,
						   .test_func = is_found_if_it_is_there,
						   .initial_state = (void *)(uintptr_t)&plants[i]};
	return _cmocka_run_group_tests("planted bugs", tests, 1 + plant_count, NULL, NULL);
}
