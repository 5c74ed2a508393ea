/* SPDX-License-Identifier: MIT */
/* A repair writes a sound filesystem anew: nothing is lost, and there are no errors. */
#include <stdlib.h>

#include "fixture.h"
#include "lies/image.h"
#include "sample.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static void rewrite(struct zf_memory *memory)
{
	struct zf_vector before, after;
	struct zf_repair_counts counts;
	struct zf_dev *dev;

	assert_int_equal(zf_memory_open(memory, NULL, NULL, &dev), 0);
	assert_int_equal(fixture_errors(dev), 0);
	assert_int_equal(listing_make(dev, &before), 0);
	if (fixture_repair(dev, &counts) < 0) {
		fixture_print_messages();
		fail();
	}
	if (counts.changes > 0)
		fixture_print_messages();
	assert_int_equal(counts.changes, 0);
	assert_false(counts.log_dropped);
	assert_int_equal(listing_make(dev, &after), 0);
	assert_int_equal(listing_compare(&before, &after, true), 0);
	assert_int_equal(after.count, before.count);
	if (fixture_errors(dev) > 0) {
		fixture_print_messages();
		fail();
	}
	zf_vector_deinit(&before);
	zf_vector_deinit(&after);
	zf_dev_close(dev);
}

static void a_sample(void **state)
{
	(void)state;
	for (uint8_t copies = 1; copies <= 2; copies++) {
		const struct sample_options options = {.copies = copies, .conventional = 3};
		struct sample sample;

		sample_make(&sample, &options);
		rewrite(sample.memory);
		rewrite(sample.memory);
		sample_free(&sample);
	}
}

/* With orphans, an intent, and a log that is still to be replayed. */
static void what_a_crash_has_left(void **state)
{
	(void)state;
	for (unsigned int kind = 0; kind < IMAGE_ALL_KINDS; kind++) {
		struct forge forge;

		image_make((enum image_kind)kind, &forge);
		rewrite(forge.memory);
		rewrite(forge.memory);
		image_free(&forge);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample),
		cmocka_unit_test(what_a_crash_has_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
