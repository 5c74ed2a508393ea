/* SPDX-License-Identifier: MIT */
#include "io/image_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"

#define LOCK_POLL_MS 20
#define SIZE_XATTR   "user.zfuse.image-size"

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* Returns false if `until_ms` has passed. */
static bool pause_until(uint64_t until_ms)
{
	struct timespec pause = {.tv_nsec = LOCK_POLL_MS * 1000000};

	if (now_ms() >= until_ms)
		return false;
	nanosleep(&pause, NULL);
	return true;
}

int zf_image_file_fail(const struct zf_report *report, const char *path, int error,
		       const char *what)
{
	zf_report(report, ZF_REPORT_ERROR, "%s: %s: %s", path, what, strerror(-error));
	return error;
}

/* ---- programs that hold the file ---- */

/*
 * The process, other than `except`, that has a flock on this file; 0: unknown. A line of
 * /proc/locks reads "1: FLOCK  ADVISORY  WRITE 1234 fe:00:5678 0 EOF", device numbers in
 * hexadecimal.
 */
static long lock_holder(int fd, long except)
{
	char line[256];
	struct stat st;
	long found = 0;
	FILE *locks;

	if (fstat(fd, &st) < 0)
		return 0;
	locks = fopen("/proc/locks", "re");
	if (!locks)
		return 0;
	while (found == 0 && fgets(line, sizeof(line), locks)) {
		unsigned int device_major, device_minor;
		uint64_t inode;
		long pid;

		if (sscanf(line, "%*d: FLOCK %*s %*s %ld %x:%x:%" SCNu64, &pid, &device_major,
			   &device_minor, &inode) == 4 &&
		    inode == st.st_ino && device_major == major(st.st_dev) &&
		    device_minor == minor(st.st_dev) && pid > 0 && pid != except)
			found = pid;
	}
	fclose(locks);
	return found;
}

static int report_busy(int fd, const char *path, long except, const struct zf_report *report)
{
	long pid = lock_holder(fd, except);

	if (pid > 0)
		zf_report(report, ZF_REPORT_ERROR, "%s is in use by process %ld", path, pid);
	else
		zf_report(report, ZF_REPORT_ERROR, "%s is in use", path);
	return -EBUSY;
}

/* flock(), the lock that other programs respect too. */
static int take_flock(int fd, const char *path, bool exclusive, uint64_t until_ms,
		      const struct zf_report *report)
{
	while (flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EWOULDBLOCK)
			return zf_image_file_fail(report, path, -errno, "cannot be locked");
		if (!pause_until(until_ms))
			return report_busy(fd, path, 0, report);
	}
	return 0;
}

/* A lock of the open file description, which only zfuse's programs look at. */
static int take_own_lock(int fd, const char *path, bool exclusive, uint64_t until_ms,
			 const struct zf_report *report)
{
	struct flock lock = {.l_type = exclusive ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET};

	while (fcntl(fd, F_OFD_SETLK, &lock) < 0) {
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EACCES)
			return zf_image_file_fail(report, path, -errno, "cannot be locked");
		if (!pause_until(until_ms))
			return report_busy(fd, path, getpid(), report); /* we have a flock, too */
	}
	return 0;
}

static bool is_disk(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && S_ISBLK(st.st_mode);
}

/*
 * udev takes a shared flock on a disk before it looks at it, and postpones all its work on the disk
 * while another program holds an exclusive flock. That is right while the disk is formatted, but
 * wrong as long as it is mounted. So a mount takes the flock exclusively first, and then makes it
 * shared. The lock of take_own_lock() then keeps off other programs of zfuse.
 */
static int lock_file(int fd, const char *path, enum zf_image_file_mode mode, uint64_t until_ms,
		     const struct zf_report *report)
{
	bool exclusive = mode != ZF_IMAGE_FILE_READ;
	int r = take_flock(fd, path, exclusive, until_ms, report);

	if (r < 0 || !is_disk(fd))
		return r;
	r = take_own_lock(fd, path, exclusive, until_ms, report);
	if (r == 0 && mode == ZF_IMAGE_FILE_WRITE_UNCLAIMED)
		r = take_flock(fd, path, false, until_ms, report);
	return r;
}

int zf_image_file_lock(int fd, const char *path, bool exclusive, uint32_t lock_wait_ms,
		       const struct zf_report *report)
{
	return take_flock(fd, path, exclusive, now_ms() + lock_wait_ms, report);
}

/* ---- opening ---- */

static int open_flags(const char *path, enum zf_image_file_mode mode)
{
	struct stat st;
	int flags = O_CLOEXEC | O_NONBLOCK; /* a FIFO may be in the place of the file */

	flags |= mode == ZF_IMAGE_FILE_READ ? O_RDONLY : O_RDWR;
	/* Without O_CREAT, O_EXCL on a block device fails if the device is claimed or mounted. */
	if (stat(path, &st) == 0 && S_ISBLK(st.st_mode) &&
	    (mode == ZF_IMAGE_FILE_WRITE || mode == ZF_IMAGE_FILE_CREATE))
		flags |= O_EXCL;
	return flags;
}

static int open_path(const char *path, enum zf_image_file_mode mode, uint64_t until_ms,
		     const struct zf_report *report, bool *ret_created)
{
	*ret_created = false;
	for (;;) {
		int fd = open(path, open_flags(path, mode));

		if (fd >= 0)
			return fd;
		if (errno == ENOENT && mode == ZF_IMAGE_FILE_CREATE) {
			fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
			if (fd >= 0) {
				*ret_created = true;
				return fd;
			}
			if (errno == EEXIST)
				continue;
		}
		if (errno == EBUSY && pause_until(until_ms))
			continue;
		if (errno == EBUSY)
			return zf_image_file_fail(report, path, -EBUSY, "is mounted or in use");
		if (mode == ZF_IMAGE_FILE_READ)
			return zf_image_file_fail(report, path, -errno, "cannot be read");
		return zf_image_file_fail(report, path, -errno, "cannot be opened for writing");
	}
}

/*
 * Called under our lock, so that no program that respects the lock comes between this check and the
 * mount.
 */
static int check_unclaimed(const char *path, uint64_t until_ms, const struct zf_report *report)
{
	bool created;
	int fd = open_path(path, ZF_IMAGE_FILE_WRITE, until_ms, report, &created);

	if (fd < 0)
		return fd;
	close(fd);
	return 0;
}

static int read_size(struct zf_image_file *file, const char *path, const struct zf_report *report)
{
	struct stat st;

	if (fstat(file->fd, &st) < 0)
		return zf_image_file_fail(report, path, -errno, "cannot be examined");
	file->is_block_device = S_ISBLK(st.st_mode);
	if (file->is_block_device) {
		if (ioctl(file->fd, BLKGETSIZE64, &file->size) < 0)
			return zf_image_file_fail(report, path, -errno, "its size cannot be read");
		return 0;
	}
	if (!S_ISREG(st.st_mode))
		return zf_image_file_fail(report, path, -EINVAL,
					  "neither a regular file nor a block device");
	file->size = (uint64_t)st.st_size;
	return 0;
}

/* Whether direct I/O works in whole blocks here, as far as the kernel tells (since 6.1). */
static bool direct_io_suits(int fd)
{
#ifdef STATX_DIOALIGN
	struct statx sx;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) == 0 &&
	    (sx.stx_mask & STATX_DIOALIGN))
		return sx.stx_dio_offset_align > 0 && sx.stx_dio_offset_align <= ZF_BLOCK_SIZE &&
		       sx.stx_dio_mem_align <= ZF_BLOCK_SIZE;
#endif
	return true;
}

/* O_NONBLOCK was for opening only; by now the file is known to be no FIFO. */
static int set_blocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0 ? -errno : 0;
}

/* I/O stays buffered if the host refuses O_DIRECT, or needs units larger than a block. */
static void set_direct(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags >= 0 && direct_io_suits(fd))
		(void)!fcntl(fd, F_SETFL, flags | O_DIRECT);
}

int zf_image_file_open(const char *path, enum zf_image_file_mode mode, bool direct,
		       uint32_t lock_wait_ms, const struct zf_report *report,
		       struct zf_image_file *ret_file)
{
	uint64_t until_ms = now_ms() + lock_wait_ms;
	struct zf_image_file file = {.fd = -1};
	_zf_close_ int fd = open_path(path, mode, until_ms, report, &file.created);
	int r;

	if (fd < 0)
		return fd;
	r = lock_file(fd, path, mode, until_ms, report);
	if (r == 0 && mode == ZF_IMAGE_FILE_WRITE_UNCLAIMED)
		r = check_unclaimed(path, until_ms, report);
	if (r < 0)
		return r;
	file.fd = fd;
	r = read_size(&file, path, report);
	if (r == 0)
		r = set_blocking(fd);
	if (r < 0)
		return r;
	if (direct)
		set_direct(fd);
	file.fd = zf_steal_fd(&fd);
	*ret_file = file;
	return 0;
}

static enum zf_image_file_mode mode_of(const struct zf_open_options *options)
{
	if (options->read_only)
		return ZF_IMAGE_FILE_READ;
	return options->unclaimed ? ZF_IMAGE_FILE_WRITE_UNCLAIMED : ZF_IMAGE_FILE_WRITE;
}

int zf_image_file_open_for(const char *path, const struct zf_open_options *options, bool direct,
			   const struct zf_report *report, struct zf_image_file *ret_file)
{
	return zf_image_file_open(path, mode_of(options), direct, options->lock_wait_ms, report,
				  ret_file);
}

/* ---- the size beside the contents ---- */

void zf_image_file_note_size(const struct zf_image_file *file, uint64_t size)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%" PRIu64, size);

	/* May fail: then the trailer of a file that became longer has to be searched for. */
	(void)!fsetxattr(file->fd, SIZE_XATTR, text, (size_t)n, 0);
}

uint64_t zf_image_file_noted_size(const struct zf_image_file *file)
{
	char text[32] = "";
	uint64_t size;

	if (fgetxattr(file->fd, SIZE_XATTR, text, sizeof(text) - 1) < 0 ||
	    sscanf(text, "%" SCNu64, &size) != 1)
		return 0;
	return size;
}
