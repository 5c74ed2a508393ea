/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <string.h>
#include <xxhash.h>

/*
 * This header of xxhash chooses the widest instructions of the processor at hand: three times as
 * fast over a block as those that every processor of its kind has. xxhash lacks the header for
 * processors with only one kind of instructions.
 */
#ifdef ZF_HAVE_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#endif

uint64_t zf_hash64(const void *data, size_t len)
{
	return XXH3_64bits(data, len);
}

uint64_t zf_hash64_seed(const void *data, size_t len, uint64_t seed)
{
	return XXH3_64bits_withSeed(data, len, seed);
}

static void put(XXH128_hash_t hash, uint8_t ret_hash[ZF_HASH128_SIZE])
{
	XXH128_canonical_t canonical;

	XXH128_canonicalFromHash(&canonical, hash);
	memcpy(ret_hash, canonical.digest, ZF_HASH128_SIZE);
}

void zf_hash_key_init(struct zf_hash_key *key, const uint8_t secret[ZF_HASH_SECRET_SIZE])
{
	for (unsigned int i = 0; i < ZF_HASH_KEY_SIZE / ZF_HASH128_SIZE; i++)
		put(XXH3_128bits_withSeed(secret, ZF_HASH_SECRET_SIZE, i),
		    key->bytes + i * ZF_HASH128_SIZE);
}

void zf_hash128_keyed(const struct zf_hash_key *key, const void *data, size_t len,
		      uint8_t ret_hash[ZF_HASH128_SIZE])
{
	put(XXH3_128bits_withSecret(data, len, key->bytes, sizeof(key->bytes)), ret_hash);
}
