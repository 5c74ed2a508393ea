/* SPDX-License-Identifier: MIT */
/* The checker finds no errors in filesystems of all shapes that have none. */
#include "sample.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static void expect_clean(const struct sample_options *options)
{
	struct sample sample;
	struct zf_check_counts counts;

	sample_make(&sample, options);
	sample_check(&sample, true, &counts);
	if (counts.errors)
		sample_print_messages();
	assert_int_equal(counts.errors, 0);
	/* The root, nine more inodes, and the files of /many. */
	assert_int_equal(counts.inodes, 10 + SAMPLE_MANY);
	assert_int_equal(counts.names, 10 + SAMPLE_MANY);
	assert_int_equal(counts.data_bytes, (SAMPLE_FILE_BLOCKS + 3) * ZF_BLOCK_SIZE);
	assert_int_equal(counts.verified_bytes, counts.data_bytes);
	sample_free(&sample);
}

static void a_filesystem_with_something_of_everything_has_no_errors(void **state)
{
	(void)state;
	expect_clean(&(struct sample_options){0});
}

static void small_nodes_in_higher_trees_have_no_errors(void **state)
{
	(void)state;
	expect_clean(&(struct sample_options){.node_size = 4096});
}

static void two_copies_of_metadata_have_no_errors(void **state)
{
	(void)state;
	expect_clean(&(struct sample_options){.copies = 2});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_filesystem_with_something_of_everything_has_no_errors),
		cmocka_unit_test(small_nodes_in_higher_trees_have_no_errors),
		cmocka_unit_test(two_copies_of_metadata_have_no_errors),
	};

	return cmocka_run_group_tests_name("check_clean", tests, NULL, NULL);
}
