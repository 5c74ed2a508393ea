/* SPDX-License-Identifier: MIT */
/* The image backend on a block device: a loop device. Skipped (77) where none can be had. */
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/image.h"
#include "io_util.h"

#define BLOCK	  ((uint64_t)ZF_BLOCK_SIZE)
#define ZONE_SIZE (256 * BLOCK)
#define ZONES	  12u
#define FILE_SIZE (16 * ZONE_SIZE) /* larger than needed: the header lies at the device's end */

static const struct zf_geometry geometry = {
	.zone_size = ZONE_SIZE,
	.zone_capacity = ZONE_SIZE,
	.zone_count = ZONES,
	.append_limit = 32 * BLOCK,
};

static const struct zf_open_options no_wait = {};
static char backing[64], path[64], messages[2048];
static int loop_fd = -1;
static struct zf_dev *dev;

static void keep_message(void *arg, enum zf_report_level level, const char *message)
{
	size_t used = strlen(messages);

	snprintf(messages + used, sizeof(messages) - used, "%s\n", message);
}

static const struct zf_report report = {.fn = keep_message};

ssize_t __real_pwritev64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags);
ssize_t __wrap_pwritev64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags);

static bool writes_fail; /* the backend's own, headers above all */

ssize_t __wrap_pwritev64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	if (writes_fail) {
		errno = EIO;
		return -1;
	}
	return __real_pwritev64v2(fd, iov, count, offset, flags);
}

static int attach(void)
{
	struct loop_config config = {.info = {.lo_flags = LO_FLAGS_AUTOCLEAR}};
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), number;

	if (control < 0)
		return -errno;
	number = ioctl(control, LOOP_CTL_GET_FREE);
	close(control);
	if (number < 0)
		return -errno;
	snprintf(path, sizeof(path), "/dev/loop%d", number);
	loop_fd = open(path, O_RDWR | O_CLOEXEC);
	if (loop_fd < 0)
		return -errno;
	config.fd = (uint32_t)open(backing, O_RDWR | O_CLOEXEC);
	number = ioctl(loop_fd, LOOP_CONFIGURE, &config) < 0 ? -errno : 0;
	close((int)config.fd);
	return number;
}

static int setup(void **state)
{
	int fd;

	snprintf(backing, sizeof(backing), "zfuse-loop-%d.img", getpid());
	fd = open(backing, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (fd < 0 || ftruncate(fd, FILE_SIZE) < 0)
		return -1;
	close(fd);
	messages[0] = '\0';
	return attach();
}

static int teardown(void **state)
{
	zf_dev_close(dev);
	dev = NULL;
	close(loop_fd); /* the last one detaches it */
	unlink(backing);
	return 0;
}

static void create_and_open(void)
{
	assert_int_equal(zf_image_create(path, &geometry, false, &no_wait, &report), 0);
	assert_int_equal(zf_image_open(path, &no_wait, &report, &dev), 0);
	assert_string_equal(messages, "");
}

static void a_block_device_carries_an_image(void **state)
{
	uint64_t addr = 0;

	create_and_open();
	assert_int_equal(run_write(dev, ZONE_SIZE, 3 * BLOCK, 1, true), 0);
	assert_int_equal(run_append(dev, ZONE_SIZE, BLOCK, 2, &addr), 0);
	assert_int_equal(run_zeroes(dev, ZONE_SIZE + 4 * BLOCK, 20 * BLOCK), 0);
	assert_int_equal(run_write(dev, 2 * ZONE_SIZE, ZONE_SIZE, 3, false), 0);
	assert_int_equal(zf_dev_reset(dev, 2), 0);
	assert_int_equal(zf_dev_flush(dev), 0);
	zf_dev_close(dev);
	assert_int_equal(zf_image_open(path, &no_wait, &report, &dev), 0);
	assert_true(device_holds(dev, ZONE_SIZE, 3 * BLOCK, 1));
	assert_true(device_holds(dev, addr, BLOCK, 2));
	assert_true(device_holds_zeroes(dev, ZONE_SIZE + 4 * BLOCK, 20 * BLOCK));
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + 24 * BLOCK);
	assert_int_equal(zone_of(dev, 2).cond, ZF_ZONE_EMPTY);
	assert_int_equal(zone_of(dev, 2).reset_count, 1);
}

static void no_other_program_opens_an_open_image(void **state)
{
	struct zf_dev *second = NULL;

	create_and_open();
	assert_int_equal(open(path, O_RDWR | O_EXCL), -1);
	assert_int_equal(errno, EBUSY);
	assert_int_equal(zf_image_open(path, &no_wait, &report, &second), -EBUSY);
	assert_non_null(strstr(messages, "in use"));
	assert_int_equal(zf_image_create(path, &geometry, true, &no_wait, &report), -EBUSY);
}

static void creating_refuses_a_device_with_something_on_it(void **state)
{
	void *block = blocks_new(BLOCK, 5);

	assert_int_equal(pwrite(loop_fd, block, BLOCK, 65536), BLOCK);
	assert_int_equal(fsync(loop_fd), 0);
	free(block);
	assert_int_equal(zf_image_create(path, &geometry, false, &no_wait, &report), -EEXIST);
	assert_int_equal(zf_image_open(path, &no_wait, &report, &dev), -ENODEV);
	assert_non_null(strstr(messages, "mkfs.zfuse --image"));
	messages[0] = '\0';
	assert_int_equal(zf_image_create(path, &geometry, true, &no_wait, &report), 0);
	assert_int_equal(zf_image_open(path, &no_wait, &report, &dev), 0);
	assert_true(device_holds_zeroes(dev, 65536, BLOCK));
}

static void creating_refuses_a_device_that_is_too_small(void **state)
{
	struct zf_geometry larger = geometry;

	larger.zone_count = 16;
	assert_int_equal(zf_image_create(path, &larger, false, &no_wait, &report), -ENOSPC);
	assert_non_null(strstr(messages, "too small: it has 16777216 bytes"));
	assert_non_null(strstr(messages, "need 16789504"));
}

/* ---- growing ---- */

static void set_size(uint64_t size)
{
	assert_int_equal(truncate(backing, (off_t)size), 0);
	assert_int_equal(ioctl(loop_fd, LOOP_SET_CAPACITY), 0);
}

static void reopen_from(uint64_t search_from)
{
	const struct zf_open_options options = {.image_search_from = search_from};

	zf_dev_close(dev);
	dev = NULL;
	assert_int_equal(zf_image_open(path, &options, &report, &dev), 0);
}

static void expect_zones(uint32_t count)
{
	assert_int_equal(zf_dev_geometry(dev)->zone_count, count);
	assert_true(device_holds(dev, ZONE_SIZE, 3 * BLOCK, 1));
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + 3 * BLOCK);
	for (uint32_t z = ZONES; z < count; z++)
		assert_int_equal(zone_of(dev, z).cond, ZF_ZONE_EMPTY);
}

/* The image takes the room that was left between the table and the header. */
static void an_image_grows_within_its_device(void **state)
{
	create_and_open();
	assert_int_equal(run_write(dev, ZONE_SIZE, 3 * BLOCK, 1, true), 0);
	assert_int_equal(zf_dev_grow(dev, ZONES + 1), 0);
	expect_zones(ZONES + 1);
	reopen_from(0);
	expect_zones(ZONES + 1);
	assert_int_equal(zf_dev_grow(dev, 16), -ENOSPC);
	assert_non_null(strstr(messages, "make the device larger first"));
	assert_int_equal(zf_dev_grow(dev, 0), 0);
	reopen_from(0);
	expect_zones(15);
	assert_int_equal(run_write(dev, 14 * ZONE_SIZE, ZONE_SIZE, 2, true), 0);
}

static void an_image_follows_its_device(void **state)
{
	create_and_open();
	assert_int_equal(run_write(dev, ZONE_SIZE, 3 * BLOCK, 1, true), 0);
	set_size(40 * ZONE_SIZE);
	assert_int_equal(zf_dev_grow(dev, 0), 0);
	expect_zones(39);
	reopen_from(0);
	expect_zones(39);
	assert_int_equal(run_write(dev, 38 * ZONE_SIZE, ZONE_SIZE, 2, true), 0);
}

static void a_trailer_is_found_where_the_device_ended(void **state)
{
	create_and_open();
	assert_int_equal(run_write(dev, ZONE_SIZE, 3 * BLOCK, 1, true), 0);
	zf_dev_close(dev);
	dev = NULL;
	set_size(40 * ZONE_SIZE);
	assert_int_equal(zf_image_open(path, &no_wait, &report, &dev), -ENODEV);
	assert_non_null(strstr(messages, "zfusectl grow"));
	reopen_from(ZONES * ZONE_SIZE);
	expect_zones(ZONES);
	assert_int_equal(zf_dev_grow(dev, 0), 0);
	reopen_from(0);
	expect_zones(39);
	/* The device grows by less than a zone. The header still moves, and is found at the end. */
	set_size(40 * ZONE_SIZE + BLOCK);
	reopen_from(ZONES * ZONE_SIZE);
	assert_int_equal(zf_dev_grow(dev, 0), 0);
	reopen_from(0);
	expect_zones(39);
	/* The search must not take an old header that is nearer to where the search begins. */
	assert_int_equal(run_write(dev, 2 * ZONE_SIZE, BLOCK, 2, true), 0);
	set_size(60 * ZONE_SIZE);
	reopen_from(ZONES * ZONE_SIZE);
	expect_zones(39);
	assert_int_equal(zone_of(dev, 2).wp, 2 * ZONE_SIZE + BLOCK);
}

/* The device grows by less than a zone, so only the header has to be written. */
static void where_the_header_cannot_be_written_growing_fails(void **state)
{
	create_and_open();
	assert_int_equal(zf_dev_grow(dev, 0), 0);
	zf_dev_close(dev);
	dev = NULL;
	set_size(FILE_SIZE + BLOCK);
	reopen_from(ZONES * ZONE_SIZE);
	writes_fail = true;
	assert_int_equal(zf_dev_grow(dev, 0), -EIO);
	writes_fail = false;
	assert_non_null(strstr(messages, "its header cannot be written"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_block_device_carries_an_image),
		TEST(no_other_program_opens_an_open_image),
		TEST(creating_refuses_a_device_with_something_on_it),
		TEST(creating_refuses_a_device_that_is_too_small),
		TEST(an_image_grows_within_its_device),
		TEST(an_image_follows_its_device),
		TEST(a_trailer_is_found_where_the_device_ended),
		TEST(where_the_header_cannot_be_written_growing_fails),
	};
	int r = setup(NULL);

	teardown(NULL);
	if (r != 0) {
		fprintf(stderr, "no loop device can be had: %s\n", strerror(-r));
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
