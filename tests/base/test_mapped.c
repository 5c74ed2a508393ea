/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mapped.h"

/* A page of a file that has none. */
static volatile char *page;

static int setup(void **state)
{
	char path[] = "/dev/shm/zfuse-mapped-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	if (fd < 0 || unlink(path) < 0)
		return -1;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return page == MAP_FAILED ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	return munmap((void *)page, 4096);
}

static void count(void *arg)
{
	++*(int *)arg;
}

static void store(void *arg)
{
	count(arg);
	*page = 1;
	count(arg);
}

static void a_page_that_is_not_there_is_an_error(void **state)
{
	int n = 0;

	(void)state;
	zf_mapped_prepare();
	assert_int_equal(zf_mapped_touch(count, &n), 0);
	assert_int_equal(n, 1);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(zf_mapped_touch(store, &n), -EIO);
		assert_int_equal(n, 1 + i);
	}
}

static void what_others_touch_is_not_ours(void **state)
{
	int n = 0, status;
	pid_t pid;

	(void)state;
	signal(SIGBUS, SIG_DFL);
	zf_mapped_prepare();
	assert_int_equal(zf_mapped_touch(store, &n), -EIO);
	pid = fork();
	if (pid == 0) {
		const struct rlimit none = {0};

		setrlimit(RLIMIT_CORE, &none);
		*page = 1;
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_page_that_is_not_there_is_an_error, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_others_touch_is_not_ours, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
