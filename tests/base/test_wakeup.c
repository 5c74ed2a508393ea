/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "base/wakeup.h"

#define ROUNDS 3000
#define PAGE   4096

struct sleeper {
	struct zf_wakeup wakeup;
	int message; /* no lock and no atomic protects it */
};

static struct sleeper *new_sleeper(void)
{
	struct sleeper *sleeper =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(sleeper != MAP_FAILED);
	zf_wakeup_init(&sleeper->wakeup);
	return sleeper;
}

static void *send(void *arg)
{
	struct sleeper *sleeper = arg;

	sleeper->message = 1;
	zf_wakeup_send(&sleeper->wakeup);
	return NULL;
}

/* A late access of the sender would fault. The thread sanitizer watches the message. */
static void a_woken_thread_sees_the_message_and_may_free_it(void **state)
{
	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct sleeper *sleeper = new_sleeper();
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, send, sleeper), 0);
		zf_wakeup_wait(&sleeper->wakeup);
		assert_int_equal(sleeper->message, 1);
		zf_wakeup_deinit(&sleeper->wakeup);
		assert_int_equal(munmap(sleeper, PAGE), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
}

static void a_wakeup_that_was_sent_before_is_not_lost(void **state)
{
	struct sleeper *sleeper = new_sleeper();

	(void)state;
	(void)send(sleeper);
	zf_wakeup_wait(&sleeper->wakeup);
	assert_int_equal(sleeper->message, 1);
	zf_wakeup_deinit(&sleeper->wakeup);
	assert_int_equal(munmap(sleeper, PAGE), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_woken_thread_sees_the_message_and_may_free_it),
		cmocka_unit_test(a_wakeup_that_was_sent_before_is_not_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
