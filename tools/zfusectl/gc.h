/* SPDX-License-Identifier: MIT */
/* zfusectl gc: reclaim on a mounted filesystem (docs/space.md). */
#ifndef ZF_TOOLS_GC_H
#define ZF_TOOLS_GC_H

#include "args.h"

/* Returns the exit status. */
int zf_gc_main(const struct zf_args *args);

#endif
