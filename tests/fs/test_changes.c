/* SPDX-License-Identifier: MIT */
/* The ranges of a file that have changed and are not durable (fs/core/changes.h), compared with a
 * model that has one generation for each block. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "fs/core/changes.h"
#include "sim/rng.h"

#define BLOCK  UINT64_C(4096)
#define BLOCKS 800u

static void add(struct zf_changes *changes, uint64_t from, uint64_t to, uint64_t generation)
{
	zf_changes_add(changes, from * BLOCK, to * BLOCK, generation);
}

static void expect_one(const struct zf_changes *changes, unsigned int i, uint64_t from, uint64_t to,
		       uint64_t generation)
{
	assert_true(i < changes->count);
	assert_int_equal(changes->at[i].from, from * BLOCK);
	assert_int_equal(changes->at[i].to, to * BLOCK);
	assert_int_equal(changes->at[i].generation, generation);
}

static void what_overlaps_or_touches_is_one(void **state)
{
	struct zf_changes changes;

	(void)state;
	zf_changes_init(&changes);
	add(&changes, 10, 20, 1);
	add(&changes, 40, 50, 2);
	add(&changes, 30, 30, 9); /* nothing */
	assert_int_equal(changes.count, 2);
	add(&changes, 20, 25, 3);
	add(&changes, 5, 10, 1);
	add(&changes, 45, 47, 1);
	assert_int_equal(changes.count, 2);
	expect_one(&changes, 0, 5, 25, 3);
	expect_one(&changes, 1, 40, 50, 2);
	add(&changes, 24, 41, 4);
	assert_int_equal(changes.count, 1);
	expect_one(&changes, 0, 5, 50, 4);
	assert_int_equal(zf_changes_newest(&changes), 4);
	zf_changes_deinit(&changes);
}

static void what_is_durable_is_forgotten(void **state)
{
	struct zf_changes changes;

	(void)state;
	zf_changes_init(&changes);
	assert_false(zf_changes_any(&changes));
	add(&changes, 1, 2, 5);
	add(&changes, 4, 5, 7);
	add(&changes, 8, 9, 6);
	zf_changes_add_item(&changes, 6);
	assert_int_equal(zf_changes_newest(&changes), 7);
	zf_changes_prune(&changes, 5);
	assert_int_equal(changes.count, 2);
	assert_int_equal(changes.item, 6);
	zf_changes_prune(&changes, 6);
	assert_int_equal(changes.count, 1);
	assert_int_equal(changes.item, 0);
	expect_one(&changes, 0, 4, 5, 7);
	assert_true(zf_changes_any(&changes));
	zf_changes_prune(&changes, 7);
	assert_false(zf_changes_any(&changes));
	zf_changes_deinit(&changes);
}

static void an_item_alone_is_a_change(void **state)
{
	struct zf_changes changes;

	(void)state;
	zf_changes_init(&changes);
	zf_changes_add_item(&changes, 3);
	assert_true(zf_changes_any(&changes));
	assert_false(zf_changes_are_lost(&changes));
	assert_int_equal(zf_changes_newest(&changes), 3);
	zf_changes_clear_item(&changes);
	assert_false(zf_changes_any(&changes));
	zf_changes_add_item(&changes, 3);
	zf_changes_clear(&changes);
	assert_false(zf_changes_any(&changes));
	zf_changes_deinit(&changes);
}

static void too_many_are_lost_until_they_are_durable(void **state)
{
	struct zf_changes changes;

	(void)state;
	zf_changes_init(&changes);
	for (unsigned int i = 0; i < ZF_CHANGES_MAX; i++)
		add(&changes, 2 * i, 2 * i + 1, i + 1);
	assert_false(zf_changes_are_lost(&changes));
	/* A range that is already listed takes no room. */
	add(&changes, 10, 11, 70);
	assert_false(zf_changes_are_lost(&changes));
	add(&changes, 2 * ZF_CHANGES_MAX, 2 * ZF_CHANGES_MAX + 1, 71);
	assert_true(zf_changes_are_lost(&changes));
	assert_true(zf_changes_any(&changes));
	zf_changes_prune(&changes, 70);
	assert_true(zf_changes_are_lost(&changes));
	add(&changes, 1, 2, 72);
	zf_changes_prune(&changes, 71);
	assert_true(zf_changes_are_lost(&changes));
	assert_int_equal(zf_changes_newest(&changes), 72);
	zf_changes_prune(&changes, 72);
	assert_false(zf_changes_any(&changes));
	add(&changes, 1, 2, 73);
	expect_one(&changes, 0, 1, 2, 73);
	zf_changes_deinit(&changes);
}

/* ---- at random ---- */

struct model {
	uint64_t newest[BLOCKS]; /* that changed the block; 0: none that is not durable */
	uint64_t generation, durable;
};

/* The list has all changes of the model, and nothing that was never changed. */
static void compare(const struct model *model, const struct zf_changes *changes)
{
	bool listed[BLOCKS] = {0};

	for (unsigned int i = 0; i < changes->count; i++) {
		const struct zf_change *change = &changes->at[i];

		assert_true(change->from < change->to && change->generation > model->durable);
		if (i > 0)
			assert_true(changes->at[i - 1].to < change->from);
		for (uint64_t b = change->from / BLOCK; b < change->to / BLOCK; b++) {
			assert_true(model->newest[b] > 0 && model->newest[b] <= change->generation);
			listed[b] = true;
		}
	}
	for (unsigned int b = 0; b < BLOCKS; b++)
		if (model->newest[b] > model->durable)
			assert_true(listed[b]);
}

static void random_changes_are_all_listed(void **state)
{
	struct zf_changes changes;
	struct model model = {.generation = 3};
	struct zf_rng rng;
	unsigned int losses = 0;

	(void)state;
	zf_rng_seed(&rng, 1);
	zf_changes_init(&changes);
	for (unsigned int i = 0; i < 20000; i++) {
		uint64_t from = zf_rng_below(&rng, BLOCKS), to;

		to = zf_min_u64(BLOCKS, from + 1 + zf_rng_below(&rng, 3));
		add(&changes, from, to, model.generation);
		for (uint64_t b = from; b < to; b++)
			model.newest[b] = model.generation;
		model.generation += zf_rng_chance(&rng, 5);
		if (zf_rng_chance(&rng, 2)) {
			model.generation++;
			/* The changes of the running transaction are not durable. */
			model.durable = zf_max_u64(model.durable,
						   model.generation - 1 - zf_rng_below(&rng, 2));
			zf_changes_prune(&changes, model.durable);
		}
		if (zf_rng_chance(&rng, 1) && !zf_changes_are_lost(&changes)) {
			zf_changes_clear(&changes);
			memset(model.newest, 0, sizeof(model.newest));
		}
		losses += zf_changes_are_lost(&changes);
		if (!zf_changes_are_lost(&changes))
			compare(&model, &changes);
	}
	print_message("lost after %u of 20000\n", losses);
	assert_true(losses > 10 && losses < 15000);
	zf_changes_deinit(&changes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_overlaps_or_touches_is_one),
		cmocka_unit_test(what_is_durable_is_forgotten),
		cmocka_unit_test(an_item_alone_is_a_change),
		cmocka_unit_test(too_many_are_lost_until_they_are_durable),
		cmocka_unit_test(random_changes_are_all_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
