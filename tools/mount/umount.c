/* SPDX-License-Identifier: MIT */
/*
 * umount.fuse.zfuse: what umount(8) runs for a mount of type fuse.zfuse:
 *
 *      umount.fuse.zfuse DIR [-flnrv] [-N NAMESPACE] [-t TYPE]
 *
 * The kernel unmounts a FUSE filesystem at once, while the daemon still has to make its last
 * commit. So this program unmounts, then waits until the daemon has released the device, and fails
 * if the commit failed. After a successful umount everything is durable, and the device may be
 * removed (P1).
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ctl/ctl.h"
#include "fuse/status.h"
#include "fuse/unmount.h"
#include "mount/args.h"
#include "mount/mountinfo.h"
#include "mount/remount.h"

/* After so long without an answer, the daemon is asked whether it is still mounted elsewhere. */
#define ASK_AFTER_MS 3000
#define LOCK_WAIT_S  120

struct request {
	const char *directory, *namespace;
	bool force, lazy, read_only, verbose, help, version;
};

static void complain(const char *what, const char *why)
{
	fprintf(stderr, "umount: %s: %s\n", what, why);
}

static int parse(int argc, char **argv, struct request *ret_request)
{
	const struct zf_helper_option options[] = {
		{'h', .flag = &ret_request->help},
		{'V', .flag = &ret_request->version},
		{'f', .flag = &ret_request->force},
		{'l', .flag = &ret_request->lazy},
		{'r', .flag = &ret_request->read_only},
		{'v', .flag = &ret_request->verbose},
		{'N', .text = &ret_request->namespace},
		{'n'}, /* there is no mtab to leave alone */
		{'t'}, /* this is the program for the type */
		{0},
	};
	int first = zf_helper_args(argc, argv, "flnrvN:t:hV", options);

	if (first < 0 || ret_request->help || ret_request->version)
		return first < 0 ? first : 0;
	if (argc - first != 1)
		return -EINVAL;
	ret_request->directory = argv[first];
	return 0;
}

/* `namespace`: a process id, or the path of a namespace's file. */
static int enter_namespace(const char *namespace)
{
	char path[64];
	_zf_close_ int fd = -1;

	if (namespace[0] >= '0' && namespace[0] <= '9') {
		snprintf(path, sizeof(path), "/proc/%s/ns/mnt", namespace);
		namespace = path;
	}
	fd = open(namespace, O_RDONLY | O_CLOEXEC);
	return fd < 0 || setns(fd, CLONE_NEWNS) < 0 ? -errno : 0;
}

/* ---- unmounting ---- */

static int unmount(const struct request *request, const char *mountpoint)
{
	int flags = UMOUNT_NOFOLLOW | (request->force ? MNT_FORCE : 0) |
		    (request->lazy ? MNT_DETACH : 0);

	if (umount2(mountpoint, flags) == 0)
		return 0;
	if (errno == EPERM && geteuid() != 0)
		return zf_unmount_fusermount(request->lazy ? "-uz" : "-u", mountpoint);
	return -errno;
}

/* ---- waiting ---- */

/* The process at the other end; 0: it is not in this PID namespace. */
static pid_t peer_of(int fd)
{
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? peer.pid : 0;
}

/* The kernel reuses device numbers, so another daemon may answer for st_dev: compares the pids. */
static int ask(dev_t st_dev, pid_t daemon)
{
	_zf_close_ int fd = -1;

	if (zf_ctl_connect_dev(st_dev, &fd) < 0 || peer_of(fd) != daemon ||
	    zf_ctl_send(fd, "daemon", NULL) < 0)
		return -1;
	return zf_steal_fd(&fd);
}

/*
 * The answer of an older daemon has no "mounted". It counts as mounted, because the daemon lives.
 */
static bool says_mounted(int fd)
{
	struct json_object *daemon = NULL, *mounted;
	bool r;

	if (zf_ctl_receive(fd, NULL, &daemon, NULL) < 0)
		return false;
	r = !json_object_object_get_ex(daemon, "mounted", &mounted) ||
	    json_object_get_boolean(mounted);
	json_object_put(daemon);
	return r;
}

/*
 * Waits until the "wait" on `fd` is answered. False: the daemon goes on although this mount is
 * gone, because the filesystem has another mount, perhaps in another namespace. Only the daemon's
 * answer proves that: a daemon that is stopped, or waits for its disk, does not answer.
 */
static bool await_answer(int fd, dev_t st_dev)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
	pid_t daemon = peer_of(fd);

	for (;;) {
		int n = poll(fds, 2, fds[1].fd < 0 ? ASK_AFTER_MS : -1);
		bool mounted = false;

		if (n > 0 && fds[0].revents)
			return true;
		if (n == 0)
			fds[1].fd = ask(st_dev, daemon);
		if (n <= 0 || !fds[1].revents)
			continue;
		mounted = says_mounted(fds[1].fd);
		close(fds[1].fd);
		fds[1].fd = -1;
		if (mounted)
			return false;
	}
}

/* `fd`: a "wait" was sent on it while the mount was there. */
static int wait_for_daemon(int fd, const struct zf_mountinfo *mount)
{
	struct json_object *result = NULL;
	_zf_free_ char *message = NULL;
	int r;

	if (!await_answer(fd, mount->st_dev)) {
		complain(mount->mountpoint,
			 "still mounted elsewhere: its daemon goes on, and umount does not wait");
		return 0;
	}
	r = zf_ctl_receive(fd, NULL, &result, &message);
	if (r == 0) {
		json_object_put(result);
		return 0;
	}
	fprintf(stderr, "umount: %s: unmounted, but %s: %s\n", mount->mountpoint,
		r == -ECONNRESET ? "the daemon died before its last commit"
				 : "recent changes may be lost",
		message ? message : strerror(-r));
	return r;
}

/* Only a disk, or an image of the user who mounted it: locking it must not harm other users. */
static bool is_for_locks(const struct zf_mountinfo *mount, const struct stat *st)
{
	return S_ISBLK(st->st_mode) ||
	       (S_ISREG(st->st_mode) && (mount->user == 0 || mount->user == st->st_uid));
}

/*
 * Opens the device or image to test its lock. The mounting user chose its name, while root may
 * unmount. So the file's type and owner are checked before it is opened, and the open never waits.
 */
static int open_source(const struct zf_mountinfo *mount)
{
	_zf_close_ int found = open(mount->source, O_PATH | O_CLOEXEC);
	char path[64];
	struct stat st;
	int fd;

	if (found < 0 || fstat(found, &st) < 0)
		return -errno;
	if (!is_for_locks(mount, &st))
		return -EINVAL;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* If there is no control socket: does a daemon hold the lock of the device? */
static bool is_locked(const struct zf_mountinfo *mount)
{
	_zf_close_ int fd = open_source(mount);

	return fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* Without a control socket: waits for the lock, which the daemon holds until its last commit. */
static int wait_for_lock(const struct zf_mountinfo *mount)
{
	const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
	_zf_close_ int fd = open_source(mount);

	if (fd < 0) {
		complain(mount->source, "cannot tell when its daemon is done");
		return fd;
	}
	for (unsigned int i = 0; i < LOCK_WAIT_S * 100; i++) {
		if (flock(fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		nanosleep(&pause, NULL);
	}
	complain(mount->source, "its daemon is not done yet");
	return -ETIMEDOUT;
}

/* ---- all of it ---- */

static int remount_read_only(const struct zf_mountinfo *mount)
{
	const struct zf_remount read_only = {.set = MS_RDONLY};
	int r = zf_remount(mount, &read_only);

	complain(mount->mountpoint, r < 0 ? strerror(-r) : "in use: remounted read-only");
	return r;
}

static int run(const struct request *request, const struct zf_mountinfo *mount)
{
	_zf_close_ int fd = -1;
	bool waits =
		zf_ctl_connect_dev(mount->st_dev, &fd) == 0 && zf_ctl_send(fd, "wait", NULL) == 0;
	int r;

	if (!waits && !is_locked(mount))
		complain(mount->mountpoint, "its daemon died");
	r = unmount(request, mount->mountpoint);
	if (r == -EBUSY && request->read_only)
		return remount_read_only(mount);
	if (r < 0) {
		complain(mount->mountpoint, r == -EBUSY ? "target is busy." : strerror(-r));
		return r;
	}
	if (request->verbose)
		printf("%s: unmounted\n", mount->mountpoint);
	/* A detached mount lives until its last user is gone. That may be the caller. */
	if (request->lazy || zf_mountinfo_exists(mount->st_dev))
		return 0;
	return waits ? wait_for_daemon(fd, mount) : wait_for_lock(mount);
}

static int usage(FILE *to, int status)
{
	fprintf(to, "usage: umount.fuse.zfuse DIRECTORY [-flnrv] [-N NAMESPACE]\n"
		    "umount(8) runs it for mounts of zfuse; it waits for the last commit. See "
		    "zfuse(8).\n");
	return status;
}

int main(int argc, char **argv)
{
	struct request request = {0};
	struct zf_mountinfo mount;
	int r;

	if (parse(argc, argv, &request) < 0)
		return usage(stderr, ZF_EXIT_USAGE);
	if (request.help)
		return usage(stdout, ZF_EXIT_OK);
	if (request.version) {
		puts("umount.fuse.zfuse " ZF_VERSION);
		return ZF_EXIT_OK;
	}
	if (request.namespace) {
		r = enter_namespace(request.namespace);
		if (r < 0) {
			complain(request.namespace, strerror(-r));
			return ZF_EXIT_SYSTEM;
		}
	}
	r = zf_mountinfo_find(request.directory, &mount);
	if (r < 0) {
		complain(request.directory, r == -ENOENT ? "not mounted" : strerror(-r));
		return ZF_EXIT_MOUNT;
	}
	r = run(&request, &mount);
	zf_mountinfo_deinit(&mount);
	return r < 0 ? ZF_EXIT_MOUNT : ZF_EXIT_OK;
}
