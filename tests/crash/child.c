/* SPDX-License-Identifier: MIT */
/* Explores in a child process, so that a failed assertion is a finding, and not the end. */
#include <assert.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "explore.h"

static const int deadly[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};
static int verdict_fd = -1;
static unsigned int patience_seconds = 120;

static void send(const struct verdict *verdict)
{
	if (write(verdict_fd, verdict, sizeof(*verdict)) != (ssize_t)sizeof(*verdict))
		_exit(2);
}

static void die(int sig)
{
	static struct verdict verdict;

	verdict.failed = explore_now;
	send(&verdict);
	_exit(1);
}

static void be_quiet(void)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	close(null);
}

struct child child_start(void (*run)(const void *arg, struct verdict *verdict), const void *arg,
			 bool quiet)
{
	struct verdict verdict;
	struct child child;
	int fds[2];

	fflush(NULL);
	if (pipe2(fds, O_CLOEXEC) < 0)
		abort();
	child.fd = fds[0];
	child.pid = fork();
	assert(child.pid >= 0);
	if (child.pid > 0) {
		close(fds[1]);
		return child;
	}
	close(fds[0]);
	verdict_fd = fds[1];
	for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++)
		signal(deadly[i], die);
	if (quiet)
		be_quiet();
	memset(&verdict, 0, sizeof(verdict));
	run(arg, &verdict);
	fflush(NULL);
	send(&verdict);
	_exit(0);
}

void child_end(struct child *child, struct verdict *ret_verdict)
{
	ssize_t n = read(child->fd, ret_verdict, sizeof(*ret_verdict));
	int status;

	if (n != (ssize_t)sizeof(*ret_verdict))
		memset(ret_verdict, 0, sizeof(*ret_verdict));
	close(child->fd);
	waitpid(child->pid, &status, 0);
}

void child_set_patience(unsigned int seconds)
{
	patience_seconds = seconds;
}

void child_watch(void)
{
	if (verdict_fd >= 0)
		alarm(patience_seconds);
}
