/* SPDX-License-Identifier: MIT */
/* The daemon's filter of system calls, in a process of its own: a filter cannot be removed. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#ifdef ZF_FILTER
#include <seccomp.h>
#endif

#include "base/bits.h"
#include "fuse/filter.h"

#ifdef ZF_FILTER

/* The arguments are chosen so that an allowed call fails with an error other than ENOSYS, or does
 * no harm. */
#define REFUSED(name) {#name, SYS_##name}

static const struct {
	const char *name;
	long number;
} refused[] = {
	REFUSED(mount),	      REFUSED(unshare),
	REFUSED(setns),	      REFUSED(ptrace),
	REFUSED(bpf),	      REFUSED(init_module),
	REFUSED(kexec_load),  REFUSED(open_by_handle_at),
	REFUSED(renameat2),   REFUSED(fchownat),
	REFUSED(mknodat),     REFUSED(linkat),
	REFUSED(symlinkat),   REFUSED(setresuid),
	REFUSED(capset),      REFUSED(perf_event_open),
	REFUSED(move_mount),  REFUSED(process_vm_readv),
	REFUSED(userfaultfd), REFUSED(keyctl),
	REFUSED(setxattr),    REFUSED(execveat),
	REFUSED(pivot_root),  REFUSED(reboot),
};

static int count_refused(void)
{
	int count = 0;

	for (size_t i = 0; i < ZF_ARRAY_SIZE(refused); i++) {
		errno = 0;
		if (syscall(refused[i].number, -1, -1, -1, -1, -1, -1) == -1 && errno == ENOSYS)
			count++;
		else
			fprintf(stderr, "%s: %s\n", refused[i].name, strerror(errno));
	}
	return count;
}

static bool all_are_refused(void)
{
	return count_refused() == (int)ZF_ARRAY_SIZE(refused);
}

static pthread_barrier_t before, after;

static void *wait_for_filter(void *arg)
{
	bool *refuses = arg;

	pthread_barrier_wait(&before);
	pthread_barrier_wait(&after);
	*refuses = all_are_refused();
	return NULL;
}

static bool refuses_in_older_threads(void)
{
	bool refuses = false;
	pthread_t thread;

	pthread_barrier_init(&before, NULL, 2);
	pthread_barrier_init(&after, NULL, 2);
	if (pthread_create(&thread, NULL, wait_for_filter, &refuses) != 0)
		return false;
	pthread_barrier_wait(&before);
	if (zf_filter_install() < 0)
		return false;
	pthread_barrier_wait(&after);
	pthread_join(thread, NULL);
	return refuses;
}

static bool refuses_network(void)
{
	return socket(AF_INET, SOCK_STREAM, 0) < 0 && errno == ENOSYS &&
	       socket(AF_NETLINK, SOCK_RAW, 0) < 0 && errno == ENOSYS &&
	       socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
}

static bool runs_sync(void)
{
	const char *const argv[] = {"sync", "-f", "/proc/self", NULL};
	int status;
	pid_t pid;

	return posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) == 0 &&
	       waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* The first of them that does not hold. */
static int first_fault(void)
{
	if (!refuses_in_older_threads())
		return 1;
	if (!all_are_refused())
		return 2;
	if (!refuses_network())
		return 3;
	if (!runs_sync())
		return 4;
	return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : 5;
}

static void refuses_what_is_not_on_the_list(void **state)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(first_fault());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void knows_every_name(void **state)
{
	for (size_t i = 0; zf_filter_allowed[i]; i++)
		if (seccomp_syscall_resolve_name(zf_filter_allowed[i]) == __NR_SCMP_ERROR)
			fail_msg("%s", zf_filter_allowed[i]);
}

static void lists_no_name_twice(void **state)
{
	for (size_t i = 0; zf_filter_allowed[i]; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(zf_filter_allowed[i], zf_filter_allowed[j]);
}

#endif

int main(void)
{
#ifdef ZF_FILTER
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_what_is_not_on_the_list),
		cmocka_unit_test(knows_every_name),
		cmocka_unit_test(lists_no_name_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
#else
	puts("a build with sanitizers has no filter");
	return 77;
#endif
}
