/* SPDX-License-Identifier: MIT */
/* Copies of blocks that were written in part: what is kept, what is found, what makes room. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/bits.h"
#include "base/hash.h"
#include "fs/data/recent.h"

#define SLOTS	   8u		  /* in the smallest struct zf_recent */
#define SLOTS_MANY UINT64_C(1024) /* in that of set_up() */

static uint8_t block[ZF_BLOCK_SIZE], got[ZF_BLOCK_SIZE];
static struct zf_recent *recent;

static int set_up(void **state)
{
	(void)state;
	return zf_recent_new(SLOTS_MANY * ZF_BLOCK_SIZE, &recent);
}

static int tear_down(void **state)
{
	(void)state;
	zf_recent_free(recent);
	return 0;
}

/* Fills `block`, and returns its checksum. */
static uint64_t fill(uint64_t seed)
{
	for (unsigned int i = 0; i < ZF_BLOCK_SIZE; i++)
		block[i] = (uint8_t)(seed * 31 + i * 7 + (i >> 8));
	return zf_hash64(block, ZF_BLOCK_SIZE);
}

static struct zf_recent_place place(unsigned int i)
{
	return (struct zf_recent_place){
		.address = UINT64_C(1) << 40 | (uint64_t)i << ZF_BLOCK_SHIFT, .resets = 3};
}

static uint64_t keep(unsigned int i, uint64_t seed)
{
	const struct zf_recent_place at = place(i);
	uint64_t csum = fill(seed);

	zf_recent_keep(recent, &at, block);
	return csum;
}

static bool has(unsigned int i, uint64_t seed)
{
	const struct zf_recent_place at = place(i);
	uint64_t csum = fill(seed);
	bool found;

	memset(got, 0xa5, sizeof(got));
	found = zf_recent_get(recent, &at, csum, 0, ZF_BLOCK_SIZE, got);
	if (found)
		assert_memory_equal(got, block, ZF_BLOCK_SIZE);
	else
		assert_int_equal(got[0], 0xa5);
	return found;
}

static void gives_a_part_of_a_block(void **state)
{
	struct zf_recent_place at = place(5);
	uint64_t csum;

	(void)state;
	csum = keep(5, 1);
	memset(got, 0xa5, sizeof(got));
	assert_true(zf_recent_get(recent, &at, csum, 100, 200, got));
	assert_memory_equal(got, block + 100, 200);
	assert_int_equal(got[200], 0xa5);
	at.address += ZF_BLOCK_SIZE;
	assert_false(zf_recent_get(recent, &at, csum, 100, 200, got));
}

/* Other data, even with the same checksum, lies at the address when the zone has been reset. */
static void a_copy_is_of_one_reset(void **state)
{
	struct zf_recent_place at = place(5);
	uint64_t csum;

	(void)state;
	csum = keep(5, 1);
	at.resets++;
	assert_false(zf_recent_get(recent, &at, csum, 0, ZF_BLOCK_SIZE, got));
	fill(2);
	zf_recent_keep(recent, &at, block);
	assert_false(zf_recent_get(recent, &at, csum, 0, ZF_BLOCK_SIZE, got));
	assert_true(zf_recent_get(recent, &at, fill(2), 0, ZF_BLOCK_SIZE, got));
	assert_memory_equal(got, block, ZF_BLOCK_SIZE);
	assert_true(has(5, 1));
}

static void a_copy_is_verified(void **state)
{

	(void)state;
	keep(5, 1);
	assert_false(has(5, 2));
	assert_true(has(5, 1));
}

static void the_oldest_copy_makes_room(void **state)
{

	(void)state;
	for (unsigned int i = 0; i < SLOTS; i++)
		keep(i, i);
	for (unsigned int i = 0; i < SLOTS; i++)
		assert_true(has(i, i));
	keep(SLOTS, SLOTS);
	assert_false(has(0, 0));
	keep(SLOTS + 1, SLOTS + 1);
	assert_false(has(1, 1));
	for (unsigned int i = 2; i < SLOTS + 2; i++)
		assert_true(has(i, i));
}

static void all_copies_are_given_back(void **state)
{

	(void)state;
	for (unsigned int i = 0; i < 100; i++)
		keep(i, i);
	zf_recent_trim(recent);
	for (unsigned int i = 0; i < 100; i++)
		assert_false(has(i, i));
	keep(5, 1);
	assert_true(has(5, 1));
}

/* The last blocks of many files, one after the other on the device: most are there. */
static void addresses_are_spread_over_all_sets(void **state)
{
	unsigned int found = 0;

	(void)state;
	for (unsigned int i = 0; i < SLOTS_MANY; i++)
		keep(3 * i, i);
	for (unsigned int i = 0; i < SLOTS_MANY; i++)
		found += has(3 * i, i);
	assert_in_range(found, SLOTS_MANY * 3 / 4, SLOTS_MANY);
}

static int set_up_smallest(void **state)
{
	(void)state;
	return zf_recent_new(1, &recent);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(gives_a_part_of_a_block),
		TEST(a_copy_is_of_one_reset),
		TEST(a_copy_is_verified),
		cmocka_unit_test_setup_teardown(the_oldest_copy_makes_room, set_up_smallest,
						tear_down),
		TEST(all_copies_are_given_back),
		TEST(addresses_are_spread_over_all_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
