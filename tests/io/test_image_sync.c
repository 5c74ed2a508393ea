/* SPDX-License-Identifier: MIT */
/* A host that cannot make an image durable says so once, to the first caller that asks. */
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/image.h"
#include "io/image_trailer.h"
#include "io_util.h"

#define BLOCK	  ((uint64_t)ZF_BLOCK_SIZE)
#define ZONE_SIZE ((uint64_t)1 << 20)

static const struct zf_geometry geometry = {
	.zone_size = ZONE_SIZE,
	.zone_capacity = ZONE_SIZE,
	.zone_count = 4,
	.append_limit = ZONE_SIZE,
	.volatile_cache = true,
};

ssize_t __real_pwritev64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags);
ssize_t __wrap_pwritev64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags);

static int durable_error; /* of durable writes; 0: none */

ssize_t __wrap_pwritev64v2(int fd, const struct iovec *iov, int count, off_t offset, int flags)
{
	if (durable_error != 0 && (flags & RWF_DSYNC)) {
		errno = durable_error;
		return -1;
	}
	return __real_pwritev64v2(fd, iov, count, offset, flags);
}

int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

static int sync_error; /* of the backend's own syncs; 0: none */

int __wrap_fdatasync(int fd)
{
	if (sync_error != 0) {
		errno = sync_error;
		return -1;
	}
	return __real_fdatasync(fd);
}

static uint8_t opcodes[16]; /* of what the ring was given */
static unsigned int opcode_count;

int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);

int __wrap_io_uring_submit(struct io_uring *ring)
{
	const struct io_uring_sq *sq = &ring->sq;

	for (unsigned int i = sq->sqe_head; i != sq->sqe_tail; i++)
		if (opcode_count < ZF_ARRAY_SIZE(opcodes))
			opcodes[opcode_count++] = sq->sqes[i & sq->ring_mask].opcode;
	return __real_io_uring_submit(ring);
}

static const struct zf_open_options options = {.lock_wait_ms = 10000};
static bool exact; /* the pointers of an image whose daemon is killed after that */

/* The copy of an open image is what a kill leaves. */
static void kill_and_open(const char *path)
{
	char copy[80], command[256];
	struct zf_dev *dev;

	snprintf(copy, sizeof(copy), "%s.copy", path);
	snprintf(command, sizeof(command), "cp %s %s", path, copy);
	assert_int_equal(system(command), 0);
	assert_int_equal(zf_image_open(copy, &options, NULL, &dev), 0);
	exact = !zf_dev_geometry(dev)->pointers_are_lower_bounds;
	zf_dev_close(dev);
	unlink(copy);
}

/* A command during which the host cannot make anything durable. */
typedef int command_fn(struct zf_dev *dev);

static int write_durably(struct zf_dev *dev)
{
	return run_write(dev, ZONE_SIZE, BLOCK, 2, true);
}

static int grow(struct zf_dev *dev)
{
	return zf_dev_grow(dev, 8);
}

static int flush_after(command_fn *command, int error)
{
	struct zf_dev *dev;
	char path[64];
	int r;

	snprintf(path, sizeof(path), "zfuse-test-sync-%d.img", getpid());
	unlink(path);
	assert_int_equal(zf_image_create(path, &geometry, false, &options, NULL), 0);
	assert_int_equal(zf_image_open(path, &options, NULL, &dev), 0);
	assert_int_equal(run_write(dev, 0, BLOCK, 1, false), 0);
	durable_error = error;
	assert_int_equal(command(dev), error ? -EIO : 0);
	durable_error = 0;
	kill_and_open(path);
	r = zf_dev_flush(dev);
	zf_dev_close(dev);
	unlink(path);
	return r;
}

/* The flush of the host's disk may be what failed, and the disk's cache may have had an earlier
 * write. */
static void after_a_durable_write_that_failed_no_flush_succeeds(void **state)
{
	(void)state;
	assert_int_equal(flush_after(write_durably, 0), 0);
	assert_true(exact);
	assert_int_equal(flush_after(write_durably, EIO), -EIO);
	assert_false(exact);
}

static void after_a_growth_that_failed_no_flush_succeeds(void **state)
{
	(void)state;
	assert_int_equal(flush_after(grow, 0), 0);
	assert_true(exact);
	assert_int_equal(flush_after(grow, EIO), -EIO);
	assert_false(exact);
}

static void a_host_without_room_has_lost_nothing(void **state)
{
	(void)state;
	assert_int_equal(flush_after(write_durably, ENOSPC), 0);
}

/* Of the two operations of a reset, the zone table comes first. */
static void a_reset_is_durable_before_its_zone_is_punched(void **state)
{
	struct zf_dev *dev;
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "zfuse-test-reset-%d.img", getpid());
	unlink(path);
	assert_int_equal(zf_image_create(path, &geometry, false, &options, NULL), 0);
	assert_int_equal(zf_image_open(path, &options, NULL, &dev), 0);
	assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 1, false), 0);
	opcode_count = 0;
	assert_int_equal(zf_dev_reset(dev, 1), 0);
	assert_int_equal(opcode_count, 2);
	assert_int_equal(opcodes[0], IORING_OP_FSYNC);
	assert_int_equal(opcodes[1], IORING_OP_FALLOCATE);
	zf_dev_close(dev);
	unlink(path);
}

static enum zf_image_use use_of(const char *path)
{
	struct zf_image_trailer trailer;
	enum zf_image_use use;
	struct stat st;
	int fd = open(path, O_RDWR);

	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(zf_image_trailer_read(fd, (uint64_t)st.st_size, NULL, &trailer), 0);
	assert_int_equal(zf_image_trailer_map(&trailer, fd, true), 0);
	use = (enum zf_image_use)zf_le32_get(trailer.state->use);
	zf_image_trailer_unmap(&trailer);
	close(fd);
	return use;
}

static enum zf_image_use close_with(int error)
{
	enum zf_image_use use;
	struct zf_dev *dev;
	char path[64];

	snprintf(path, sizeof(path), "zfuse-test-close-%d.img", getpid());
	unlink(path);
	assert_int_equal(zf_image_create(path, &geometry, false, &options, NULL), 0);
	assert_int_equal(zf_image_open(path, &options, NULL, &dev), 0);
	assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 1, false), 0);
	sync_error = error;
	zf_dev_close(dev);
	sync_error = 0;
	use = use_of(path);
	unlink(path);
	return use;
}

/* After a restart of the host, the pointers of an image in use are lower bounds. */
static void what_cannot_be_made_durable_is_not_closed_as_exact(void **state)
{
	(void)state;
	assert_int_equal(close_with(0), ZF_IMAGE_CLEAN);
	assert_int_equal(close_with(EIO), ZF_IMAGE_IN_USE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_a_durable_write_that_failed_no_flush_succeeds),
		cmocka_unit_test(after_a_growth_that_failed_no_flush_succeeds),
		cmocka_unit_test(a_host_without_room_has_lost_nothing),
		cmocka_unit_test(a_reset_is_durable_before_its_zone_is_punched),
		cmocka_unit_test(what_cannot_be_made_durable_is_not_closed_as_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
