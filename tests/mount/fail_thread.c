/* SPDX-License-Identifier: MIT */
/*
 * Linked into a daemon, fails its start of the thread of number ZF_FAIL_THREAD, counted from 1; or
 * kills it there, with ZF_FAIL_HOW=kill.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			  void *arg)
{
	static atomic_uint count;
	const char *number = getenv("ZF_FAIL_THREAD");

	if (number && atomic_fetch_add(&count, 1) + 1 == strtoul(number, NULL, 10)) {
		const char *how = getenv("ZF_FAIL_HOW");

		if (how && how[0])
			raise(SIGKILL);
		return EAGAIN;
	}
	return __real_pthread_create(thread, attr, run, arg);
}
