/* SPDX-License-Identifier: MIT */
#include "age/histogram.h"

#include <math.h>

#include "base/bits.h"

#define BUCKETS (AGE_POWERS * AGE_BUCKETS_OF_A_POWER)

/* The first 2 * 32 buckets are one wide, the next 32 two, the next 32 four, ... */
static unsigned int bucket_of(uint64_t ns)
{
	unsigned int shift = 0;
	uint64_t bucket;

	while (ns >> shift >= 2 * AGE_BUCKETS_OF_A_POWER)
		shift++;
	bucket = shift * AGE_BUCKETS_OF_A_POWER + (ns >> shift);
	return (unsigned int)zf_min_u64(bucket, BUCKETS - 1);
}

/* The longest latency that the bucket holds. */
static uint64_t end_of(unsigned int bucket)
{
	unsigned int shift =
		bucket < 2 * AGE_BUCKETS_OF_A_POWER ? 0 : bucket / AGE_BUCKETS_OF_A_POWER - 1;

	return ((uint64_t)(bucket - shift * AGE_BUCKETS_OF_A_POWER + 1) << shift) - 1;
}

void age_histogram_note(struct age_histogram *histogram, uint64_t ns)
{
	histogram->count++;
	histogram->max = zf_max_u64(histogram->max, ns);
	histogram->over += ns > AGE_STALL_NS;
	histogram->buckets[bucket_of(ns)]++;
}

void age_histogram_add(struct age_histogram *histogram, const struct age_histogram *more)
{
	histogram->count += more->count;
	histogram->max = zf_max_u64(histogram->max, more->max);
	histogram->over += more->over;
	for (unsigned int i = 0; i < BUCKETS; i++)
		histogram->buckets[i] += more->buckets[i];
}

uint64_t age_histogram_quantile(const struct age_histogram *histogram, double part)
{
	uint64_t wanted = (uint64_t)ceil(part * (double)histogram->count), seen = 0;

	for (unsigned int i = 0; i < BUCKETS && histogram->count > 0; i++) {
		seen += histogram->buckets[i];
		if (seen >= wanted)
			return i == BUCKETS - 1 ? histogram->max
						: zf_min_u64(end_of(i), histogram->max);
	}
	return histogram->max;
}
