/* SPDX-License-Identifier: MIT */
#include "fuse/anchor.h"

#define FUSE_USE_VERSION 318

#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <linux/loop.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"

#define ANCHOR_BYTES 4096

/* Other processes look for a free loop device at the same time, and may take it first. */
#define ATTACH_TRIES 64

/* ---- the loop device ---- */

/*
 * The memory is sealed: nothing can be stored in it, and its size does not change. losetup(8) shows
 * its name.
 */
static int make_memory(const char *image)
{
	char name[200]; /* 249 bytes at most: memfd_create(2) */
	_zf_close_ int fd = -1;

	snprintf(name, sizeof(name), "zfuse:%s", image);
	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, ANCHOR_BYTES) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) < 0)
		return -errno;
	return zf_steal_fd(&fd);
}

/*
 * -EBUSY: another process has taken the device meanwhile. The anchor's block size is 512 bytes. A
 * loop device with direct I/O over a file of this filesystem takes the block size of the device
 * below, which is the anchor. With larger blocks, a filesystem with smaller blocks could not be
 * mounted from that file.
 */
static int attach_free_one(int control, int memory, char path[32], int *ret_fd)
{
	const struct loop_config config = {
		.fd = (__u32)memory,
		.block_size = 512,
		.info = {.lo_flags = LO_FLAGS_AUTOCLEAR},
	};
	_zf_close_ int fd = -1;
	int number = ioctl(control, LOOP_CTL_GET_FREE);

	if (number < 0)
		return -errno;
	snprintf(path, 32, "/dev/loop%d", number);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || ioctl(fd, LOOP_CONFIGURE, &config) < 0)
		return -errno;
	*ret_fd = zf_steal_fd(&fd);
	return 0;
}

/* The loop device stays attached while *ret_fd is open, or a mount stands on it. */
static int attach(const char *image, char path[32], int *ret_fd)
{
	_zf_close_ int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	_zf_close_ int memory = -1;
	int r = -EBUSY;

	if (control < 0)
		return -errno;
	memory = make_memory(image);
	if (memory < 0)
		return memory;
	for (int i = 0; i < ATTACH_TRIES && r == -EBUSY; i++)
		r = attach_free_one(control, memory, path, ret_fd);
	return r;
}

/* ---- the mount ---- */

/*
 * The kernel takes the block device from the mount's source, and the source must be the image. So a
 * thread with a mount namespace of its own makes the mount. In that namespace the anchor is
 * bind-mounted over the image. Then a clone of the mount is attached in the daemon's namespace. No
 * other process ever sees the image covered.
 */
struct task {
	struct fuse_session *session;
	const char *image, *mountpoint, *anchor;
	dev_t anchor_dev;
	int tree; /* the clone; -1: none */
	int r;
	const char *why;
};

static int fail(struct task *task, const char *why)
{
	task->why = why;
	return -errno;
}

static int cover_image(struct task *task)
{
	if (unshare(CLONE_NEWNS) < 0)
		return fail(task, "no mount namespace of its own");
	/* In a shared tree, the mounts made here would appear in other namespaces, too. */
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return fail(task, "/ is not a mount point");
	if (mount(task->anchor, task->image, NULL, MS_BIND, NULL) < 0)
		return fail(task, "the anchor cannot be bound to the image's path");
	return 0;
}

/* The image may have been renamed meanwhile, so that its path names another file, even a disk. */
static int check_anchor(struct task *task)
{
	struct statx stx;

	/* AT_STATX_DONT_SYNC asks the kernel only, because no thread answers requests yet. */
	if (statx(task->tree, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &stx) < 0)
		return fail(task, "statx of the new mount failed");
	if (makedev(stx.stx_dev_major, stx.stx_dev_minor) == task->anchor_dev)
		return 0;
	errno = ESTALE;
	return fail(task, "the image was renamed");
}

static int mount_here(struct task *task)
{
	if (fuse_session_mount(task->session, task->mountpoint) != 0) {
		errno = EPERM; /* libfuse has reported the real error */
		return fail(task, "the kernel refused the fuseblk mount");
	}
	task->tree = open_tree(AT_FDCWD, task->mountpoint, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (task->tree < 0)
		return fail(task, "the mount cannot be cloned");
	return check_anchor(task);
}

/*
 * The namespace holds copies of all mounts. While it exists, a user who unmounts one of them does
 * not free its filesystem. The namespace ends with the thread, but perhaps after pthread_join() has
 * returned. So the thread returns to the daemon's namespace first, if /proc gave a descriptor of
 * it.
 */
static void *mount_beside(void *arg)
{
	_zf_close_ int home = open("/proc/thread-self/ns/mnt", O_RDONLY | O_CLOEXEC);
	struct task *task = arg;

	task->r = cover_image(task);
	if (task->r == 0) {
		task->r = mount_here(task);
		umount2(task->mountpoint, MNT_DETACH | UMOUNT_NOFOLLOW);
	}
	if (home >= 0)
		setns(home, CLONE_NEWNS);
	return NULL;
}

static int run(struct task *task)
{
	pthread_t thread;

	errno = pthread_create(&thread, NULL, mount_beside, task);
	if (errno != 0)
		return fail(task, "no thread");
	pthread_join(thread, NULL);
	if (task->r < 0)
		return task->r;
	if (move_mount(task->tree, "", AT_FDCWD, task->mountpoint, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return fail(task, "the mount cannot be moved to its place");
	return 0;
}

int zf_anchor_mount(struct fuse_session *session, const char *image, const char *mountpoint,
		    const char **ret_why)
{
	char path[32];
	_zf_close_ int anchor = -1;
	struct task task = {
		.session = session,
		.image = image,
		.mountpoint = mountpoint,
		.anchor = path,
		.tree = -1,
	};
	struct stat st;
	int r = attach(image, path, &anchor);

	if (r < 0 || fstat(anchor, &st) < 0) {
		*ret_why = "there is no loop device";
		return r < 0 ? r : -errno;
	}
	task.anchor_dev = st.st_rdev;
	r = run(&task);
	if (task.tree >= 0)
		close(task.tree);
	if (r < 0)
		*ret_why = task.why;
	return r;
}
