/* SPDX-License-Identifier: MIT */
/*
 * libzfuse-fallocate.so: FALLOC_FL_WRITE_ZEROES for programs that know nothing of zfuse.
 *
 *      LD_PRELOAD=libzfuse-fallocate.so PROGRAM
 *
 * Replaces the C library's fallocate() and fallocate64(). Every call is passed to the C library
 * unchanged. Only if that refuses WRITE_ZEROES as unsupported, and the file is on zfuse, the range
 * is marked and zeroed (zfuse/ioctl.h). Otherwise the C library's result and errno are returned.
 * There is no shared state, and a mark belongs to a thread, so threads do not disturb each other.
 *
 * Out of reach: programs that are linked statically or make system calls themselves.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>
#include <zfuse/ioctl.h>

typedef int fallocate_fn(int fd, int mode, off64_t offset, off64_t len);

int fallocate(int fd, int mode, off_t offset, off_t len);
int fallocate64(int fd, int mode, off64_t offset, off64_t len);

static int next_fallocate(int fd, int mode, off64_t offset, off64_t len)
{
	static void *_Atomic found;
	void *next = atomic_load_explicit(&found, memory_order_relaxed);

	if (!next) {
		next = dlsym(RTLD_NEXT, "fallocate64");
		/* If off_t has 64 bits anyway, a C library may lack fallocate64(). */
		if (!next && sizeof(off_t) == sizeof(off64_t))
			next = dlsym(RTLD_NEXT, "fallocate");
		atomic_store_explicit(&found, next, memory_order_relaxed);
	}
	if (!next) {
		errno = ENOSYS;
		return -1;
	}
	return ((fallocate_fn *)next)(fd, mode, offset, len);
}

int fallocate64(int fd, int mode, off64_t offset, off64_t len)
{
	int before = errno, r = next_fallocate(fd, mode, offset, len);

	if (r == 0 || mode != ZFUSE_FALLOC_FL_WRITE_ZEROES || errno != EOPNOTSUPP)
		return r;
	r = zfuse_mark_write_zeroes(fd, (uint64_t)offset, (uint64_t)len);
	if (r == 0)
		r = next_fallocate(fd, ZFUSE_FALLOC_FL_ZERO_RANGE, offset, len);
	if (r == 0)
		errno = before;
	return r;
}

int fallocate(int fd, int mode, off_t offset, off_t len)
{
	return fallocate64(fd, mode, offset, len);
}
