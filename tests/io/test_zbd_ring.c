/* SPDX-License-Identifier: MIT */
/*
 * Requests to a disk become operations on a ring; a file takes the disk's place. Skipped (77) where
 * io_uring is not available.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "io/zbd_device.h"
#include "io_util.h"

#define BLOCK	  ((uint64_t)ZF_BLOCK_SIZE)
#define ZONE_SIZE (64 * BLOCK)
#define ZONES	  4u

static struct zf_zbd zbd;
static struct zf_dev *const dev = &zbd.dev;

static struct io_uring_sqe submitted; /* the last */
static unsigned int syncs;

int __real_io_uring_submit(struct io_uring *ring);
int __wrap_io_uring_submit(struct io_uring *ring);
int __real_fdatasync(int fd);
int __wrap_fdatasync(int fd);

int __wrap_io_uring_submit(struct io_uring *ring)
{
	const struct io_uring_sq *sq = &ring->sq;

	if (sq->sqe_tail != sq->sqe_head)
		submitted = sq->sqes[(sq->sqe_tail - 1) & sq->ring_mask];
	return __real_io_uring_submit(ring);
}

int __wrap_fdatasync(int fd)
{
	syncs++;
	return __real_fdatasync(fd);
}

static unsigned int reports;

static int report(struct zf_dev *of, uint32_t first, uint32_t count, struct zf_zone_info *zones)
{
	reports++;
	memset(zones, 0, count * sizeof(*zones));
	return 0;
}

static const struct zf_dev_ops ops = {
	.kind = "zbd",
	.report = report,
	.submit = zf_zbd_submit,
	.poll = zf_zbd_poll,
	.wake = zf_zbd_wake,
	.run = zf_zbd_run,
	.read = zf_zbd_read,
};

static int open_disk(void **state)
{
	const struct zf_geometry geometry = {
		.zone_size = ZONE_SIZE,
		.zone_capacity = ZONE_SIZE,
		.zone_count = ZONES,
		.conventional = ZONES,
		.unmapping_zeroes = true,
	};
	char path[] = "zfuse-ring-XXXXXX";

	(void)state;
	memset(&zbd, 0, sizeof(zbd));
	zbd.fd = mkstemp(path);
	if (zbd.fd < 0 || unlink(path) < 0 || ftruncate(zbd.fd, ZONES * ZONE_SIZE) < 0)
		return -1;
	if (zf_dev_init(dev, &ops, path, &geometry, NULL) < 0)
		return -1;
	zf_mutex_init(&zbd.lock, ZF_RANK_DEV);
	return zf_zbd_ring_init(&zbd);
}

static int close_disk(void **state)
{
	(void)state;
	zf_ring_deinit(&zbd.ring);
	zf_mutex_deinit(&zbd.lock);
	zf_dev_deinit(dev);
	return close(zbd.fd);
}

static bool can_zero(void)
{
	return fallocate(zbd.fd, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 0, BLOCK) == 0;
}

static void done(struct zf_io *io)
{
	(void)io;
}

/* Several requests are in flight when the first one finds out that the kernel cannot unmap; a file
 * cannot either. */
static void a_kernel_that_cannot_unmap_is_asked_once_for_all(void **state)
{
	struct zf_io io[8];

	(void)state;
	if (!can_zero())
		skip();
	for (unsigned int i = 0; i < 8; i++) {
		assert_int_equal(run_write(dev, i * BLOCK, BLOCK, i, false), 0);
		io[i] = (struct zf_io){
			.op = ZF_IO_ZEROES, .addr = i * BLOCK, .len = BLOCK, .done = done};
	}
	for (unsigned int i = 0; i < 8; i++)
		zf_dev_submit(dev, &io[i]);
	while (zf_dev_poll(dev, true) > 0)
		;
	for (unsigned int i = 0; i < 8; i++)
		assert_int_equal(io[i].result, 0);
	assert_true(device_holds_zeroes(dev, 0, 8 * BLOCK));
}

/* ---- what reaches the ring ---- */

static struct io_uring_sqe last_prepared(void)
{
	const struct io_uring_sq *sq = &zbd.ring.uring.sq;

	assert_int_not_equal(sq->sqe_head, sq->sqe_tail);
	return sq->sqes[(sq->sqe_tail - 1) & sq->ring_mask];
}

/* The write at a zone's pointer that the append queue makes of one or more appends. */
static void a_durable_write_at_a_pointer_is_submitted_as_one(void **state)
{
	_Alignas(ZF_BLOCK_SIZE) static uint8_t block[ZF_BLOCK_SIZE];
	struct zf_zone_write write = {
		.addr = ZONE_SIZE + 3 * BLOCK, .len = BLOCK, .iovcnt = 1, .iov = {{block, BLOCK}}};

	(void)state;
	for (unsigned int durable = 0; durable < 2; durable++) {
		struct io_uring_sqe sqe;

		write.fua = durable;
		zf_zbd_write_locked(&zbd, &write);
		sqe = last_prepared();
		assert_int_equal(sqe.opcode, IORING_OP_WRITEV);
		assert_int_equal(sqe.off, write.addr);
		assert_int_equal(sqe.rw_flags, durable ? RWF_DSYNC : 0);
	}
}

static void a_durable_write_to_a_conventional_zone_is_submitted_as_one(void **state)
{
	(void)state;
	for (unsigned int durable = 0; durable < 2; durable++) {
		submitted = (struct io_uring_sqe){};
		assert_int_equal(run_write(dev, 5 * BLOCK, BLOCK, 1, durable), 0);
		assert_int_equal(submitted.opcode, IORING_OP_WRITEV);
		assert_int_equal(submitted.off, 5 * BLOCK);
		assert_int_equal(submitted.rw_flags, durable ? RWF_DSYNC : 0);
	}
}

/* Without FUA the kernel sends a write and a flush, and the flush may be what failed. */
static void after_a_durable_write_that_failed_without_fua_no_flush_succeeds(void **state)
{
	char path[32];
	int fd;

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", zbd.fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(dup2(fd, zbd.fd), zbd.fd);
	close(fd);
	assert_int_equal(run_write(dev, 0, BLOCK, 1, false), -EIO);
	zbd.has_fua = true;
	assert_int_equal(run_write(dev, 0, BLOCK, 1, true), -EIO);
	assert_int_equal(zf_dev_flush_error(dev), 0);
	zbd.has_fua = false;
	assert_int_equal(run_write(dev, 0, BLOCK, 1, true), -EIO);
	assert_int_equal(zf_dev_flush_error(dev), -EIO);
}

/* A flush syncs the disk through the ring, and also on the calling thread (zf_dev_run()). */
static void a_flush_syncs_the_disk(void **state)
{
	struct zf_io io = {.op = ZF_IO_FLUSH, .done = done};

	(void)state;
	submitted = (struct io_uring_sqe){};
	zf_dev_submit(dev, &io);
	while (zf_dev_poll(dev, true) > 0)
		;
	assert_int_equal(io.result, 0);
	assert_int_equal(submitted.opcode, IORING_OP_FSYNC);
	assert_int_equal(submitted.len, 0);
	syncs = 0;
	assert_int_equal(zf_dev_run(dev, &io), 0);
	assert_int_equal(syncs, 1);
}

static uint64_t reported_start(uint32_t zone_no)
{
	struct zf_zone_info info;

	assert_int_equal(zf_dev_report(dev, zone_no, 1, &info), 0);
	return info.start;
}

static void set_first_report(void)
{
	struct zf_zone_info *zones = calloc(ZONES, sizeof(*zones));

	for (uint32_t z = 0; z < ZONES; z++)
		zones[z].start = z * ZONE_SIZE;
	free(dev->first_report);
	dev->first_report = zones;
	reports = 0;
}

static void the_report_of_when_it_was_opened_counts_until_a_change_or_an_error(void **state)
{
	(void)state;
	set_first_report();
	assert_true(device_holds_zeroes(dev, 0, BLOCK));
	assert_int_equal(reported_start(2), 2 * ZONE_SIZE);
	assert_int_equal(reports, 0);
	assert_int_equal(run_write(dev, 0, BLOCK, 1, false), 0);
	assert_int_equal(reported_start(2), 0);
	assert_int_equal(reports, 1);
	set_first_report();
	zf_zbd_error(&zbd, "read", 0, -EIO);
	assert_int_equal(reported_start(2), 0);
	assert_int_equal(reports, 1);
}

static void what_no_disk_could_do_is_answered_and_not_submitted(void **state)
{
	struct zf_io io = {.op = ZF_IO_READ, .addr = ZONES * ZONE_SIZE, .len = BLOCK, .done = done};

	(void)state;
	zf_dev_submit(dev, &io);
	assert_int_equal(zf_dev_poll(dev, false), 1);
	assert_int_equal(io.result, -EINVAL);
	assert_int_equal(zf_dev_read_buf(dev, io.addr, NULL, BLOCK), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_kernel_that_cannot_unmap_is_asked_once_for_all,
						open_disk, close_disk),
		cmocka_unit_test_setup_teardown(a_durable_write_at_a_pointer_is_submitted_as_one,
						open_disk, close_disk),
		cmocka_unit_test_setup_teardown(
			a_durable_write_to_a_conventional_zone_is_submitted_as_one, open_disk,
			close_disk),
		cmocka_unit_test_setup_teardown(
			after_a_durable_write_that_failed_without_fua_no_flush_succeeds, open_disk,
			close_disk),
		cmocka_unit_test_setup_teardown(a_flush_syncs_the_disk, open_disk, close_disk),
		cmocka_unit_test_setup_teardown(
			the_report_of_when_it_was_opened_counts_until_a_change_or_an_error,
			open_disk, close_disk),
		cmocka_unit_test_setup_teardown(what_no_disk_could_do_is_answered_and_not_submitted,
						open_disk, close_disk),
	};
	struct io_uring ring;

	if (io_uring_queue_init(4, &ring, 0) < 0)
		return 77;
	io_uring_queue_exit(&ring);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
