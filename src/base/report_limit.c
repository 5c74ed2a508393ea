/* SPDX-License-Identifier: MIT */
#include "base/report_limit.h"

#include <stddef.h>
#include <string.h>
#include <time.h>

static int64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void zf_report_limit_init(struct zf_report_limit *limit)
{
	memset(limit, 0, sizeof(*limit));
	zf_mutex_init(&limit->lock, ZF_RANK_REPORT);
	limit->now_ns = monotonic_ns;
}

/* Finds the kind's entry, or takes a free one; NULL: none is left. */
static struct zf_report_kind *find_locked(struct zf_report_limit *limit, const char *format)
{
	size_t first = ((uintptr_t)format >> 3) % ZF_REPORT_LIMIT_KINDS;

	for (size_t i = 0; i < ZF_REPORT_LIMIT_KINDS; i++) {
		struct zf_report_kind *kind = &limit->kinds[(first + i) % ZF_REPORT_LIMIT_KINDS];

		if (!kind->format)
			kind->format = format;
		if (kind->format == format)
			return kind;
	}
	return NULL;
}

static bool take_locked(struct zf_report_kind *kind, int64_t now_ns, unsigned int *ret_left_out)
{
	if (kind->told == 0 || now_ns - kind->began_ns >= ZF_REPORT_LIMIT_NS) {
		kind->began_ns = now_ns;
		kind->told = 0;
	}
	if (kind->told == ZF_REPORT_LIMIT_COUNT) {
		kind->left_out++;
		return false;
	}
	kind->told++;
	*ret_left_out = kind->left_out;
	kind->left_out = 0;
	return true;
}

bool zf_report_limit_take(struct zf_report_limit *limit, const char *format,
			  unsigned int *ret_left_out)
{
	struct zf_report_kind *kind;
	bool take = true;

	*ret_left_out = 0;
	zf_mutex_lock(&limit->lock);
	kind = find_locked(limit, format);
	if (kind)
		take = take_locked(kind, limit->now_ns(), ret_left_out);
	zf_mutex_unlock(&limit->lock);
	return take;
}

unsigned int zf_report_limit_untold(struct zf_report_limit *limit)
{
	unsigned int untold = 0;

	zf_mutex_lock(&limit->lock);
	for (size_t i = 0; i < ZF_REPORT_LIMIT_KINDS; i++)
		untold += limit->kinds[i].left_out;
	zf_mutex_unlock(&limit->lock);
	return untold;
}
