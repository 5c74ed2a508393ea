/* SPDX-License-Identifier: MIT */
/* zfusectl device stats: the faults of a filesystem's device, counted over all mounts. */
#ifndef ZF_TOOLS_DEVICE_STATS_H
#define ZF_TOOLS_DEVICE_STATS_H

#include "args.h"

/* Returns the exit status. */
int zf_device_stats_main(const struct zf_args *args);

#endif
