/* SPDX-License-Identifier: MIT */
/* Millions of latencies, counted in buckets. A bucket is at most 1/32 as wide as its values. */
#ifndef ZF_BENCH_AGE_HISTOGRAM_H
#define ZF_BENCH_AGE_HISTOGRAM_H

#include <stdint.h>

#define AGE_BUCKETS_OF_A_POWER 32u
#define AGE_POWERS	       40u /* of two, ns: up to 18 minutes; longer ones count as that */

struct age_histogram {
	uint64_t count, max, over; /* `over`: how many above AGE_STALL_NS */
	uint64_t buckets[AGE_POWERS * AGE_BUCKETS_OF_A_POWER];
};

#define AGE_STALL_NS UINT64_C(200000000)

void age_histogram_note(struct age_histogram *histogram, uint64_t ns);
void age_histogram_add(struct age_histogram *histogram, const struct age_histogram *more);
/* The latency that the fraction `part` of all latencies does not exceed: the upper end of its
 * bucket, but at most the longest latency. 0: no latency was noted. */
uint64_t age_histogram_quantile(const struct age_histogram *histogram, double part);

#endif
