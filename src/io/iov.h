/* SPDX-License-Identifier: MIT */
/* Vectors of segments. */
#ifndef ZF_IO_IOV_H
#define ZF_IO_IOV_H

#include <stdint.h>
#include <sys/uio.h>

/*
 * The segments of the bytes [from, from + len) of a vector that holds them all. `ret_iov` has room
 * for as many as the vector has. Returns how many there are.
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
 * For a transfer that was interrupted, short or failed: once more, segment by segment, the first
 * one from or to *address. Returns 0, or -errno with *address where the error was; -EIO if the file
 * ends there.
 */
int zf_iov_transfer_again(zf_iov_call *call, int fd, const struct iovec *iov, unsigned int iovcnt,
			  int flags, uint64_t *address);

#endif
