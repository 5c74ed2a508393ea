/* SPDX-License-Identifier: MIT */
/* The memory limits of control groups, in a hierarchy that the test makes in a directory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bits.h"
#include "fuse/usable_memory.h"

static char root[] = "/tmp/zf-cgroup-XXXXXX";
static const char *const groups[] = {"", "/unit.slice", "/unit.slice/zfuse"};
static const char *const files[] = {"memory.max", "memory.high"};

static void put(const char *group, const char *name, const char *text)
{
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), "%s%s/%s", root, group, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void remove_file(const char *group, const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s%s/%s", root, group, name);
	unlink(path);
}

static int make_groups(void **state)
{
	char path[256];

	(void)state;
	if (!mkdtemp(root))
		return -1;
	for (size_t i = 1; i < ZF_ARRAY_SIZE(groups); i++) {
		snprintf(path, sizeof(path), "%s%s", root, groups[i]);
		if (mkdir(path, 0700) < 0)
			return -1;
	}
	return 0;
}

static int remove_limits(void **state)
{
	(void)state;
	for (size_t i = 0; i < ZF_ARRAY_SIZE(groups); i++)
		for (size_t k = 0; k < ZF_ARRAY_SIZE(files); k++)
			remove_file(groups[i], files[k]);
	remove_file("", "membership");
	return 0;
}

static int remove_groups(void **state)
{
	char path[256];

	(void)state;
	for (size_t i = ZF_ARRAY_SIZE(groups); i-- > 0;) {
		snprintf(path, sizeof(path), "%s%s", root, groups[i]);
		rmdir(path);
	}
	return 0;
}

static uint64_t limit(const char *membership)
{
	char path[256];

	put("", "membership", membership);
	snprintf(path, sizeof(path), "%s/membership", root);
	return zf_usable_memory_limit(path, root);
}

static void the_lowest_limit_of_all_groups_counts(void **state)
{
	(void)state;
	put("/unit.slice/zfuse", "memory.max", "268435456\n");
	assert_int_equal(limit("0::/unit.slice/zfuse\n"), 256 << 20);
	put("/unit.slice/zfuse", "memory.high", "201326592\n");
	assert_int_equal(limit("0::/unit.slice/zfuse\n"), 192 << 20);
	put("/unit.slice", "memory.max", "134217728\n");
	assert_int_equal(limit("0::/unit.slice/zfuse\n"), 128 << 20);
	/* In a container the root of the hierarchy that can be seen is the container's own group. */
	put("", "memory.max", "67108864\n");
	assert_int_equal(limit("0::/unit.slice/zfuse\n"), 64 << 20);
	assert_int_equal(limit("0::/\n"), 64 << 20);
}

static void max_is_no_limit(void **state)
{
	(void)state;
	put("/unit.slice/zfuse", "memory.max", "max\n");
	put("/unit.slice/zfuse", "memory.high", "max\n");
	assert_true(limit("0::/unit.slice/zfuse\n") == UINT64_MAX);
	put("/unit.slice", "memory.max", "134217728\n");
	assert_int_equal(limit("0::/unit.slice/zfuse\n"), 128 << 20);
}

static void what_cannot_be_read_is_no_limit(void **state)
{
	(void)state;
	put("", "memory.max", "67108864\n");
	assert_true(limit("1:memory:/unit.slice\n") == UINT64_MAX);
	assert_true(limit("") == UINT64_MAX);
	assert_true(zf_usable_memory_limit("/proc/self/no such file", root) == UINT64_MAX);
	/* A group that is elsewhere, as processes outside the container see it. */
	assert_int_equal(limit("3:cpu:/a\n0::/../other\n"), 64 << 20);
}

static void this_machine_has_memory(void **state)
{
	(void)state;
	assert_in_range(zf_usable_memory(), 1 << 20,
			(uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE));
}

#define TEST(fn) cmocka_unit_test_teardown(fn, remove_limits)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_lowest_limit_of_all_groups_counts),
		TEST(max_is_no_limit),
		TEST(what_cannot_be_read_is_no_limit),
		TEST(this_machine_has_memory),
	};

	return cmocka_run_group_tests(tests, make_groups, remove_groups);
}
