/* SPDX-License-Identifier: MIT */
/*
 * The cache whose content a kill loses (support/drop_dev.h). Closing the device loses as much as a
 * kill does, so most tests close the device and look at the image.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/image.h"
#include "io_util.h"
#include "support/drop_dev.h"

#define BLOCK	  ((uint64_t)ZF_BLOCK_SIZE)
#define ZONE_SIZE (64 * BLOCK)
#define SEEDS	  20

static const struct zf_geometry geometry = {
	.zone_size = ZONE_SIZE,
	.zone_capacity = ZONE_SIZE,
	.zone_count = 8,
	.conventional = 1,
	.append_limit = 32 * BLOCK,
	.volatile_cache = true,
};
static const struct zf_open_options patient = {.lock_wait_ms = 10000};

static char path[256];
static struct zf_dev *dev;

static void create(void)
{
	unlink(path);
	assert_int_equal(zf_image_create(path, &geometry, false, &patient, NULL), 0);
}

static void open_dropping(uint64_t seed, uint64_t die_at)
{
	struct zf_dev *image;

	assert_int_equal(zf_image_open(path, &patient, NULL, &image), 0);
	assert_int_equal(zf_drop_dev_new(image, seed, die_at, NULL, &dev), 0);
	assert_int_equal(zf_dev_start_thread(dev), 0);
}

static void close_device(void)
{
	zf_dev_close(dev);
	dev = NULL;
}

/* What a power cut leaves. */
static void cut(void)
{
	close_device();
	assert_int_equal(zf_image_open(path, &patient, NULL, &dev), 0);
}

static int setup(void **state)
{
	snprintf(path, sizeof(path), "/tmp/zfuse-test-%d.img", getpid());
	create();
	return 0;
}

static int teardown(void **state)
{
	close_device();
	unlink(path);
	return 0;
}

static void what_is_pending_is_read(void **state)
{
	uint64_t addr;

	open_dropping(1, 0);
	assert_int_equal(run_write(dev, ZONE_SIZE, 8 * BLOCK, 1, false), 0);
	assert_int_equal(run_append(dev, ZONE_SIZE, 8 * BLOCK, 2, &addr), 0);
	assert_int_equal(addr, ZONE_SIZE + 8 * BLOCK);
	assert_int_equal(zf_drop_dev_pending(dev), 16);
	assert_true(device_holds(dev, ZONE_SIZE, 8 * BLOCK, 1));
	assert_true(device_holds(dev, addr, 8 * BLOCK, 2));
	assert_int_equal(zf_dev_flush(dev), 0);
	assert_int_equal(zf_drop_dev_pending(dev), 0);
	assert_true(device_holds(dev, ZONE_SIZE, 8 * BLOCK, 1));
	assert_true(device_holds(dev, addr, 8 * BLOCK, 2));
}

static void what_was_not_flushed_is_lost(void **state)
{
	unsigned int lost = 0, left = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		bool holds;

		create();
		open_dropping(seed, 0);
		assert_int_equal(run_write(dev, ZONE_SIZE, 8 * BLOCK, 1, false), 0);
		cut();
		assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + 8 * BLOCK);
		holds = device_holds(dev, ZONE_SIZE, 8 * BLOCK, 1);
		lost += !holds;
		left += device_holds(dev, ZONE_SIZE, BLOCK, 1);
		close_device();
	}
	assert_true(lost >= SEEDS / 2);
	assert_true(left > 0);
}

static void what_was_durable_is_not_lost(void **state)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		create();
		open_dropping(seed, 0);
		assert_int_equal(run_write(dev, ZONE_SIZE, 8 * BLOCK, 1, false), 0);
		assert_int_equal(run_write(dev, 2 * ZONE_SIZE, 4 * BLOCK, 2, true), 0);
		assert_int_equal(zf_dev_flush(dev), 0);
		assert_int_equal(run_write(dev, ZONE_SIZE + 8 * BLOCK, 4 * BLOCK, 3, true), 0);
		assert_int_equal(run_write(dev, 2 * ZONE_SIZE + 4 * BLOCK, BLOCK, 4, false), 0);
		cut();
		assert_true(device_holds(dev, ZONE_SIZE, 8 * BLOCK, 1));
		assert_true(device_holds(dev, 2 * ZONE_SIZE, 4 * BLOCK, 2));
		assert_true(device_holds(dev, ZONE_SIZE + 8 * BLOCK, 4 * BLOCK, 3));
		close_device();
	}
}

/* Pending bytes from before the reset could otherwise be taken for bytes that were written
 * later. */
static void a_reset_forgets_what_is_pending(void **state)
{
	open_dropping(1, 0);
	assert_int_equal(run_write(dev, ZONE_SIZE, 8 * BLOCK, 1, false), 0);
	assert_int_equal(zf_dev_reset(dev, 1), 0);
	assert_int_equal(zf_drop_dev_pending(dev), 0);
	assert_int_equal(run_write(dev, ZONE_SIZE, 4 * BLOCK, 2, true), 0);
	assert_int_equal(zf_dev_flush(dev), 0);
	assert_true(device_holds(dev, ZONE_SIZE, 4 * BLOCK, 2));
	assert_false(device_holds(dev, ZONE_SIZE + 4 * BLOCK, 4 * BLOCK, 1));
}

static void in_place_a_block_is_old_or_new(void **state)
{
	unsigned int old = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		create();
		open_dropping(seed, 0);
		assert_int_equal(run_write(dev, 0, BLOCK, 1, true), 0);
		assert_int_equal(run_write(dev, 0, BLOCK, 2, false), 0);
		assert_true(device_holds(dev, 0, BLOCK, 2));
		cut();
		old += device_holds(dev, 0, BLOCK, 1);
		assert_true(device_holds(dev, 0, BLOCK, 1) || device_holds(dev, 0, BLOCK, 2));
		close_device();
	}
	assert_true(old >= SEEDS / 2);
}

static void the_rules_of_zones_are_enforced(void **state)
{
	uint64_t addr;

	open_dropping(1, 0);
	assert_int_equal(run_write(dev, ZONE_SIZE + BLOCK, BLOCK, 1, false), -EIO);
	assert_int_equal(run_append(dev, ZONE_SIZE, 33 * BLOCK, 1, &addr), -EINVAL);
	assert_int_equal(run_write(dev, 8 * ZONE_SIZE, BLOCK, 1, false), -EINVAL);
	assert_int_equal(zf_drop_dev_pending(dev), 0);
}

static void it_dies_in_the_middle_of_a_durable_write(void **state)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		open_dropping(3, 2);
		run_write(dev, ZONE_SIZE, 8 * BLOCK, 1, true);
		run_write(dev, ZONE_SIZE + 8 * BLOCK, 32 * BLOCK, 2, true);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(zf_image_open(path, &patient, NULL, &dev), 0);
	assert_true(device_holds(dev, ZONE_SIZE, 8 * BLOCK, 1));
	assert_false(device_holds(dev, ZONE_SIZE + 8 * BLOCK, 32 * BLOCK, 2));
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + 40 * BLOCK);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_pending_is_read),
		TEST(what_was_not_flushed_is_lost),
		TEST(what_was_durable_is_not_lost),
		TEST(a_reset_forgets_what_is_pending),
		TEST(in_place_a_block_is_old_or_new),
		TEST(the_rules_of_zones_are_enforced),
		TEST(it_dies_in_the_middle_of_a_durable_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
