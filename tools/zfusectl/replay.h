/* SPDX-License-Identifier: MIT */
/* zfusectl replay: makes a web page that plays a trace. */
#ifndef ZF_TOOLS_REPLAY_H
#define ZF_TOOLS_REPLAY_H

#include "args.h"

/* Returns the exit status. */
int zf_replay_main(const struct zf_args *args);

#endif
