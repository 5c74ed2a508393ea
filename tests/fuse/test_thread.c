/* SPDX-License-Identifier: MIT */
/* The requests that each thread counts for itself, and the sum over all threads. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fuse/thread.h"

#define THREADS	 4u
#define REQUESTS 10000u

static int set_up(void **state)
{
	zf_threads_init();
	return 0;
}

static int tear_down(void **state)
{
	zf_threads_deinit();
	return 0;
}

static void *answer_requests(void *arg)
{
	struct zf_thread *self = zf_thread_self();

	for (unsigned int i = 0; i < REQUESTS; i++) {
		zf_thread_note_latency(self, ZF_REQUEST_WRITE, 5000);
		zf_thread_note_written(self, 7);
	}
	return NULL;
}

static void threads_sum_up(void **state)
{
	uint64_t counts[ZF_LATENCY_BUCKETS], total_ns;
	pthread_t threads[THREADS];

	for (unsigned int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, answer_requests, NULL), 0);
	/* Looked at while it rises. */
	zf_threads_get_latency(ZF_REQUEST_WRITE, counts, &total_ns);
	assert_true(counts[0] <= THREADS * REQUESTS);
	for (unsigned int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	zf_threads_get_latency(ZF_REQUEST_WRITE, counts, &total_ns);
	assert_int_equal(counts[0], THREADS * REQUESTS);
	assert_int_equal(total_ns, UINT64_C(5000) * THREADS * REQUESTS);
	assert_int_equal(zf_threads_get_written(), 7 * THREADS * REQUESTS);
	zf_threads_get_latency(ZF_REQUEST_READ, counts, &total_ns);
	assert_int_equal(counts[0] + total_ns, 0);
}

/* A bound belongs to the bucket below it; the last bucket has none. */
static void a_bound_belongs_to_the_bucket_below(void **state)
{
	struct zf_thread *self = zf_thread_self();
	uint64_t counts[ZF_LATENCY_BUCKETS], total_ns, expected_ns = 0;

	for (unsigned int i = 0; i < ZF_LATENCY_BOUNDS; i++) {
		assert_true(i == 0 || zf_latency_bounds_ns[i] > zf_latency_bounds_ns[i - 1]);
		zf_thread_note_latency(self, ZF_REQUEST_FSYNC, zf_latency_bounds_ns[i]);
		zf_thread_note_latency(self, ZF_REQUEST_FSYNC, zf_latency_bounds_ns[i] + 1);
		expected_ns += 2 * zf_latency_bounds_ns[i] + 1;
	}
	zf_threads_get_latency(ZF_REQUEST_FSYNC, counts, &total_ns);
	assert_int_equal(counts[0], 1);
	for (unsigned int i = 1; i < ZF_LATENCY_BOUNDS; i++)
		assert_int_equal(counts[i], 2);
	assert_int_equal(counts[ZF_LATENCY_BOUNDS], 1);
	assert_int_equal(total_ns, expected_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_sum_up),
		cmocka_unit_test(a_bound_belongs_to_the_bucket_below),
	};

	return cmocka_run_group_tests_name("thread", tests, set_up, tear_down);
}
