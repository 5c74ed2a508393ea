/* SPDX-License-Identifier: MIT */
/* An overlay: the device below shows through until a block is changed, and is never changed itself.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "io/memory.h"
#include "io/overlay.h"

#define BLOCK	  ((uint64_t)ZF_BLOCK_SIZE)
#define ZONE_SIZE (16 * BLOCK)

static const struct zf_geometry geometry = {
	.zone_size = ZONE_SIZE,
	.zone_capacity = 14 * BLOCK,
	.zone_count = 6,
	.conventional = 1,
	.append_limit = 8 * BLOCK,
	.max_active = 2,
};

static struct zf_memory *memory;
static struct zf_dev *base, *dev;
static _Alignas(4096) uint8_t buf[8 * 4096];

static void open_overlay(uint64_t bytes_max)
{
	assert_int_equal(zf_overlay_open(base, bytes_max, NULL, &dev), 0);
}

static void write_to(struct zf_dev *to, uint64_t addr, uint64_t blocks, int byte)
{
	memset(buf, byte, blocks * BLOCK);
	assert_int_equal(zf_dev_write_sync(to, addr, buf, blocks * BLOCK, true), 0);
}

static void expect(struct zf_dev *from, uint64_t addr, uint64_t blocks, int byte)
{
	assert_int_equal(zf_dev_read_buf(from, addr, buf, blocks * BLOCK), 0);
	for (uint64_t i = 0; i < blocks * BLOCK; i++)
		assert_int_equal(buf[i], byte);
}

static uint64_t pointer(struct zf_dev *of, uint32_t zone_no)
{
	struct zf_zone_info info;

	assert_int_equal(zf_dev_report(of, zone_no, 1, &info), 0);
	return info.wp - info.start;
}

/* Zones 0 and 1 have four blocks below; one more zone may be active. */
static int setup(void **state)
{
	assert_int_equal(zf_memory_new(&geometry, &memory), 0);
	assert_int_equal(zf_memory_open(memory, NULL, NULL, &base), 0);
	write_to(base, 0, 4, 'c');
	write_to(base, ZONE_SIZE, 4, 'a');
	open_overlay(1 << 20);
	return 0;
}

static int teardown(void **state)
{
	zf_dev_close(dev);
	zf_dev_close(base);
	zf_memory_free(memory);
	return 0;
}

static void what_is_below_shows_through(void **state)
{
	expect(dev, ZONE_SIZE, 4, 'a');
	assert_int_equal(pointer(dev, 1), 4 * BLOCK);
	assert_false(zf_overlay_is_full(dev));
}

static void a_write_follows_what_is_below_and_stays_here(void **state)
{
	write_to(dev, ZONE_SIZE + 4 * BLOCK, 2, 'b');
	expect(dev, ZONE_SIZE, 4, 'a');
	expect(dev, ZONE_SIZE + 4 * BLOCK, 2, 'b');
	assert_int_equal(pointer(dev, 1), 6 * BLOCK);
	assert_int_equal(pointer(base, 1), 4 * BLOCK);
	expect(base, ZONE_SIZE + 4 * BLOCK, 2, 0);
}

/* One read of blocks from both: three below, then one here in a conventional zone. */
static void a_read_may_take_from_both(void **state)
{
	write_to(dev, 3 * BLOCK, 1, 'd');
	assert_int_equal(zf_dev_read_buf(dev, 0, buf, 4 * BLOCK), 0);
	assert_int_equal(buf[3 * BLOCK - 1], 'c');
	assert_int_equal(buf[3 * BLOCK], 'd');
	expect(base, 0, 4, 'c');
}

static void a_zone_that_is_reset_here_shows_nothing_from_below(void **state)
{
	write_to(dev, ZONE_SIZE + 4 * BLOCK, 1, 'b');
	assert_int_equal(zf_dev_reset(dev, 1), 0);
	expect(dev, ZONE_SIZE, 6, 0);
	write_to(dev, ZONE_SIZE, 1, 'e');
	expect(dev, ZONE_SIZE, 1, 'e');
	expect(dev, ZONE_SIZE + BLOCK, 3, 0);
	expect(base, ZONE_SIZE, 4, 'a');
}

static void the_rules_of_the_device_below_hold(void **state)
{
	assert_int_equal(zf_dev_write_sync(dev, ZONE_SIZE, buf, BLOCK, true), -EIO);
	write_to(dev, 2 * ZONE_SIZE, 1, 'f');
	assert_int_equal(zf_dev_write_sync(dev, 3 * ZONE_SIZE, buf, BLOCK, true), -EOVERFLOW);
	assert_int_equal(zf_dev_finish(dev, 2), 0);
	write_to(dev, 3 * ZONE_SIZE, 1, 'f');
}

static void an_append_lands_behind_what_is_below(void **state)
{
	struct iovec iov = {buf, BLOCK};
	struct zf_io io = {
		.op = ZF_IO_APPEND, .addr = ZONE_SIZE, .len = BLOCK, .iov = &iov, .iovcnt = 1};

	memset(buf, 'g', BLOCK);
	assert_int_equal(zf_dev_run(dev, &io), 0);
	assert_int_equal(io.addr, ZONE_SIZE + 4 * BLOCK);
	expect(dev, io.addr, 1, 'g');
}

static void zeroes_hide_what_is_below(void **state)
{
	struct zf_io io = {.op = ZF_IO_ZEROES, .addr = BLOCK, .len = 2 * BLOCK};

	assert_int_equal(zf_dev_run(dev, &io), 0);
	expect(dev, 0, 1, 'c');
	expect(dev, BLOCK, 2, 0);
	expect(dev, 3 * BLOCK, 1, 'c');
}

/* Makes bytes that cannot be compressed, other bytes for each seed. */
static void make_noise(uint64_t blocks, uint64_t seed)
{
	for (uint64_t i = 0; i < blocks * BLOCK; i++) {
		seed = seed * 6364136223846793005U + 1442695040888963407U;
		buf[i] = (uint8_t)(seed >> 56);
	}
}

static void write_noise(uint64_t addr, uint64_t blocks, uint64_t seed)
{
	make_noise(blocks, seed);
	assert_int_equal(zf_dev_write_sync(dev, addr, buf, blocks * BLOCK, true), 0);
}

static void expect_noise(uint64_t addr, uint64_t blocks, uint64_t seed)
{
	uint8_t *found = aligned_alloc(BLOCK, blocks * BLOCK);

	assert_non_null(found);
	make_noise(blocks, seed);
	assert_int_equal(zf_dev_read_buf(dev, addr, found, blocks * BLOCK), 0);
	assert_memory_equal(found, buf, blocks * BLOCK);
	free(found);
}

static void memory_has_a_bound_and_a_reset_gives_it_back(void **state)
{
	zf_dev_close(dev);
	open_overlay(3 * BLOCK);
	write_noise(2 * ZONE_SIZE, 2, 1);
	make_noise(1, 2);
	assert_int_equal(zf_dev_write_sync(dev, 2 * ZONE_SIZE + 2 * BLOCK, buf, BLOCK, true),
			 -ENOMEM);
	assert_true(zf_overlay_is_full(dev));
	assert_int_equal(zf_dev_reset(dev, 2), 0);
	for (uint64_t i = 0; i < 100; i++) {
		write_noise(2 * ZONE_SIZE, 2, 3);
		expect_noise(2 * ZONE_SIZE, 2, 3);
		assert_int_equal(zf_dev_reset(dev, 2), 0);
	}
}

/* Zone 0 is one that is written in place. */
static void what_is_overwritten_gives_its_memory_back(void **state)
{
	zf_dev_close(dev);
	open_overlay(3 * BLOCK);
	for (uint64_t i = 0; i < 100; i++) {
		write_noise(0, 1, i);
		expect_noise(0, 1, i);
		write_to(dev, 0, 1, (int)i);
		expect(dev, 0, 1, (int)i);
	}
}

static void what_can_be_compressed_takes_less_memory(void **state)
{
	zf_dev_close(dev);
	open_overlay(3 * BLOCK);
	write_to(dev, 2 * ZONE_SIZE, 8, 'l');
	write_to(dev, 2 * ZONE_SIZE + 8 * BLOCK, 4, 0);
	expect(dev, 2 * ZONE_SIZE, 8, 'l');
	expect(dev, 2 * ZONE_SIZE + 8 * BLOCK, 4, 0);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_is_below_shows_through),
		TEST(a_write_follows_what_is_below_and_stays_here),
		TEST(a_read_may_take_from_both),
		TEST(a_zone_that_is_reset_here_shows_nothing_from_below),
		TEST(the_rules_of_the_device_below_hold),
		TEST(an_append_lands_behind_what_is_below),
		TEST(zeroes_hide_what_is_below),
		TEST(memory_has_a_bound_and_a_reset_gives_it_back),
		TEST(what_is_overwritten_gives_its_memory_back),
		TEST(what_can_be_compressed_takes_less_memory),
	};

	return cmocka_run_group_tests_name("io_overlay", tests, NULL, NULL);
}
