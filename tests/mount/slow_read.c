/* SPDX-License-Identifier: MIT */
/*
 * Linked into a daemon, makes each read of an image that a thread waits for take 100 us longer. So
 * the device does not look as if it had all data in memory, and successive reads do not wait on the
 * thread that received them (src/fuse/wait_here.h).
 *
 * With ZFUSE_READS_FAIL in the environment, reads on the rings of queues fail.
 *
 * If the environment names a FIFO in ZFUSE_READS_HELD, reads on the rings of queues read that FIFO:
 * they end, with no bytes, when no process has the FIFO open for writing any more.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "fuse/daemon.h"
#include "io/dev.h"

#define LONGER_US 100

int __real_zf_image_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
			 unsigned int iovcnt);
int __wrap_zf_image_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
			 unsigned int iovcnt);
int __real_fuse_req_uring_readv(fuse_req_t req, int fd, const struct iovec *iov, unsigned int count,
				uint64_t offset, struct fuse_uring_read *read);
int __wrap_fuse_req_uring_readv(fuse_req_t req, int fd, const struct iovec *iov, unsigned int count,
				uint64_t offset, struct fuse_uring_read *read);

int __wrap_zf_image_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
			 unsigned int iovcnt)
{
	usleep(LONGER_US);
	return __real_zf_image_read(dev, addr, iov, iovcnt);
}

int __wrap_fuse_req_uring_readv(fuse_req_t req, int fd, const struct iovec *iov, unsigned int count,
				uint64_t offset, struct fuse_uring_read *read)
{
	const char *fifo = getenv("ZFUSE_READS_HELD");

	if (getenv("ZFUSE_READS_FAIL"))
		fd = -1;
	if (fifo) {
		/* The open does not wait for a writer, the read does. The FIFO is never closed: the
		 * daemon is short-lived. */
		fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
		fcntl(fd, F_SETFL, 0);
	}
	return __real_fuse_req_uring_readv(req, fd, iov, count, offset, read);
}
