/* SPDX-License-Identifier: MIT */
/*
 * Random draws of the loads: numbers, ranks of a Zipf distribution, and the place in a file that
 * belongs to a rank. The same seed gives the same history.
 */
#ifndef ZF_BENCH_AGE_DRAW_H
#define ZF_BENCH_AGE_DRAW_H

#include <stdint.h>

/* splitmix64 (Steele, Lea, Flood, 2014) */
struct age_random {
	uint64_t state;
};

uint64_t age_mix(uint64_t x); /* its output function: a hash of 64 bits */
uint64_t age_next(struct age_random *random);
uint64_t age_below(struct age_random *random, uint64_t limit); /* 0 <= result < limit, limit > 0 */
double age_unit(struct age_random *random);		       /* 0 <= result < 1 */

/*
 * Ranks 1 to n, rank k with a probability in proportion to k^-theta, theta > 0. Drawn by
 * rejection-inversion (Hörmann, Derflinger, 1996), which is exact and takes the same time for any
 * n.
 */
struct age_zipf {
	uint64_t n;
	double theta;
	double low, high, accept;
};

void age_zipf_init(struct age_zipf *zipf, uint64_t n, double theta);
uint64_t age_zipf_draw(const struct age_zipf *zipf, struct age_random *random);

/* A permutation of 0 to n - 1: spreads the ranks, and with them the hot blocks, over the file. */
struct age_permutation {
	uint64_t n, seed;
	unsigned int half_bits;
};

void age_permutation_init(struct age_permutation *permutation, uint64_t n, uint64_t seed);
uint64_t age_permute(const struct age_permutation *permutation, uint64_t i);

#endif
