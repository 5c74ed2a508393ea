/* SPDX-License-Identifier: MIT */
/*
 * Calls that zfuse understands beyond those of Linux. For programs: needs nothing but this header.
 *
 * FALLOC_FL_WRITE_ZEROES on a zfuse file. The kernel's FUSE knows ZERO_RANGE but not, yet,
 * WRITE_ZEROES; and only a request that it knows keeps what it has cached of the file right. So the
 * caller first marks a range, and then asks for ZERO_RANGE of exactly that range:
 *
 *      zfuse_write_zeroes(fd, offset, length)
 *
 * does both, and the plain call where the kernel takes it. What it promises, and what it costs, is
 * in docs/write-zeroes.md.
 */
#ifndef ZFUSE_IOCTL_H
#define ZFUSE_IOCTL_H

#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define ZFUSE_FALLOC_FL_ZERO_RANGE   0x10
#define ZFUSE_FALLOC_FL_WRITE_ZEROES 0x80

#define ZFUSE_MARK_VERSION	     1u

struct zfuse_mark {
	uint32_t version; /* ZFUSE_MARK_VERSION */
	uint32_t flags;	  /* 0 */
	uint64_t offset, length;
	uint64_t reserved[4]; /* 0 */
};

/*
 * The next fallocate(fd, FALLOC_FL_ZERO_RANGE, offset, length) of this thread by this open file (not
 * another open of the file), with exactly these numbers, means FALLOC_FL_WRITE_ZEROES. Until then
 * nothing happens; closing the file, or the thread's next mark on it, drops the mark.
 *
 * EBADF: not open for writing. EINVAL: another version, something reserved is not 0, or a range that
 * fallocate() would refuse. ENOTTY: not zfuse. Whoever leaves many marks without asking loses the
 * oldest of them: a mark is for the call that follows.
 */
#define ZFUSE_IOC_MARK_WRITE_ZEROES _IOW('Z', 0x57, struct zfuse_mark)

/* 0 or -1 with errno; EOPNOTSUPP: the file is not on zfuse. */
static inline int zfuse_mark_write_zeroes(int fd, uint64_t offset, uint64_t length)
{
	struct zfuse_mark mark = {
		.version = ZFUSE_MARK_VERSION,
		.offset = offset,
		.length = length,
	};
	struct statfs fs;
	struct stat st;

	/* To anything else the number may mean something. */
	if (fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return -1;
	if (!S_ISREG(st.st_mode) || fs.f_type != FUSE_SUPER_MAGIC) {
		errno = EOPNOTSUPP;
		return -1;
	}
	if (ioctl(fd, ZFUSE_IOC_MARK_WRITE_ZEROES, &mark) == 0)
		return 0;
	if (errno != EBADF && errno != ENOMEM)
		errno = EOPNOTSUPP;
	return -1;
}

#ifdef FALLOC_FL_KEEP_SIZE /* fallocate() is declared: _GNU_SOURCE */
/* As fallocate(fd, FALLOC_FL_WRITE_ZEROES, offset, length). */
static inline int zfuse_write_zeroes(int fd, int64_t offset, int64_t length)
{
	if (fallocate(fd, ZFUSE_FALLOC_FL_WRITE_ZEROES, offset, length) == 0)
		return 0;
	if (errno != EOPNOTSUPP ||
	    zfuse_mark_write_zeroes(fd, (uint64_t)offset, (uint64_t)length) < 0)
		return -1;
	return fallocate(fd, ZFUSE_FALLOC_FL_ZERO_RANGE, offset, length);
}
#endif

#endif
