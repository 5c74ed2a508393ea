/* SPDX-License-Identifier: MIT */
/*
 * zfusectl fallocate: like fallocate(1), but always with --write-zeroes, which an older
 * fallocate(1) lacks. It works on files of any filesystem.
 */
#ifndef ZF_TOOLS_FALLOCATE_H
#define ZF_TOOLS_FALLOCATE_H

#include "args.h"

/* Returns the exit status. */
int zf_fallocate_main(const struct zf_args *args);

#endif
