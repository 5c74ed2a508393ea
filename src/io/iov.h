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

#endif
