/* SPDX-License-Identifier: MIT */
/*
 * Several threads want room at once on the smallest device: each thread empties metadata zones, and
 * resets zones that the others have emptied. Every zone is readable, so reclaim may exclude none
 * for good.
 *
 *      test_marks [SEED [ROUNDS]]
 */
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "alloc/zone.h"
#include "rig.h"
#include "sim/rng.h"

#define TIDIERS 3u
#define EDITS	400u
#define ITEMS	200u

static uint64_t seed;
static unsigned int rounds = 20;

struct run {
	struct rig rig;
	atomic_bool stopping;
};

static void *tidy(void *arg)
{
	struct run *run = arg;

	while (!atomic_load(&run->stopping))
		zf_txn_tidy(run->rig.txn, true);
	return NULL;
}

static void edit(struct rig *rig, struct zf_rng *rng)
{
	for (unsigned int i = 0; i < EDITS; i++) {
		unsigned int n = (unsigned int)zf_rng_below(rng, ITEMS);

		if (rig->now.value[n] && zf_rng_chance(rng, 40))
			rig_delete(rig, n);
		else
			rig_put(rig, n, 4 + (size_t)zf_rng_below(rng, 900));
		if (zf_rng_chance(rng, 10))
			zf_txn_commit(rig->txn, false);
	}
}

static void expect_no_mark(struct rig *rig)
{
	for (uint32_t z = 2; z < zf_dev_geometry(rig->dev)->zone_count; z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(zf_fs_alloc(rig->fs), z, &zone);
		assert_false(zone.stuck);
	}
}

static void no_zone_that_can_be_read_is_marked_as_stuck(void **state)
{
	(void)state;
	for (unsigned int round = 0; round < rounds; round++) {
		pthread_t threads[TIDIERS];
		struct run run = {0};
		struct zf_rng rng;

		zf_rng_seed(&rng, seed + round);
		rig_open(&run.rig, &rig_tiny, 0);
		for (unsigned int i = 0; i < TIDIERS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, tidy, &run), 0);
		edit(&run.rig, &rng);
		atomic_store(&run.stopping, true);
		for (unsigned int i = 0; i < TIDIERS; i++)
			pthread_join(threads[i], NULL);
		expect_no_mark(&run.rig);
		rig_assert_holds(&run.rig, &run.rig.now);
		rig_close(&run.rig);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_zone_that_can_be_read_is_marked_as_stuck),
	};

	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	if (argc > 2)
		rounds = (unsigned int)strtoul(argv[2], NULL, 0);
	printf("to repeat: test_marks %" PRIu64 " %u\n", seed, rounds);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
