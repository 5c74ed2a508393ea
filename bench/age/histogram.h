/* SPDX-License-Identifier: MIT */
/* Latencies by the million: counted in buckets, each at most a 32nd wide of what is in it. */
#ifndef ZF_BENCH_AGE_HISTOGRAM_H
#define ZF_BENCH_AGE_HISTOGRAM_H

#include <stdint.h>

#define AGE_BUCKETS_OF_A_POWER 32u
#define AGE_POWERS	       40u /* of two: up to some 18 minutes in ns, what is longer counts as that */

struct age_histogram {
	uint64_t count, max, over; /* `over`: how many above AGE_STALL_NS */
	uint64_t buckets[AGE_POWERS * AGE_BUCKETS_OF_A_POWER];
};

#define AGE_STALL_NS UINT64_C(200000000)

void age_histogram_note(struct age_histogram *histogram, uint64_t ns);
void age_histogram_add(struct age_histogram *histogram, const struct age_histogram *more);
/* That so much of 1 is not above: the bucket's upper end, and never more than the longest. 0: none
 * noted. */
uint64_t age_histogram_quantile(const struct age_histogram *histogram, double part);

#endif
