/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "base/lock.h"

#define ROUNDS 3000
#define PAGE   4096

struct shared {
	struct zf_mutex mutex;
	bool done;
};

static void *say_done(void *arg)
{
	struct shared *shared = arg;

	zf_mutex_lock(&shared->mutex);
	shared->done = true;
	zf_mutex_unlock(&shared->mutex);
	return NULL;
}

static bool is_done(struct shared *shared)
{
	bool done;

	zf_mutex_lock(&shared->mutex);
	done = shared->done;
	zf_mutex_unlock(&shared->mutex);
	return done;
}

/*
 * A waiter frees the lock as soon as it has seen what it waited for: a late access would fault.
 * Only builds that check ranks (-Ddebug_locks) have anything to touch.
 */
static void an_unlock_touches_nothing_that_the_next_owner_may_free(void **state)
{
	for (int i = 0; i < ROUNDS; i++) {
		struct shared *shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		pthread_t thread;

		assert_true(shared != MAP_FAILED);
		zf_mutex_init(&shared->mutex, ZF_RANK_DEV);
		assert_int_equal(pthread_create(&thread, NULL, say_done, shared), 0);
		while (!is_done(shared))
			;
		zf_mutex_deinit(&shared->mutex);
		assert_int_equal(munmap(shared, PAGE), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_unlock_touches_nothing_that_the_next_owner_may_free),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
