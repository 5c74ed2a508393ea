/* SPDX-License-Identifier: MIT */
/* The bytes of every command, and the errno of each status. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/nvme_command.h"
#include "io/nvme_status.h"

#define BLOCK ((uint64_t)ZF_BLOCK_SIZE)

/* So that every byte of an address is another one: block 0x0605040302 of the drive. */
#define ADDR (UINT64_C(0x0605040302) << ZF_BLOCK_SHIFT)
#define NSID 0x21

static struct iovec two[2] = {
	{.iov_base = (void *)0x1122334455667000, .iov_len = 2 * BLOCK},
	{.iov_base = (void *)0x2000, .iov_len = BLOCK},
};

static void is_encoded_as(const struct zf_nvme_piece *piece, const uint8_t (*expected)[72])
{
	struct nvme_uring_cmd cmd;

	_Static_assert(sizeof(cmd) == sizeof(*expected), "as Linux has it");
	memset(&cmd, 0xff, sizeof(cmd));
	zf_nvme_command_encode(NSID, piece, &cmd);
	assert_memory_equal(&cmd, expected, sizeof(cmd));
}

/* opcode, nsid; [24] address of the data, [36] its length; [40] cdw10, 11, 12, 13 */

static void a_read_names_its_buffer_and_one_block_less(void **state)
{
	struct zf_nvme_piece piece = {
		.op = ZF_IO_READ, .addr = ADDR, .len = 2 * BLOCK, .iov = two, .iovcnt = 1};

	is_encoded_as(&piece, &(uint8_t[72]){
				      [0] = 0x02, [4] = NSID, [24] = 0x00, 0x70, 0x66,	      0x55,
				      0x44,	  0x33,	      0x22,	   0x11, [36] = 0x00, 0x20,
				      0x00,	  0x00,	      [40] = 0x02, 0x03, 0x04,	      0x05,
				      0x06,	  0x00,	      0x00,	   0x00, [48] = 0x01,
			      });
	assert_false(zf_nvme_command_is_vectored(&piece));
}

static void a_vector_is_counted_in_segments(void **state)
{
	struct zf_nvme_piece piece = {
		.op = ZF_IO_READ, .addr = BLOCK, .len = 3 * BLOCK, .iov = two, .iovcnt = 2};
	uint8_t expected[72] = {
		[0] = 0x02, [4] = NSID, [36] = 2, [40] = 0x01, [48] = 0x02,
	};
	uint64_t vector = (uintptr_t)two;

	memcpy(&expected[24], &vector, sizeof(vector));
	is_encoded_as(&piece, &expected);
	assert_true(zf_nvme_command_is_vectored(&piece));
}

static void a_durable_write_has_fua(void **state)
{
	struct zf_nvme_piece piece = {.op = ZF_IO_WRITE,
				      .fua = true,
				      .addr = ADDR,
				      .len = BLOCK,
				      .iov = &two[1],
				      .iovcnt = 1};

	is_encoded_as(&piece, &(uint8_t[72]){
				      [0] = 0x01,
				      [4] = NSID,
				      [25] = 0x20,
				      [37] = 0x10,
				      [40] = 0x02,
				      0x03,
				      0x04,
				      0x05,
				      0x06,
				      [51] = 0x40,
			      });
	piece.fua = false;
	is_encoded_as(&piece, &(uint8_t[72]){
				      [0] = 0x01,
				      [4] = NSID,
				      [25] = 0x20,
				      [37] = 0x10,
				      [40] = 0x02,
				      0x03,
				      0x04,
				      0x05,
				      0x06,
			      });
}

static void an_append_names_its_zone(void **state)
{
	struct zf_nvme_piece piece = {.op = ZF_IO_APPEND,
				      .fua = true,
				      .addr = ADDR,
				      .len = 2 * BLOCK,
				      .iov = two,
				      .iovcnt = 1};

	is_encoded_as(
		&piece,
		&(uint8_t[72]){
			[0] = 0x7d, [4] = NSID, [24] = 0x00, 0x70,	  0x66,	       0x55, 0x44,
			0x33,	    0x22,	0x11,	     [37] = 0x20, [40] = 0x02, 0x03, 0x04,
			0x05,	    0x06,	[48] = 0x01, 0x00,	  0x00,	       0x40,
		});
}

static void zeroes_have_a_length_and_no_data(void **state)
{
	struct zf_nvme_piece piece = {.op = ZF_IO_ZEROES, .addr = ADDR, .len = ZF_NVME_LEN_MAX};

	is_encoded_as(&piece, &(uint8_t[72]){
				      [0] = 0x08,
				      [4] = NSID,
				      [40] = 0x02,
				      0x03,
				      0x04,
				      0x05,
				      0x06,
				      [48] = 0xff,
				      0xff,
			      });
}

static void a_reset_and_a_finish_name_their_zone(void **state)
{
	struct zf_nvme_piece piece = {.op = ZF_IO_RESET, .addr = ADDR};

	is_encoded_as(&piece, &(uint8_t[72]){
				      [0] = 0x79,
				      [4] = NSID,
				      [40] = 0x02,
				      0x03,
				      0x04,
				      0x05,
				      0x06,
				      [52] = 0x04,
			      });
	piece.op = ZF_IO_FINISH;
	is_encoded_as(&piece, &(uint8_t[72]){
				      [0] = 0x79,
				      [4] = NSID,
				      [40] = 0x02,
				      0x03,
				      0x04,
				      0x05,
				      0x06,
				      [52] = 0x02,
			      });
}

static void a_flush_is_nothing_but_its_namespace(void **state)
{
	struct zf_nvme_piece piece = {.op = ZF_IO_FLUSH, .addr = ADDR};

	is_encoded_as(&piece, &(uint8_t[72]){[4] = NSID});
}

/* As they come from the kernel, with and without the bits "do not retry", "more", "delay". */
static void statuses_become_the_errors_of_the_interface(void **state)
{
	static const struct {
		int status, error;
		const char *name;
	} expected[] = {
		{0x4002, -EINVAL, "invalid field in command"},
		{0x41b8, -ENOSPC, "zone boundary error"},
		{0x41b9, -ENOSPC, "zone is full"},
		{0x19b9, -ENOSPC, "zone is full"}, /* after a delay */
		{0x61ba, -EROFS, "zone is read-only"},
		{0x01bb, -ENXIO, "zone is offline"},
		{0x41bc, -EIO, "not at the zone's write pointer"},
		{0x41bd, -EOVERFLOW, "too many active zones"},
		{0x41be, -EOVERFLOW, "too many open zones"},
		{0x41bf, -EIO, "invalid zone state transition"},
		{0x0281, -EIO, "unrecovered read error"},
		{0x4280, -EIO, "write fault"},
		{0x4020, -EROFS, "namespace is write-protected"},
		{0x4182, -EROFS, "write to a read-only range"},
		{0x400b, -ENODEV, "the namespace is gone"},
		{0x4080, -EINVAL, "address out of range"},
		{0x0371, -EIO, "aborted by the kernel"},
		{0x0302, -EIO, "namespace inaccessible on this path"},
	};

	char name[ZF_NVME_STATUS_TEXT_MAX], text[ZF_NVME_STATUS_TEXT_MAX];

	for (size_t i = 0; i < ZF_ARRAY_SIZE(expected); i++) {
		assert_int_equal(zf_nvme_status_error(expected[i].status), expected[i].error);
		snprintf(name, sizeof(name), "%s (NVMe status 0x%x)", expected[i].name,
			 (unsigned int)expected[i].status);
		assert_string_equal(zf_nvme_status_text(expected[i].status, text), name);
	}
	assert_int_equal(zf_nvme_status_error(0), 0);
	assert_int_equal(zf_nvme_status_error(0x47ab), -EIO);
	assert_string_equal(zf_nvme_status_text(0x47ab, text), "failed (NVMe status 0x47ab)");
}

/* -ENXIO is what an offline zone gives; a drive that was pulled out must not look like one. */
static void errors_of_the_kernel_stay_or_become_io_errors(void **state)
{
	char text[ZF_NVME_STATUS_TEXT_MAX];

	assert_int_equal(zf_nvme_status_error(-ENODEV), -ENODEV);
	assert_int_equal(zf_nvme_status_error(-ENXIO), -ENODEV);
	assert_int_equal(zf_nvme_status_error(-EINVAL), -EINVAL);
	assert_int_equal(zf_nvme_status_error(-EACCES), -EACCES);
	assert_int_equal(zf_nvme_status_error(-ENOMEM), -ENOMEM);
	assert_int_equal(zf_nvme_status_error(-EINTR), -EIO);
	assert_int_equal(zf_nvme_status_error(-ETIME), -EIO);
	assert_int_equal(zf_nvme_status_error(-ENOSPC), -EIO);
	assert_string_equal(zf_nvme_status_text(-EINVAL, text), "Invalid argument");
}

static void what_may_pass_is_told_from_what_stays(void **state)
{
	assert_true(zf_nvme_status_may_pass(0x0006));
	assert_true(zf_nvme_status_may_pass(0x0371));
	assert_true(zf_nvme_status_may_pass(-EINTR));
	assert_false(zf_nvme_status_may_pass(0x4281));
	assert_false(zf_nvme_status_may_pass(0));
	assert_false(zf_nvme_status_may_pass(-EIO));
	assert_true(zf_nvme_status_is_to_be_repeated(-EAGAIN));
	assert_true(zf_nvme_status_is_to_be_repeated(-ECANCELED));
	assert_false(zf_nvme_status_is_to_be_repeated(-EINTR)); /* it may have been carried out */
	assert_false(zf_nvme_status_is_to_be_repeated(0x0006));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_read_names_its_buffer_and_one_block_less),
		cmocka_unit_test(a_vector_is_counted_in_segments),
		cmocka_unit_test(a_durable_write_has_fua),
		cmocka_unit_test(an_append_names_its_zone),
		cmocka_unit_test(zeroes_have_a_length_and_no_data),
		cmocka_unit_test(a_reset_and_a_finish_name_their_zone),
		cmocka_unit_test(a_flush_is_nothing_but_its_namespace),
		cmocka_unit_test(statuses_become_the_errors_of_the_interface),
		cmocka_unit_test(errors_of_the_kernel_stay_or_become_io_errors),
		cmocka_unit_test(what_may_pass_is_told_from_what_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
