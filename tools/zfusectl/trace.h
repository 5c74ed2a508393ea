/* SPDX-License-Identifier: MIT */
/* `zfusectl trace`: has a daemon record what happens, and prints such a record. */
#ifndef ZF_TOOLS_TRACE_H
#define ZF_TOOLS_TRACE_H

#include "args.h"
#include "trace/read.h"

int zf_trace_main(const struct zf_args *args);

/* zf_trace_read() of the file with this name. Every error is reported. */
int zf_trace_load(const char *path, const struct zf_report *report, struct zf_trace_file *ret_file);

#endif
