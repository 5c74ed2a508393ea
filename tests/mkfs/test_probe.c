/* SPDX-License-Identifier: MIT */
/*
 * What mkfs finds on a disk that can no longer be opened as the device that it was. The disks are
 * files; the test decides the result of opening them (linked with --wrap).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "fs/mount/format.h"
#include "io/image.h"
#include "probe.h"

static const struct zf_open_options no_wait = {};
static struct zf_disk disk;
static char found[256];
static int opening;

int __wrap_zf_disk_open(const struct zf_disk *which, const struct zf_open_options *options,
			const struct zf_report *report, struct zf_dev **ret_dev);

int __wrap_zf_disk_open(const struct zf_disk *which, const struct zf_open_options *options,
			const struct zf_report *report, struct zf_dev **ret_dev)
{
	(void)which, (void)options, (void)report, (void)ret_dev;
	return opening;
}

static int setup(void **state)
{
	int fd;

	(void)state;
	memset(&disk, 0, sizeof(disk));
	strcpy(disk.path, "zfuse-probe-XXXXXX");
	fd = mkstemp(disk.path);
	found[0] = '\0';
	return fd < 0 || ftruncate(fd, 1 << 20) < 0 || close(fd) < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(disk.path);
}

static int probe(enum zf_disk_kind kind, int error)
{
	opening = error;
	disk.kind = kind;
	return zf_probe_contents(&disk, false, NULL, found, sizeof(found));
}

static void make_filesystem(void)
{
	const struct zf_format_options options = {.node_size = 4096, .fsid = {1}};
	const struct zf_geometry geometry = {
		.zone_size = 1 << 18,
		.zone_capacity = 1 << 18,
		.zone_count = 24,
		.append_limit = 1 << 16,
	};
	struct zf_dev *dev;

	assert_int_equal(zf_image_create(disk.path, &geometry, true, &no_wait, NULL), 0);
	assert_int_equal(zf_image_open(disk.path, &no_wait, NULL, &dev), 0);
	assert_int_equal(zf_fs_format(dev, &options, NULL), 0);
	zf_dev_close(dev);
}

static void a_disk_of_zeroes_holds_nothing(void **state)
{
	(void)state;
	assert_int_equal(probe(ZF_DISK_PLAIN, -ENODEV), 0);
}

/* The trailer is where the disk ended before, and nobody finds it. */
static void a_filesystem_on_a_disk_made_larger(void **state)
{
	(void)state;
	make_filesystem();
	assert_int_equal(probe(ZF_DISK_PLAIN, -ENODEV), 1);
	assert_non_null(strstr(found, "a zfuse filesystem"));
}

static void an_image_that_is_damaged(void **state)
{
	(void)state;
	assert_int_equal(probe(ZF_DISK_PLAIN, -EUCLEAN), 1);
	assert_string_equal(found, "a damaged zoned image");
}

/* It has zones, whatever keeps them from being looked at. */
static void a_zoned_disk_that_cannot_be_opened_is_not_an_empty_one(void **state)
{
	(void)state;
	assert_int_equal(probe(ZF_DISK_ZONED, -ENODEV), -ENODEV);
	assert_int_equal(probe(ZF_DISK_ZONED, -EUCLEAN), -EUCLEAN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_disk_of_zeroes_holds_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(a_filesystem_on_a_disk_made_larger, setup,
						teardown),
		cmocka_unit_test_setup_teardown(an_image_that_is_damaged, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_zoned_disk_that_cannot_be_opened_is_not_an_empty_one, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
