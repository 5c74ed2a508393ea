/* SPDX-License-Identifier: MIT */
/*
 * Memory runs out in the library. The linker leads the library's calls of malloc(3) and the like,
 * and of its own pools, through memory.c. Calls of the tests do not come here, because the tests
 * are compiled to call the C library's functions by other names (meson.build).
 */
#ifndef ZF_TESTS_MEMORY_H
#define ZF_TESTS_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* The nth allocation inside the library fails, from 1 on; 0: none. `lasting`: all after it, too. */
void memory_begin(uint64_t nth, bool lasting);
/*
 * To be called when the library is entered, and left. Allocations fail only between the two, and
 * lasting failures end when the library is left.
 */
void memory_within(bool in);
/* Ends it. Returns whether an allocation has failed. */
bool memory_end(void);

/* Number of allocations that the library has not freed. */
int64_t memory_held(void);

#endif
