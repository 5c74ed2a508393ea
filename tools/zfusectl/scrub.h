/* SPDX-License-Identifier: MIT */
/* zfusectl scrub: verifies all that a filesystem holds, while it is in use (fs/space/scrub.h). */
#ifndef ZF_TOOLS_SCRUB_H
#define ZF_TOOLS_SCRUB_H

#include "args.h"

int zf_scrub_main(const struct zf_args *args);

#endif
