/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "io/nvme_name.h"

static void a_namespace_has_two_names(void **state)
{
	char buf[32];

	assert_int_equal(zf_nvme_block_name("/dev/ng0n1", buf, sizeof(buf)), 0);
	assert_string_equal(buf, "/dev/nvme0n1");
	assert_int_equal(zf_nvme_char_name("/dev/nvme12n34", buf, sizeof(buf)), 0);
	assert_string_equal(buf, "/dev/ng12n34");
	assert_int_equal(zf_nvme_char_name("nvme0n1", buf, sizeof(buf)), 0);
	assert_string_equal(buf, "ng0n1");
}

static void other_names_are_none_of_its(void **state)
{
	static const char *const others[] = {
		"/dev/nvme0",  "/dev/nvme0n1p1", "/dev/nvme0c0n1", "/dev/sda",
		"/dev/nvmen1", "/dev/nvme0n",	 "/dev/nvme0/n1",  "",
		"/dev/ng0n1",
	};
	char buf[32];

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(zf_nvme_char_name(others[i], buf, sizeof(buf)), -EINVAL);
	assert_int_equal(zf_nvme_block_name("/dev/nvme0n1", buf, sizeof(buf)), -EINVAL);
}

static void it_must_fit(void **state)
{
	char buf[sizeof("/dev/nvme0n1")];

	assert_int_equal(zf_nvme_block_name("/dev/ng0n1", buf, sizeof(buf)), 0);
	assert_int_equal(zf_nvme_block_name("/dev/ng0n1", buf, sizeof(buf) - 1), -ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_namespace_has_two_names),
		cmocka_unit_test(other_names_are_none_of_its),
		cmocka_unit_test(it_must_fit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
