/* SPDX-License-Identifier: MIT */
/*
 * After a refused write, zfuse makes the kernel take over the disk's write pointer. The calls to
 * the kernel are library calls that the linker wraps.
 */
#include <errno.h>
#include <linux/blkzoned.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <cmocka.h>

#include <libzbd/zbd.h>

#include "io/zbd_device.h"

#define BLOCK	  ((uint64_t)ZF_BLOCK_SIZE)
#define ZONE_SIZE (64 * BLOCK)
#define START	  (3 * ZONE_SIZE)
#define NOWHERE	  UINT64_MAX

int __wrap_ioctl(int fd, unsigned long request, struct blk_zone_report *zones);
int __wrap_zbd_zones_operation(int fd, enum zbd_zone_op op, off_t offset, off_t len);
ssize_t __wrap_pwrite64(int fd, const void *buf, size_t len, off_t offset);

static uint64_t kernels_wp; /* NOWHERE: the kernel does not tell */
/* What was done, and where. */
static uint64_t reset_at, written_at;
static unsigned int warnings;

int __wrap_ioctl(int fd, unsigned long request, struct blk_zone_report *zones)
{
	(void)fd;
	assert_int_equal(_IOC_TYPE(request), 0x12);
	assert_int_equal(zones->sector << 9, START);
	if (kernels_wp == NOWHERE) {
		errno = ENOTTY;
		return -1;
	}
	zones->zones[0].wp = kernels_wp >> 9;
	return 0;
}

int __wrap_zbd_zones_operation(int fd, enum zbd_zone_op op, off_t offset, off_t len)
{
	(void)fd;
	assert_int_equal(op, ZBD_OP_RESET);
	assert_int_equal(len, ZONE_SIZE);
	reset_at = (uint64_t)offset;
	return 0;
}

ssize_t __wrap_pwrite64(int fd, const void *buf, size_t len, off_t offset)
{
	(void)fd;
	(void)buf;
	assert_int_equal(len, BLOCK);
	written_at = (uint64_t)offset;
	return -1;
}

static void count_warning(void *arg, enum zf_report_level level, const char *message)
{
	(void)arg;
	(void)message;
	warnings += level == ZF_REPORT_WARNING;
}

/* The disk has five blocks in the zone, and reports it so; the kernel's pointer is elsewhere. */
static void resync(enum zf_zone_cond cond, uint64_t kernel, bool kernel_orders)
{
	static struct zf_zbd zbd;
	const struct zf_zone_info info = {
		.start = START,
		.capacity = ZONE_SIZE,
		.wp = START + 5 * BLOCK,
		.cond = cond,
	};

	zbd = (struct zf_zbd){.kernel_orders = kernel_orders};
	zbd.dev.geometry.zone_size = ZONE_SIZE;
	zbd.dev.report = (struct zf_report){.fn = count_warning};
	kernels_wp = kernel;
	reset_at = written_at = NOWHERE;
	warnings = 0;
	zf_zbd_resync(&zbd, &info);
}

static void expect(uint64_t reset, uint64_t written, unsigned int told)
{
	assert_int_equal(reset_at, reset);
	assert_int_equal(written_at, written);
	assert_int_equal(warnings, told);
}

static const enum zf_zone_cond in_use[] = {ZF_ZONE_IMP_OPEN, ZF_ZONE_EXP_OPEN, ZF_ZONE_CLOSED};

static void an_empty_zone_is_reset(void **state)
{
	(void)state;
	resync(ZF_ZONE_EMPTY, START + 9 * BLOCK, true);
	expect(START, NOWHERE, 0);
}

static void in_a_zone_in_use_a_write_is_refused_where_the_kernel_takes_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < ZF_ARRAY_SIZE(in_use); i++) {
		resync(in_use[i], START + 3 * BLOCK, true);
		expect(NOWHERE, START + 3 * BLOCK, 0);
		resync(in_use[i], START + 9 * BLOCK, true);
		expect(NOWHERE, START + 9 * BLOCK, 0);
	}
}

/* The disk would carry it out, or the kernel refuse it. */
static void nothing_is_written_where_that_is_of_no_use(void **state)
{
	(void)state;
	resync(ZF_ZONE_IMP_OPEN, START + 5 * BLOCK, true);
	expect(NOWHERE, NOWHERE, 0);
	resync(ZF_ZONE_IMP_OPEN, START + 6 * BLOCK + 512, true);
	expect(NOWHERE, NOWHERE, 0);
	resync(ZF_ZONE_IMP_OPEN, START + ZONE_SIZE, true);
	expect(NOWHERE, NOWHERE, 0);
	resync(ZF_ZONE_IMP_OPEN, START - BLOCK, true);
	expect(NOWHERE, NOWHERE, 0);
}

static void of_a_kernel_that_does_not_tell_its_pointer_the_user_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < ZF_ARRAY_SIZE(in_use); i++) {
		resync(in_use[i], NOWHERE, true);
		expect(NOWHERE, NOWHERE, 1);
	}
}

static void other_zones_and_kernels_without_a_pointer_are_left_alone(void **state)
{
	(void)state;
	resync(ZF_ZONE_FULL, START + 3 * BLOCK, true);
	expect(NOWHERE, NOWHERE, 0);
	resync(ZF_ZONE_EMPTY, START + 3 * BLOCK, false);
	expect(NOWHERE, NOWHERE, 0);
	resync(ZF_ZONE_IMP_OPEN, START + 3 * BLOCK, false);
	expect(NOWHERE, NOWHERE, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_zone_is_reset),
		cmocka_unit_test(in_a_zone_in_use_a_write_is_refused_where_the_kernel_takes_it),
		cmocka_unit_test(nothing_is_written_where_that_is_of_no_use),
		cmocka_unit_test(of_a_kernel_that_does_not_tell_its_pointer_the_user_is_told),
		cmocka_unit_test(other_zones_and_kernels_without_a_pointer_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
