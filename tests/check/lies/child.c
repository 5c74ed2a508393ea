/* SPDX-License-Identifier: MIT */
#include "child.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#define SECONDS_MAX 10u /* of CPU time; six times as many of real time, for a busy machine */
#define MEMORY_MAX  (UINT64_C(2) << 30)

static void set_limits(void)
{
	const struct rlimit none = {0};

	signal(SIGABRT, SIG_DFL);
	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_CPU, &(struct rlimit){.rlim_cur = SECONDS_MAX, .rlim_max = SECONDS_MAX});
	alarm(6 * SECONDS_MAX);
#ifndef __SANITIZE_ADDRESS__ /* its shadow memory is larger than any limit */
	/* Above MEMORY_MAX, so that child_run() sees too much use, before allocations fail. */
	setrlimit(RLIMIT_AS,
		  &(struct rlimit){.rlim_cur = 2 * MEMORY_MAX, .rlim_max = RLIM_INFINITY});
#endif
}

/* Flushes and checks for leaks like exit(), but runs no exit handlers of the parent. */
static void end_child(void)
{
	int status = 0;

	fflush(NULL);
#ifdef __SANITIZE_ADDRESS__
	status = __lsan_do_recoverable_leak_check();
#endif
	_exit(status);
}

bool child_run(void (*fn)(void *arg), void *arg, char *ret_text, size_t size)
{
	struct rusage usage;
	int status;
	pid_t pid;

	fflush(NULL); /* otherwise the child prints it again */
	pid = fork();
	assert(pid >= 0);
	if (pid == 0) {
		set_limits();
		fn(arg);
		end_child();
	}
	while (wait4(pid, &status, 0, &usage) < 0)
		assert(errno == EINTR);
	if ((uint64_t)usage.ru_maxrss << 10 > MEMORY_MAX) {
		snprintf(ret_text, size, "used %ld KiB of memory", usage.ru_maxrss);
		return false;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	snprintf(ret_text, size, "%s %d", WIFSIGNALED(status) ? "killed by signal" : "exit status",
		 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	return false;
}
