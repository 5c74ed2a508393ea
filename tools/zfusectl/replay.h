/* SPDX-License-Identifier: MIT */
/* zfusectl replay: a trace as a page that plays it. */
#ifndef ZF_TOOLS_REPLAY_H
#define ZF_TOOLS_REPLAY_H

#include "args.h"

/* Returns the exit status. */
int zf_replay_main(const struct zf_args *args);

#endif
