/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <xxhash.h>

/*
 * The widest instructions of the processor at hand, three times as fast over a block as the ones
 * that every processor of its kind has. Libraries for processors with only one kind lack it.
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
