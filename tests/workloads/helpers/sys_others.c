// SPDX-License-Identifier: MIT
#include "sys.h"

#include <errno.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALL(name) static long long call_##name(struct sys_arg *a, bool *ret_printed)

/* sleep MILLISECONDS */
CALL(sleep)
{
	struct timespec t = {.tv_sec = a[0].n / 1000, .tv_nsec = a[0].n % 1000 * 1000000};

	return nanosleep(&t, NULL);
}

/* Runs the program without arguments in a child: prints its exit status, or why it could not be
 * run. */
CALL(exec)
{
	int status, err;
	pid_t pid = fork();

	if (pid == 0) {
		execl(a[0].bytes, a[0].bytes, (char *)NULL);
		err = errno;
		_exit(err < 128 ? 128 + err : 127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return -1;
	if (!WIFEXITED(status)) {
		printf("signal %d", WTERMSIG(status));
	} else if (WEXITSTATUS(status) > 128) {
		errno = WEXITSTATUS(status) - 128;
		return -1;
	} else {
		printf("exit %d", WEXITSTATUS(status));
	}
	*ret_printed = true;
	return 0;
}

/* ioctl FD REQUEST [NUMBER] */
CALL(ioctl)
{
	return ioctl((int)a[0].n, (unsigned long)a[1].n, a[2].n);
}

const struct sys_call sys_others[] = {
	{"sleep", "n", SYS_OK, call_sleep},
	{"exec", "p", SYS_OK, call_exec},
	{"ioctl", "dn?n", SYS_NUMBER, call_ioctl},
	{NULL},
};
