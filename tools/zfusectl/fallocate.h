/* SPDX-License-Identifier: MIT */
/*
 * zfusectl fallocate: as fallocate(1), with what that may not know yet: --write-zeroes. It works on
 * files of any filesystem.
 */
#ifndef ZF_TOOLS_FALLOCATE_H
#define ZF_TOOLS_FALLOCATE_H

#include "args.h"

/* Returns the exit status. */
int zf_fallocate_main(const struct zf_args *args);

#endif
