/* SPDX-License-Identifier: MIT */
/* The framework of io/dev.h and the memory backend, step by step and with a thread. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/memory.h"
#include "io_util.h"

#define BLOCK	  ((uint64_t)ZF_BLOCK_SIZE)
#define ZONE_SIZE (64 * BLOCK)
#define CAPACITY  (60 * BLOCK)

static const struct zf_geometry geometry = {
	.zone_size = ZONE_SIZE,
	.zone_capacity = CAPACITY,
	.zone_count = 8,
	.conventional = 1,
	.append_limit = 8 * BLOCK,
	.volatile_cache = true,
};

static struct zf_memory *memory;
static struct zf_dev *dev;

static void open_memory(uint64_t seed)
{
	struct zf_memory_options options = {.seed = seed};

	assert_int_equal(zf_memory_open(memory, &options, NULL, &dev), 0);
}

static int setup(void **state)
{
	int r = zf_memory_new(&geometry, &memory);

	if (r == 0)
		open_memory(0);
	return r;
}

static int teardown(void **state)
{
	zf_dev_close(dev);
	dev = NULL;
	zf_memory_free(memory);
	return 0;
}

static void reopen(uint64_t seed)
{
	zf_dev_close(dev);
	open_memory(seed);
}

static void what_was_written_is_read(void **state)
{
	uint64_t addr = 0;

	assert_string_equal(zf_dev_kind(dev), "memory");
	assert_int_equal(run_write(dev, ZONE_SIZE, 2 * BLOCK, 1, false), 0);
	assert_int_equal(run_append(dev, ZONE_SIZE, BLOCK, 2, &addr), 0);
	assert_int_equal(addr, ZONE_SIZE + 2 * BLOCK);
	assert_int_equal(run_zeroes(dev, ZONE_SIZE + 3 * BLOCK, BLOCK), 0);
	assert_int_equal(run_write(dev, 5 * BLOCK, BLOCK, 3, true), 0);
	assert_true(device_holds(dev, ZONE_SIZE, 2 * BLOCK, 1));
	assert_true(device_holds(dev, ZONE_SIZE + 2 * BLOCK, BLOCK, 2));
	assert_true(device_holds_zeroes(dev, ZONE_SIZE + 3 * BLOCK, BLOCK));
	assert_true(device_holds(dev, 5 * BLOCK, BLOCK, 3));
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + 4 * BLOCK);
	assert_int_equal(zone_of(dev, 1).cond, ZF_ZONE_IMP_OPEN);
}

static void zeroes_overwrite_a_conventional_zone(void **state)
{
	assert_int_equal(run_write(dev, 0, 3 * BLOCK, 1, false), 0);
	assert_int_equal(run_zeroes(dev, BLOCK, BLOCK), 0);
	assert_true(device_holds(dev, 0, BLOCK, 1));
	assert_true(device_holds_zeroes(dev, BLOCK, BLOCK));
	assert_false(device_holds_zeroes(dev, 2 * BLOCK, BLOCK));
}

static void a_queued_read_scatters(void **state)
{
	void *a = blocks_new(BLOCK, 8), *b = blocks_new(2 * BLOCK, 9);
	struct iovec iov[2] = {{a, BLOCK}, {b, 2 * BLOCK}};
	struct zf_io io = {
		.op = ZF_IO_READ, .addr = ZONE_SIZE, .len = 3 * BLOCK, .iov = iov, .iovcnt = 2};

	assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 1, false), 0);
	assert_int_equal(run_write(dev, ZONE_SIZE + BLOCK, 2 * BLOCK, 2, false), 0);
	assert_int_equal(zf_dev_run(dev, &io), 0);
	assert_true(blocks_are(a, BLOCK, 1));
	assert_true(blocks_are(b, 2 * BLOCK, 2));
	io.addr = 8 * ZONE_SIZE;
	assert_int_equal(zf_dev_run(dev, &io), -EINVAL);
	free(a);
	free(b);
}

static void a_reset_zone_reads_as_zeroes(void **state)
{
	assert_int_equal(run_write(dev, ZONE_SIZE, 4 * BLOCK, 1, false), 0);
	assert_int_equal(zf_dev_reset(dev, 1), 0);
	assert_true(device_holds_zeroes(dev, ZONE_SIZE, 4 * BLOCK));
	assert_int_equal(zone_of(dev, 1).cond, ZF_ZONE_EMPTY);
	assert_int_equal(zone_of(dev, 1).reset_count, 1);
}

static void contents_and_pointers_outlive_the_device(void **state)
{
	assert_int_equal(run_write(dev, ZONE_SIZE, 2 * BLOCK, 1, false), 0);
	assert_int_equal(zf_dev_finish(dev, 2), 0);
	reopen(0);
	assert_true(device_holds(dev, ZONE_SIZE, 2 * BLOCK, 1));
	assert_int_equal(zone_of(dev, 1).wp, ZONE_SIZE + 2 * BLOCK);
	assert_int_equal(zone_of(dev, 1).cond, ZF_ZONE_CLOSED);
	assert_int_equal(zone_of(dev, 2).cond, ZF_ZONE_FULL);
}

static void errors_come_with_the_completion(void **state)
{
	assert_int_equal(run_write(dev, ZONE_SIZE + BLOCK, BLOCK, 1, false), -EIO);
	assert_int_equal(run_write(dev, ZONE_SIZE, CAPACITY + BLOCK, 1, false), -ENOSPC);
	assert_int_equal(run_append(dev, ZONE_SIZE, 9 * BLOCK, 1, &(uint64_t){0}), -EINVAL);
	assert_int_equal(zf_dev_read_buf(dev, 0, NULL, 100), -EINVAL);
	assert_int_equal(zf_dev_report(dev, 7, 2, NULL), -EINVAL);
}

static void statistics_count_what_completed_well(void **state)
{
	struct zf_dev_stats s;

	assert_int_equal(run_write(dev, ZONE_SIZE, 2 * BLOCK, 1, true), 0);
	assert_int_equal(run_zeroes(dev, ZONE_SIZE + 2 * BLOCK, 3 * BLOCK), 0);
	assert_int_equal(run_append(dev, ZONE_SIZE, BLOCK, 1, &(uint64_t){0}), 0);
	assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 1, true), -EIO);
	assert_true(device_holds(dev, ZONE_SIZE, 2 * BLOCK, 1));
	assert_int_equal(zf_dev_flush(dev), 0);
	assert_int_equal(zf_dev_finish(dev, 1), 0);
	assert_int_equal(zf_dev_reset(dev, 1), 0);
	zf_dev_get_stats(dev, &s);
	assert_int_equal(s.writes, 2);
	assert_int_equal(s.write_bytes, 5 * BLOCK);
	assert_int_equal(s.appends, 1);
	assert_int_equal(s.append_bytes, BLOCK);
	assert_int_equal(s.fua_writes, 1);
	assert_int_equal(s.reads, 1);
	assert_int_equal(s.read_bytes, 2 * BLOCK);
	assert_int_equal(s.flushes, 1);
	assert_int_equal(s.finishes, 1);
	assert_int_equal(s.resets, 1);
	assert_int_equal(s.errors, 1);
	assert_int_equal(s.write_errors, 1);
	assert_int_equal(s.read_errors, 0);
}

/* ---- many in flight ---- */

#define MANY 40

struct one {
	struct zf_io io;
	struct iovec iov;
	void *buf;
	uint64_t tag;
};

static unsigned int completed_count;
static uint64_t order_hash;
static bool out_of_order;

static void one_done(struct zf_io *io)
{
	struct one *one = ZF_CONTAINER_OF(io, struct one, io);

	assert_int_equal(io->result, 0);
	if (one->tag != completed_count)
		out_of_order = true;
	order_hash = order_hash * 31 + one->tag * 1000 + io->addr / BLOCK;
	completed_count++;
}

static void append_many(struct one *all)
{
	completed_count = 0;
	order_hash = 0;
	out_of_order = false;
	for (uint64_t i = 0; i < MANY; i++) {
		struct one *one = &all[i];

		*one = (struct one){.buf = blocks_new(BLOCK, i), .tag = i};
		one->iov = (struct iovec){one->buf, BLOCK};
		one->io = (struct zf_io){.op = ZF_IO_APPEND,
					 .addr = ZONE_SIZE,
					 .len = BLOCK,
					 .iov = &one->iov,
					 .iovcnt = 1,
					 .done = one_done};
		zf_dev_submit(dev, &one->io);
	}
}

static void check_and_free_many(struct one *all)
{
	for (uint64_t i = 0; i < MANY; i++) {
		assert_true(device_holds(dev, all[i].io.addr, BLOCK, i));
		free(all[i].buf);
	}
}

static uint64_t order_of(uint64_t seed)
{
	struct one all[MANY];
	unsigned int polls = 0;

	assert_int_equal(zf_dev_reset(dev, 1), 0);
	reopen(seed);
	append_many(all);
	assert_int_equal(completed_count, 0);
	while (zf_dev_poll(dev, true) > 0)
		polls++;
	assert_int_equal(completed_count, MANY);
	assert_int_equal(polls, seed ? MANY : 1);
	check_and_free_many(all);
	return order_hash;
}

static void without_a_seed_appends_complete_in_order(void **state)
{
	order_of(0);
	assert_false(out_of_order);
}

static void with_a_seed_the_order_is_shuffled_and_repeats(void **state)
{
	uint64_t a = order_of(7), b, c;

	assert_true(out_of_order);
	b = order_of(7);
	c = order_of(8);
	assert_int_equal(a, b);
	assert_int_not_equal(a, c);
}

static void with_a_seed_writes_at_the_pointer_keep_their_order(void **state)
{
	struct one all[MANY];

	reopen(7);
	append_many(all);
	for (uint64_t i = 0; i < MANY; i++) {
		all[i].io.op = i % 4 ? ZF_IO_WRITE : ZF_IO_ZEROES;
		all[i].io.addr = (1 + i % 2) * ZONE_SIZE + i / 2 * BLOCK;
	}
	while (zf_dev_poll(dev, true) > 0)
		;
	assert_int_equal(completed_count, MANY);
	assert_true(out_of_order);
	for (uint64_t i = 0; i < MANY; i++)
		free(all[i].buf);
}

static void polling_an_idle_device_returns_at_once(void **state)
{
	assert_int_equal(zf_dev_poll(dev, true), 0);
	assert_int_equal(zf_dev_poll(dev, false), 0);
}

static void closing_waits_for_what_is_in_flight(void **state)
{
	struct one all[MANY];

	reopen(3);
	append_many(all);
	reopen(0);
	assert_int_equal(completed_count, MANY);
	check_and_free_many(all);
}

static struct zf_io second = {.op = ZF_IO_FLUSH};

static void count_done(struct zf_io *io)
{
	completed_count++;
}

static void submit_second(struct zf_io *io)
{
	completed_count++;
	second.done = count_done;
	zf_dev_submit(dev, &second);
}

static void a_completion_may_submit(void **state)
{
	struct zf_io first = {.op = ZF_IO_FLUSH, .done = submit_second};

	completed_count = 0;
	zf_dev_submit(dev, &first);
	assert_int_equal(zf_dev_poll(dev, true), 1);
	assert_int_equal(completed_count, 1);
	assert_int_equal(zf_dev_poll(dev, true), 1);
	assert_int_equal(completed_count, 2);
}

static uint64_t recorded[8];
static unsigned int recorded_count;

static void record(void *arg, const struct zf_io *io)
{
	assert_ptr_equal(arg, recorded);
	recorded[recorded_count++] = io->addr + (uint64_t)-io->result;
}

static void the_recorder_sees_results_and_final_addresses(void **state)
{
	recorded_count = 0;
	zf_dev_set_recorder(dev, record, recorded);
	assert_int_equal(run_append(dev, ZONE_SIZE, BLOCK, 1, &(uint64_t){0}), 0);
	assert_int_equal(run_append(dev, ZONE_SIZE, BLOCK, 1, &(uint64_t){0}), 0);
	assert_int_equal(run_write(dev, ZONE_SIZE, BLOCK, 1, false), -EIO);
	zf_dev_set_recorder(dev, NULL, NULL);
	assert_int_equal(zf_dev_flush(dev), 0);
	assert_int_equal(recorded_count, 3);
	assert_int_equal(recorded[0], ZONE_SIZE);
	assert_int_equal(recorded[1], ZONE_SIZE + BLOCK);
	assert_int_equal(recorded[2], ZONE_SIZE + EIO);
}

/* ---- with a thread ---- */

#define WRITERS 4
#define ROUNDS	50

static struct zf_mutex wait_mutex;
static struct zf_cond wait_cond;
static unsigned int wait_done;

static void signal_done(struct zf_io *io)
{
	zf_mutex_lock(&wait_mutex);
	wait_done++;
	zf_cond_broadcast(&wait_cond);
	zf_mutex_unlock(&wait_mutex);
}

static void *writer(void *arg)
{
	uint64_t zone_no = (uint64_t)(uintptr_t)arg;
	uint64_t failures = 0;

	for (uint64_t i = 0; i < ROUNDS; i++) {
		uint64_t addr = 0;

		failures += run_append(dev, zone_no * ZONE_SIZE, BLOCK, i, &addr) != 0;
		failures += !device_holds(dev, addr, BLOCK, i);
		failures += zone_of(dev, (uint32_t)zone_no).wp <= addr;
	}
	return (void *)(uintptr_t)failures;
}

static void many_threads_write_while_a_thread_completes(void **state)
{
	pthread_t threads[WRITERS];
	struct zf_dev_stats s;
	void *failures;

	assert_int_equal(zf_dev_start_thread(dev), 0);
	assert_true(zf_dev_is_threaded(dev));
	for (uintptr_t i = 0; i < WRITERS; i++)
		pthread_create(&threads[i], NULL, writer, (void *)(1 + i));
	for (unsigned int i = 0; i < WRITERS; i++) {
		pthread_join(threads[i], &failures);
		assert_null(failures);
	}
	zf_dev_get_stats(dev, &s);
	assert_int_equal(s.appends, WRITERS * ROUNDS);
	assert_int_equal(s.reads, WRITERS * ROUNDS);
}

static void waiting_for_progress(bool threaded)
{
	struct zf_io flushes[5];

	wait_done = 0;
	zf_mutex_init(&wait_mutex, ZF_RANK_ALLOC);
	zf_cond_init(&wait_cond);
	if (threaded)
		assert_int_equal(zf_dev_start_thread(dev), 0);
	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(flushes); i++) {
		flushes[i] = (struct zf_io){.op = ZF_IO_FLUSH, .done = signal_done};
		zf_dev_submit(dev, &flushes[i]);
	}
	zf_mutex_lock(&wait_mutex);
	while (wait_done < ZF_ARRAY_SIZE(flushes))
		zf_dev_wait_progress(dev, &wait_cond, &wait_mutex);
	zf_mutex_unlock(&wait_mutex);
	zf_cond_deinit(&wait_cond);
	zf_mutex_deinit(&wait_mutex);
}

static void waiting_for_progress_polls_without_a_thread(void **state)
{
	reopen(5);
	waiting_for_progress(false);
}

static void waiting_for_progress_sleeps_with_a_thread(void **state)
{
	reopen(5);
	waiting_for_progress(true);
}

static void closing_stops_an_idle_thread(void **state)
{
	assert_int_equal(zf_dev_start_thread(dev), 0);
	reopen(0);
	assert_false(zf_dev_is_threaded(dev));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_written_is_read),
		TEST(zeroes_overwrite_a_conventional_zone),
		TEST(a_queued_read_scatters),
		TEST(a_reset_zone_reads_as_zeroes),
		TEST(contents_and_pointers_outlive_the_device),
		TEST(errors_come_with_the_completion),
		TEST(statistics_count_what_completed_well),
		TEST(without_a_seed_appends_complete_in_order),
		TEST(with_a_seed_the_order_is_shuffled_and_repeats),
		TEST(with_a_seed_writes_at_the_pointer_keep_their_order),
		TEST(polling_an_idle_device_returns_at_once),
		TEST(closing_waits_for_what_is_in_flight),
		TEST(a_completion_may_submit),
		TEST(the_recorder_sees_results_and_final_addresses),
		TEST(many_threads_write_while_a_thread_completes),
		TEST(waiting_for_progress_polls_without_a_thread),
		TEST(waiting_for_progress_sleeps_with_a_thread),
		TEST(closing_stops_an_idle_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
