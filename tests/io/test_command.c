/* SPDX-License-Identifier: MIT */
/* Commands of a pool: which request gets one, and what is left of a request after a part of it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/command.h"
#include "io/iov.h"

#define BLOCK ((uint64_t)ZF_BLOCK_SIZE)

static uint8_t bytes[8 * ZF_BLOCK_SIZE];
static const struct iovec segments[] = {
	{bytes, 2 * BLOCK}, {bytes + 2 * BLOCK, BLOCK}, {bytes + 3 * BLOCK, 5 * BLOCK}};

static struct zf_io a_read(void)
{
	return (struct zf_io){.op = ZF_IO_READ, .len = 8 * BLOCK, .iov = segments, .iovcnt = 3};
}

static void requests_begin_in_the_order_in_which_they_came(void **state)
{
	struct zf_command commands[2], *begun[2];
	struct zf_command_pool pool;
	struct zf_io io[5] = {};

	(void)state;
	zf_command_pool_init(&pool);
	zf_command_pool_add(&pool, &commands[0]);
	zf_command_pool_add(&pool, &commands[1]);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(zf_command_may_begin(&pool, &io[i]), i < 2);
		if (i < 2)
			begun[i] = zf_command_begin(&pool, &io[i]);
	}
	assert_null(zf_command_first_waiting(&pool));
	zf_command_end(&pool, begun[1]);
	assert_ptr_equal(zf_command_first_waiting(&pool), &io[2]);
	/* A command is free, but not for this request. */
	assert_false(zf_command_may_begin(&pool, &io[4]));
	for (unsigned int i = 2; i < 5; i++) {
		assert_ptr_equal(zf_command_first_waiting(&pool), &io[i]);
		STAILQ_REMOVE_HEAD(&pool.waiting, link);
		begun[0] = zf_command_begin(&pool, &io[i]);
		assert_ptr_equal(begun[0]->io, &io[i]);
		zf_command_end(&pool, begun[0]);
	}
	assert_null(zf_command_first_waiting(&pool));
}

static void a_short_transfer_goes_on_at_a_whole_block(void **state)
{
	struct zf_io io = a_read();
	struct zf_command command;

	(void)state;
	zf_command_init(&command, &io);
	assert_ptr_equal(command.iov, segments);
	assert_int_equal(zf_command_transferred(&command, 2 * BLOCK + 512), ZF_COMMAND_AGAIN);
	assert_int_equal(command.done, 2 * BLOCK);
	assert_int_equal(command.iovcnt, 2);
	assert_ptr_equal(command.iov[0].iov_base, bytes + 2 * BLOCK);
	assert_int_equal(zf_iov_len(command.iov, command.iovcnt), 6 * BLOCK);
	assert_int_equal(zf_command_transferred(&command, 2 * BLOCK), ZF_COMMAND_AGAIN);
	assert_int_equal(command.iovcnt, 1);
	assert_ptr_equal(command.iov[0].iov_base, bytes + 4 * BLOCK);
	assert_int_equal(command.iov[0].iov_len, 4 * BLOCK);
	assert_int_equal(zf_command_transferred(&command, 4 * BLOCK), 0);
	zf_command_deinit(&command);
}

static void less_than_a_block_is_an_error(void **state)
{
	struct zf_io io = a_read();
	struct zf_command command;

	(void)state;
	zf_command_init(&command, &io);
	assert_int_equal(zf_command_transferred(&command, 0), -EIO);
	assert_int_equal(zf_command_transferred(&command, 4095), -EIO);
	zf_command_deinit(&command);
}

/* ---- on the calling thread ---- */

static ssize_t answers[8]; /* of calls to come: bytes, or -errno */
static unsigned int calls;
static uint64_t where[8];

static ssize_t answer(int fd, const struct iovec *iov, int iovcnt, off_t offset, int flags)
{
	ssize_t n = answers[calls];

	assert_int_equal(fd, 7);
	assert_int_equal(flags, RWF_DSYNC);
	assert_int_equal(iovcnt, 1);
	where[calls++] = (uint64_t)offset;
	if (n >= 0)
		return n;
	errno = (int)-n;
	return -1;
}

static void a_transfer_goes_on_after_an_interruption_and_where_it_was_short(void **state)
{
	uint64_t address = 10 * BLOCK;

	(void)state;
	calls = 0;
	memcpy(answers, (ssize_t[]){-EINTR, BLOCK, BLOCK, BLOCK, 5 * BLOCK}, 5 * sizeof(ssize_t));
	assert_int_equal(zf_iov_transfer_again(answer, 7, segments, 3, RWF_DSYNC, &address), 0);
	assert_int_equal(calls, 5);
	assert_int_equal(where[1], 10 * BLOCK);
	assert_int_equal(where[2], 11 * BLOCK);
	assert_int_equal(where[4], 13 * BLOCK);
}

static void a_transfer_that_fails_says_where(void **state)
{
	uint64_t address = 10 * BLOCK;

	(void)state;
	calls = 0;
	memcpy(answers, (ssize_t[]){2 * BLOCK, -ENOSPC}, 2 * sizeof(ssize_t));
	assert_int_equal(zf_iov_transfer_again(answer, 7, segments, 3, RWF_DSYNC, &address),
			 -ENOSPC);
	assert_int_equal(address, 12 * BLOCK);
	calls = 0;
	answers[0] = 0;
	assert_int_equal(zf_iov_transfer_again(answer, 7, segments, 3, RWF_DSYNC, &address), -EIO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_begin_in_the_order_in_which_they_came),
		cmocka_unit_test(a_short_transfer_goes_on_at_a_whole_block),
		cmocka_unit_test(less_than_a_block_is_an_error),
		cmocka_unit_test(a_transfer_goes_on_after_an_interruption_and_where_it_was_short),
		cmocka_unit_test(a_transfer_that_fails_says_where),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
