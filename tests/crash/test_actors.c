/* SPDX-License-Identifier: MIT */
/*
 * The actors must find the bugs that are planted for them (plants.c). And their order must be as
 * support/fibers.h defines it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "actors.h"
#include "base/lock.h"
#include "explore.h"
#include "support/fibers.h"

#define PLANTS_MAX   64u
#define HANG_SECONDS 200u
#define QUIET_SEED   7u
#define QUIET_COUNT  100u

/* Runs in a child process, because a failure may end it; it prints nothing. 0: it ended well. */
static int status_of(void (*run)(const void *arg), const void *arg)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(null, STDERR_FILENO);
		dup2(null, STDOUT_FILENO);
		signal(SIGABRT, SIG_DFL);
		signal(SIGSEGV, SIG_DFL);
		alarm(HANG_SECONDS);
		run(arg);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void search(const void *arg)
{
	const struct plant *plant = arg;
	struct events events = {0};

	plant_begin(plant);
	for (uint64_t i = 0; i < plant->schedules; i++)
		if (!actors_run(plant->seed + i, &events))
			_exit(1);
}

static void is_found(void **state)
{
	const struct plant *plant = *state;
	int status = status_of(search, plant);

	/* A judgement or an assertion must fail; the child must not hang. */
	assert_int_not_equal(status, 0);
	assert_false(WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM);
}

static void nothing_is_found_where_nothing_is_planted(void **state)
{
	const struct plant none = {.seed = QUIET_SEED, .schedules = QUIET_COUNT};

	assert_int_equal(status_of(search, &none), 0);
}

static void one_seed_is_one_history(void **state)
{
	enum { COUNT = 60 };
	struct events first[COUNT] = {0}, second[COUNT] = {0};

	for (uint64_t seed = 0; seed < COUNT; seed++)
		assert_true(actors_run(seed, &first[seed]));
	/* In reverse order, so that different schedules ran before each. */
	actors_forget();
	for (uint64_t seed = COUNT; seed-- > 0;)
		assert_true(actors_run(seed, &second[seed]));
	assert_memory_equal(first, second, sizeof(first));
}

/* ---- waits without end are reported ---- */

static struct zf_mutex mutex;
static struct zf_cond cond, unused;

static void *wait_for_nobody(void *arg)
{
	zf_mutex_lock(&mutex);
	zf_cond_wait(&cond, &mutex);
	zf_mutex_unlock(&mutex);
	return NULL;
}

static void run_waiter(const void *arg)
{
	const bool *somebody = arg;
	unsigned int fiber;

	zf_mutex_init(&mutex, ZF_RANK_DEV);
	zf_cond_init(&cond);
	zf_fibers_begin(1);
	fiber = zf_fibers_spawn("waiter", wait_for_nobody, NULL);
	for (unsigned int i = 0; *somebody && i < 1000; i++) {
		zf_mutex_lock(&mutex);
		zf_cond_signal(&cond);
		zf_mutex_unlock(&mutex);
	}
	zf_fibers_join(fiber);
	zf_fibers_end();
}

static void a_deadlock_ends_the_program(void **state)
{
	const bool somebody = true, nobody = false;
	int status = status_of(run_waiter, &nobody);

	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_int_equal(status_of(run_waiter, &somebody), 0);
}

static void *wait_a_while(void *arg)
{
	zf_mutex_lock(&mutex);
	zf_cond_wait_ms(&unused, &mutex, 1000);
	zf_cond_signal(&cond);
	zf_mutex_unlock(&mutex);
	return NULL;
}

static void what_time_alone_can_end_is_counted(void **state)
{
	unsigned int waiter, waker;

	zf_mutex_init(&mutex, ZF_RANK_DEV);
	zf_cond_init(&cond);
	zf_cond_init(&unused);
	zf_fibers_begin(1);
	waiter = zf_fibers_spawn("waiter", wait_for_nobody, NULL);
	zf_fibers_set_weight(waiter, 1000); /* so that it waits first */
	waker = zf_fibers_spawn("waker", wait_a_while, NULL);
	zf_fibers_join(waiter);
	zf_fibers_join(waker);
	assert_int_equal(zf_fibers_stalls(), 1);
	zf_fibers_end();
}

int main(void)
{
	struct CMUnitTest tests[PLANTS_MAX] = {
		cmocka_unit_test(a_deadlock_ends_the_program),
		cmocka_unit_test(what_time_alone_can_end_is_counted),
		cmocka_unit_test(one_seed_is_one_history),
		cmocka_unit_test(nothing_is_found_where_nothing_is_planted),
	};
	size_t count = 4;

	for (unsigned int i = 0; i < plant_count; i++) {
		if (plants[i].schedules == 0)
			continue;
		tests[count++] =
			(struct CMUnitTest){.name = plants[i].name,
					    .test_func = is_found,
					    .initial_state = (void *)(uintptr_t)&plants[i]};
	}
	return _cmocka_run_group_tests("several actors", tests, count, NULL, NULL);
}
