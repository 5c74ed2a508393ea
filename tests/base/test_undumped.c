/* SPDX-License-Identifier: MIT */
/* What the kernel would leave out of a core dump: /proc/self/smaps tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/undumped.h"
#include "btree/cache.h"
#include "btree/node_pool.h"

#define LEN (UINT64_C(1) << 20)

/* Of the mapping that contains the byte. */
static bool is_dumped(const void *at)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	uintptr_t start, end, wanted = (uintptr_t)at;
	bool inside = false, dumped = true;
	char line[512];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			inside = wanted >= start && wanted < end;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			dumped = !strstr(line, " dd");
	}
	fclose(file);
	return dumped;
}

static void a_buffer_is_left_out(void **state)
{
	uint8_t *plain = malloc(LEN), *buffer = zf_undumped_alloc(LEN);

	assert_non_null(plain);
	assert_non_null(buffer);
	assert_int_equal((uintptr_t)buffer % 4096, 0);
	assert_true(is_dumped(plain));
	assert_false(is_dumped(buffer));
	assert_false(is_dumped(buffer + LEN - 1));
	free(buffer);
	free(plain);
}

static void nodes_are_left_out(void **state)
{
	struct zf_node_pool pool;
	struct zf_cnode *node;

	zf_node_pool_init(&pool, 16384);
	node = zf_node_pool_take(&pool);
	assert_non_null(node);
	assert_false(is_dumped(node->data));
	zf_node_pool_give(node);
	zf_node_pool_deinit(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_is_left_out),
		cmocka_unit_test(nodes_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
