/* SPDX-License-Identifier: MIT */
/* `zfusectl trace`: has a daemon record what happens, and prints such a record. */
#ifndef ZF_TOOLS_TRACE_H
#define ZF_TOOLS_TRACE_H

#include "args.h"

int zf_trace_main(const struct zf_args *args);

#endif
