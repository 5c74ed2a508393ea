/* SPDX-License-Identifier: MIT */
/* Which requests wait for the device on the thread that received them. The test invents the times.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fuse/wait_here.h"

#define US	   INT64_C(1000)
#define PROGRAM_US (20 * US) /* a program that got its answer comes back after so long */
#define HEELS_US   (1 * US)  /* a request that was waiting already comes after so long */
#define DEVICE_US  (200 * US)

struct queue {
	struct zf_wait_here here;
	int64_t now_ns;
	int64_t device_ns; /* 0: DEVICE_US */
};

/* A request that comes so long after the last; if it waits here, it takes as long as the device. */
static bool ask(struct queue *queue, int64_t after_ns, struct zf_wait_request request)
{
	bool waits;

	queue->now_ns += after_ns;
	request.began_ns = queue->now_ns;
	waits = zf_wait_here_may(&queue->here, &request);
	if (waits)
		queue->now_ns += queue->device_ns > 0 ? queue->device_ns : DEVICE_US;
	else
		queue->now_ns += US;
	zf_wait_here_ended(&queue->here, &request, waits, queue->now_ns);
	return waits;
}

static struct zf_wait_request sync_of(uint64_t ino)
{
	return (struct zf_wait_request){.kind = ZF_WAIT_DURABLE, .is_sync = true, .ino = ino};
}

static const struct zf_wait_request small_read = {.kind = ZF_WAIT_SMALL_READ};
static const struct zf_wait_request other = {.kind = ZF_WAIT_OTHER};

static void a_lone_program_always_waits_here(void **state)
{
	struct queue queue = {.now_ns = US};

	for (unsigned int i = 0; i < 100; i++) {
		assert_false(ask(&queue, PROGRAM_US, other));
		assert_true(ask(&queue, PROGRAM_US, sync_of(5)));
	}
}

static void a_sync_behind_its_own_write_is_lone(void **state)
{
	struct queue queue = {.now_ns = US};
	struct zf_wait_request write = {.kind = ZF_WAIT_WRITE, .ino = 5};

	for (unsigned int i = 0; i < 100; i++) {
		assert_false(ask(&queue, PROGRAM_US, write));
		assert_true(ask(&queue, HEELS_US, sync_of(5)));
	}
	assert_false(ask(&queue, PROGRAM_US, write));
	assert_false(ask(&queue, HEELS_US, sync_of(6)));
}

static void behind_another_request_it_is_handed_over(void **state)
{
	struct queue queue = {.now_ns = US};

	(void)ask(&queue, PROGRAM_US, other);
	assert_false(ask(&queue, HEELS_US, sync_of(5)));
}

static void beside_others_that_wait_it_is_handed_over(void **state)
{
	struct queue queue = {.now_ns = US};
	struct zf_wait_request sync = sync_of(5);

	sync.others_parked = true;
	assert_false(ask(&queue, PROGRAM_US, sync));
}

/* Each sync seems lone, for the others wait until the one before them was served. */
static void one_that_holds_others_up_has_the_next_handed_over(void **state)
{
	struct queue queue = {.now_ns = US};
	unsigned int here = 0;

	for (unsigned int i = 0; i < 640; i++) {
		here += ask(&queue, PROGRAM_US, sync_of(5 + i));
		(void)ask(&queue, HEELS_US, other);
	}
	assert_int_equal(here, 10);
	/* Once they are gone, this is found out, too. */
	for (unsigned int i = 0; i < 64; i++)
		(void)ask(&queue, PROGRAM_US, sync_of(5));
	for (unsigned int i = 0; i < 64; i++)
		assert_true(ask(&queue, PROGRAM_US, sync_of(5)));
}

static void a_sync_that_finds_nothing_holds_up_no_request(void **state)
{
	struct queue queue = {.now_ns = US};
	struct zf_wait_request sync = sync_of(5);

	queue.now_ns += PROGRAM_US;
	sync.began_ns = queue.now_ns;
	assert_true(zf_wait_here_may(&queue.here, &sync));
	queue.now_ns += US;
	zf_wait_here_ended(&queue.here, &sync, true, queue.now_ns);
	(void)ask(&queue, HEELS_US, other);
	assert_true(ask(&queue, PROGRAM_US, sync_of(6)));
}

static void small_reads_behind_each_other_wait_here_while_the_device_is_quick(void **state)
{
	struct queue queue = {.now_ns = US};
	unsigned int here = 0;

	/* The device takes long: soon only one in 64 is tried here, and then one in 1024. */
	for (unsigned int i = 0; i < 64; i++)
		(void)ask(&queue, HEELS_US, small_read);
	for (unsigned int i = 0; i < 64; i++)
		here += ask(&queue, HEELS_US, small_read);
	assert_int_equal(here, 1);
	for (unsigned int i = 0; i < 4096; i++)
		(void)ask(&queue, HEELS_US, small_read);
	here = 0;
	for (unsigned int i = 0; i < 4096; i++)
		here += ask(&queue, HEELS_US, small_read);
	assert_int_equal(here, 4);
	assert_true(ask(&queue, PROGRAM_US, small_read));
}

/* Its content is in memory now: a few thousand reads later all wait here. */
static void a_device_that_has_become_quick_is_found_out(void **state)
{
	struct queue queue = {.now_ns = US};
	unsigned int here = 0;

	for (unsigned int i = 0; i < 8192; i++)
		(void)ask(&queue, HEELS_US, small_read);
	queue.device_ns = 2 * US;
	for (unsigned int i = 0; i < 16384; i++)
		(void)ask(&queue, HEELS_US, small_read);
	for (unsigned int i = 0; i < 100; i++)
		here += ask(&queue, HEELS_US, small_read);
	assert_int_equal(here, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lone_program_always_waits_here),
		cmocka_unit_test(a_sync_behind_its_own_write_is_lone),
		cmocka_unit_test(behind_another_request_it_is_handed_over),
		cmocka_unit_test(beside_others_that_wait_it_is_handed_over),
		cmocka_unit_test(one_that_holds_others_up_has_the_next_handed_over),
		cmocka_unit_test(a_sync_that_finds_nothing_holds_up_no_request),
		cmocka_unit_test(small_reads_behind_each_other_wait_here_while_the_device_is_quick),
		cmocka_unit_test(a_device_that_has_become_quick_is_found_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
