/* SPDX-License-Identifier: MIT */
/* `zfusectl lab`: rebuilds the disk of a recorded run at an instant. */
#ifndef ZF_TOOLS_LAB_LAB_H
#define ZF_TOOLS_LAB_LAB_H

#include "args.h"

/* `lab crash`: makes an image of a state that a power cut may leave. */
int zf_lab_crash_main(const struct zf_args *args);

#endif
