/* SPDX-License-Identifier: MIT */
#include "fuse/contiguous.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>

#include "base/bits.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1; headers of older systems lack it */
#endif

#define HUGE_PAGE ((uintptr_t)2 << 20)
/*
 * The most huge pages that are remembered, 512 MiB. The kernel hands out the entry that was freed
 * last, so a queue needs only a few.
 */
#define PAGES_MAX 256u
/*
 * madvise() fails while the device writes to the page, and if memory is fragmented. Then it is
 * tried again after this time.
 */
#define RETRY_NS INT64_C(1000000000)

/* A hash table without chains; entries are never removed. */
static struct {
	_Atomic uintptr_t number; /* address / HUGE_PAGE; 0: the entry is free */
	_Atomic int64_t retry_ns; /* CLOCK_MONOTONIC; INT64_MAX: the huge page is made */
} pages[PAGES_MAX];

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* -1: the table is full. */
static int find_page(uintptr_t number)
{
	for (unsigned int i = 0; i < PAGES_MAX; i++) {
		unsigned int slot = (unsigned int)((number + i) % PAGES_MAX);
		uintptr_t found = 0;

		if (atomic_compare_exchange_strong(&pages[slot].number, &found, number) ||
		    found == number)
			return (int)slot;
	}
	return -1;
}

static bool is_due(int slot)
{
	int64_t retry_ns = atomic_load_explicit(&pages[slot].retry_ns, memory_order_relaxed);
	int64_t now;

	if (retry_ns == INT64_MAX)
		return false;
	now = now_ns();
	return now >= retry_ns &&
	       atomic_compare_exchange_strong(&pages[slot].retry_ns, &retry_ns, now + RETRY_NS);
}

/*
 * madvise() fails if the page is not wholly in one mapping, so only memory of the buffers is
 * changed.
 */
static void make_page(uintptr_t number)
{
	int slot = find_page(number);

	if (slot >= 0 && is_due(slot) &&
	    madvise((void *)(number * HUGE_PAGE), HUGE_PAGE, MADV_COLLAPSE) == 0)
		atomic_store_explicit(&pages[slot].retry_ns, INT64_MAX, memory_order_relaxed);
}

void zf_contiguous_make(const void *buf, size_t size)
{
	uintptr_t first = (uintptr_t)buf / HUGE_PAGE;
	uintptr_t end = zf_align_up((uintptr_t)buf + size, HUGE_PAGE) / HUGE_PAGE;

	if (size < ZF_CONTIGUOUS_MIN)
		return;
	for (uintptr_t number = first; number < end; number++)
		make_page(number);
}
