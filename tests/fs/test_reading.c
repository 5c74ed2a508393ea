/* SPDX-License-Identifier: MIT */
/*
 * Reads in two steps (zf_fs_read_begin()), on an image in the current directory: the test itself
 * reads the image's file, as a queue of a mount does with its ring.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "alloc/zone.h"
#include "fs/data_rig.h"
#include "fs/mount/format.h"
#include "io/image.h"
#include "sim/rng.h"

#define BLOCK	  4096u
#define ZONES	  24u
#define ZONE_SIZE (1u << 20)
#define FILE_SIZE (2u << 20)

static const struct zf_geometry geometry = {
	.zone_size = ZONE_SIZE,
	.zone_capacity = ZONE_SIZE,
	.zone_count = ZONES,
	.append_limit = 256 << 10,
	.volatile_cache = true,
};

static struct data_rig rig;
static char path[64];
static const struct zf_ctx asks = {0}; /* may not wait */

static void keep_message(void *arg, enum zf_report_level level, const char *message)
{
	(void)arg;
	if (level != ZF_REPORT_ERROR)
		return;
	rig.errors++;
	snprintf(rig.message, sizeof(rig.message), "%s", message);
}

static int set_up(void **state)
{
	const struct zf_format_options format = {
		.fsid = {0xfe}, .log_secret = {7}, .dir_hash_seed = 3};
	const struct zf_open_options options = {0};

	rig = (struct data_rig){.report = {.fn = keep_message}, .ctx = {.may_wait = true}};
	snprintf(path, sizeof(path), "./reading-%d.img", getpid());
	if (zf_image_create(path, &geometry, false, &options, &rig.report) < 0 ||
	    zf_image_open(path, &options, &rig.report, &rig.dev) < 0 ||
	    zf_fs_format(rig.dev, &format, &rig.report) < 0)
		return -1;
	return data_rig_mount_opened(&rig);
}

static int tear_down(void **state)
{
	int r = zf_fs_unmount(rig.fs);

	zf_dev_close(rig.dev);
	return r < 0 ? r : unlink(path);
}

/* ---- in two steps ---- */

struct two_steps {
	struct zf_reading *reading;
	struct zf_reading_wants wants;
	uint8_t *buf;
};

static ssize_t begin(struct two_steps *steps, uint64_t ino, uint64_t offset, size_t len)
{
	return zf_fs_read_begin(rig.fs, &asks, ino, offset, steps->buf, len, &steps->reading,
				&steps->wants);
}

static ssize_t end(const struct two_steps *steps)
{
	ssize_t n = preadv(steps->wants.fd, steps->wants.iov, 1, (off_t)steps->wants.offset);

	return zf_fs_read_end(steps->reading, n);
}

static void new_buffer(struct two_steps *steps, size_t len)
{
	steps->buf = aligned_alloc(BLOCK, len);
	assert_non_null(steps->buf);
	memset(steps->buf, 0xa5, len);
}

/* A file whose every block is on the device; block n has the pattern of `seed`. */
static uint64_t make_landed(const char *name, uint64_t seed, size_t len)
{
	uint64_t ino = data_rig_make(&rig, name);

	data_rig_write_pattern(&rig, ino, seed, 0, len);
	data_rig_sync(&rig);
	return ino;
}

static void expect_pattern(const struct two_steps *steps, uint64_t seed, uint64_t offset,
			   size_t len)
{
	uint8_t *wanted = malloc(len);

	data_rig_fill(seed, offset, wanted, len);
	assert_memory_equal(steps->buf, wanted, len);
	free(wanted);
}

/* ---- what it gives ---- */

struct tally {
	unsigned int pending, at_once, otherwise;
};

/* A read in two steps gives the same as a read in one step, whatever way it takes. */
static void compare(uint64_t ino, uint64_t offset, size_t len, struct tally *tally)
{
	struct two_steps steps;
	uint8_t *wanted = aligned_alloc(BLOCK, FILE_SIZE);
	ssize_t is, n = zf_fs_read(rig.fs, &rig.ctx, ino, offset, wanted, len);

	new_buffer(&steps, FILE_SIZE);
	is = begin(&steps, ino, offset, len);
	if (is == -EAGAIN) {
		tally->otherwise++;
	} else {
		tally->pending += is == -EINPROGRESS;
		tally->at_once += is >= 0;
		if (is == -EINPROGRESS)
			is = end(&steps);
		assert_int_equal(is, n);
		assert_memory_equal(steps.buf, wanted, (size_t)n);
	}
	free(steps.buf);
	free(wanted);
}

static void change(uint64_t ino, struct zf_rng *rng)
{
	uint64_t offset = zf_rng_below(rng, FILE_SIZE), len = 1 + zf_rng_below(rng, 65536);

	if (offset + len > FILE_SIZE)
		len = FILE_SIZE - offset;
	switch (zf_rng_below(rng, 8)) {
	case 0:
		data_rig_truncate(&rig, ino, offset);
		break;
	case 1:
	case 2:
		data_rig_sync(&rig);
		break;
	case 3:
		data_rig_write_pattern(&rig, ino, offset | DATA_RIG_PACKS, offset, len);
		assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
		break;
	default:
		data_rig_write_pattern(&rig, ino, offset, offset, len);
	}
}

static void it_gives_what_a_read_gives(void **state)
{
	uint64_t ino = data_rig_make(&rig, "file");
	struct tally tally = {0};
	struct zf_rng rng;

	zf_rng_seed(&rng, 5);
	for (unsigned int i = 0; i < 2000; i++) {
		uint64_t offset = zf_rng_below(&rng, FILE_SIZE + BLOCK);
		size_t len = 1 + (size_t)zf_rng_below(&rng, 16384);

		if (i % 4 == 0)
			change(ino, &rng);
		if (i % 2 == 0) {
			offset &= ~UINT64_C(4095);
			len = (len + BLOCK - 1) & ~(size_t)4095;
		}
		compare(ino, offset, len, &tally);
	}
	assert_true(tally.pending > 100);
	assert_true(tally.at_once > 100);
	assert_true(tally.otherwise > 100);
	data_rig_unlink(&rig, "file", ino);
}

static void what_is_no_file_is_refused(void **state)
{
	struct two_steps steps;

	new_buffer(&steps, BLOCK);
	assert_int_equal(begin(&steps, ZF_INO_ROOT, 0, BLOCK), -EISDIR);
	assert_int_equal(begin(&steps, 12345678, 0, BLOCK), -ESTALE);
	free(steps.buf);
}

/* ---- between the steps ---- */

/* The disk is written over several times, so that every zone that may be reset has been. */
static void what_was_found_stays_until_it_was_read(void **state)
{
	uint64_t ino = make_landed("old", 1, FILE_SIZE), other;
	struct two_steps steps;

	new_buffer(&steps, 4 * BLOCK);
	assert_int_equal(begin(&steps, ino, 8 * BLOCK, 4 * BLOCK), -EINPROGRESS);
	data_rig_truncate(&rig, ino, 0);
	for (unsigned int i = 0; i < 4 * ZONES * ZONE_SIZE / FILE_SIZE; i++) {
		other = make_landed("other", 100 + i, FILE_SIZE);
		data_rig_unlink(&rig, "other", other);
		while (zf_fs_step(rig.fs) > 0)
			;
	}
	assert_int_equal(end(&steps), 4 * BLOCK);
	expect_pattern(&steps, 1, 8 * BLOCK, 4 * BLOCK);
	free(steps.buf);
	data_rig_unlink(&rig, "old", ino);
}

static void a_truncation_between_the_steps_changes_nothing(void **state)
{
	uint64_t ino = make_landed("file", 1, FILE_SIZE);
	struct two_steps steps;

	new_buffer(&steps, BLOCK);
	assert_int_equal(begin(&steps, ino, 8 * BLOCK, BLOCK), -EINPROGRESS);
	data_rig_truncate(&rig, ino, BLOCK);
	data_rig_write_pattern(&rig, ino, 2, 0, FILE_SIZE);
	assert_int_equal(end(&steps), BLOCK);
	expect_pattern(&steps, 1, 8 * BLOCK, BLOCK);
	free(steps.buf);
	data_rig_unlink(&rig, "file", ino);
}

/* The file's last block is read as a whole if the buffer has room for it. */
static void the_end_of_a_file_is_read_so_too(void **state)
{
	uint64_t ino = make_landed("file", 1, FILE_SIZE);
	struct two_steps steps;

	/* A last block that was written in part would still be in memory (fs/data/recent.h). */
	data_rig_truncate(&rig, ino, FILE_SIZE - 1000);
	data_rig_sync(&rig);
	new_buffer(&steps, 2 * BLOCK);
	assert_int_equal(begin(&steps, ino, FILE_SIZE - 2 * BLOCK, 2 * BLOCK), -EINPROGRESS);
	assert_int_equal(steps.wants.iov->iov_len, 2 * BLOCK);
	assert_int_equal(end(&steps), 2 * BLOCK - 1000);
	expect_pattern(&steps, 1, FILE_SIZE - 2 * BLOCK, 2 * BLOCK - 1000);
	/* A smaller buffer gets no more bytes than it has room for. */
	memset(steps.buf, 0xa5, 2 * BLOCK);
	assert_int_equal(begin(&steps, ino, FILE_SIZE - BLOCK, BLOCK - 1000), -EAGAIN);
	assert_int_equal(
		zf_fs_read(rig.fs, &rig.ctx, ino, FILE_SIZE - BLOCK, steps.buf, BLOCK - 1000),
		BLOCK - 1000);
	expect_pattern(&steps, 1, FILE_SIZE - BLOCK, BLOCK - 1000);
	for (unsigned int i = BLOCK - 1000; i < BLOCK; i++)
		assert_int_equal(steps.buf[i], 0xa5);
	free(steps.buf);
	data_rig_unlink(&rig, "file", ino);
}

/* A last block that was written in part is still in memory (fs/data/recent.h): no read is needed. */
static void the_end_of_a_file_may_be_in_memory(void **state)
{
	uint64_t ino = make_landed("file", 1, FILE_SIZE - 1000);
	struct two_steps steps;

	new_buffer(&steps, 2 * BLOCK);
	assert_int_equal(begin(&steps, ino, FILE_SIZE - BLOCK + 100, 200), 200);
	expect_pattern(&steps, 1, FILE_SIZE - BLOCK + 100, 200);
	assert_int_equal(steps.buf[200], 0xa5);
	memset(steps.buf, 0xa5, 2 * BLOCK);
	assert_int_equal(begin(&steps, ino, FILE_SIZE - BLOCK, BLOCK), BLOCK - 1000);
	expect_pattern(&steps, 1, FILE_SIZE - BLOCK, BLOCK - 1000);
	assert_int_equal(zf_fs_read(rig.fs, &asks, ino, FILE_SIZE - 2000, steps.buf, 500), 500);
	expect_pattern(&steps, 1, FILE_SIZE - 2000, 500);
	free(steps.buf);
	data_rig_unlink(&rig, "file", ino);
}

static void several_may_be_under_way(void **state)
{
	uint64_t ino = make_landed("file", 1, FILE_SIZE);
	struct two_steps steps[16];

	for (unsigned int i = 0; i < 16; i++) {
		new_buffer(&steps[i], BLOCK);
		assert_int_equal(begin(&steps[i], ino, 7 * i * BLOCK, BLOCK), -EINPROGRESS);
	}
	for (unsigned int i = 16; i-- > 0;) {
		assert_int_equal(end(&steps[i]), BLOCK);
		expect_pattern(&steps[i], 1, 7 * i * BLOCK, BLOCK);
		free(steps[i].buf);
	}
	data_rig_unlink(&rig, "file", ino);
}

/* ---- what goes wrong ---- */

static void a_result_that_is_no_good_is_told(void **state)
{
	static const int64_t results[] = {-EIO, -EAGAIN, 0, 512};
	uint64_t ino = make_landed("file", 1, FILE_SIZE);
	struct two_steps steps;

	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		new_buffer(&steps, 2 * BLOCK);
		assert_int_equal(begin(&steps, ino, BLOCK, 2 * BLOCK), -EINPROGRESS);
		assert_int_equal(zf_fs_read_end(steps.reading, results[i]), -EAGAIN);
		assert_int_equal(rig.errors, 0);
		free(steps.buf);
	}
	data_rig_expect(&rig, ino, 1, BLOCK, 2 * BLOCK);
	data_rig_unlink(&rig, "file", ino);
}

static void bytes_that_are_wrong_are_an_error(void **state)
{
	uint64_t ino = make_landed("file", 1, FILE_SIZE);
	struct two_steps steps;

	new_buffer(&steps, BLOCK);
	assert_int_equal(begin(&steps, ino, BLOCK, BLOCK), -EINPROGRESS);
	memset(steps.wants.iov->iov_base, 0, BLOCK);
	assert_int_equal(zf_fs_read_end(steps.reading, BLOCK), -EIO);
	assert_int_equal(rig.errors, 1);
	assert_non_null(strstr(rig.message, "checksum has"));
	rig.errors = 0;
	free(steps.buf);
	data_rig_unlink(&rig, "file", ino);
}

/* A read at `offset` begins with `begun`, gives `len` bytes, and moves the access time. */
static void expect_access(uint64_t ino, uint64_t offset, ssize_t begun, ssize_t len)
{
	struct zf_attr before, after;
	struct two_steps steps;

	new_buffer(&steps, BLOCK);
	assert_int_equal(zf_fs_getattr(rig.fs, &rig.ctx, ino, &before), 0);
	assert_int_equal(begin(&steps, ino, offset, BLOCK), begun);
	if (begun == -EINPROGRESS)
		assert_int_equal(end(&steps), len);
	assert_int_equal(zf_fs_getattr(rig.fs, &rig.ctx, ino, &after), 0);
	assert_true(after.atime.seconds > before.atime.seconds ||
		    after.atime.nanoseconds > before.atime.nanoseconds);
	free(steps.buf);
}

static void it_moves_the_access_time(void **state)
{
	uint64_t ino = make_landed("file", 1, FILE_SIZE);

	expect_access(ino, 0, -EINPROGRESS, BLOCK);
	data_rig_unlink(&rig, "file", ino);
}

/* As on other filesystems, read(2) at the end of the file changes the access time, too. */
static void it_moves_the_access_time_at_the_end_too(void **state)
{
	uint64_t ino = make_landed("file", 1, FILE_SIZE);

	expect_access(ino, FILE_SIZE, 0, 0);
	data_rig_unlink(&rig, "file", ino);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_gives_what_a_read_gives),
		cmocka_unit_test(what_is_no_file_is_refused),
		cmocka_unit_test(what_was_found_stays_until_it_was_read),
		cmocka_unit_test(a_truncation_between_the_steps_changes_nothing),
		cmocka_unit_test(the_end_of_a_file_is_read_so_too),
		cmocka_unit_test(the_end_of_a_file_may_be_in_memory),
		cmocka_unit_test(several_may_be_under_way),
		cmocka_unit_test(a_result_that_is_no_good_is_told),
		cmocka_unit_test(bytes_that_are_wrong_are_an_error),
		cmocka_unit_test(it_moves_the_access_time),
		cmocka_unit_test(it_moves_the_access_time_at_the_end_too),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
