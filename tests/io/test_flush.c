/* SPDX-License-Identifier: MIT */
/* Flushes are shared: which requests a flush serves, how few flushes there are, and that no request
 * is answered too early. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/memory.h"
#include "io_util.h"
#include "sim/sim.h"

#define BLOCK	  ((uint64_t)ZF_BLOCK_SIZE)
#define ZONE_SIZE (1024 * BLOCK)
#define ROUNDS	  60

static const struct zf_geometry geometry = {
	.zone_size = ZONE_SIZE,
	.zone_capacity = ZONE_SIZE,
	.zone_count = 16,
	.append_limit = 8 * BLOCK,
	.volatile_cache = true,
};

static struct zf_sim *sim;
static struct zf_dev *dev;

static void start(const struct zf_geometry *g, uint64_t seed)
{
	sim = zf_sim_new(g, seed);
	assert_int_equal(zf_sim_open(sim, NULL, &dev), 0);
}

static void stop(void)
{
	zf_dev_close(dev);
	zf_sim_free(sim);
}

static uint64_t flushes(void)
{
	struct zf_dev_stats stats;

	zf_dev_get_stats(dev, &stats);
	return stats.flushes;
}

/* ---- a thread that waits ---- */

struct waiter {
	struct zf_flush_wait wait;
	bool done;
};

static void waiter_done(struct zf_flush_wait *wait)
{
	struct waiter *waiter = ZF_CONTAINER_OF(wait, struct waiter, wait);

	assert_false(waiter->done);
	waiter->done = true;
}

/* Returns whether there is a flush to wait for. */
static bool wait_for(struct waiter *waiter, uint64_t mark)
{
	*waiter = (struct waiter){.wait = {.mark = mark, .done = waiter_done}};
	return zf_dev_flush_start(dev, &waiter->wait);
}

static void poll_all(void)
{
	while (zf_dev_poll(dev, true) > 0)
		;
}

/* Checks that the block survives a power cut now, whatever the cut does. */
static void check_survives(uint64_t addr, uint64_t tag)
{
	for (uint64_t seed = 1; seed <= 8; seed++) {
		struct zf_sim *found = zf_sim_clone(sim);
		struct zf_dev *running = dev;

		zf_sim_crash(found, seed, ZF_SIM_CUT_DEVICE);
		assert_int_equal(zf_sim_open(found, NULL, &dev), 0);
		assert_true(device_holds(dev, addr, BLOCK, tag));
		zf_dev_close(dev);
		zf_sim_free(found);
		dev = running;
	}
}

/* ---- threads that share a flush ---- */

static void what_a_flush_has_covered_needs_no_other(void **state)
{
	uint64_t before;
	struct waiter waiter;

	start(&geometry, 1);
	before = zf_dev_write_mark(dev);
	assert_int_equal(zf_dev_flush_upto(dev, before), 0);
	assert_int_equal(flushes(), 1);
	assert_int_equal(zf_dev_flush_upto(dev, before), 0);
	assert_false(wait_for(&waiter, before));
	assert_int_equal(flushes(), 1);
	assert_int_equal(zf_dev_flush_upto(dev, zf_dev_write_mark(dev)), 0);
	assert_int_equal(zf_dev_flush(dev), 0);
	assert_int_equal(flushes(), 3);
	stop();
}

static void no_mark_is_0_which_means_that_there_is_nothing_to_wait_for(void **state)
{
	struct waiter waiter;

	start(&geometry, 1);
	assert_true(zf_dev_write_mark(dev) > 0);
	assert_int_equal(zf_dev_flush_upto(dev, 0), 0);
	assert_false(wait_for(&waiter, 0));
	assert_int_equal(flushes(), 0);
	assert_int_equal(run_write(dev, 0, BLOCK, 1, false), 0);
	assert_int_equal(zf_dev_flush_upto(dev, zf_dev_write_mark(dev)), 0);
	assert_int_equal(flushes(), 1); /* the first there ever was */
	check_survives(0, 1);
	stop();
}

static void a_thread_that_comes_while_a_flush_runs_shares_it_or_the_next(void **state)
{
	struct waiter first, same[3], next[3];
	uint64_t before;

	start(&geometry, 1);
	before = zf_dev_write_mark(dev);
	assert_true(wait_for(&first, before));
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(wait_for(&same[i], before));
		assert_true(wait_for(&next[i], zf_dev_write_mark(dev)));
	}
	assert_int_equal(zf_dev_poll(dev, true), 1);
	assert_true(first.done);
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(same[i].done);
		assert_false(next[i].done);
	}
	poll_all();
	for (unsigned int i = 0; i < 3; i++) {
		assert_true(next[i].done);
		assert_int_equal(next[i].wait.result, 0);
	}
	assert_int_equal(flushes(), 2);
	stop();
}

static void a_blocking_caller_waits_for_the_next_one_too(void **state)
{
	struct waiter first;

	start(&geometry, 1);
	assert_true(wait_for(&first, zf_dev_write_mark(dev)));
	assert_int_equal(zf_dev_flush(dev), 0);
	assert_true(first.done);
	assert_int_equal(flushes(), 2);
	stop();
}

static void without_a_volatile_cache_nothing_is_issued(void **state)
{
	struct zf_geometry g = geometry;
	struct waiter waiter;

	g.volatile_cache = false;
	start(&g, 1);
	assert_int_equal(zf_dev_flush(dev), 0);
	assert_int_equal(zf_dev_flush_upto(dev, zf_dev_write_mark(dev)), 0);
	assert_false(wait_for(&waiter, zf_dev_write_mark(dev)));
	assert_int_equal(zf_sim_commands(sim), 0);
	assert_int_equal(flushes(), 0);
	stop();
}

static void after_a_flush_that_failed_none_succeeds(void **state)
{
	struct zf_sim_fault fault = {.op = ZF_IO_FLUSH, .nth = 1, .error = -EIO};
	struct waiter first, same, next;
	uint64_t before;

	start(&geometry, 1);
	zf_sim_add_fault(sim, &fault);
	before = zf_dev_write_mark(dev);
	assert_true(wait_for(&first, before));
	assert_true(wait_for(&same, before));
	assert_true(wait_for(&next, zf_dev_write_mark(dev)));
	poll_all();
	assert_int_equal(first.wait.result, -EIO);
	assert_int_equal(same.wait.result, -EIO);
	assert_int_equal(next.wait.result, -EIO); /* which the device has carried out */
	assert_int_equal(zf_sim_faults_left(sim), 0);
	assert_int_equal(zf_dev_flush_upto(dev, before), -EIO);
	assert_int_equal(zf_dev_flush(dev), -EIO);
	assert_true(wait_for(&next, zf_dev_write_mark(dev)));
	poll_all();
	assert_int_equal(next.wait.result, -EIO);
	stop();
}

static void what_was_durable_before_a_flush_failed_stays_so(void **state)
{
	struct zf_sim_fault fault = {.op = ZF_IO_FLUSH, .nth = 1, .error = -EIO};
	struct waiter waiter;
	uint64_t before;

	start(&geometry, 1);
	before = zf_dev_write_mark(dev);
	assert_int_equal(zf_dev_flush(dev), 0);
	zf_sim_add_fault(sim, &fault);
	assert_int_equal(zf_dev_flush(dev), -EIO);
	assert_int_equal(zf_dev_flush_upto(dev, before), 0);
	assert_false(wait_for(&waiter, before));
	stop();
}

/* ---- durable is durable ---- */

struct writer {
	struct zf_io io;
	struct iovec iov;
	struct waiter waiter;
};

/* The write has completed with a flush in flight, which began before it and does not cover it. */
static void written(struct zf_io *io)
{
	struct writer *writer = ZF_CONTAINER_OF(io, struct writer, io);

	assert_int_equal(io->result, 0);
	assert_true(wait_for(&writer->waiter, zf_dev_write_mark(dev)));
}

static void data_of_a_served_thread_survives_a_cut(void **state)
{
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct writer writers[4];
		struct waiter first;

		start(&geometry, seed);
		assert_true(wait_for(&first, zf_dev_write_mark(dev)));
		for (unsigned int i = 0; i < 4; i++) {
			writers[i].iov = (struct iovec){blocks_new(BLOCK, i), BLOCK};
			writers[i].io = (struct zf_io){.op = ZF_IO_APPEND,
						       .addr = i * ZONE_SIZE,
						       .len = BLOCK,
						       .iov = &writers[i].iov,
						       .iovcnt = 1,
						       .done = written};
			writers[i].waiter.done = false;
			zf_dev_submit(dev, &writers[i].io);
		}
		while (zf_dev_poll(dev, true) > 0) {
			for (unsigned int i = 0; i < 4; i++) {
				if (writers[i].waiter.done)
					check_survives(writers[i].io.addr, i);
			}
		}
		for (unsigned int i = 0; i < 4; i++) {
			assert_true(writers[i].waiter.done);
			free(writers[i].iov.iov_base);
		}
		stop();
	}
}

/* ---- many threads ---- */

#define THREADS	   8
#define PER_THREAD 25

/* The device's flushes take a while. */
static void dawdle(void *arg, const struct zf_io *io)
{
	struct timespec pause = {.tv_nsec = 2000000};

	if (io->op == ZF_IO_FLUSH)
		nanosleep(&pause, NULL);
}

static void *append_and_flush(void *arg)
{
	uint64_t zone_no = (uintptr_t)arg, failures = 0;

	for (uint64_t i = 0; i < PER_THREAD; i++) {
		uint64_t addr;

		failures += run_append(dev, zone_no * ZONE_SIZE, BLOCK, i, &addr) != 0;
		failures += zf_dev_flush_upto(dev, zf_dev_write_mark(dev)) != 0;
	}
	return (void *)(uintptr_t)failures;
}

static void many_threads_share_few_flushes(void **state)
{
	pthread_t threads[THREADS];
	struct zf_memory *memory;
	void *failures;

	assert_int_equal(zf_memory_new(&geometry, &memory), 0);
	assert_int_equal(zf_memory_open(memory, NULL, NULL, &dev), 0);
	zf_dev_set_recorder(dev, dawdle, NULL);
	assert_int_equal(zf_dev_start_thread(dev), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, append_and_flush, (void *)i);
	for (unsigned int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], &failures);
		assert_null(failures);
	}
	assert_true(flushes() >= PER_THREAD);
	/* The scheduler decides how many of them meet; the sharing itself is tested above. */
	assert_true(flushes() < THREADS * PER_THREAD);
	zf_dev_close(dev);
	zf_memory_free(memory);
}

/* ---- durable writes by write and flush ---- */

static void launch_fua(struct writer *writer, unsigned int i, void (*done)(struct zf_io *io))
{
	writer->iov = (struct iovec){blocks_new(BLOCK, i), BLOCK};
	writer->io = (struct zf_io){.op = ZF_IO_APPEND,
				    .fua = true,
				    .addr = i * ZONE_SIZE,
				    .len = BLOCK,
				    .iov = &writer->iov,
				    .iovcnt = 1,
				    .done = done};
	writer->waiter.done = false;
	zf_dev_submit(dev, &writer->io);
}

static void finished(struct zf_io *io)
{
	struct writer *writer = ZF_CONTAINER_OF(io, struct writer, io);

	assert_false(writer->waiter.done);
	assert_true(io->fua); /* as it was asked for */
	writer->waiter.done = true;
}

static void a_durable_write_is_a_write_and_a_flush_where_asked_for(void **state)
{
	struct zf_dev_stats stats;

	start(&geometry, 1);
	zf_dev_set_durability(dev, ZF_DURABILITY_FLUSH);
	assert_int_equal(zf_dev_durability(dev), ZF_DURABILITY_FLUSH);
	assert_int_equal(run_write(dev, 0, BLOCK, 1, true), 0);
	check_survives(0, 1);
	assert_int_equal(run_write(dev, BLOCK, BLOCK, 2, false), 0);
	zf_dev_get_stats(dev, &stats);
	assert_int_equal(stats.writes, 2);
	assert_int_equal(stats.fua_writes, 0);
	assert_int_equal(stats.flushes, 1);
	zf_dev_set_durability(dev, ZF_DURABILITY_FUA);
	assert_int_equal(run_write(dev, 2 * BLOCK, BLOCK, 3, true), 0);
	zf_dev_get_stats(dev, &stats);
	assert_int_equal(stats.writes, 3);
	assert_int_equal(stats.fua_writes, 1);
	assert_int_equal(stats.flushes, 1);
	stop();
}

static void writes_made_durable_by_flushes_survive_a_cut(void **state)
{
	for (uint64_t seed = 1; seed <= ROUNDS; seed++) {
		struct writer writers[4];

		start(&geometry, seed);
		zf_dev_set_durability(dev, ZF_DURABILITY_FLUSH);
		for (unsigned int i = 0; i < 4; i++)
			launch_fua(&writers[i], i, finished);
		while (zf_dev_poll(dev, true) > 0) {
			for (unsigned int i = 0; i < 4; i++) {
				if (writers[i].waiter.done)
					check_survives(writers[i].io.addr, i);
			}
		}
		assert_true(flushes() <= 4);
		for (unsigned int i = 0; i < 4; i++) {
			assert_true(writers[i].waiter.done);
			assert_int_equal(writers[i].io.result, 0);
			free(writers[i].iov.iov_base);
		}
		stop();
	}
}

static void a_failed_flush_fails_the_durable_write(void **state)
{
	struct zf_sim_fault fault = {.op = ZF_IO_FLUSH, .nth = 1, .error = -EIO};
	struct writer writer;

	start(&geometry, 1);
	zf_dev_set_durability(dev, ZF_DURABILITY_FLUSH);
	zf_sim_add_fault(sim, &fault);
	launch_fua(&writer, 1, finished);
	poll_all();
	assert_true(writer.waiter.done);
	assert_int_equal(writer.io.result, -EIO);
	free(writer.iov.iov_base);
	zf_sim_add_fault(sim, &fault);
	assert_int_equal(run_write(dev, 0, BLOCK, 1, true), -EIO);
	stop();
}

static void closing_waits_for_the_flush_too(void **state)
{
	struct writer writer;

	start(&geometry, 1);
	zf_dev_set_durability(dev, ZF_DURABILITY_FLUSH);
	launch_fua(&writer, 1, finished);
	stop();
	assert_true(writer.waiter.done);
	assert_int_equal(writer.io.result, 0);
	free(writer.iov.iov_base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_flush_has_covered_needs_no_other),
		cmocka_unit_test(no_mark_is_0_which_means_that_there_is_nothing_to_wait_for),
		cmocka_unit_test(a_thread_that_comes_while_a_flush_runs_shares_it_or_the_next),
		cmocka_unit_test(a_blocking_caller_waits_for_the_next_one_too),
		cmocka_unit_test(without_a_volatile_cache_nothing_is_issued),
		cmocka_unit_test(after_a_flush_that_failed_none_succeeds),
		cmocka_unit_test(what_was_durable_before_a_flush_failed_stays_so),
		cmocka_unit_test(data_of_a_served_thread_survives_a_cut),
		cmocka_unit_test(many_threads_share_few_flushes),
		cmocka_unit_test(a_durable_write_is_a_write_and_a_flush_where_asked_for),
		cmocka_unit_test(writes_made_durable_by_flushes_survive_a_cut),
		cmocka_unit_test(a_failed_flush_fails_the_durable_write),
		cmocka_unit_test(closing_waits_for_the_flush_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
