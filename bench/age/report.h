/* SPDX-License-Identifier: MIT */
/* One period of a run as a line, for people or as JSON. */
#ifndef ZF_BENCH_AGE_REPORT_H
#define ZF_BENCH_AGE_REPORT_H

#include "age/load.h"
#include "age/sample.h"

struct age_period {
	const char *name; /* "fill", "turnover", "all" */
	unsigned int number;
	struct age_totals totals;
	struct age_sight sight;
};

void age_report_head(bool json);
/* `uniform`: the report compares the period with greedy cleaning. */
void age_report_period(const struct age_period *period, bool uniform, bool json);

#endif
