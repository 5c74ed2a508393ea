/* SPDX-License-Identifier: MIT */
/*
 * Bounds the messages to a sink: ZF_REPORT_LIMIT_COUNT of each kind in ZF_REPORT_LIMIT_NS. So a
 * damaged file that a program reads in a loop neither fills the disk that holds the messages nor
 * hides messages of other kinds. Messages that are left out are counted, and the number is told.
 *
 * A kind is one format string: a place in the source. Errors and warnings are bounded, the rest is
 * not.
 */
#ifndef ZF_BASE_REPORT_LIMIT_H
#define ZF_BASE_REPORT_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

#define ZF_REPORT_LIMIT_COUNT 10u
#define ZF_REPORT_LIMIT_NS    (INT64_C(60) * 1000000000)
#define ZF_REPORT_LIMIT_KINDS 256u /* a power of 2; kinds beyond are not bounded */

struct zf_report_kind {
	const char *format; /* NULL: free */
	int64_t began_ns;   /* start of the period */
	unsigned int told, left_out;
};

/* Begins with zf_report_limit_init(). May be used by any number of sinks, from any thread. */
struct zf_report_limit {
	struct zf_mutex lock;	 /* ZF_RANK_REPORT */
	int64_t (*now_ns)(void); /* for tests; else the monotonic clock */
	struct zf_report_kind kinds[ZF_REPORT_LIMIT_KINDS];
};

void zf_report_limit_init(struct zf_report_limit *limit);

/*
 * May a message of this kind be told now? If so, *ret_left_out says how many were left out since
 * the last one that was told.
 */
bool zf_report_limit_take(struct zf_report_limit *limit, const char *format,
			  unsigned int *ret_left_out);

/* How many messages of all kinds were left out, and are in no number that was told yet. */
unsigned int zf_report_limit_untold(struct zf_report_limit *limit);

#endif
