/* SPDX-License-Identifier: MIT */
/*
 * Requests to a disk's conventional zones become operations on a ring; a file takes the disk's
 * place. Skipped (77) where no io_uring can be had.
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

static const struct zf_dev_ops ops = {
	.kind = "zbd",
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
	zf_zbd_init_commands(&zbd);
	return io_uring_queue_init(ZF_ZBD_RING_ENTRIES, &zbd.ring, 0);
}

static int close_disk(void **state)
{
	(void)state;
	io_uring_queue_exit(&zbd.ring);
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

/* Several are under way when the first one finds out: a file cannot either. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_kernel_that_cannot_unmap_is_asked_once_for_all,
						open_disk, close_disk),
	};
	struct io_uring ring;

	if (io_uring_queue_init(4, &ring, 0) < 0)
		return 77;
	io_uring_queue_exit(&ring);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
