/* SPDX-License-Identifier: MIT */
#include "base/undumped.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/bits.h"

/* If pages are larger than blocks, madvise() may fail: then the memory is in the dump. */
void zf_undumped(void *bytes, size_t len)
{
	madvise(bytes, len, MADV_DONTDUMP);
}

void *zf_undumped_alloc(size_t len)
{
	void *bytes = aligned_alloc(ZF_BLOCK_SIZE, len);

	if (bytes)
		zf_undumped(bytes, len);
	return bytes;
}

void *zf_undumped_map(size_t len)
{
	void *bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (bytes == MAP_FAILED)
		return NULL;
	zf_undumped(bytes, len);
	return bytes;
}
