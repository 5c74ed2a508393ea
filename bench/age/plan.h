/* SPDX-License-Identifier: MIT */
/*
 * How much of a device data can use: all zones but those of the superblock and of the log, those
 * kept empty, and those that metadata takes once every block is an extent of its own. A filling
 * level is a percentage of this.
 */
#ifndef ZF_BENCH_AGE_PLAN_H
#define ZF_BENCH_AGE_PLAN_H

#include "io/dev.h"

struct age_plan {
	uint32_t fixed_zones; /* superblock, log, kept empty */
	uint32_t meta_zones;  /* at this level */
	uint64_t data_bytes;  /* that data can use: the zones that are left */
	uint64_t bytes;	      /* of the load: `percent` of data_bytes */
};

/* Plans for `percent` of what data can use, in whole blocks. */
void age_plan(const struct zf_geometry *geometry, double percent, struct age_plan *ret_plan);

#endif
