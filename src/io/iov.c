/* SPDX-License-Identifier: MIT */
#include "io/iov.h"

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
