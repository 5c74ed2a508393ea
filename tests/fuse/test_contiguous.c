/* SPDX-License-Identifier: MIT */
/* Buffers of large reads become huge pages, and keep their content. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "fuse/contiguous.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#define MIB	  ((size_t)1 << 20)
#define BUFFERS	  16u
#define PAGE_SIZE 4096u

/* As libfuse maps the payloads of a queue. The first page of each has been used. */
static char *map_buffers(void)
{
	char *bytes = mmap(NULL, BUFFERS * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);

	assert_true(bytes != MAP_FAILED);
	for (unsigned int i = 0; i < BUFFERS; i++)
		memset(bytes + i * MIB, (int)i + 1, PAGE_SIZE);
	return bytes;
}

static void check_buffers(const char *bytes)
{
	for (unsigned int i = 0; i < BUFFERS; i++) {
		const char *buf = bytes + i * MIB;

		assert_int_equal(buf[0], i + 1);
		assert_int_equal(buf[PAGE_SIZE - 1], i + 1);
		assert_int_equal(buf[PAGE_SIZE], 0);
	}
}

/* KiB of huge pages in this process. */
static unsigned long huge_kib(void)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "r");
	unsigned long kib = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "AnonHugePages: %lu", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return kib;
}

static void content_stays(void **state)
{
	char *bytes = map_buffers();

	(void)state;
	for (unsigned int i = 0; i < BUFFERS; i++)
		zf_contiguous_make(bytes + i * MIB, MIB);
	check_buffers(bytes);
	munmap(bytes, BUFFERS * MIB);
}

static void large_reads_make_huge_pages(void **state)
{
	char *bytes = map_buffers();
	unsigned long before = huge_kib();
	bool can;

	(void)state;
	for (unsigned int i = 4; i < 8; i++)
		zf_contiguous_make(bytes + i * MIB, MIB);
	/* Some kernels have no huge pages, or cannot make them of pages that are there. */
	can = huge_kib() > before;
	assert_true(huge_kib() <= before + 6 * 1024);
	munmap(bytes, BUFFERS * MIB);
	if (!can)
		skip();
}

static void small_reads_change_nothing(void **state)
{
	char *bytes = map_buffers();
	unsigned long before = huge_kib();

	(void)state;
	for (unsigned int i = 0; i < BUFFERS; i++)
		zf_contiguous_make(bytes + i * MIB, ZF_CONTIGUOUS_MIN - 1);
	assert_int_equal(huge_kib(), before);
	munmap(bytes, BUFFERS * MIB);
}

static void *make_all(void *bytes)
{
	for (unsigned int i = 0; i < BUFFERS; i++)
		zf_contiguous_make((char *)bytes + i * MIB, MIB);
	return NULL;
}

static void several_threads_at_once(void **state)
{
	char *bytes = map_buffers();
	pthread_t threads[4];

	(void)state;
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, make_all, bytes), 0);
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	check_buffers(bytes);
	munmap(bytes, BUFFERS * MIB);
}

/* A mapping that is smaller than a huge page, with a guard behind it. */
static void memory_beside_it_is_left_alone(void **state)
{
	char *bytes = mmap(NULL, 4 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *buf = bytes + MIB;
	unsigned long before;

	(void)state;
	assert_true(bytes != MAP_FAILED);
	assert_int_equal(mprotect(buf, MIB, PROT_READ | PROT_WRITE), 0);
	memset(buf, 7, MIB);
	before = huge_kib();
	for (unsigned int i = 0; i < 1000; i++)
		zf_contiguous_make(buf, MIB);
	assert_int_equal(huge_kib(), before);
	assert_int_equal(buf[MIB - 1], 7);
	munmap(bytes, 4 * MIB);
}

/* More than are remembered. */
static void there_is_a_bound(void **state)
{
	const size_t len = (size_t)600 << 20;
	char *bytes = mmap(NULL, len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	(void)state;
	assert_true(bytes != MAP_FAILED);
	for (size_t at = 0; at < len; at += MIB)
		zf_contiguous_make(bytes + at, MIB);
	assert_true(huge_kib() <= 512 * 1024);
	munmap(bytes, len);
}

int main(void)
{
	/* Addresses of huge pages are remembered, and mapped again: the first test needs fresh ones. */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_reads_make_huge_pages),
		cmocka_unit_test(content_stays),
		cmocka_unit_test(small_reads_change_nothing),
		cmocka_unit_test(several_threads_at_once),
		cmocka_unit_test(memory_beside_it_is_left_alone),
		cmocka_unit_test(there_is_a_bound), /* fills the table: the last */
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
