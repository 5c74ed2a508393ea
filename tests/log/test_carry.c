/* SPDX-License-Identifier: MIT */
/* A block packed into its record's header: unpacking gives the packed bytes, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"
#include "log/carry.h"
#include "log/record.h"
#include "sim/rng.h"

#define BLOCK 4096u
#define BYTES 400u /* header and bodies */

static const uint8_t fsid[16] = {1};
static const uint8_t secret[32] = {2};

/* The first `noise` bytes cannot be packed. */
static void make_data(uint8_t data[BLOCK], uint64_t seed, size_t noise)
{
	struct zf_rng rng;

	zf_rng_seed(&rng, seed);
	memset(data, (int)seed, BLOCK);
	zf_rng_fill(&rng, data, noise);
}

static void seal(uint8_t block[BLOCK], uint32_t carried, uint32_t data_blocks)
{
	const struct zf_log_record record = {
		.zone_address = 1 << 20,
		.epoch = 1,
		.sequence = 1,
		.zone_resets = 1,
		.generation = 1,
		.bytes = BYTES,
		.data_blocks = data_blocks,
		.body_count = 1,
		.carried = carried,
	};
	struct zf_hash_key key;

	zf_hash_key_init(&key, secret);
	zf_log_record_seal(&key, &record, fsid, block);
}

/* A record that carries the data. */
static void make_record(uint8_t block[BLOCK], const uint8_t data[BLOCK])
{
	uint32_t len;

	memset(block, 0, BLOCK);
	len = zf_log_carry_pack(data, block + BYTES, BLOCK - BYTES);
	assert_in_range(len, 1, BLOCK - BYTES);
	seal(block, len, 1);
}

static void what_is_packed_comes_out_again(void **state)
{
	uint8_t data[BLOCK], block[BLOCK], out[BLOCK];

	(void)state;
	for (size_t noise = 0; noise < BLOCK - BYTES - 64; noise += 97) {
		make_data(data, noise, noise);
		make_record(block, data);
		memset(out, 0, BLOCK);
		assert_true(zf_log_carry_unpack(block, out));
		assert_memory_equal(out, data, BLOCK);
	}
}

static void what_gets_no_smaller_is_not_packed(void **state)
{
	uint8_t data[BLOCK], packed[BLOCK];
	uint32_t len;

	(void)state;
	make_data(data, 1, BLOCK);
	assert_int_equal(zf_log_carry_pack(data, packed, BLOCK), 0);
	make_data(data, 2, 1000);
	len = zf_log_carry_pack(data, packed, BLOCK);
	assert_in_range(len, 1000, 1100);
	assert_int_equal(zf_log_carry_pack(data, packed, len), len);
	memset(packed, 0xaa, BLOCK);
	assert_int_equal(zf_log_carry_pack(data, packed, len - 1), 0);
	for (size_t i = len - 1; i < BLOCK; i++)
		assert_int_equal(packed[i], 0xaa);
}

static void a_checksum_tells_what_a_block_is(void **state)
{
	uint8_t data[BLOCK], record[BLOCK], block[BLOCK];
	uint64_t sum, has;

	(void)state;
	make_data(data, 3, 500);
	make_record(record, data);
	sum = zf_hash64(data, BLOCK);
	/* The data itself. */
	memcpy(block, data, BLOCK);
	assert_true(zf_log_carry_verify(block, sum, &has));
	assert_memory_equal(block, data, BLOCK);
	/* A record that carries it. */
	memcpy(block, record, BLOCK);
	assert_true(zf_log_carry_verify(block, sum, &has));
	assert_memory_equal(block, data, BLOCK);
	/* A file may contain a copy of such a record. */
	memcpy(block, record, BLOCK);
	assert_true(zf_log_carry_verify(block, zf_hash64(record, BLOCK), &has));
	assert_memory_equal(block, record, BLOCK);
	/* The checksum matches neither case: the block is left as it is. */
	memcpy(block, record, BLOCK);
	assert_false(zf_log_carry_verify(block, sum + 1, &has));
	assert_memory_equal(block, record, BLOCK);
	assert_int_equal(has, zf_hash64(record, BLOCK));
}

static void a_record_without_a_packed_block_carries_none(void **state)
{
	uint8_t block[BLOCK] = {0}, out[BLOCK];

	(void)state;
	assert_false(zf_log_carry_unpack(block, out));
	seal(block, 0, 1);
	assert_false(zf_log_carry_unpack(block, out));
}

static void a_record_without_data_carries_none(void **state)
{
	uint8_t data[BLOCK], block[BLOCK], out[BLOCK];
	struct zf_log_record record;

	(void)state;
	make_data(data, 6, 100);
	make_record(block, data);
	assert_true(zf_log_record_peek(block, &record));
	seal(block, record.carried, 0);
	assert_false(zf_log_record_peek(block, &record));
	assert_false(zf_log_carry_unpack(block, out));
}

/* As many blocks as a record may have, including the carried one. */
static void a_record_may_be_as_long_as_any(void **state)
{
	const uint32_t most = ZF_LOG_RECORD_MAX / BLOCK;
	uint8_t data[BLOCK], block[BLOCK];
	struct zf_log_record record;
	uint32_t carried;

	(void)state;
	make_data(data, 7, 100);
	make_record(block, data);
	assert_true(zf_log_record_peek(block, &record));
	carried = record.carried;
	seal(block, carried, most);
	assert_true(zf_log_record_peek(block, &record));
	assert_int_equal(zf_log_record_len(&record), ZF_LOG_RECORD_MAX);
	((struct zf_disk_log_header *)(void *)block)->data_blocks = zf_le32_from(most + 1);
	assert_false(zf_log_record_peek(block, &record));
	((struct zf_disk_log_header *)(void *)block)->carried = zf_le32_from(0);
	((struct zf_disk_log_header *)(void *)block)->data_blocks = zf_le32_from(most);
	assert_false(zf_log_record_peek(block, &record));
}

/* Whatever a block contains, only its data is unpacked, and no byte outside is touched. */
static void a_damaged_record_carries_nothing_else(void **state)
{
	uint8_t data[BLOCK], record[BLOCK], *block = malloc(BLOCK);
	struct zf_rng rng;
	unsigned int refused = 0;
	uint64_t has;

	(void)state;
	assert_non_null(block);
	zf_rng_seed(&rng, 4);
	make_data(data, 5, 1500);
	make_record(record, data);
	for (unsigned int i = 0; i < 20000; i++) {
		memcpy(block, record, BLOCK);
		/* Half of the changes are in the header and the bodies, half anywhere in the
		 * block. */
		block[zf_rng_below(&rng, i % 2 ? BLOCK : BYTES)] ^=
			(uint8_t)(1 + zf_rng_below(&rng, 255));
		if (zf_log_carry_verify(block, zf_hash64(data, BLOCK), &has))
			assert_memory_equal(block, data, BLOCK);
		else
			refused++;
	}
	assert_in_range(refused, 2000, 18000);
	free(block);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_packed_comes_out_again),
		cmocka_unit_test(what_gets_no_smaller_is_not_packed),
		cmocka_unit_test(a_checksum_tells_what_a_block_is),
		cmocka_unit_test(a_record_without_a_packed_block_carries_none),
		cmocka_unit_test(a_record_without_data_carries_none),
		cmocka_unit_test(a_record_may_be_as_long_as_any),
		cmocka_unit_test(a_damaged_record_carries_nothing_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
