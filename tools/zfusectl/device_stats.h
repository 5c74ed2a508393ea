/* SPDX-License-Identifier: MIT */
/* zfusectl device stats: what went wrong on the device of a filesystem, over all its mounts. */
#ifndef ZF_TOOLS_DEVICE_STATS_H
#define ZF_TOOLS_DEVICE_STATS_H

#include "args.h"

/* Returns the exit status. */
int zf_device_stats_main(const struct zf_args *args);

#endif
