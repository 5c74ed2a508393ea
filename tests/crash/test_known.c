/* SPDX-License-Identifier: MIT */
/* Failures that the explorer has found, made as short as possible: all cuts, on several devices. */
#include <fcntl.h>
#include <linux/falloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/bits.h"
#include "explore.h"

#define DEVICES 12u
#define OPS_MAX 16u
#define FIRST	UINT64_C(256) /* the inode that the first operation makes */

#define MAKE_FILE                                                                                  \
	{.kind = OP_MAKE,                                                                          \
	 .dir = ZF_INO_ROOT,                                                                       \
	 .name = "f",                                                                              \
	 .mode = S_IFREG | 0600,                                                                   \
	 .attr.ino = FIRST}
#define SIZE(bytes)                                                                                \
	{                                                                                          \
		.kind = OP_SETATTR, .ino = FIRST, .set = {.valid = ZF_SET_SIZE, .size = (bytes) }  \
	}
#define FSYNC {.kind = OP_FSYNC, .ino = FIRST}

static void holds(const struct zf_op *ops, uint32_t count)
{
	const struct explore_limits limits = {.cuts = UINT64_MAX, .samples = 16};
	struct zf_op numbered[OPS_MAX];
	bool keep[OPS_MAX];
	const struct script script = {.ops = numbered, .keep = keep, .count = count};
	struct record_options options = {.script = &script};
	struct tally tally = {0};
	struct cut_name failed;

	for (uint32_t i = 0; i < count; i++) {
		numbered[i] = ops[i];
		numbered[i].number = i + 1;
		numbered[i].may_wait = true;
		keep[i] = true;
	}
	for (options.name.seed = 1; options.name.seed <= DEVICES; options.name.seed++) {
		bool ok = explore(&options, &limits, &tally, &failed);
		char text[CUT_NAME_TEXT_MAX];

		cut_name_format(&failed, text);
		if (!ok)
			print_message("device and cut: %s\n", text);
		assert_true(ok);
	}
}

/* Only holes were copied: no extent changed, so no log record was written for the new size. */
static void a_size_that_a_copy_of_a_hole_left_is_durable(void **state)
{
	static const struct zf_op ops[] = {
		MAKE_FILE,
		{.kind = OP_SYNCFS},
		SIZE(8192),
		{.kind = OP_COPY, .ino = FIRST, .from_ino = FIRST, .offset = 45056, .len = 5769},
		FSYNC,
	};

	holds(ops, ZF_ARRAY_SIZE(ops));
}

static void a_size_that_grew_over_what_was_allocated_is_durable(void **state)
{
	static const struct zf_op ops[] = {
		MAKE_FILE,
		{.kind = OP_SYNCFS},
		SIZE(5000),
		{.kind = OP_FALLOCATE, .ino = FIRST, .len = 20000, .flags = FALLOC_FL_KEEP_SIZE},
		FSYNC,
		{.kind = OP_FALLOCATE, .ino = FIRST, .len = 20000},
		FSYNC,
	};

	holds(ops, ZF_ARRAY_SIZE(ops));
}

/* The log record of the copy named blocks of the source that no flush had covered. */
static void bytes_that_a_copy_shares_are_durable_with_it(void **state)
{
	static const struct zf_op ops[] = {
		MAKE_FILE,
		{.kind = OP_MAKE,
		 .dir = ZF_INO_ROOT,
		 .name = "copy",
		 .mode = S_IFREG | 0600,
		 .attr.ino = FIRST + 1},
		{.kind = OP_SYNCFS},
		{.kind = OP_WRITE, .ino = FIRST, .len = 8192},
		{.kind = OP_COPY, .ino = FIRST + 1, .from_ino = FIRST, .len = 8192},
		{.kind = OP_FSYNC, .ino = FIRST + 1},
	};

	holds(ops, ZF_ARRAY_SIZE(ops));
}

/* The power cut lost the link's transaction together with the one before it. */
static void a_link_made_during_a_commit_can_be_replayed(void **state)
{
	static const struct zf_op ops[] = {
		MAKE_FILE,
		{.kind = OP_SYNCFS},
		SIZE(5000),
		{.kind = OP_FREEZE},
		{.kind = OP_MAKE,
		 .dir = ZF_INO_ROOT,
		 .name = "s",
		 .mode = S_IFLNK | 0777,
		 .target = "f",
		 .attr.ino = FIRST + 1},
		FSYNC,
		{.kind = OP_COMMIT_WRITE},
		{.kind = OP_COMMIT_FINISH},
	};

	holds(ops, ZF_ARRAY_SIZE(ops));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_link_made_during_a_commit_can_be_replayed),
		cmocka_unit_test(a_size_that_a_copy_of_a_hole_left_is_durable),
		cmocka_unit_test(a_size_that_grew_over_what_was_allocated_is_durable),
		cmocka_unit_test(bytes_that_a_copy_shares_are_durable_with_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
