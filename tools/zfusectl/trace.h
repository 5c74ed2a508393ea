/* SPDX-License-Identifier: MIT */
/* `zfusectl trace`: lets a daemon record a trace, and prints a trace. */
#ifndef ZF_TOOLS_TRACE_H
#define ZF_TOOLS_TRACE_H

#include "args.h"
#include "trace/read.h"

int zf_trace_main(const struct zf_args *args);

/* zf_trace_read() for the file `path`. Errors are reported. */
int zf_trace_load(const char *path, const struct zf_report *report, struct zf_trace_file *ret_file);

#endif
