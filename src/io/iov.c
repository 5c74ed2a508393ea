/* SPDX-License-Identifier: MIT */
#include "io/iov.h"

#include <errno.h>

#include "base/bits.h"

unsigned int zf_iov_slice(const struct iovec *iov, uint64_t from, uint64_t len,
			  struct iovec *ret_iov)
{
	unsigned int count = 0;

	while (from >= iov->iov_len)
		from -= iov++->iov_len;
	for (; len > 0; iov++) {
		uint64_t n = zf_min_u64(iov->iov_len - from, len);

		ret_iov[count++] = (struct iovec){(char *)iov->iov_base + from, n};
		len -= n;
		from = 0;
	}
	return count;
}

static int transfer_segment(zf_iov_call *call, int fd, struct iovec segment, int flags,
			    uint64_t *address)
{
	while (segment.iov_len > 0) {
		ssize_t n = call(fd, &segment, 1, (off_t)*address, flags);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		segment.iov_base = (char *)segment.iov_base + n;
		segment.iov_len -= (size_t)n;
		*address += (uint64_t)n;
	}
	return 0;
}

int zf_iov_transfer_again(zf_iov_call *call, int fd, const struct iovec *iov, unsigned int iovcnt,
			  int flags, uint64_t *address)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < iovcnt; i++)
		r = transfer_segment(call, fd, iov[i], flags, address);
	return r;
}
