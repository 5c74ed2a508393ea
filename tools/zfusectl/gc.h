/* SPDX-License-Identifier: MIT */
/* zfusectl gc: reclaim on a mounted filesystem (docs/space.md). */
#ifndef ZF_TOOLS_GC_H
#define ZF_TOOLS_GC_H

/* argv[0] is "gc". Returns the exit status. */
int zf_gc_main(int argc, char **argv);

#endif
