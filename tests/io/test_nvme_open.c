/* SPDX-License-Identifier: MIT */
/*
 * A drive that cannot be used is closed, and the user is told why. A usable drive is asked for its
 * zones once, and again after an error. The calls to the drive and to the kernel's ring are wrapped
 * by the linker.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "io/nvme.h"
#include "io/nvme_device.h"

int __wrap_zf_nvme_claim(const char *path, const struct zf_open_options *options,
			 const struct zf_report *report, struct zf_nvme_claim *ret_claim);
void __wrap_zf_nvme_unclaim(struct zf_nvme_claim *claim);
int __wrap_zf_nvme_identify(int fd, const char *path, const char *block_name,
			    const struct zf_report *report, uint32_t *ret_nsid,
			    struct zf_nvme_drive *ret_drive, struct zf_zone_info **ret_zones);
int __wrap_zf_nvme_report_zones(int fd, const char *path, uint32_t nsid,
				const struct zf_nvme_drive *drive, uint32_t first, uint32_t count,
				const struct zf_report *report, struct zf_zone_info *zones);
void __wrap_io_uring_queue_exit(struct io_uring *ring);
void __real_io_uring_queue_exit(struct io_uring *ring);
int __wrap_io_uring_queue_init(unsigned int entries, struct io_uring *ring, unsigned int flags);
int __real_io_uring_queue_init(unsigned int entries, struct io_uring *ring, unsigned int flags);

/* The result of each step. */
static struct {
	int claim, identify, ring;
	int read_fd;
	bool real_rings;
	uint32_t zone_count;
} steps;

static unsigned int held;  /* claims */
static unsigned int asked; /* for zones, since it is open */
static char message[512];  /* the last */

int __wrap_zf_nvme_claim(const char *path, const struct zf_open_options *options,
			 const struct zf_report *report, struct zf_nvme_claim *ret_claim)
{
	if (steps.claim < 0)
		return steps.claim;
	*ret_claim =
		(struct zf_nvme_claim){.char_fd = -1, .block_fd = -1, .read_fd = steps.read_fd};
	held++;
	return 0;
}

void __wrap_zf_nvme_unclaim(struct zf_nvme_claim *claim)
{
	assert_true(held > 0);
	held--;
}

int __wrap_zf_nvme_identify(int fd, const char *path, const char *block_name,
			    const struct zf_report *report, uint32_t *ret_nsid,
			    struct zf_nvme_drive *ret_drive, struct zf_zone_info **ret_zones)
{
	if (steps.identify < 0)
		return steps.identify;
	*ret_nsid = 1;
	*ret_drive = (struct zf_nvme_drive){
		.geometry = {.zone_size = 1 << 20,
			     .zone_capacity = 1 << 20,
			     .zone_count = steps.zone_count,
			     .append_limit = 128 << 10},
	};
	*ret_zones = calloc(16, sizeof(**ret_zones));
	return 0;
}

int __wrap_io_uring_queue_init(unsigned int entries, struct io_uring *ring, unsigned int flags)
{
	if (steps.real_rings)
		return __real_io_uring_queue_init(entries, ring, flags);
	return steps.ring;
}

void __wrap_io_uring_queue_exit(struct io_uring *ring)
{
	if (steps.real_rings)
		__real_io_uring_queue_exit(ring);
}

int __wrap_zf_nvme_report_zones(int fd, const char *path, uint32_t nsid,
				const struct zf_nvme_drive *drive, uint32_t first, uint32_t count,
				const struct zf_report *report, struct zf_zone_info *zones)
{
	asked++;
	return 0;
}

static void keep_message(void *arg, enum zf_report_level level, const char *text)
{
	snprintf(message, sizeof(message), "%s", text);
}

static void expect_refusal(int error)
{
	const struct zf_report report = {.fn = keep_message};
	const struct zf_open_options options = {0};
	struct zf_dev *dev = NULL;

	message[0] = '\0';
	assert_int_equal(zf_nvme_open("/dev/ng0n1", &options, &report, &dev), error);
	assert_null(dev);
	assert_int_equal(held, 0);
}

static void a_drive_that_is_in_use_is_left_alone(void **state)
{
	steps.claim = -EBUSY;
	expect_refusal(-EBUSY);
}

static void a_drive_that_does_not_answer_is_given_back(void **state)
{
	steps.identify = -EIO;
	expect_refusal(-EIO);
}

static void a_drive_without_enough_zones_is_given_back(void **state)
{
	steps.zone_count = 0;
	expect_refusal(-EINVAL);
}

static void without_nvme_commands_in_the_kernel_the_other_way_is_named(void **state)
{
	steps.ring = -EINVAL;
	expect_refusal(-EOPNOTSUPP);
	assert_non_null(strstr(message, "append=emulated"));
}

static void without_io_uring_that_is_said(void **state)
{
	steps.ring = -EPERM;
	expect_refusal(-EPERM);
	assert_non_null(strstr(message, "io_uring is not available"));
}

static void after_an_error_the_zones_are_asked_for_again(void **state)
{
	const struct zf_nvme_piece piece = {.op = ZF_IO_READ, .len = 4096};
	const struct zf_open_options options = {0};
	struct zf_zone_info zones[16];
	struct zf_dev *dev;

	asked = 0;
	assert_int_equal(zf_nvme_open("/dev/ng0n1", &options, NULL, &dev), 0);
	assert_int_equal(zf_dev_report(dev, 0, 16, zones), 0);
	assert_int_equal(asked, 0);
	zf_nvme_report_failure(zf_nvme_of(dev), &piece, 1);
	assert_int_equal(zf_dev_report(dev, 0, 16, zones), 0);
	assert_int_equal(asked, 1);
	zf_dev_close(dev);
	assert_int_equal(held, 0);
}

static struct zf_read reads[3];
static unsigned int done;

static void read_done(void *arg, struct zf_read *read)
{
	assert_ptr_equal(arg, reads);
	assert_int_equal(read->result, 0);
	done++;
}

/* Several reads go to the block device at once; commands to the character device would fail
 * here. */
static void reads_come_together_by_the_block_device(void **state)
{
	static _Alignas(4096) char written[3 * 4096], got[3 * 4096];
	const struct zf_open_options options = {0};
	FILE *file = tmpfile();
	struct iovec iov[3];
	struct zf_dev *dev;

	for (unsigned int i = 0; i < 3; i++) {
		memset(written + 4096 * i, 'a' + (int)i, 4096);
		iov[i] = (struct iovec){got + (size_t)4096 * i, 4096};
		reads[i] =
			(struct zf_read){.addr = (uint64_t)4096 * i, .iov = &iov[i], .iovcnt = 1};
	}
	assert_non_null(file);
	assert_int_equal(fwrite(written, 1, sizeof(written), file), sizeof(written));
	assert_int_equal(fflush(file), 0);
	steps.read_fd = fileno(file);
	steps.real_rings = true;
	assert_int_equal(zf_nvme_open("/dev/ng0n1", &options, NULL, &dev), 0);
	zf_dev_read_many(dev, reads, 3, read_done, reads);
	assert_int_equal(done, 3);
	assert_memory_equal(got, written, sizeof(got));
	zf_dev_close(dev);
	fclose(file);
}

static int all_goes_well(void **state)
{
	memset(&steps, 0, sizeof(steps));
	steps.zone_count = 16;
	steps.read_fd = -1;
	return 0;
}

#define TEST(name) cmocka_unit_test_setup(name, all_goes_well)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_drive_that_is_in_use_is_left_alone),
		TEST(a_drive_that_does_not_answer_is_given_back),
		TEST(a_drive_without_enough_zones_is_given_back),
		TEST(without_nvme_commands_in_the_kernel_the_other_way_is_named),
		TEST(without_io_uring_that_is_said),
		TEST(after_an_error_the_zones_are_asked_for_again),
		TEST(reads_come_together_by_the_block_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
