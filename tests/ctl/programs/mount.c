/* SPDX-License-Identifier: MIT */
#include "programs.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FUSE_MAGIC    0x65735546
#define MOUNT_TRIES   3000u
#define MOUNT_WAIT_NS 10000000

static bool is_mounted(void)
{
	struct statfs info;

	return statfs(programs_mountpoint, &info) == 0 && info.f_type == FUSE_MAGIC;
}

/* False: the daemon has ended before that. */
static bool wait_for_mount(pid_t pid)
{
	const struct timespec wait = {.tv_nsec = MOUNT_WAIT_NS};
	siginfo_t info = {0};

	for (unsigned int i = 0; i < MOUNT_TRIES && !is_mounted(); i++) {
		waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT);
		if (info.si_pid != 0)
			return false;
		nanosleep(&wait, NULL);
	}
	return is_mounted();
}

static bool write_something(void)
{
	char path[400];
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "%s/new-%d", programs_mountpoint, (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	n = write(fd, path, sizeof(path));
	if (n == sizeof(path) && fsync(fd) < 0)
		n = -1;
	return close(fd) == 0 && n == sizeof(path);
}

/* Opens, reads and closes all files. */
static int use_one(const char *path, const struct stat *info, int type, struct FTW *ftw)
{
	static char buf[65536];
	int fd;

	(void)ftw;
	if (type == FTW_SL)
		(void)!readlink(path, buf, sizeof(buf));
	if (type != FTW_F || !S_ISREG(info->st_mode))
		return 0;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	for (unsigned int i = 0; fd >= 0 && i < 32 && read(fd, buf, sizeof(buf)) > 0; i++)
		;
	if (fd >= 0)
		close(fd);
	return 0;
}

void programs_mount(bool sound)
{
	const char *const args[] = {"src/fuse/zfuse", programs_image, programs_mountpoint, "-f",
				    NULL};
	int fd, status;
	pid_t pid = programs_start(args, &fd);
	bool mounted = wait_for_mount(pid);

	programs_shared->mounts++;
	if (mounted) {
		nftw(programs_mountpoint, use_one, 16, FTW_PHYS);
		if (!write_something() && sound)
			programs_fail("what was mounted cannot be written to: %s\n",
				      strerror(errno));
		umount2(programs_mountpoint, 0);
	}
	status = programs_end(args, pid, fd);
	if (sound && (!mounted || status != 0))
		programs_fail("%s: status %d of what should be mounted:\n%s\n", programs_image,
			      status, programs_said);
	umount2(programs_mountpoint, MNT_DETACH);
}
