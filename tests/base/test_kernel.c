/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/bits.h"
#include "base/kernel.h"

static void releases_are_ordered(void **state)
{
	static const struct {
		const char *release;
		bool later;
	} cases[] = {
		{"6.1.0-28-amd64", false}, {"6.9.12", false}, {"6.10.0", true}, {"6.18.44", true},
		{"7.0-rc1", true},	   {"5.19.0", false}, {"odd", false},	{"", false},
	};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(cases); i++)
		assert_int_equal(zf_kernel_release_is_at_least(cases[i].release, 6, 10),
				 cases[i].later);
}

static void this_kernel_has_a_release(void **state)
{
	assert_true(zf_kernel_is_at_least(1, 0));
	assert_false(zf_kernel_is_at_least(1000, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(releases_are_ordered),
		cmocka_unit_test(this_kernel_has_a_release),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
