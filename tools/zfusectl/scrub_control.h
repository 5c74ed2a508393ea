/* SPDX-License-Identifier: MIT */
/* zfusectl scrub start, status, pause, resume, cancel: the scrub of a mount (fs/mount/scrubber.h). */
#ifndef ZF_TOOLS_SCRUB_CONTROL_H
#define ZF_TOOLS_SCRUB_CONTROL_H

#include "args.h"

/* Returns the exit status. */
int zf_scrub_control_main(const struct zf_args *args);

#endif
