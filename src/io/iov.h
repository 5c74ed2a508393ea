/* SPDX-License-Identifier: MIT */
/* Vectors of segments. */
#ifndef ZF_IO_IOV_H
#define ZF_IO_IOV_H

#include <stdint.h>
#include <sys/uio.h>

/*
 * Sets ret_iov to the segments of bytes [from, from + len) of a vector that holds all of them.
 * `ret_iov` has room for as many segments as the vector has. Returns the number of segments.
 */
unsigned int zf_iov_slice(const struct iovec *iov, uint64_t from, uint64_t len,
			  struct iovec *ret_iov);

/* The sum of the segments. */
static inline uint64_t zf_iov_len(const struct iovec *iov, unsigned int iovcnt)
{
	uint64_t len = 0;

	for (unsigned int i = 0; i < iovcnt; i++)
		len += iov[i].iov_len;
	return len;
}

/* preadv2(2) or pwritev2(2). */
typedef ssize_t zf_iov_call(int fd, const struct iovec *iov, int iovcnt, off_t offset, int flags);

/*
 * Repeats a transfer that was interrupted, short or failed, segment by segment; the first segment
 * is read from or written to *address. Returns 0, or -errno with *address where the error was; -EIO
 * if the file ends there.
 */
int zf_iov_transfer_again(zf_iov_call *call, int fd, const struct iovec *iov, unsigned int iovcnt,
			  int flags, uint64_t *address);

#endif
