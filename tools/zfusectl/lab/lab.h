/* SPDX-License-Identifier: MIT */
/* `zfusectl lab`: makes the disk of an instant of a recorded run again. */
#ifndef ZF_TOOLS_LAB_LAB_H
#define ZF_TOOLS_LAB_LAB_H

#include "args.h"

/* `lab crash`: the image of what a power cut may leave. */
int zf_lab_crash_main(const struct zf_args *args);

#endif
