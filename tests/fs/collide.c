/* SPDX-License-Identifier: MIT */
#define XXH_INLINE_ALL /* for XXH3_kSecret */
#include "fs/collide.h"

#include <string.h>
#include <xxhash.h>

/* Every step of XXH3's mixing of a 64-bit word can be undone. */

static uint64_t undo_xorshift(uint64_t v, unsigned int shift)
{
	uint64_t r = v;

	for (unsigned int i = 0; i < 64 / shift; i++)
		r = v ^ r >> shift;
	return r;
}

/* The inverse of an odd factor, modulo 2^64, by Newton's iteration. */
static uint64_t inverse(uint64_t factor)
{
	uint64_t r = factor;

	for (unsigned int i = 0; i < 6; i++)
		r *= 2 - factor * r;
	return r;
}

static uint64_t rotate(uint64_t v, unsigned int by)
{
	return v << by | v >> (64 - by);
}

/* v ^ rotl(v, 49) ^ rotl(v, 24) is linear, and done 64 times it is the identity. */
static uint64_t undo_rotations(uint64_t v)
{
	for (unsigned int i = 0; i < 63; i++)
		v ^= rotate(v, 49) ^ rotate(v, 24);
	return v;
}

static uint64_t undo_rrmxmx(uint64_t hash, uint64_t len)
{
	const uint64_t factor = inverse(UINT64_C(0x9fb21c651e98df25));
	uint64_t v = undo_xorshift(hash, 28) * factor;
	/* v = u ^ ((u >> 35) + len): the upper 29 bits of u are v's. */
	uint64_t u = v;

	for (unsigned int i = 0; i < 3; i++)
		u = v ^ ((u >> 35) + len);
	return undo_rotations(u * factor);
}

static uint64_t undo_avalanche(uint64_t hash)
{
	return undo_xorshift(undo_xorshift(hash, 32) * inverse(UINT64_C(0x165667919e3779f9)), 37);
}

static uint64_t secret(unsigned int at)
{
	return XXH_readLE64(XXH3_kSecret + at) ^ XXH_readLE64(XXH3_kSecret + at + 8);
}

static bool finish(char *name, size_t len)
{
	name[len] = '\0';
	return strlen(name) == len && !strchr(name, '/');
}

bool collide_8(uint64_t seed, const char *name, char ret_name[32])
{
	uint64_t hash = XXH3_64bits_withSeed(name, strlen(name), seed);
	uint64_t bitflip = secret(8) - (seed ^ (uint64_t)XXH_swap32((uint32_t)seed) << 32);
	uint64_t input = rotate(undo_rrmxmx(hash, 8) ^ bitflip, 32);

	memcpy(ret_name, &input, 8);
	return finish(ret_name, 8);
}

bool collide_16(uint64_t seed, const char *name, char ret_name[32])
{
	uint64_t hash = XXH3_64bits_withSeed(name, strlen(name), seed);
	/* A first half that is keyed to zero leaves the second one alone. */
	uint64_t low = secret(24) + seed;
	uint64_t high = (undo_avalanche(hash) - 16) ^ (secret(40) - seed);

	memcpy(ret_name, &low, 8);
	memcpy(ret_name + 8, &high, 8);
	return finish(ret_name, 16);
}
