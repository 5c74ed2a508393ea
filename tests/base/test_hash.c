/* SPDX-License-Identifier: MIT */
/* The keyed hash: its bytes are part of the disk format, and nobody makes them without the secret.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/hash.h"

#define LONG 8192u

static void make_secret(uint8_t secret[ZF_HASH_SECRET_SIZE])
{
	for (uint8_t i = 0; i < ZF_HASH_SECRET_SIZE; i++)
		secret[i] = i;
}

/* A change of these bytes is a change of the disk format. */
static void the_bytes_of_a_hash_never_change(void **state)
{
	static const uint8_t expected_short[ZF_HASH128_SIZE] = {0x40, 0x42, 0xab, 0xb4, 0xe5, 0x09,
								0xac, 0x4c, 0xf1, 0x90, 0xfb, 0x65,
								0x80, 0x2a, 0xc2, 0xa2};
	static const uint8_t expected_long[ZF_HASH128_SIZE] = {0xe1, 0x50, 0xb0, 0x93, 0x29, 0x94,
							       0x5e, 0x66, 0x43, 0xbd, 0xd0, 0x56,
							       0x5c, 0x85, 0x3c, 0xeb};
	uint8_t secret[ZF_HASH_SECRET_SIZE], data[LONG], hash[ZF_HASH128_SIZE];
	struct zf_hash_key key;

	make_secret(secret);
	memset(data, 'z', sizeof(data));
	zf_hash_key_init(&key, secret);
	zf_hash128_keyed(&key, data, 100, hash);
	assert_memory_equal(hash, expected_short, sizeof(hash));
	zf_hash128_keyed(&key, data, LONG, hash);
	assert_memory_equal(hash, expected_long, sizeof(hash));
}

static void every_bit_of_the_secret_counts(void **state)
{
	uint8_t secret[ZF_HASH_SECRET_SIZE], data[4096] = {1};
	uint8_t hash[ZF_HASH128_SIZE], other[ZF_HASH128_SIZE];
	struct zf_hash_key key;

	make_secret(secret);
	zf_hash_key_init(&key, secret);
	zf_hash128_keyed(&key, data, sizeof(data), hash);
	for (unsigned int bit = 0; bit < 8 * ZF_HASH_SECRET_SIZE; bit++) {
		secret[bit / 8] ^= (uint8_t)(1u << bit % 8);
		zf_hash_key_init(&key, secret);
		zf_hash128_keyed(&key, data, sizeof(data), other);
		assert_memory_not_equal(hash, other, sizeof(hash));
		secret[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

static void every_byte_of_the_data_counts(void **state)
{
	uint8_t secret[ZF_HASH_SECRET_SIZE], data[LONG] = {0};
	uint8_t hash[ZF_HASH128_SIZE], other[ZF_HASH128_SIZE];
	struct zf_hash_key key;

	make_secret(secret);
	zf_hash_key_init(&key, secret);
	zf_hash128_keyed(&key, data, sizeof(data), hash);
	for (unsigned int i = 0; i < sizeof(data); i++) {
		data[i] = 1;
		zf_hash128_keyed(&key, data, sizeof(data), other);
		assert_memory_not_equal(hash, other, sizeof(hash));
		data[i] = 0;
	}
	zf_hash128_keyed(&key, data, sizeof(data) - 1, other);
	assert_memory_not_equal(hash, other, sizeof(hash));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_bytes_of_a_hash_never_change),
		cmocka_unit_test(every_bit_of_the_secret_counts),
		cmocka_unit_test(every_byte_of_the_data_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
