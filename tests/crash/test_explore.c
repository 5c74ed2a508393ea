/* SPDX-License-Identifier: MIT */
/* The explorer's own parts: names of cuts, states that were seen, sequences, replays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "explore.h"
#include "fs/space/reclaim.h"

static void a_name_is_read_as_it_was_written(void **state)
{
	static const char *const names[] = {"1", "7:3:0", "18446744073709551615:4:1000:2:63",
					    "5/2/360000:1:2:3:4:5:2001"};
	static const char *const none[] = {
		"", "a", "1:2", "1:2:3:", "1/2", "1/0/5", "1:2:3:4:5:6:7:8:9"};
	char text[CUT_NAME_TEXT_MAX];
	struct cut_name name;

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_true(cut_name_parse(names[i], &name));
		cut_name_format(&name, text);
		assert_string_equal(text, names[i]);
	}
	for (unsigned int i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(cut_name_parse(none[i], &name));
}

static void a_state_is_new_once_unless_more_was_promised(void **state)
{
	struct seen seen = {0};

	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(seen_note(&seen, i * 0x10001, 3), SEEN_NEVER);
	for (uint64_t i = 0; i < 5000; i++)
		assert_int_equal(seen_note(&seen, i * 0x10001, 2), SEEN);
	assert_int_equal(seen_note(&seen, 0x10001, 4), SEEN_PROMISED_LESS);
	assert_int_equal(seen_note(&seen, 0x10001, 4), SEEN);
	seen_clear(&seen);
}

/* The others contain an impossible operation, such as an fsync of a removed file. */
static void most_sequences_of_one_operation_can_be_run(void **state)
{
	uint64_t feasible = 0;

	for (uint64_t i = 0; i < sequence_base(); i++) {
		struct record_options options = {.name = {.seed = 1, .length = 1, .number = i}};
		struct record record;

		assert_true(record_run(&record, &options));
		feasible += !record.infeasible;
		assert_true(record.infeasible || record.cut_count > 0);
		record_free(&record);
	}
	print_message("%u of %u\n", (unsigned int)feasible, (unsigned int)sequence_base());
	assert_true(feasible >= sequence_base() * 9 / 10);
}

static void a_script_of_all_operations_is_the_record_again(void **state)
{
	struct record_options options = {.name.seed = 5, .ops = 200};
	struct record record, again;
	struct script script;
	bool *keep;

	assert_true(record_run(&record, &options));
	keep = malloc(record.count * sizeof(*keep));
	memset(keep, true, record.count * sizeof(*keep));
	script = (struct script){.ops = record.ops, .keep = keep, .count = record.count - 1};
	options.script = &script;
	assert_true(record_run(&again, &options));
	assert_int_equal(again.cut_count, record.cut_count);
	assert_int_equal(zf_sim_digest(again.end), zf_sim_digest(record.end));
	record_free(&again);
	record_free(&record);
	free(keep);
}

static struct zf_reclaim_stats reclaimed_by(const struct record_options *options, bool *ret_crowded)
{
	struct zf_reclaim_stats stats;
	struct record record;

	assert_true(record_run(&record, options));
	stats = record.reclaimed;
	*ret_crowded = record.crowded;
	record_free(&record);
	return stats;
}

/* The data of the small tree must be in a zone that can be a victim. */
static void sequences_with_a_reclaim_move_something(void **state)
{
	unsigned int moved = 0;
	bool crowded;

	for (uint64_t seed = 1; seed <= 50; seed++) {
		const struct record_options options = {
			.name = {.seed = seed,
				 .length = 1,
				 .number = sequence_draw_reclaim(seed, 1)}};

		moved += reclaimed_by(&options, &crowded).moved > 0;
	}
	assert_true(moved >= 35);
}

/* Such a reclaim also meets data that the operation left or removed. */
static void a_reclaim_can_follow_any_operation(void **state)
{
	for (uint64_t i = 0; i < sequence_base(); i++) {
		const struct record_options options = {
			.name = {.seed = 1,
				 .length = 2,
				 .number = i + sequence_base() * sequence_draw_reclaim(i, 1)}};
		struct record record;

		assert_true(record_run(&record, &options));
		record_free(&record);
	}
}

/* In any record when the operation is drawn; on crowded devices also to make room. */
static void operations_at_random_reclaim(void **state)
{
	struct record_options options = {.ops = 300};
	uint64_t waits = 0;
	unsigned int moved = 0;
	bool crowded;

	for (options.name.seed = 1; options.name.seed <= 50; options.name.seed++) {
		struct zf_reclaim_stats stats = reclaimed_by(&options, &crowded);

		moved += stats.moved > 0;
		if (crowded)
			waits += stats.waits;
	}
	assert_true(moved >= 25);
	assert_true(waits > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_name_is_read_as_it_was_written),
		cmocka_unit_test(a_state_is_new_once_unless_more_was_promised),
		cmocka_unit_test(most_sequences_of_one_operation_can_be_run),
		cmocka_unit_test(a_script_of_all_operations_is_the_record_again),
		cmocka_unit_test(sequences_with_a_reclaim_move_something),
		cmocka_unit_test(a_reclaim_can_follow_any_operation),
		cmocka_unit_test(operations_at_random_reclaim),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
