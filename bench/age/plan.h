/* SPDX-License-Identifier: MIT */
/*
 * How much of a device data can have: all zones but those of the superblock, of the log, those kept
 * empty, and those that metadata takes once every block is an extent of its own. Of this a filling
 * level is so many percent.
 */
#ifndef ZF_BENCH_AGE_PLAN_H
#define ZF_BENCH_AGE_PLAN_H

#include "io/dev.h"

struct age_plan {
	uint32_t fixed_zones; /* superblock, log, kept empty */
	uint32_t meta_zones;  /* at this level */
	uint64_t data_bytes;  /* that data can have: the zones that are left */
	uint64_t bytes;	      /* of the load: so many percent of it */
};

/* `percent` of what data can have; whole blocks. */
void age_plan(const struct zf_geometry *geometry, double percent, struct age_plan *ret_plan);

#endif
