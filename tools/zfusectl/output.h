/* SPDX-License-Identifier: MIT */
/* The option --output: writes a command's result to a file. */
#ifndef ZF_TOOLS_OUTPUT_H
#define ZF_TOOLS_OUTPUT_H

#include <stdio.h>

#include "args.h"
#include "base/report.h"

/* Writes the result. 0, or -errno; zf_output() itself checks `out` for errors of writing. */
typedef int zf_output_fn(FILE *out, void *arg);

/*
 * Prints to the file of --output: to a temporary file that is then renamed, so that a reader sees
 * the old file or the new one. Without the option, to standard output. Returns the exit status;
 * errors are reported.
 */
int zf_output(const struct zf_args *args, const struct zf_report *report, zf_output_fn *print,
	      void *arg);

#endif
