/* SPDX-License-Identifier: MIT */
/* How far something long has come, for whoever shows it. Libraries do not print. */
#ifndef ZF_BASE_PROGRESS_H
#define ZF_BASE_PROGRESS_H

#include <stdint.h>

/* fn is called often, with bytes or what the caller says. NULL, or without fn: nobody wants to
 * know. */
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
