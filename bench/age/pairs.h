/* SPDX-License-Identifier: MIT */
/* What reclaim costs writers: the same work with reclaim and without it, in turn. */
#ifndef ZF_BENCH_AGE_PAIRS_H
#define ZF_BENCH_AGE_PAIRS_H

#include "age/load.h"

struct age_pair {
	double off_s, on_s; /* what the work took */
};

/*
 * Does the load's steps until `bytes` are written with reclaim paused, and then the same with
 * reclaim running. Each half starts when reclaim has nothing left to do. `on_first`: the half with
 * reclaim comes first. The filesystem needs threads, and room for what is written while reclaim is
 * paused. Returns 0 or -errno of the load.
 */
int age_pair_run(struct age_load *load, uint64_t bytes, bool on_first, struct age_pair *ret_pair);

#endif
