/* SPDX-License-Identifier: MIT */
#include "sim/rng.h"

#include <string.h>

void zf_rng_seed(struct zf_rng *rng, uint64_t seed)
{
	rng->state = seed;
}

/* SplitMix64 (Steele, Lea and Flood, 2014): equidistributed, and one word of state. */
uint64_t zf_rng_next(struct zf_rng *rng)
{
	uint64_t z = rng->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint64_t zf_rng_below(struct zf_rng *rng, uint64_t limit)
{
	return zf_rng_next(rng) % limit;
}

int zf_rng_chance(struct zf_rng *rng, unsigned int percent)
{
	return zf_rng_below(rng, 100) < percent;
}

void zf_rng_fill(struct zf_rng *rng, void *buf, size_t len)
{
	unsigned char *p = buf;

	while (len > 0) {
		uint64_t v = zf_rng_next(rng);
		size_t n = len < sizeof(v) ? len : sizeof(v);

		memcpy(p, &v, n);
		p += n;
		len -= n;
	}
}
