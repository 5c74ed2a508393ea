/* SPDX-License-Identifier: MIT */
/* Does the crash explorer bite? Bugs are planted below the filesystem, and it must find each. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "explore.h"

/* Whether a broken promise is found within a tenth of what continuous integration tries. */
static bool is_found(enum lie lie)
{
	int out = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct record_options options = {.ops = 150, .lie = lie};
	struct tally tally = {0};

	/* What is found is told in full, and here that is no failure. */
	fflush(stderr);
	dup2(null, STDERR_FILENO);
	while (tally.failures == 0 && tally.cuts < 2000) {
		options.seed++;
		explore(&options, 2, 2000, &tally);
	}
	fflush(stderr);
	dup2(out, STDERR_FILENO);
	close(out);
	close(null);
	return tally.failures > 0;
}

static void nothing_is_found_where_nothing_is_wrong(void **state)
{
	assert_false(is_found(LIE_NONE));
}

static void a_superblock_before_what_it_names_is_found(void **state)
{
	assert_true(is_found(LIE_FLUSH));
}

static void a_zone_reset_before_the_superblock_is_durable_is_found(void **state)
{
	assert_true(is_found(LIE_FUA));
}

static void an_fsync_that_is_answered_too_early_is_found(void **state)
{
	assert_true(is_found(LIE_ACK));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_found_where_nothing_is_wrong),
		cmocka_unit_test(a_superblock_before_what_it_names_is_found),
		cmocka_unit_test(a_zone_reset_before_the_superblock_is_durable_is_found),
		cmocka_unit_test(an_fsync_that_is_answered_too_early_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
