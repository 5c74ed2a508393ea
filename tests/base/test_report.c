/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/report.h"
#include "base/report_limit.h"

static struct zf_report_limit limit;
static int64_t now;
static unsigned int told;
static char last[512], before_last[512];
static size_t last_len;

static int64_t fake_now_ns(void)
{
	return now;
}

static void keep(void *arg, enum zf_report_level level, const char *message)
{
	told++;
	last_len = strlen(message);
	memcpy(before_last, last, sizeof(last));
	snprintf(last, sizeof(last), "%s", message);
}

static const struct zf_report report = {.fn = keep, .limit = &limit};

static int setup(void **state)
{
	zf_report_limit_init(&limit);
	limit.now_ns = fake_now_ns;
	told = 0;
	return 0;
}

static void tell_of_block(unsigned int block)
{
	zf_report(&report, ZF_REPORT_ERROR, "block %u has another checksum", block);
}

static void the_same_damage_is_told_ten_times_a_minute(void **state)
{
	for (unsigned int i = 0; i < 100000; i++) {
		now += 1000000; /* 100 seconds in all */
		tell_of_block(i);
	}
	assert_int_equal(told, 21); /* twice ten, and what was left out between */
	assert_string_equal(last, "block 60009 has another checksum");
}

/* A long path does not cost what follows it. */
static void long_messages_are_whole(void **state)
{
	static char path[3000];

	memset(path, 'p', sizeof(path) - 1);
	zf_report(&report, ZF_REPORT_ERROR, "file %s has no end", path);
	assert_int_equal(last_len, strlen("file  has no end") + sizeof(path) - 1);
	(void)zf_report_corrupt(&report, "data", 7, "file %s has no end", path);
	assert_int_equal(last_len,
			 strlen("corrupt data at 7: file  has no end") + sizeof(path) - 1);
}

static void how_many_were_left_out_is_told(void **state)
{
	for (unsigned int i = 0; i < 25; i++)
		tell_of_block(i);
	assert_int_equal(zf_report_limit_untold(&limit), 15);
	now += ZF_REPORT_LIMIT_NS;
	tell_of_block(99);
	assert_string_equal(before_last, "15 messages like the next one were left out");
	assert_string_equal(last, "block 99 has another checksum");
	assert_int_equal(zf_report_limit_untold(&limit), 0);
}

static void messages_of_other_kinds_are_told_meanwhile(void **state)
{
	for (unsigned int i = 0; i < 1000; i++)
		tell_of_block(i);
	zf_report(&report, ZF_REPORT_WARNING, "the device is gone");
	assert_string_equal(last, "the device is gone");
	assert_int_equal(zf_report_corrupt(&report, "node", 4096, "level has %u", 9u), -EUCLEAN);
	assert_string_equal(last, "corrupt node at 4096: level has 9");
}

static void corrupt_bytes_are_bounded_too(void **state)
{
	for (unsigned int i = 0; i < 1000; i++)
		assert_int_equal(zf_report_corrupt(&report, "node", i, "csum has %u", i), -EUCLEAN);
	assert_int_equal(told, ZF_REPORT_LIMIT_COUNT);
}

static void what_is_no_problem_is_not_bounded(void **state)
{
	for (unsigned int i = 0; i < 1000; i++)
		zf_report(&report, ZF_REPORT_INFO, "number %u", i);
	assert_int_equal(told, 1000);
}

static void more_kinds_than_there_is_room_for_are_told(void **state)
{
	static char formats[2 * ZF_REPORT_LIMIT_KINDS][8];
	unsigned int left_out;

	for (unsigned int i = 0; i < 2 * ZF_REPORT_LIMIT_KINDS; i++)
		assert_true(zf_report_limit_take(&limit, formats[i], &left_out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_same_damage_is_told_ten_times_a_minute, setup),
		cmocka_unit_test_setup(long_messages_are_whole, setup),
		cmocka_unit_test_setup(how_many_were_left_out_is_told, setup),
		cmocka_unit_test_setup(messages_of_other_kinds_are_told_meanwhile, setup),
		cmocka_unit_test_setup(corrupt_bytes_are_bounded_too, setup),
		cmocka_unit_test_setup(what_is_no_problem_is_not_bounded, setup),
		cmocka_unit_test_setup(more_kinds_than_there_is_room_for_are_told, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
