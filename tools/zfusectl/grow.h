/* SPDX-License-Identifier: MIT */
/* zfusectl grow: a filesystem becomes larger, mounted or not. */
#ifndef ZF_TOOLS_GROW_H
#define ZF_TOOLS_GROW_H

/* argv[0] is "grow". Returns the exit status. */
int zf_grow_main(int argc, char **argv);

#endif
