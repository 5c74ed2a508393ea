/* SPDX-License-Identifier: MIT */
/*
 * Thousands of transactions on the smallest device that can be formatted, with the lowest limit of
 * active zones. No transaction may lack room while little is live, the device enforces its rules
 * itself, and whenever the daemon dies or the power fails the last commit is there.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "alloc/reserve.h"
#include "rig.h"
#include "sim/rng.h"

static uint64_t seed;

struct run {
	struct rig rig;
	struct zf_rng rng;
	struct rig_table durable;
	uint64_t commits, moved, crashes;
	unsigned int items; /* how much is live at most */
};

static void commit(struct run *run)
{
	assert_int_equal(zf_txn_commit(run->rig.txn, zf_rng_chance(&run->rng, 10)), 0);
	run->durable = run->rig.now;
	run->commits++;
}

static void crash(struct run *run)
{
	rig_abandon(&run->rig);
	if (run->rig.sim)
		zf_sim_crash(run->rig.sim, zf_rng_next(&run->rng), ZF_SIM_CUT_DEVICE);
	rig_mount(&run->rig);
	rig_assert_holds(&run->rig, &run->durable);
	rig_assert_sound(&run->rig);
	run->rig.now = run->durable;
	run->crashes++;
}

/* A commit with edits between its phases, or cut off before the superblock. */
static void commit_in_phases(struct run *run)
{
	struct rig *rig = &run->rig;
	struct rig_table frozen;
	struct zf_trans trans;

	/* When the tail has no room, zf_txn_commit() makes resets, which the single phases do not.
	 */
	if (!zf_alloc_can_freeze(zf_fs_alloc(rig->fs)) || !zf_txn_is_dirty(rig->txn))
		return;
	frozen = rig->now;
	assert_int_equal(zf_txn_freeze(rig->txn), 0);
	for (unsigned int phase = 0; phase < 2; phase++) {
		if (zf_trans_join(rig->txn, ZF_RESERVE_NORMAL, 1, false, &trans) == 0) {
			assert_int_equal(
				rig_put_in(rig, &trans,
					   (unsigned int)zf_rng_below(&run->rng, run->items), 100),
				0);
			zf_trans_leave(&trans);
		}
		if (phase == 1 && zf_rng_chance(&run->rng, 20)) {
			crash(run);
			return;
		}
		assert_int_equal(phase ? zf_txn_finish(rig->txn) : zf_txn_write(rig->txn), 0);
	}
	run->durable = frozen;
	run->commits++;
}

static void edit(struct run *run)
{
	unsigned int n = (unsigned int)zf_rng_below(&run->rng, run->items);
	size_t len = 4 + zf_rng_below(&run->rng, 500);

	if (run->rig.now.value[n] && zf_rng_chance(&run->rng, 40))
		assert_int_equal(rig_delete(&run->rig, n), 0);
	else
		assert_int_equal(rig_put(&run->rig, n, len), 0);
}

static void tidy(struct run *run)
{
	bool urgent = zf_rng_chance(&run->rng, 30);
	int r;

	do {
		r = zf_txn_tidy(run->rig.txn, urgent);
		assert_true(r >= 0);
	} while (r == ZF_TIDY_DID);
	if (r == ZF_TIDY_EMPTIED) {
		run->durable = run->rig.now;
		run->moved++;
	}
}

/* A join may have committed by itself. Then a crash leaves the table from before the operation. */
static void note_commits(struct run *run, uint64_t *durable, const struct rig_table *before)
{
	uint64_t now = zf_txn_durable(run->rig.txn);

	if (now != *durable)
		run->durable = *before;
	*durable = now;
}

static void go(struct run *run, unsigned int steps)
{
	for (unsigned int step = 0; step < steps; step++) {
		uint64_t durable = zf_txn_durable(run->rig.txn);
		unsigned int what = (unsigned int)zf_rng_below(&run->rng, 100);

		if (what < 60) {
			struct rig_table before = run->rig.now;

			edit(run);
			note_commits(run, &durable, &before);
		} else if (what < 80) {
			commit(run);
		} else if (what < 88) {
			commit_in_phases(run);
		} else if (what < 97) {
			tidy(run);
		} else if (what < 99) {
			crash(run);
		} else {
			rig_assert_holds(&run->rig, &run->rig.now);
		}
	}
}

static void run_on(const struct zf_geometry *geometry, bool sim, unsigned int items,
		   unsigned int steps)
{
	struct run run = {.items = items};

	zf_rng_seed(&run.rng, seed);
	rig_open(&run.rig, geometry, sim ? seed | 1 : 0);
	go(&run, steps);
	printf("%" PRIu64 " commits, %" PRIu64 " crashes, %" PRIu64 " zones emptied\n", run.commits,
	       run.crashes, run.moved);
	assert_true(run.commits > steps / 5);
	rig_assert_holds(&run.rig, &run.rig.now);
	rig_close(&run.rig);
}

static void a_tiny_device_never_lacks_room_while_little_is_live(void **state)
{
	run_on(&rig_tiny, false, 24, 20000);
}

static void nor_with_more_live_nodes(void **state)
{
	run_on(&rig_tiny, false, 128, 10000);
}

static void nor_when_the_power_fails(void **state)
{
	run_on(&rig_tiny, true, 48, 10000);
}

static void nor_where_zones_are_conventional(void **state)
{
	struct zf_geometry geometry = rig_tiny;

	geometry.conventional = 5;
	run_on(&geometry, true, 48, 6000);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tiny_device_never_lacks_room_while_little_is_live),
		cmocka_unit_test(nor_with_more_live_nodes),
		cmocka_unit_test(nor_when_the_power_fails),
		cmocka_unit_test(nor_where_zones_are_conventional),
	};

	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	printf("to repeat: test_txn_long %" PRIu64 "\n", seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
