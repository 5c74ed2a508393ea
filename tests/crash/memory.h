/* SPDX-License-Identifier: MIT */
/*
 * Memory runs out in the library. Its calls of malloc(3) and the like, and of its own pools, pass
 * through here, by the linker; those of the tests, which are compiled to call the C library's by
 * other names (meson.build), do not.
 */
#ifndef ZF_TESTS_MEMORY_H
#define ZF_TESTS_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* The nth allocation within fails, from 1 on; 0: none does. `lasting`: so do all after it. */
void memory_begin(uint64_t nth, bool lasting);
/*
 * The library is entered, or left. Only within does anything fail; and what lasts ends when it is
 * left.
 */
void memory_within(bool in);
/* Whether one has failed. */
bool memory_end(void);

/* Pieces that the library has not given back. */
int64_t memory_held(void);

#endif
