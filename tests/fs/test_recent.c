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

#define SLOTS 8u /* in the smallest struct zf_recent */

static uint8_t block[ZF_BLOCK_SIZE], got[ZF_BLOCK_SIZE];

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

static uint64_t keep(struct zf_recent *recent, unsigned int i, uint64_t seed)
{
	const struct zf_recent_place at = place(i);
	uint64_t csum = fill(seed);

	zf_recent_keep(recent, &at, block);
	return csum;
}

static bool has(struct zf_recent *recent, unsigned int i, uint64_t seed)
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
	struct zf_recent *recent;
	uint64_t csum;

	(void)state;
	assert_int_equal(zf_recent_new(1 << 20, &recent), 0);
	csum = keep(recent, 5, 1);
	memset(got, 0xa5, sizeof(got));
	assert_true(zf_recent_get(recent, &at, csum, 100, 200, got));
	assert_memory_equal(got, block + 100, 200);
	assert_int_equal(got[200], 0xa5);
	at.address += ZF_BLOCK_SIZE;
	assert_false(zf_recent_get(recent, &at, csum, 100, 200, got));
	zf_recent_free(recent);
}

/* Other data, even with the same checksum, lies at the address when the zone has been reset. */
static void a_copy_is_of_one_reset(void **state)
{
	struct zf_recent_place at = place(5);
	struct zf_recent *recent;
	uint64_t csum;

	(void)state;
	assert_int_equal(zf_recent_new(1 << 20, &recent), 0);
	csum = keep(recent, 5, 1);
	at.resets++;
	assert_false(zf_recent_get(recent, &at, csum, 0, ZF_BLOCK_SIZE, got));
	fill(2);
	zf_recent_keep(recent, &at, block);
	assert_false(zf_recent_get(recent, &at, csum, 0, ZF_BLOCK_SIZE, got));
	assert_true(zf_recent_get(recent, &at, fill(2), 0, ZF_BLOCK_SIZE, got));
	assert_memory_equal(got, block, ZF_BLOCK_SIZE);
	assert_true(has(recent, 5, 1));
	zf_recent_free(recent);
}

static void a_copy_is_verified(void **state)
{
	struct zf_recent *recent;

	(void)state;
	assert_int_equal(zf_recent_new(1 << 20, &recent), 0);
	keep(recent, 5, 1);
	assert_false(has(recent, 5, 2));
	assert_true(has(recent, 5, 1));
	zf_recent_free(recent);
}

static void the_oldest_copy_makes_room(void **state)
{
	struct zf_recent *recent;

	(void)state;
	assert_int_equal(zf_recent_new(1, &recent), 0);
	for (unsigned int i = 0; i < SLOTS; i++)
		keep(recent, i, i);
	for (unsigned int i = 0; i < SLOTS; i++)
		assert_true(has(recent, i, i));
	keep(recent, SLOTS, SLOTS);
	assert_false(has(recent, 0, 0));
	keep(recent, SLOTS + 1, SLOTS + 1);
	assert_false(has(recent, 1, 1));
	for (unsigned int i = 2; i < SLOTS + 2; i++)
		assert_true(has(recent, i, i));
	zf_recent_free(recent);
}

static void all_copies_are_given_back(void **state)
{
	struct zf_recent *recent;

	(void)state;
	assert_int_equal(zf_recent_new(1 << 20, &recent), 0);
	for (unsigned int i = 0; i < 100; i++)
		keep(recent, i, i);
	zf_recent_trim(recent);
	for (unsigned int i = 0; i < 100; i++)
		assert_false(has(recent, i, i));
	keep(recent, 5, 1);
	assert_true(has(recent, 5, 1));
	zf_recent_free(recent);
}

/* The last blocks of many files, one after the other on the device: most are there. */
static void addresses_are_spread_over_all_sets(void **state)
{
	const unsigned int count = 1024; /* as many as there are slots */
	struct zf_recent *recent;
	unsigned int found = 0;

	(void)state;
	assert_int_equal(zf_recent_new((uint64_t)count << ZF_BLOCK_SHIFT, &recent), 0);
	for (unsigned int i = 0; i < count; i++)
		keep(recent, 3 * i, i);
	for (unsigned int i = 0; i < count; i++)
		found += has(recent, 3 * i, i);
	assert_in_range(found, count * 3 / 4, count);
	zf_recent_free(recent);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_a_part_of_a_block),
		cmocka_unit_test(a_copy_is_of_one_reset),
		cmocka_unit_test(a_copy_is_verified),
		cmocka_unit_test(the_oldest_copy_makes_room),
		cmocka_unit_test(all_copies_are_given_back),
		cmocka_unit_test(addresses_are_spread_over_all_sets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
