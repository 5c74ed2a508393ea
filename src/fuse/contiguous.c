/* SPDX-License-Identifier: MIT */
#include "fuse/contiguous.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/bits.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1; linux/mman.h of older systems lacks it */
#endif

#define HUGE_PAGE ((uintptr_t)2 << 20)
/*
 * It fails while the device writes to memory beside the buffer, and succeeds later. Where huge pages are
 * not to be had it fails each time.
 */
#define FAILURES_MAX 64u

static bool is_done(const struct zf_contiguous *contiguous, const void *buf)
{
	for (unsigned int i = 0; i < contiguous->count; i++)
		if (contiguous->done[i] == buf)
			return true;
	return false;
}

/* A buffer lies in one or two huge pages. What is mapped of them becomes huge. */
static bool collapse(const void *buf, size_t size)
{
	uintptr_t start = (uintptr_t)buf / HUGE_PAGE * HUGE_PAGE;
	uintptr_t end = zf_align_up((uintptr_t)buf + size, HUGE_PAGE);

	return madvise((void *)start, end - start, MADV_COLLAPSE) == 0;
}

void zf_contiguous_make(struct zf_contiguous *contiguous, const void *buf, size_t size)
{
	if (size < ZF_CONTIGUOUS_MIN || contiguous->count == ZF_CONTIGUOUS_BUFFERS ||
	    contiguous->failures == FAILURES_MAX || is_done(contiguous, buf))
		return;
	if (collapse(buf, size))
		contiguous->done[contiguous->count++] = buf;
	else
		contiguous->failures++;
}
