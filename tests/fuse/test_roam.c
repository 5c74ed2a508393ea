/* SPDX-License-Identifier: MIT */
/* When the thread of a queue leaves its processor, and that it comes back. */
#include <sched.h>
#include <stdlib.h>

#include "fuse/roam.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#define MS INT64_C(1000000)

/* Time passes, in which the thread waited for so long and processors were idle for so long. */
static enum zf_roam_move after(struct zf_roam *roam, struct zf_roam_sample *sample, int64_t ms,
			       uint64_t wait_ms, uint64_t idle_ms)
{
	sample->at_ns += ms * MS;
	sample->wait_ns += wait_ms * MS;
	sample->idle_ns += idle_ms * MS;
	return zf_roam_step(roam, sample);
}

/* The thread did not wait, so that idle time was not asked for. */
static enum zf_roam_move without_wait(struct zf_roam *roam, struct zf_roam_sample *sample,
				      int64_t ms)
{
	uint64_t idle_ns = sample->idle_ns;
	enum zf_roam_move move;

	sample->idle_ns = 0;
	move = after(roam, sample, ms, 0, 0);
	sample->idle_ns = idle_ns;
	return move;
}

static void begin(struct zf_roam *roam, struct zf_roam_sample *sample)
{
	*roam = (struct zf_roam){0};
	*sample = (struct zf_roam_sample){.at_ns = 1000 * MS, .wait_ns = 7, .idle_ns = 9};
	assert_int_equal(zf_roam_step(roam, sample), ZF_ROAM_STAY);
}

static void waits_while_others_are_idle(void **state)
{
	struct zf_roam_sample sample;
	struct zf_roam roam;

	(void)state;
	begin(&roam, &sample);
	assert_int_equal(after(&roam, &sample, 50, 40, 50), ZF_ROAM_RELEASE);
	assert_int_equal(roam.next_ns, sample.at_ns + 1000 * MS);
}

static void waits_while_all_are_busy(void **state)
{
	struct zf_roam_sample sample;
	struct zf_roam roam;

	(void)state;
	begin(&roam, &sample);
	assert_int_equal(after(&roam, &sample, 50, 40, 20), ZF_ROAM_STAY);
	assert_int_equal(roam.next_ns, sample.at_ns + 1000 * MS); /* it is not asked again soon */
}

static void does_not_wait(void **state)
{
	struct zf_roam_sample sample;
	struct zf_roam roam;

	(void)state;
	begin(&roam, &sample);
	assert_int_equal(after(&roam, &sample, 50, 5, 50), ZF_ROAM_STAY);
	assert_int_equal(after(&roam, &sample, 50, 5, 50), ZF_ROAM_STAY);
}

/* Idle time is asked for only when the thread waits, so the first time there is nothing to compare with. */
static void waits_for_the_first_time(void **state)
{
	struct zf_roam_sample sample;
	struct zf_roam roam;

	(void)state;
	begin(&roam, &sample);
	assert_int_equal(without_wait(&roam, &sample, 50), ZF_ROAM_STAY);
	sample.at_ns += 50 * MS;
	sample.wait_ns += 40 * MS;
	assert_true(zf_roam_hurts(&roam, &sample));
	assert_int_equal(zf_roam_step(&roam, &sample), ZF_ROAM_STAY);
	assert_int_equal(after(&roam, &sample, 50, 40, 50), ZF_ROAM_RELEASE);
}

/* The sum over a long time says nothing about the last moments. */
static void had_little_to_do(void **state)
{
	struct zf_roam_sample sample;
	struct zf_roam roam;

	(void)state;
	begin(&roam, &sample);
	assert_int_equal(after(&roam, &sample, 60000, 50000, 60000), ZF_ROAM_STAY);
	assert_int_equal(after(&roam, &sample, 50, 40, 50), ZF_ROAM_RELEASE);
}

/* A thread that was released is not asked whether it waits: it is bound again first. */
static void is_bound_again(void **state)
{
	struct zf_roam_sample sample;
	struct zf_roam roam;

	(void)state;
	begin(&roam, &sample);
	assert_int_equal(after(&roam, &sample, 50, 40, 50), ZF_ROAM_RELEASE);
	assert_int_equal(without_wait(&roam, &sample, 1000), ZF_ROAM_BIND);
	assert_int_equal(after(&roam, &sample, 50, 40, 50), ZF_ROAM_STAY);
	assert_int_equal(after(&roam, &sample, 50, 40, 50), ZF_ROAM_RELEASE);
}

/* So many requests came, and so many of them from clients that had moved, in 50 ms. */
static enum zf_roam_move after_requests(struct zf_roam *roam, struct zf_roam_sample *sample,
					uint64_t requests, uint64_t moved, uint64_t idle_ms)
{
	sample->requests += requests;
	sample->moved += moved;
	return after(roam, sample, 50, 0, idle_ms);
}

static void clients_move(void **state)
{
	struct zf_roam_sample sample;
	struct zf_roam roam;

	(void)state;
	begin(&roam, &sample);
	assert_int_equal(after_requests(&roam, &sample, 2000, 999, 50), ZF_ROAM_STAY);
	assert_int_equal(after_requests(&roam, &sample, 2000, 1000, 50), ZF_ROAM_RELEASE);
	assert_int_equal(after_requests(&roam, &sample, 2000, 0, 50), ZF_ROAM_BIND);
	assert_int_equal(after_requests(&roam, &sample, 99, 99, 50), ZF_ROAM_STAY);
	assert_int_equal(after_requests(&roam, &sample, 100, 100, 50), ZF_ROAM_RELEASE);
}

static void clients_move_while_all_are_busy(void **state)
{
	struct zf_roam_sample sample;
	struct zf_roam roam;

	(void)state;
	begin(&roam, &sample);
	assert_int_equal(after_requests(&roam, &sample, 2000, 2000, 20), ZF_ROAM_STAY);
	assert_int_equal(roam.next_ns, sample.at_ns + 1000 * MS);
}

/* As when a thread waits, idle time is not known at the first look. */
static void clients_move_for_the_first_time(void **state)
{
	struct zf_roam_sample sample;
	struct zf_roam roam;

	(void)state;
	begin(&roam, &sample);
	sample.requests += 2000;
	sample.moved += 2000;
	assert_int_equal(without_wait(&roam, &sample, 50), ZF_ROAM_STAY);
	assert_int_equal(after_requests(&roam, &sample, 2000, 2000, 50), ZF_ROAM_STAY);
	assert_int_equal(after_requests(&roam, &sample, 2000, 2000, 50), ZF_ROAM_RELEASE);
}

static void counts_clients_that_move(void **state)
{
	struct zf_roam here = {.own = 0}, there = {.own = 1};

	(void)state;
	zf_roam_count(&here, 77);
	zf_roam_count(&here, 77);
	assert_int_equal(here.moved, 0);
	zf_roam_count(&there, 77);
	zf_roam_count(&here, 77);
	assert_int_equal(here.moved, 1);
	assert_int_equal(there.moved, 1);
	zf_roam_count(&there, 0);
	zf_roam_count(&here, 0);
	assert_int_equal(here.requests, 3);
	assert_int_equal(here.moved, 1);
}

/* 77 and 77 + 256 share an element; neither moves. */
static void clients_that_stay_are_not_confused(void **state)
{
	struct zf_roam here = {.own = 0}, there = {.own = 1};

	(void)state;
	for (unsigned int i = 0; i < 10; i++) {
		zf_roam_count(&here, 77);
		zf_roam_count(&there, 77 + 256);
	}
	assert_int_equal(here.moved, 0);
	assert_int_equal(there.moved, 0);
	assert_int_equal(there.requests, 10);
}

/* The sum that the kernel tells may go back a little. */
static void idle_time_goes_back(void **state)
{
	struct zf_roam_sample sample;
	struct zf_roam roam;

	(void)state;
	begin(&roam, &sample);
	sample.idle_ns -= 5;
	assert_int_equal(after(&roam, &sample, 50, 40, 0), ZF_ROAM_STAY);
}

/* The threads of /dev/fuse are bound to no processor, and stay as they are. */
static void is_not_bound(void **state)
{
	cpu_set_t before, now;
	struct zf_roam roam = {0};

	(void)state;
	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	zf_roam_note(&roam, 1, 1);
	assert_int_equal(roam.next_ns, INT64_MAX);
	assert_int_equal(sched_getaffinity(0, sizeof(now), &now), 0);
	assert_true(CPU_EQUAL(&before, &now));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_while_others_are_idle),
		cmocka_unit_test(waits_while_all_are_busy),
		cmocka_unit_test(does_not_wait),
		cmocka_unit_test(waits_for_the_first_time),
		cmocka_unit_test(had_little_to_do),
		cmocka_unit_test(is_bound_again),
		cmocka_unit_test(clients_move),
		cmocka_unit_test(clients_move_while_all_are_busy),
		cmocka_unit_test(clients_move_for_the_first_time),
		cmocka_unit_test(counts_clients_that_move),
		cmocka_unit_test(clients_that_stay_are_not_confused),
		cmocka_unit_test(idle_time_goes_back),
		cmocka_unit_test(is_not_bound),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
