/* SPDX-License-Identifier: MIT */
/* Buffers of large reads become huge pages, once, and keep what is in them. */
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "fuse/contiguous.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#define MIB	  ((size_t)1 << 20)
#define BUFFERS	  20u
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

/* Some kernels have no huge pages, or cannot make them of pages that are there. */
static bool kernel_can(char *bytes)
{
	struct zf_contiguous contiguous = {0};

	zf_contiguous_make(&contiguous, bytes + 4 * MIB, MIB);
	return contiguous.count == 1;
}

static void content_stays(void **state)
{
	struct zf_contiguous contiguous = {0};
	char *bytes = map_buffers();

	(void)state;
	for (unsigned int i = 0; i < BUFFERS; i++)
		zf_contiguous_make(&contiguous, bytes + i * MIB, MIB);
	check_buffers(bytes);
	munmap(bytes, BUFFERS * MIB);
}

static void each_is_made_once(void **state)
{
	struct zf_contiguous contiguous = {0};
	char *bytes = map_buffers();

	(void)state;
	if (!kernel_can(bytes))
		skip();
	for (unsigned int i = 0; i < 3; i++)
		zf_contiguous_make(&contiguous, bytes + 6 * MIB, MIB);
	assert_int_equal(contiguous.count, 1);
	assert_int_equal(contiguous.failures, 0);
	munmap(bytes, BUFFERS * MIB);
}

static void small_reads_change_nothing(void **state)
{
	struct zf_contiguous contiguous = {0};
	char *bytes = map_buffers();

	(void)state;
	zf_contiguous_make(&contiguous, bytes + 4 * MIB, ZF_CONTIGUOUS_MIN - 1);
	assert_int_equal(contiguous.count + contiguous.failures, 0);
	munmap(bytes, BUFFERS * MIB);
}

static void memory_is_bounded(void **state)
{
	struct zf_contiguous contiguous = {0};
	char *bytes = map_buffers();

	(void)state;
	for (unsigned int i = 0; i < BUFFERS; i++)
		zf_contiguous_make(&contiguous, bytes + i * MIB, MIB);
	assert_true(contiguous.count <= ZF_CONTIGUOUS_BUFFERS);
	munmap(bytes, BUFFERS * MIB);
}

/* A mapping that is smaller than a huge page. */
static void what_fails_is_given_up(void **state)
{
	struct zf_contiguous contiguous = {0};
	char *bytes = mmap(NULL, 2 * MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(bytes != MAP_FAILED);
	assert_int_equal(mprotect(bytes + MIB, MIB / 4, PROT_READ | PROT_WRITE), 0);
	for (unsigned int i = 0; i < 1000; i++)
		zf_contiguous_make(&contiguous, bytes + MIB, MIB / 4);
	assert_int_equal(contiguous.count, 0);
	assert_in_range(contiguous.failures, 1, 100);
	munmap(bytes, 2 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(content_stays),
		cmocka_unit_test(each_is_made_once),
		cmocka_unit_test(small_reads_change_nothing),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(what_fails_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
