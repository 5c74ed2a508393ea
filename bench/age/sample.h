/* SPDX-License-Identifier: MIT */
/* Measurements of an ageing filesystem: totals so far (the difference of two totals is a period),
 * and looks at its zones. */
#ifndef ZF_BENCH_AGE_SAMPLE_H
#define ZF_BENCH_AGE_SAMPLE_H

#include "age/histogram.h"
#include "age/traffic.h"
#include "age/user.h"
#include "fs/space/reclaim.h"

/* Totals of a period, or since the start. */
struct age_totals {
	uint64_t user_bytes, calls;
	uint64_t bytes[AGE_KINDS];
	uint64_t read_bytes, resets, flushes;
	uint64_t commits, commit_ns;
	double cpu_s, wall_s;
	struct zf_reclaim_stats reclaim;
	struct age_histogram latency;
};

/* What the looks of a period have seen. */
struct age_sight {
	uint64_t looks;
	uint32_t empty_low; /* zones */
	uint32_t room_low;  /* of the empty zones, those that nothing has claimed */
	double live;	    /* sums over the looks: see age_utilisation() */
	double written, spare;
	uint32_t meta_zones_max;
	uint64_t meta_live_max; /* bytes of nodes */
};

void age_totals_get(struct zf_fs *fs, const struct age_user *user,
		    const struct age_traffic *traffic, struct age_totals *ret_totals);
/* later - earlier. The longest latency is that of `later`'s histogram, because each period begins a
 * new histogram. */
void age_totals_since(const struct age_totals *later, const struct age_totals *earlier,
		      struct age_totals *ret_totals);

void age_sight_init(struct age_sight *sight);
void age_look(struct zf_fs *fs, struct age_sight *sight);
void age_sight_add(struct age_sight *sight, const struct age_sight *more);

/* The live fraction of the zones that hold data. With `spare` the zones that data could get count,
 * too. */
double age_utilisation(const struct age_sight *sight, bool spare);

#endif
