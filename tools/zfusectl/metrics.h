/* SPDX-License-Identifier: MIT */
/* `zfusectl metrics`. */
#ifndef ZF_TOOLS_METRICS_H
#define ZF_TOOLS_METRICS_H

#include "args.h"

/* Returns the exit status. */
int zf_metrics_main(const struct zf_args *args);

#endif
