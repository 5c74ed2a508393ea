/* SPDX-License-Identifier: MIT */
/*
 * zfusectl restore: copies out of a filesystem that need not mount all that can be read (see
 * src/salvage/salvage.h), and lists what could not.
 */
#ifndef ZF_TOOLS_RESTORE_H
#define ZF_TOOLS_RESTORE_H

#include "args.h"

int zf_restore_main(const struct zf_args *args);

#endif
