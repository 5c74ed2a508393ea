/* SPDX-License-Identifier: MIT */
/* A small generator with the same numbers on every machine, so a failing random test can replay. */
#ifndef ZF_SIM_RNG_H
#define ZF_SIM_RNG_H

#include <stddef.h>
#include <stdint.h>

struct zf_rng {
	uint64_t state;
};

void zf_rng_seed(struct zf_rng *rng, uint64_t seed);
uint64_t zf_rng_next(struct zf_rng *rng);
uint64_t zf_rng_below(struct zf_rng *rng, uint64_t limit); /* 0 <= result < limit */
int zf_rng_chance(struct zf_rng *rng, unsigned int percent);
void zf_rng_fill(struct zf_rng *rng, void *buf, size_t len);

#endif
