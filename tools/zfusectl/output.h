/* SPDX-License-Identifier: MIT */
/* Where a command's result goes that may be kept in a file: the option --output. */
#ifndef ZF_TOOLS_OUTPUT_H
#define ZF_TOOLS_OUTPUT_H

#include <stdio.h>

#include "args.h"
#include "base/report.h"

/* Writes all of it; what `out` refuses is seen by the caller. Returns 0, or -errno of its own. */
typedef int zf_output_fn(FILE *out, void *arg);

/*
 * To the file of --output, written beside it and renamed, so that a reader sees the old file or the
 * new one; to standard output without that option. Returns the exit status; errors are reported.
 */
int zf_output(const struct zf_args *args, const struct zf_report *report, zf_output_fn *print,
	      void *arg);

#endif
