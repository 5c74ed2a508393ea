/* SPDX-License-Identifier: MIT */
/* zfusectl grow: makes a filesystem larger, mounted or not. */
#ifndef ZF_TOOLS_GROW_H
#define ZF_TOOLS_GROW_H

#include "args.h"

/* Returns the exit status. */
int zf_grow_main(const struct zf_args *args);

#endif
