/* SPDX-License-Identifier: MIT */
/* Writing ahead of pointers (io/image_warm.c): where it happens, where not, and that it is safe. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/image.h"
#include "io/image_device.h"
#include "io_util.h"

#define BLOCK	  ((uint64_t)ZF_BLOCK_SIZE)
#define MIB	  ((uint64_t)1 << 20)
#define ZONE_SIZE (16 * MIB)
#define CAPACITY  (15 * MIB)
#define AHEAD	  (8 * MIB)

static const struct zf_geometry geometry = {
	.zone_size = ZONE_SIZE,
	.zone_capacity = CAPACITY,
	.zone_count = 4,
	.append_limit = MIB,
	.volatile_cache = true,
};

static const struct zf_open_options options = {.lock_wait_ms = 10000};
static char path[64];
static struct zf_dev *dev;

static void open_image(bool threaded)
{
	assert_int_equal(zf_image_open(path, &options, NULL, &dev), 0);
	if (threaded)
		assert_int_equal(zf_dev_start_thread(dev), 0);
}

static void close_image(void)
{
	zf_dev_close(dev);
	dev = NULL;
}

static int setup(void **state)
{
	snprintf(path, sizeof(path), "zfuse-test-warm-%d.img", getpid());
	unlink(path);
	if (zf_image_create(path, &geometry, false, &options, NULL) < 0)
		return -1;
	open_image(true);
	return 0;
}

static int teardown(void **state)
{
	close_image();
	unlink(path);
	return 0;
}

static uint64_t ahead_bytes(void)
{
	struct zf_dev_stats stats;

	zf_dev_get_stats(dev, &stats);
	return stats.ahead_bytes;
}

static void pause_ms(unsigned int ms)
{
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	nanosleep(&pause, NULL);
}

/* Returns how much was written ahead, when that no longer changes, or after some seconds. */
static uint64_t wait_for_rest(uint64_t at_least)
{
	uint64_t before = 0, now = ahead_bytes();

	for (unsigned int i = 0; i < 100 && (now < at_least || now != before); i++) {
		pause_ms(100);
		before = now;
		now = ahead_bytes();
	}
	return now;
}

/* How far the file is written from `addr` on, as the host reports. */
static uint64_t written_behind(uint64_t addr)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t hole = lseek(fd, (off_t)addr, SEEK_HOLE);

	assert_true(hole >= 0);
	close(fd);
	return (uint64_t)hole - addr;
}

/* The same, but waits until the result is `at_least`, a minute at most. */
static uint64_t wait_for_written_behind(uint64_t addr, uint64_t at_least)
{
	for (unsigned int i = 0; i < 600 && written_behind(addr) < at_least; i++)
		pause_ms(100);
	return written_behind(addr);
}

/* How often the warmer has asked for the host's space, and whether the host has next to none. */
static atomic_uint questions;
static atomic_bool host_is_full;

int __real_fstatvfs64(int fd, struct statvfs *ret);
int __wrap_fstatvfs64(int fd, struct statvfs *ret);

int __wrap_fstatvfs64(int fd, struct statvfs *ret)
{
	int r = __real_fstatvfs64(fd, ret);

	if (host_is_full)
		ret->f_bavail = 1;
	questions++;
	return r;
}

/* ---- where ---- */

static void a_zone_is_written_ahead_when_it_is_asked_for(void **state)
{
	struct zf_dev_stats stats;
	struct zf_zone_info zone;

	zf_dev_warm(dev, 2);
	assert_int_equal(wait_for_rest(AHEAD), AHEAD);
	zone = zone_of(dev, 2);
	assert_true(zone.warm);
	assert_int_equal(zone.cond, ZF_ZONE_EMPTY);
	assert_int_equal(zone.wp, zone.start);
	assert_true(written_behind(zone.start) >= AHEAD);
	assert_true(device_holds_zeroes(dev, zone.start, AHEAD));
	assert_false(zone_of(dev, 1).warm);
	zf_dev_get_stats(dev, &stats);
	assert_int_equal(stats.writes + stats.appends + stats.flushes, 0);

	close_image(); /* nothing is recorded, and nothing is done twice */
	open_image(true);
	assert_true(zone_of(dev, 2).warm);
	zf_dev_warm(dev, 2);
	pause_ms(100);
	assert_int_equal(ahead_bytes(), 0);
}

static void small_durable_writes_find_written_space(void **state)
{
	for (unsigned int i = 0; i < 40; i++)
		assert_int_equal(run_write(dev, ZONE_SIZE + i * BLOCK, BLOCK, i, true), 0);
	assert_true(wait_for_rest(AHEAD - MIB) >= AHEAD - MIB);
	/* Writes ahead up to the end of the zone, and not farther. */
	for (unsigned int i = 0; i < 160; i++)
		assert_int_equal(
			run_write(dev, ZONE_SIZE + 40 * BLOCK + i * 64 * 1024, 64 * 1024, i, true),
			0);
	/*
	 * However fast the writes came, the zeroes begin soon behind the pointer. A write asks for
	 * zeroes only if fewer than half of AHEAD are left behind it.
	 */
	assert_true(wait_for_written_behind(ZONE_SIZE + 10 * MIB + 40 * BLOCK + MIB / 2,
					    AHEAD / 2 - MIB) >= AHEAD / 2 - MIB);
	assert_int_equal(written_behind(ZONE_SIZE + CAPACITY), 0);
	for (unsigned int i = 0; i < 40; i++)
		assert_true(device_holds(dev, ZONE_SIZE + i * BLOCK, BLOCK, i));
	for (unsigned int i = 0; i < 160; i++)
		assert_true(
			device_holds(dev, ZONE_SIZE + 40 * BLOCK + i * 64 * 1024, 64 * 1024, i));
}

static void large_or_plain_writes_do_not_call_for_it(void **state)
{
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(run_write(dev, ZONE_SIZE + i * MIB, MIB, i, true), 0);
		assert_int_equal(run_write(dev, i * BLOCK, BLOCK, i, false), 0);
	}
	pause_ms(50);
	assert_int_equal(ahead_bytes(), 0);
}

static void a_host_that_is_short_of_space_is_asked_again(void **state)
{
	host_is_full = true;
	questions = 0;
	zf_dev_warm(dev, 2);
	for (unsigned int i = 0; i < 600 && questions == 0; i++)
		pause_ms(100);
	assert_true(questions > 0);
	pause_ms(100);
	assert_int_equal(ahead_bytes(), 0);
	/* The warmer asks the host again after a while, not with each request. */
	questions = 0;
	for (unsigned int i = 0; i < 1000; i++)
		zf_dev_warm(dev, 2);
	pause_ms(100);
	assert_true(questions < 100);
	host_is_full = false;
	for (unsigned int i = 0; i < 600 && ahead_bytes() == 0; i++) {
		zf_dev_warm(dev, 2);
		pause_ms(100);
	}
	assert_int_equal(wait_for_rest(AHEAD), AHEAD);
}

static void without_a_thread_there_is_none(void **state)
{
	close_image();
	open_image(false);
	zf_dev_warm(dev, 1);
	assert_int_equal(run_write(dev, 2 * ZONE_SIZE, BLOCK, 1, true), 0);
	pause_ms(50);
	assert_int_equal(ahead_bytes(), 0);
	assert_false(zone_of(dev, 1).warm);
}

static void closing_does_not_wait_for_the_rest(void **state)
{
	zf_dev_warm(dev, 1);
	zf_dev_warm(dev, 2);
	zf_dev_warm(dev, 3);
	close_image();
	open_image(true);
	assert_true(device_holds_zeroes(dev, ZONE_SIZE, AHEAD));
	zf_dev_warm(dev, 3);
	assert_int_equal(wait_for_rest(AHEAD), AHEAD);
}

/* ---- safe ---- */

static atomic_bool appended;

static void *append_a_block(void *arg)
{
	uint64_t addr;
	int r = run_append(dev, ZONE_SIZE, BLOCK, 1, &addr);

	atomic_store(&appended, true);
	return (void *)(intptr_t)r;
}

static void *reset_the_zone(void *arg)
{
	int r = zf_dev_reset(dev, 1);

	atomic_store(&appended, true);
	return (void *)(intptr_t)r;
}

static void set_piece(uint64_t from, uint64_t to)
{
	struct zf_image *image = zf_image_of(dev);

	zf_mutex_lock(&image->lock);
	image->warmer.zone_no = 1;
	image->warmer.from = from;
	image->warmer.to = to;
	zf_cond_broadcast(&image->warmer.landed);
	zf_mutex_unlock(&image->lock);
}

static void check_waits(void *(*request)(void *arg), uint64_t from, bool waits)
{
	pthread_t thread;
	void *r;

	set_piece(from, from + 8 * BLOCK);
	atomic_store(&appended, false);
	pthread_create(&thread, NULL, request, NULL);
	if (waits) {
		pause_ms(50);
		assert_false(atomic_load(&appended));
		set_piece(0, 0);
	}
	pthread_join(thread, &r);
	assert_null(r);
	set_piece(0, 0);
}

/* With a recorder, no request is carried out on the calling thread, so all go through the ring. */
static void record_nothing(void *arg, const struct zf_io *io)
{
}

static void what_reaches_the_piece_in_flight_waits_for_it(void **state)
{
	for (uint64_t i = 0; i < 2; i++) {
		uint64_t wp = i * 3 * BLOCK;

		check_waits(append_a_block, wp, true);
		check_waits(append_a_block, wp + 2 * BLOCK, false);
		check_waits(append_a_block, wp + 2 * BLOCK, true);
		zf_dev_set_recorder(dev, record_nothing, NULL);
	}
	zf_dev_set_recorder(dev, NULL, NULL);
	check_waits(reset_the_zone, 100 * BLOCK, true);
}

/* A write comes while the first piece of zeroes is on its way to the same place. */
static void zeroes_never_land_on_data(void **state)
{
	for (unsigned int i = 0; i < 150; i++) {
		uint64_t zone_no = 1 + i % 3, addr = 0;
		struct timespec delay = {.tv_nsec = i % 50 * 10000};

		assert_int_equal(zf_dev_reset(dev, (uint32_t)zone_no), 0);
		zf_dev_warm(dev, (uint32_t)zone_no);
		nanosleep(&delay, NULL);
		for (uint64_t n = 0; n < 4; n++) {
			assert_int_equal(run_append(dev, zone_no * ZONE_SIZE, BLOCK, n, &addr), 0);
			assert_int_equal(addr, zone_no * ZONE_SIZE + n * BLOCK);
		}
		assert_int_equal(run_append(dev, zone_no * ZONE_SIZE, MIB, 4, &addr), 0);
		pause_ms(4);
		for (uint64_t n = 0; n < 4; n++)
			assert_true(device_holds(dev, zone_no * ZONE_SIZE + n * BLOCK, BLOCK, n));
		assert_true(device_holds(dev, addr, MIB, 4));
	}
}

/* Bytes above a pointer that is a lower bound may be data. */
static void nothing_is_written_above_a_lower_bound(void **state)
{
	struct zf_image_trailer trailer;
	int fd;

	assert_int_equal(run_write(dev, ZONE_SIZE, 8 * BLOCK, 7, false), 0);
	close_image();
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(zf_image_trailer_read(fd, 4 * ZONE_SIZE + 3 * BLOCK, NULL, &trailer), 0);
	assert_int_equal(zf_image_trailer_map(&trailer, fd, true), 0);
	zf_image_trailer_store_zone(&trailer, 1, &(struct zf_zone_state){.cond = ZF_ZONE_EMPTY});
	trailer.boot_id[0] ^= 1;
	zf_image_trailer_store_use(&trailer, ZF_IMAGE_IN_USE);
	zf_image_trailer_unmap(&trailer);
	close(fd);

	open_image(true);
	assert_true(zf_dev_geometry(dev)->pointers_are_lower_bounds);
	zf_dev_warm(dev, 1);
	pause_ms(50);
	assert_int_equal(ahead_bytes(), 0);
	assert_true(device_holds(dev, ZONE_SIZE, 8 * BLOCK, 7));
	assert_int_equal(zf_dev_raise_pointer(dev, 1, ZONE_SIZE + 8 * BLOCK), 0);
	assert_int_equal(run_write(dev, ZONE_SIZE + 8 * BLOCK, BLOCK, 8, false), 0);
	zf_dev_warm(dev, 1);
	assert_true(wait_for_rest(MIB) >= MIB);
	assert_true(device_holds(dev, ZONE_SIZE, 8 * BLOCK, 7));
	assert_true(device_holds(dev, ZONE_SIZE + 8 * BLOCK, BLOCK, 8));
}

static void append_and_tell_until_killed(int to)
{
	open_image(true);
	for (uint64_t n = 0;; n++) {
		if (n % 5 == 0)
			zf_dev_warm(dev, (uint32_t)(1 + n / 5 % 3));
		if (run_write(dev, ZONE_SIZE + n * BLOCK, BLOCK, n, true) < 0 ||
		    write(to, &n, sizeof(n)) != sizeof(n))
			_exit(1);
	}
}

static void a_kill_in_the_middle_loses_nothing(void **state)
{
	uint64_t n = 0, last = 0;
	int fds[2], status;
	pid_t pid;

	close_image();
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0)
		append_and_tell_until_killed(fds[1]);
	close(fds[1]);
	while (last < 20 && read(fds[0], &n, sizeof(n)) == sizeof(n))
		last = n;
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	while (read(fds[0], &n, sizeof(n)) == sizeof(n))
		last = n;
	close(fds[0]);
	open_image(true);
	assert_true(zone_of(dev, 1).wp >= ZONE_SIZE + (last + 1) * BLOCK);
	for (n = 0; n <= last; n++)
		assert_true(device_holds(dev, ZONE_SIZE + n * BLOCK, BLOCK, n));
}

static bool host_gains(void)
{
	struct statfs fs;

	return statfs(".", &fs) == 0 && fs.f_type != TMPFS_MAGIC && fs.f_type != BTRFS_SUPER_MAGIC;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_zone_is_written_ahead_when_it_is_asked_for),
		TEST(small_durable_writes_find_written_space),
		TEST(large_or_plain_writes_do_not_call_for_it),
		TEST(a_host_that_is_short_of_space_is_asked_again),
		TEST(without_a_thread_there_is_none),
		TEST(closing_does_not_wait_for_the_rest),
		TEST(what_reaches_the_piece_in_flight_waits_for_it),
		TEST(zeroes_never_land_on_data),
		TEST(nothing_is_written_above_a_lower_bound),
		TEST(a_kill_in_the_middle_loses_nothing),
	};

	if (!host_gains()) {
		printf("this directory is in memory, or copies on write: nothing is written "
		       "ahead\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
