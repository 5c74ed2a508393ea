/* SPDX-License-Identifier: MIT */
#include "fuse/background.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fuse/status.h"
#include "fuse/unmount.h"

static int tell_fd = -1;

/*
 * The daemon must not ask its own mount: if it were killed meanwhile, it would wait for ever
 * (fuse/control.c).
 */
static int ask_mount(const char *mountpoint)
{
	struct statx stx;

	if (statx(AT_FDCWD, mountpoint, AT_STATX_FORCE_SYNC, STATX_TYPE, &stx) == 0)
		return ZF_EXIT_OK;
	fprintf(stderr, "zfuse: the mount at %s does not answer: %s\n", mountpoint,
		strerror(errno));
	return ZF_EXIT_MOUNT;
}

/* Unmounts the mount that a dead daemon leaves. No other mount answers with these errors. */
static void clear_dead_mount(const char *mountpoint)
{
	struct statx stx;

	if (statx(AT_FDCWD, mountpoint, AT_STATX_FORCE_SYNC, STATX_TYPE, &stx) == 0 ||
	    (errno != ENOTCONN && errno != ECONNABORTED))
		return;
	(void)zf_unmount(mountpoint, true);
}

static int wait_for_end(pid_t child, const char *mountpoint)
{
	int status;

	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	clear_dead_mount(mountpoint);
	return status;
}

static _Noreturn void wait_for_child(int fd, pid_t child, const char *mountpoint)
{
	uint8_t told;
	ssize_t n;
	int status;

	do
		n = read(fd, &told, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1 && told == ZF_EXIT_OK && ask_mount(mountpoint) != ZF_EXIT_OK) {
		kill(child, SIGTERM);
		wait_for_end(child, mountpoint);
		_exit(ZF_EXIT_MOUNT);
	}
	if (n == 1)
		_exit(told);
	/* The child ended without a status; its exit status may tell the cause. */
	status = wait_for_end(child, mountpoint);
	if (WIFSIGNALED(status)) {
		fprintf(stderr, "zfuse: killed by signal %d before the mount was ready\n",
			WTERMSIG(status));
		_exit(ZF_EXIT_MOUNT);
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : ZF_EXIT_MOUNT);
}

int zf_background_enter(const char *mountpoint)
{
	int fds[2];
	pid_t child;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	child = fork();
	if (child < 0) {
		close(fds[0]);
		close(fds[1]);
		return -errno;
	}
	if (child > 0) {
		close(fds[1]);
		wait_for_child(fds[0], child, mountpoint);
	}
	close(fds[0]);
	tell_fd = fds[1];
	/* The file system of the directory in which the daemon was started can be unmounted. */
	return chdir("/") < 0 ? -errno : 0;
}

int zf_background_tell(int status)
{
	uint8_t byte = (uint8_t)status;
	ssize_t n;
	_zf_close_ int null_fd = -1;
	int fd = zf_steal_fd(&tell_fd);

	if (fd < 0)
		return 0;
	/*
	 * The terminal is closed first: stdout or stderr may be a pipe that a program reads to its
	 * end, and the parent's exit must end that pipe.
	 */
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd >= 0) {
		dup2(null_fd, STDIN_FILENO);
		dup2(null_fd, STDOUT_FILENO);
		dup2(null_fd, STDERR_FILENO);
	}
	/*
	 * Not earlier: on an automount point (autofs) every process waits for this mount, except
	 * for the process group that systemd has started to make it.
	 */
	setsid();
	do
		n = write(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	close(fd);
	return n == 1 ? 0 : -EPIPE;
}
