/* SPDX-License-Identifier: MIT */
/*
 * Linked into a daemon, makes the start of its thread number ZF_FAIL_THREAD (counted from 1) fail;
 * with ZF_FAIL_HOW=kill kills the daemon at that start; with ZF_FAIL_HOW=late lets the thread begin
 * a second later.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);

struct late {
	void *(*run)(void *);
	void *arg;
};

static void *run_late(void *arg)
{
	struct late late = *(struct late *)arg;

	free(arg);
	sleep(1);
	return late.run(late.arg);
}

static int create_late(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
		       void *arg)
{
	struct late *late = malloc(sizeof(*late));

	if (!late)
		return ENOMEM;
	*late = (struct late){run, arg};
	return __real_pthread_create(thread, attr, run_late, late);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	static atomic_uint count;
	const char *number = getenv("ZF_FAIL_THREAD");

	if (number && atomic_fetch_add(&count, 1) + 1 == strtoul(number, NULL, 10)) {
		const char *how = getenv("ZF_FAIL_HOW");

		if (how && strcmp(how, "late") == 0)
			return create_late(thread, attr, run, arg);
		if (how && how[0])
			raise(SIGKILL);
		return EAGAIN;
	}
	return __real_pthread_create(thread, attr, run, arg);
}
