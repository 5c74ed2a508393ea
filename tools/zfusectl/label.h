/* SPDX-License-Identifier: MIT */
/* zfusectl label: prints or changes the label of a filesystem, mounted or not. */
#ifndef ZF_TOOLS_LABEL_H
#define ZF_TOOLS_LABEL_H

#include "args.h"

/* Returns the exit status. */
int zf_label_main(const struct zf_args *args);

#endif
