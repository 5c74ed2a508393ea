/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/zone_rules.h"
#include "sim/rng.h"

#define BLOCK	  ((uint64_t)ZF_BLOCK_SIZE)
#define ZONE_SIZE (16 * BLOCK)
#define CAPACITY  (12 * BLOCK)

static const struct zf_geometry geometry = {
	.zone_size = ZONE_SIZE,
	.zone_capacity = CAPACITY,
	.zone_count = 8,
	.conventional = 1,
	.max_open = 2,
	.max_active = 3,
	.append_limit = 4 * BLOCK,
};

static struct zf_zone_rules rules;

static int setup(void **state)
{
	return zf_zone_rules_init(&rules, &geometry);
}

static int teardown(void **state)
{
	zf_zone_rules_deinit(&rules);
	return 0;
}

/* The rules never look at the bytes: one aligned address serves for every buffer. */
static int apply(enum zf_io_op op, uint64_t addr, uint64_t len, uint64_t *ret_addr)
{
	struct iovec iov = {.iov_base = (void *)BLOCK, .iov_len = len};
	struct zf_io io = {.op = op, .addr = addr, .len = len, .iov = &iov, .iovcnt = 1};

	return zf_zone_rules_apply(&rules, &io, ret_addr);
}

static int write_at(uint32_t zone_no, uint64_t offset, uint64_t len)
{
	uint64_t addr;

	return apply(ZF_IO_WRITE, zone_no * ZONE_SIZE + offset, len, &addr);
}

static int manage(enum zf_io_op op, uint32_t zone_no)
{
	uint64_t addr;

	return apply(op, zone_no * ZONE_SIZE, 0, &addr);
}

static enum zf_zone_cond cond(uint32_t zone_no)
{
	return rules.zones[zone_no].cond;
}

static void writes_go_to_the_pointer_only(void **state)
{
	assert_int_equal(write_at(1, BLOCK, BLOCK), -EIO);
	assert_int_equal(write_at(1, 0, 2 * BLOCK), 0);
	assert_int_equal(write_at(1, 0, BLOCK), -EIO);
	assert_int_equal(write_at(1, BLOCK, BLOCK), -EIO);
	assert_int_equal(write_at(1, 3 * BLOCK, BLOCK), -EIO);
	assert_int_equal(write_at(1, 2 * BLOCK, BLOCK), 0);
	assert_int_equal(rules.zones[1].wp, 3 * BLOCK);
}

static void an_append_lands_at_the_pointer(void **state)
{
	uint64_t addr = 0;

	assert_int_equal(apply(ZF_IO_APPEND, 2 * ZONE_SIZE, BLOCK, &addr), 0);
	assert_int_equal(addr, 2 * ZONE_SIZE);
	assert_int_equal(apply(ZF_IO_APPEND, 2 * ZONE_SIZE, 4 * BLOCK, &addr), 0);
	assert_int_equal(addr, 2 * ZONE_SIZE + BLOCK);
	assert_int_equal(apply(ZF_IO_APPEND, 2 * ZONE_SIZE, BLOCK, &addr), 0);
	assert_int_equal(addr, 2 * ZONE_SIZE + 5 * BLOCK);
}

static void an_append_names_its_zone_by_the_start(void **state)
{
	uint64_t addr = 7;

	assert_int_equal(write_at(1, 0, BLOCK), 0);
	assert_int_equal(apply(ZF_IO_APPEND, ZONE_SIZE + BLOCK, BLOCK, &addr), -EINVAL);
	assert_int_equal(addr, 7);
}

static void an_append_over_the_limit_is_refused(void **state)
{
	uint64_t addr;

	assert_int_equal(apply(ZF_IO_APPEND, ZONE_SIZE, 5 * BLOCK, &addr), -EINVAL);
	assert_int_equal(apply(ZF_IO_APPEND, ZONE_SIZE, 4 * BLOCK, &addr), 0);
	assert_int_equal(write_at(2, 0, 5 * BLOCK), 0);
}

static void nothing_is_written_beyond_the_capacity(void **state)
{
	uint64_t addr;

	assert_int_equal(write_at(1, 0, CAPACITY + BLOCK), -ENOSPC);
	assert_int_equal(rules.zones[1].wp, 0);
	assert_int_equal(write_at(1, 0, CAPACITY - BLOCK), 0);
	assert_int_equal(write_at(1, CAPACITY - BLOCK, 2 * BLOCK), -ENOSPC);
	assert_int_equal(apply(ZF_IO_APPEND, ZONE_SIZE, 2 * BLOCK, &addr), -ENOSPC);
	assert_int_equal(cond(1), ZF_ZONE_IMP_OPEN);
	assert_int_equal(apply(ZF_IO_APPEND, ZONE_SIZE, BLOCK, &addr), 0);
	assert_int_equal(cond(1), ZF_ZONE_FULL);
	assert_int_equal(apply(ZF_IO_APPEND, ZONE_SIZE, BLOCK, &addr), -ENOSPC);
	assert_int_equal(write_at(1, CAPACITY, BLOCK), -ENOSPC);
}

static void a_request_does_not_cross_the_end_of_its_zone(void **state)
{
	assert_int_equal(write_at(1, 0, ZONE_SIZE + BLOCK), -ENOSPC);
	assert_int_equal(write_at(0, CAPACITY - BLOCK, 2 * BLOCK), -ENOSPC);
	assert_int_equal(write_at(0, ZONE_SIZE - BLOCK, BLOCK), -ENOSPC);
	assert_int_equal(write_at(7, 0, UINT64_MAX - BLOCK + 1), -ENOSPC);
	assert_int_equal(write_at(8, 0, BLOCK), -EINVAL);
}

static void everything_is_block_aligned(void **state)
{
	struct iovec split[2] = {{(void *)BLOCK, 512}, {(void *)BLOCK, BLOCK - 512}};
	struct iovec shifted = {(void *)(BLOCK + 512), BLOCK};
	struct iovec longer = {(void *)BLOCK, 2 * BLOCK};
	struct zf_io io = {.op = ZF_IO_WRITE, .addr = ZONE_SIZE, .len = BLOCK};
	uint64_t addr;

	assert_int_equal(write_at(1, 512, BLOCK), -EINVAL);
	assert_int_equal(write_at(1, 0, 512), -EINVAL);
	assert_int_equal(write_at(1, 0, 0), -EINVAL);
	assert_int_equal(apply(ZF_IO_ZEROES, ZONE_SIZE, 512, &addr), -EINVAL);

	io.iov = split, io.iovcnt = 2;
	assert_int_equal(zf_zone_rules_apply(&rules, &io, &addr), -EINVAL);
	io.iov = &shifted, io.iovcnt = 1;
	assert_int_equal(zf_zone_rules_apply(&rules, &io, &addr), -EINVAL);
	io.iov = &longer;
	assert_int_equal(zf_zone_rules_apply(&rules, &io, &addr), -EINVAL);
	io.iovcnt = 0;
	assert_int_equal(zf_zone_rules_apply(&rules, &io, &addr), -EINVAL);
	assert_int_equal(rules.zones[1].wp, 0);
}

static void reads_stay_on_the_device(void **state)
{
	uint64_t end = 8 * ZONE_SIZE;

	assert_int_equal(zf_zone_rules_check_read(&rules, 0, end), 0);
	assert_int_equal(zf_zone_rules_check_read(&rules, end - BLOCK, BLOCK), 0);
	assert_int_equal(zf_zone_rules_check_read(&rules, end - BLOCK, 2 * BLOCK), -EINVAL);
	assert_int_equal(zf_zone_rules_check_read(&rules, end, BLOCK), -EINVAL);
	assert_int_equal(zf_zone_rules_check_read(&rules, 512, BLOCK), -EINVAL);
	assert_int_equal(zf_zone_rules_check_read(&rules, 0, 0), -EINVAL);
	assert_int_equal(zf_zone_rules_check_read(&rules, 2 * BLOCK, UINT64_MAX - BLOCK + 1),
			 -EINVAL);
}

static void at_max_open_another_zone_is_closed(void **state)
{
	assert_int_equal(write_at(1, 0, BLOCK), 0);
	assert_int_equal(write_at(2, 0, BLOCK), 0);
	assert_int_equal(rules.open_count, 2);
	assert_int_equal(write_at(3, 0, BLOCK), 0);
	assert_int_equal(rules.open_count, 2);
	assert_int_equal(rules.active_count, 3);
	assert_int_equal(cond(1), ZF_ZONE_CLOSED);
	/* A closed zone opens again where it was. */
	assert_int_equal(write_at(1, BLOCK, BLOCK), 0);
	assert_int_equal(cond(1), ZF_ZONE_IMP_OPEN);
	assert_int_equal(rules.open_count, 2);
}

static void at_max_active_no_empty_zone_is_opened(void **state)
{
	for (uint32_t i = 1; i <= 3; i++)
		assert_int_equal(write_at(i, 0, BLOCK), 0);
	assert_int_equal(write_at(4, 0, BLOCK), -EOVERFLOW);
	assert_int_equal(cond(4), ZF_ZONE_EMPTY);
	assert_int_equal(write_at(2, BLOCK, BLOCK), 0);

	assert_int_equal(write_at(1, BLOCK, CAPACITY - BLOCK), 0);
	assert_int_equal(rules.active_count, 2);
	assert_int_equal(write_at(4, 0, BLOCK), 0);
	assert_int_equal(manage(ZF_IO_FINISH, 2), 0);
	assert_int_equal(write_at(5, 0, BLOCK), 0);
	assert_int_equal(manage(ZF_IO_RESET, 3), 0);
	assert_int_equal(write_at(6, 0, BLOCK), 0);
	assert_int_equal(write_at(7, 0, BLOCK), -EOVERFLOW);
}

static void finish_moves_the_pointer_to_the_end(void **state)
{
	assert_int_equal(write_at(1, 0, BLOCK), 0);
	assert_int_equal(manage(ZF_IO_FINISH, 1), 0);
	assert_int_equal(rules.zones[1].wp, CAPACITY);
	assert_int_equal(cond(1), ZF_ZONE_FULL);
	assert_int_equal(rules.open_count, 0);
	assert_int_equal(manage(ZF_IO_FINISH, 2), 0);
	assert_int_equal(cond(2), ZF_ZONE_FULL);
	assert_int_equal(write_at(2, 0, BLOCK), -ENOSPC);
}

static void reset_empties_and_counts(void **state)
{
	assert_int_equal(write_at(1, 0, CAPACITY), 0);
	assert_int_equal(manage(ZF_IO_RESET, 1), 0);
	assert_int_equal(cond(1), ZF_ZONE_EMPTY);
	assert_int_equal(rules.zones[1].wp, 0);
	assert_int_equal(rules.zones[1].reset_count, 1);
	assert_int_equal(write_at(1, 0, BLOCK), 0);
	assert_int_equal(manage(ZF_IO_RESET, 1), 0);
	assert_int_equal(rules.zones[1].reset_count, 2);
	assert_int_equal(rules.active_count, 0);
	assert_int_equal(apply(ZF_IO_RESET, ZONE_SIZE + BLOCK, 0, &(uint64_t){0}), -EINVAL);
}

static void a_conventional_zone_is_written_anywhere_and_has_no_pointer(void **state)
{
	uint64_t addr = 0;
	struct zf_zone_info info;

	assert_int_equal(apply(ZF_IO_WRITE, 3 * BLOCK, BLOCK, &addr), 0);
	assert_int_equal(addr, 3 * BLOCK);
	assert_int_equal(write_at(0, 0, BLOCK), 0);
	assert_int_equal(write_at(0, 3 * BLOCK, BLOCK), 0);
	assert_int_equal(apply(ZF_IO_APPEND, 0, BLOCK, &addr), -EINVAL);
	assert_int_equal(manage(ZF_IO_RESET, 0), -EINVAL);
	assert_int_equal(manage(ZF_IO_FINISH, 0), -EINVAL);
	assert_int_equal(rules.active_count, 0);

	zf_zone_rules_report(&rules, 0, &info);
	assert_int_equal(info.type, ZF_ZONE_CONVENTIONAL);
	assert_int_equal(info.cond, ZF_ZONE_NOT_WP);
	assert_int_equal(info.wp, 0);
}

static void dead_zones_refuse_writes(void **state)
{
	assert_int_equal(write_at(1, 0, BLOCK), 0);
	rules.zones[1].cond = ZF_ZONE_READONLY;
	rules.zones[2].cond = ZF_ZONE_OFFLINE;
	zf_zone_rules_recount(&rules);
	assert_int_equal(rules.active_count, 0);
	assert_int_equal(write_at(1, BLOCK, BLOCK), -EROFS);
	assert_int_equal(manage(ZF_IO_RESET, 1), -EROFS);
	assert_int_equal(write_at(2, 0, BLOCK), -ENXIO);
	assert_int_equal(manage(ZF_IO_FINISH, 2), -ENXIO);
}

static void raising_moves_a_pointer_up_only(void **state)
{
	assert_int_equal(zf_zone_rules_raise(&rules, 1, ZONE_SIZE + 3 * BLOCK), 0);
	assert_int_equal(rules.zones[1].wp, 3 * BLOCK);
	assert_int_equal(cond(1), ZF_ZONE_CLOSED);
	assert_int_equal(rules.active_count, 1);
	assert_int_equal(zf_zone_rules_raise(&rules, 1, ZONE_SIZE + BLOCK), 0);
	assert_int_equal(rules.zones[1].wp, 3 * BLOCK);
	assert_int_equal(zf_zone_rules_raise(&rules, 1, ZONE_SIZE + CAPACITY), 0);
	assert_int_equal(cond(1), ZF_ZONE_FULL);
	assert_int_equal(rules.active_count, 0);
	assert_int_equal(zf_zone_rules_raise(&rules, 2, 2 * ZONE_SIZE + CAPACITY + BLOCK), -EINVAL);
	assert_int_equal(zf_zone_rules_raise(&rules, 2, 2 * ZONE_SIZE + 512), -EINVAL);
	assert_int_equal(zf_zone_rules_raise(&rules, 2, ZONE_SIZE), -EINVAL);
	assert_int_equal(zf_zone_rules_raise(&rules, 8, 8 * ZONE_SIZE + BLOCK), -EINVAL);
	assert_int_equal(zf_zone_rules_raise(&rules, 0, BLOCK), 0);
	assert_int_equal(rules.zones[0].wp, 0);
}

static void a_power_cycle_closes_open_zones(void **state)
{
	assert_int_equal(write_at(1, 0, BLOCK), 0);
	rules.zones[2].cond = ZF_ZONE_EXP_OPEN;
	zf_zone_rules_power_cycle(&rules);
	assert_int_equal(cond(1), ZF_ZONE_CLOSED);
	assert_int_equal(cond(2), ZF_ZONE_EMPTY);
	assert_int_equal(rules.open_count, 0);
	assert_int_equal(rules.active_count, 1);
}

/* P6: whatever is asked, the counts are true, within the limits, and the pointer within its zone.
 */
static void random_commands_never_break_a_limit(void **state)
{
	const char *given = getenv("ZF_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : 1;
	unsigned int accepted = 0;
	struct zf_rng rng;

	print_message("seed %llu (ZF_SEED)\n", (unsigned long long)seed);
	zf_rng_seed(&rng, seed);
	for (int i = 0; i < 20000; i++) {
		static const enum zf_io_op ops[] = {ZF_IO_WRITE,  ZF_IO_APPEND, ZF_IO_APPEND,
						    ZF_IO_ZEROES, ZF_IO_RESET,	ZF_IO_FINISH};
		enum zf_io_op op = ops[zf_rng_below(&rng, ZF_ARRAY_SIZE(ops))];
		uint32_t zone_no = (uint32_t)zf_rng_below(&rng, geometry.zone_count);
		bool data = op == ZF_IO_WRITE || op == ZF_IO_ZEROES;
		uint64_t before = rules.zones[zone_no].wp;
		uint64_t offset = data && zf_rng_chance(&rng, 80) ? before : 0;
		uint64_t addr = zone_no * ZONE_SIZE + offset;
		uint64_t len = zf_rng_below(&rng, 6) * BLOCK;
		uint32_t open = rules.open_count, active = rules.active_count;

		if (apply(op, addr, len, &addr) == 0) {
			accepted++;
			if (zone_no >= geometry.conventional && (data || op == ZF_IO_APPEND))
				assert_int_equal(addr, zone_no * ZONE_SIZE + before);
		} else {
			assert_int_equal(rules.zones[zone_no].wp, before);
		}
		assert_true(rules.zones[zone_no].wp <= CAPACITY);
		assert_true(rules.open_count <= geometry.max_open);
		assert_true(rules.active_count <= geometry.max_active);
		open = rules.open_count, active = rules.active_count;
		zf_zone_rules_recount(&rules);
		assert_int_equal(open, rules.open_count);
		assert_int_equal(active, rules.active_count);
	}
	assert_true(accepted > 4000);
}

static char last_message[256];

static void keep_message(void *arg, enum zf_report_level level, const char *message)
{
	strncpy(last_message, message, sizeof(last_message) - 1);
}

static void a_geometry_is_checked_number_by_number(void **state)
{
	static const struct {
		struct zf_geometry change;
		const char *names;
	} wrong[] = {
		{{.zone_size = 4097}, "zone size"},
		{{.zone_size = UINT64_MAX - 4095}, "zone size"},
		{{.zone_capacity = ZONE_SIZE + BLOCK}, "zone capacity"},
		{{.zone_capacity = 100}, "zone capacity"},
		{{.conventional = 9}, "conventional"},
		{{.max_open = 4}, "max open"},
		{{.append_limit = 4095}, "append limit"},
	};
	struct zf_report report = {.fn = keep_message};
	struct zf_geometry g;

	assert_int_equal(zf_geometry_check(&geometry, &report), 0);
	for (size_t i = 0; i < ZF_ARRAY_SIZE(wrong); i++) {
		const struct zf_geometry *c = &wrong[i].change;

		g = geometry;
		g.zone_size = c->zone_size ? c->zone_size : g.zone_size;
		g.zone_capacity = c->zone_capacity ? c->zone_capacity : g.zone_capacity;
		g.conventional = c->conventional ? c->conventional : g.conventional;
		g.max_open = c->max_open ? c->max_open : g.max_open;
		g.append_limit = c->append_limit ? c->append_limit : g.append_limit;
		assert_int_equal(zf_geometry_check(&g, &report), -EINVAL);
		assert_non_null(strstr(last_message, wrong[i].names));
	}
	g = geometry;
	g.zone_count = 0;
	assert_int_equal(zf_geometry_check(&g, &report), -EINVAL);
	g.zone_size = 1ull << 40;
	g.zone_count = UINT32_MAX;
	assert_int_equal(zf_geometry_check(&g, &report), -EINVAL);
	assert_non_null(strstr(last_message, "number of zones"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(writes_go_to_the_pointer_only),
		TEST(an_append_lands_at_the_pointer),
		TEST(an_append_names_its_zone_by_the_start),
		TEST(an_append_over_the_limit_is_refused),
		TEST(nothing_is_written_beyond_the_capacity),
		TEST(a_request_does_not_cross_the_end_of_its_zone),
		TEST(everything_is_block_aligned),
		TEST(reads_stay_on_the_device),
		TEST(at_max_open_another_zone_is_closed),
		TEST(at_max_active_no_empty_zone_is_opened),
		TEST(finish_moves_the_pointer_to_the_end),
		TEST(reset_empties_and_counts),
		TEST(a_conventional_zone_is_written_anywhere_and_has_no_pointer),
		TEST(dead_zones_refuse_writes),
		TEST(raising_moves_a_pointer_up_only),
		TEST(a_power_cycle_closes_open_zones),
		TEST(random_commands_never_break_a_limit),
		TEST(a_geometry_is_checked_number_by_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
