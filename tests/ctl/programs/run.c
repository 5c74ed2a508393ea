/* SPDX-License-Identifier: MIT */
#include "programs.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS_MAX 60u /* for one program, on a machine that has others to serve */
#define MEMORY_MAX  (UINT64_C(2) << 30)

struct programs_options programs_options;
struct programs_shared *programs_shared;
unsigned int programs_failures;
char programs_image[300], programs_scratch[300], programs_mountpoint[300], programs_said[4096];

void programs_fail(const char *format, ...)
{
	size_t len = strlen(programs_shared->text);
	va_list args;

	programs_shared->failed = true;
	va_start(args, format);
	vsnprintf(programs_shared->text + len, sizeof(programs_shared->text) - len, format, args);
	va_end(args);
}

/* In the child: what it prints goes to fd. */
static void become(const char *const *args, int fd)
{
	static char path[512];

	/* Sanitizers map more than any limit allows: programs_end() measures. */
	setrlimit(RLIMIT_AS,
		  &(struct rlimit){.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY});
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(SECONDS_MAX);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	snprintf(path, sizeof(path), "%s/%s", programs_options.bin, args[0]);
	execv(path, (char *const *)(uintptr_t)args);
	_exit(127);
}

static void read_said(int fd)
{
	ssize_t n = pread(fd, programs_said, sizeof(programs_said) - 1, 0);

	programs_said[n > 0 ? n : 0] = '\0';
}

pid_t programs_start(const char *const *args, int *ret_fd)
{
	pid_t pid;

	*ret_fd = memfd_create("said", MFD_CLOEXEC);
	assert(*ret_fd >= 0);
	pid = fork();
	assert(pid >= 0);
	if (pid == 0)
		become(args, *ret_fd);
	programs_shared->programs++;
	alarm(2 * SECONDS_MAX);
	return pid;
}

static void print_args(const char *const *args)
{
	for (; *args; args++)
		programs_fail("%s ", *args);
}

int programs_end(const char *const *args, pid_t pid, int fd)
{
	struct rusage usage;
	int status;

	while (wait4(pid, &status, 0, &usage) < 0)
		assert(errno == EINTR);
	alarm(0);
	read_said(fd);
	close(fd);
	if (WIFEXITED(status) && WEXITSTATUS(status) < 64 &&
	    (uint64_t)usage.ru_maxrss << 10 <= MEMORY_MAX)
		return WEXITSTATUS(status);
	print_args(args);
	programs_fail("ended with status %#x and %ld KiB:\n%s\n", (unsigned int)status,
		      usage.ru_maxrss, programs_said);
	return -1;
}

int programs_run(const char *const *args)
{
	int fd;
	pid_t pid = programs_start(args, &fd);

	return programs_end(args, pid, fd);
}

int programs_fsck(const char *mode)
{
	return programs_run((const char *const[]){FSCK, mode, programs_image, NULL});
}

bool programs_report(const char *option, uint64_t seed, bool ended, const char *how)
{
	if (ended && !programs_shared->failed)
		return true;
	programs_failures++;
	printf("FAILED: %s 1 --seed %" PRIu64 ": %s\n%s", option, seed, ended ? "" : how,
	       programs_shared->text);
	return false;
}
