/* SPDX-License-Identifier: MIT */
#include "fuse/unmount.h"

#include <errno.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

int zf_unmount_fusermount(const char *flags, const char *mountpoint)
{
	const char *const argv[] = {"fusermount3", flags, "--", mountpoint, NULL};
	int status;
	pid_t pid;

	if (posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)argv, environ) != 0)
		return -EPERM;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EBUSY;
}

int zf_unmount(const char *mountpoint, bool detach)
{
	if (umount2(mountpoint, UMOUNT_NOFOLLOW | (detach ? MNT_DETACH : 0)) == 0)
		return 0;
	if (errno == EPERM)
		return zf_unmount_fusermount(detach ? "-quz" : "-qu", mountpoint);
	return -errno;
}
