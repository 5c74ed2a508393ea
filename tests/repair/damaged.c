/* SPDX-License-Identifier: MIT */
#include "damaged.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static void fail_with_messages(void)
{
	fixture_print_messages();
	fail();
}

struct damaged damaged_begin(struct forge *forge)
{
	struct damaged damaged = {.forge = forge};
	struct zf_dev *dev;

	assert_int_equal(zf_memory_open(forge->memory, NULL, NULL, &dev), 0);
	assert_int_equal(listing_make(dev, &damaged.before), 0);
	zf_dev_close(dev);
	return damaged;
}

void damaged_mend(struct damaged *damaged)
{
	struct zf_dev *dev;

	assert_int_equal(zf_memory_open(damaged->forge->memory, NULL, NULL, &dev), 0);
	if (fixture_errors(dev) == 0)
		fail_with_messages();
	if (fixture_repair(dev, &damaged->counts) < 0)
		fail_with_messages();
	damaged->dev = dev;
}

unsigned int damaged_lost(struct damaged *damaged)
{
	assert_int_equal(listing_make(damaged->dev, &damaged->after), 0);
	return listing_compare(&damaged->before, &damaged->after, false);
}

void damaged_end(struct damaged *damaged)
{
	if (fixture_errors(damaged->dev) > 0)
		fail_with_messages();
	zf_dev_close(damaged->dev);
	zf_vector_deinit(&damaged->before);
	zf_vector_deinit(&damaged->after);
}

uint8_t *damaged_node(struct forge *forge, enum zf_tree_id tree, struct zf_key key,
		      unsigned int level)
{
	uint64_t address[ZF_TREE_LEVEL_MAX];
	unsigned int top = forge_path(forge, tree, key, address);

	return forge_bytes(forge, address[level < top ? level : top]);
}

void damaged_expect(const char *a, const char *b)
{
	if (fixture_said(a, b))
		return;
	print_error("expected a line with \"%s\" and \"%s\"\n", a, b);
	fail_with_messages();
}
