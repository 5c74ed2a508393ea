/* SPDX-License-Identifier: MIT */
/*
 * zfusectl restore: copies all that can be read out of a filesystem, even if it cannot be mounted
 * (src/salvage/salvage.h), and lists the losses.
 */
#ifndef ZF_TOOLS_RESTORE_H
#define ZF_TOOLS_RESTORE_H

#include "args.h"

int zf_restore_main(const struct zf_args *args);

#endif
