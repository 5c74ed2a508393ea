/* SPDX-License-Identifier: MIT */
#include "fuse/sync_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* Asks the kernel only, not this daemon. */
static int check_device(const char *mountpoint, dev_t st_dev)
{
	struct statx stx;

	if (statx(AT_FDCWD, mountpoint, AT_STATX_DONT_SYNC, 0, &stx) < 0)
		return -errno;
	return makedev(stx.stx_dev_major, stx.stx_dev_minor) == st_dev ? 0 : -EINVAL;
}

/* Starts a program without our descriptors, and with no signal blocked. */
static int spawn(const char *const argv[], pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int r;

	sigemptyset(&none);
	r = posix_spawn_file_actions_init(&actions);
	if (r != 0)
		return -r;
	r = posix_spawnattr_init(&attr);
	if (r == 0) {
		posix_spawnattr_setsigmask(&attr, &none);
		posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
		r = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
		if (r == 0)
			r = posix_spawnp(ret_pid, argv[0], &actions, &attr, (char *const *)argv,
					 environ);
		posix_spawnattr_destroy(&attr);
	}
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

int zf_sync_mount(const char *mountpoint, dev_t st_dev)
{
	const char *const argv[] = {"sync", "-f", "--", mountpoint, NULL};
	int r = check_device(mountpoint, st_dev), status;
	pid_t pid;

	if (r == 0)
		r = spawn(argv, &pid);
	if (r < 0)
		return r;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}
