/* SPDX-License-Identifier: MIT */
/* The progress of a long operation, for a program that shows it. Libraries do not print. */
#ifndef ZF_BASE_PROGRESS_H
#define ZF_BASE_PROGRESS_H

#include <stdint.h>

/* fn is called often, with bytes or with what the operation counts. NULL struct or fn: no calls. */
struct zf_progress {
	void (*fn)(void *arg, uint64_t done, uint64_t total);
	void *arg;
};

static inline void zf_progress(const struct zf_progress *progress, uint64_t done, uint64_t total)
{
	if (progress && progress->fn)
		progress->fn(progress->arg, done, total);
}

#endif
