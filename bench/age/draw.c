/* SPDX-License-Identifier: MIT */
#include "age/draw.h"

#include <assert.h>
#include <math.h>

/* ---- numbers ---- */

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)

uint64_t age_mix(uint64_t x)
{
	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

uint64_t age_next(struct age_random *random)
{
	random->state += GOLDEN;
	return age_mix(random->state);
}

uint64_t age_below(struct age_random *random, uint64_t limit)
{
	return (uint64_t)((unsigned __int128)age_next(random) * limit >> 64);
}

double age_unit(struct age_random *random)
{
	return (double)(age_next(random) >> 11) * 0x1p-53;
}

/* ---- Zipf ---- */

/* The integral of x^-theta from 1 to x; expm1 keeps it right where theta is near 1. */
static double integral(const struct age_zipf *zipf, double x)
{
	double power = 1 - zipf->theta;

	return power == 0 ? log(x) : expm1(power * log(x)) / power;
}

static double inverse(const struct age_zipf *zipf, double y)
{
	double power = 1 - zipf->theta;

	return power == 0 ? exp(y) : exp(log1p(y * power) / power);
}

static double weight(const struct age_zipf *zipf, double k)
{
	return exp(-zipf->theta * log(k));
}

void age_zipf_init(struct age_zipf *zipf, uint64_t n, double theta)
{
	assert(n > 0 && theta > 0);
	zipf->n = n;
	zipf->theta = theta;
	zipf->low = integral(zipf, 1.5) - 1;
	zipf->high = integral(zipf, (double)n + 0.5);
	zipf->accept = 2 - inverse(zipf, integral(zipf, 2.5) - weight(zipf, 2));
}

/*
 * A point below the curve x^-theta by inversion, and its nearest whole number k. The piece of the
 * curve that belongs to k is larger than k's weight: what lies in the excess is drawn again. So
 * near to k that it cannot lie there (`accept`) is most of it.
 */
uint64_t age_zipf_draw(const struct age_zipf *zipf, struct age_random *random)
{
	for (;;) {
		double y = zipf->high + age_unit(random) * (zipf->low - zipf->high);
		double x = inverse(zipf, y), k = floor(x + 0.5);

		if (k < 1)
			k = 1;
		else if (k > (double)zipf->n)
			k = (double)zipf->n;
		if (k - x <= zipf->accept || y >= integral(zipf, k + 0.5) - weight(zipf, k))
			return (uint64_t)k;
	}
}

/* ---- a permutation ---- */

#define ROUNDS 4u

void age_permutation_init(struct age_permutation *permutation, uint64_t n, uint64_t seed)
{
	assert(n > 0);
	permutation->n = n;
	permutation->seed = seed;
	permutation->half_bits = 1;
	while (permutation->half_bits < 32 && n > UINT64_C(1) << 2 * permutation->half_bits)
		permutation->half_bits++;
}

/* A Feistel network permutes the least power of four that n fits in. */
static uint64_t network(const struct age_permutation *permutation, uint64_t i)
{
	uint64_t mask = (UINT64_C(1) << permutation->half_bits) - 1;
	uint64_t left = i >> permutation->half_bits, right = i & mask;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		uint64_t key = permutation->seed + round * GOLDEN;
		uint64_t mixed = left ^ (age_mix(right ^ age_mix(key)) & mask);

		left = right;
		right = mixed;
	}
	return left << permutation->half_bits | right;
}

/* Walking on from numbers beyond n ends below it, and for each i elsewhere. */
uint64_t age_permute(const struct age_permutation *permutation, uint64_t i)
{
	assert(i < permutation->n);
	do
		i = network(permutation, i);
	while (i >= permutation->n);
	return i;
}
