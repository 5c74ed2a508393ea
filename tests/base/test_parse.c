/* SPDX-License-Identifier: MIT */
/* Numbers, sizes and names as users write them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "base/parse.h"

#define UNTOUCHED 77u

static void numbers_are_digits_and_nothing_else(void **state)
{
	static const char *const wrong[] = {"", "-1", "+1", " 1", "1 ", "0x10", "1K", "1.5", "one"};
	uint64_t n = UNTOUCHED;

	for (size_t i = 0; i < ZF_ARRAY_SIZE(wrong); i++)
		assert_int_equal(zf_parse_number(wrong[i], UINT64_MAX, &n), -EINVAL);
	assert_int_equal(zf_parse_number("18446744073709551616", UINT64_MAX, &n), -ERANGE);
	assert_int_equal(zf_parse_number("11", 10, &n), -ERANGE);
	assert_int_equal(n, UNTOUCHED);
	assert_int_equal(zf_parse_number("10", 10, &n), 0);
	assert_int_equal(n, 10);
	assert_int_equal(zf_parse_number("18446744073709551615", UINT64_MAX, &n), 0);
	assert_true(n == UINT64_MAX);
}

static void sizes_have_units_and_fractions(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} right[] = {
		{"0", 0},
		{"4096", 4096},
		{"4096B", 4096},
		{"64M", UINT64_C(64) << 20},
		{"64m", UINT64_C(64) << 20},
		{"64MiB", UINT64_C(64) << 20},
		{"64mib", UINT64_C(64) << 20},
		{"64MB", 64000000},
		{"4GB", UINT64_C(4000000000)},
		{"3.5G", UINT64_C(3584) << 20},
		{"0.5K", 512},
		{"1.0000000000000000000000001K", 1024},
		{"0.1K", 102},
		{"1T", UINT64_C(1) << 40},
		{"2P", UINT64_C(1) << 51},
		{"15E", UINT64_C(15) << 60},
		{"18446744073709551615", UINT64_MAX},
	};
	uint64_t bytes;

	for (size_t i = 0; i < ZF_ARRAY_SIZE(right); i++) {
		assert_int_equal(zf_parse_size(right[i].text, UINT64_MAX, &bytes), 0);
		assert_true(bytes == right[i].bytes);
	}
}

static void what_is_no_size_is_refused(void **state)
{
	static const char *const wrong[] = {"",	    "-4G",  "+4G", " 4G",   "4G ",   "4X",  "4GG",
					    "4GBB", "G",    ".5G", "4.G",   "1.2.3", "4Gi", "4 G",
					    "0x10", "4,5G", "1e9", "4KiBs", "1.5",   "1.5B"};
	static const char *const large[] = {"16E", "18446744073709551616", "99999999999999999999G",
					    "17.5E", "18446744073709551615K"};
	uint64_t bytes = UNTOUCHED;

	for (size_t i = 0; i < ZF_ARRAY_SIZE(wrong); i++)
		assert_int_equal(zf_parse_size(wrong[i], UINT64_MAX, &bytes), -EINVAL);
	for (size_t i = 0; i < ZF_ARRAY_SIZE(large); i++)
		assert_int_equal(zf_parse_size(large[i], UINT64_MAX, &bytes), -ERANGE);
	assert_int_equal(zf_parse_size("1025", 1024, &bytes), -ERANGE);
	assert_int_equal(zf_parse_size("99999999999999999999X", UINT64_MAX, &bytes), -EINVAL);
	assert_int_equal(bytes, UNTOUCHED);
}

static void a_printed_size_is_read_as_the_same(void **state)
{
	static const uint64_t sizes[] = {0,
					 1,
					 1023,
					 1024,
					 4096,
					 4097,
					 UINT64_C(64) << 20,
					 UINT64_C(3584) << 20,
					 UINT64_C(1) << 40,
					 UINT64_C(15) << 60,
					 UINT64_MAX};
	char text[ZF_SIZE_TEXT_MAX];
	uint64_t bytes;

	for (size_t i = 0; i < ZF_ARRAY_SIZE(sizes); i++) {
		assert_int_equal(
			zf_parse_size(zf_parse_size_text(sizes[i], text), UINT64_MAX, &bytes), 0);
		assert_true(bytes == sizes[i]);
	}
	assert_string_equal(zf_parse_size_text(UINT64_C(64) << 20, text), "64M");
	assert_string_equal(zf_parse_size_text(4097, text), "4097");
	assert_string_equal(zf_parse_size_text(0, text), "0");
}

static const char *name_of(const void *arg, size_t i)
{
	return ((const char *const *)arg)[i];
}

static void the_nearest_name_is_one_that_was_meant(void **state)
{
	static const char *const names[] = {
		"size",	     "zone-size",  "zone-capacity",
		"max-open",  "max-active", "ro",
		"commit=%s", "log",	   "a-name-that-is-much-longer-than-anybody-mistypes"};
	static const struct {
		const char *word, *name;
	} words[] = {
		{"zonesize", "zone-size"},
		{"zone_size", "zone-size"},
		{"sise", "size"},
		{"maxopen", "max-open"},
		{"comit=5", "commit=%s"},
		{"commit", "commit=%s"},
		{"szie", "size"},
		{"lag", "log"},
		{"foo", NULL},
		{"colour", NULL},
		{"", NULL},
		{"x", NULL},
		{"zone-size-of-what-there-is-on-this-very-device", NULL},
	};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(words); i++) {
		const char *near =
			zf_parse_nearest_name(words[i].word, ZF_ARRAY_SIZE(names), name_of, names);

		if (words[i].name)
			assert_string_equal(near, words[i].name);
		else
			assert_null(near);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_digits_and_nothing_else),
		cmocka_unit_test(sizes_have_units_and_fractions),
		cmocka_unit_test(what_is_no_size_is_refused),
		cmocka_unit_test(a_printed_size_is_read_as_the_same),
		cmocka_unit_test(the_nearest_name_is_one_that_was_meant),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
