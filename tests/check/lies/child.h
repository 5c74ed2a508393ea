/* SPDX-License-Identifier: MIT */
/* A process with limits of time and memory. */
#ifndef ZF_TESTS_LIES_CHILD_H
#define ZF_TESTS_LIES_CHILD_H

#include <stdbool.h>
#include <stddef.h>

/* Runs fn() in a child. False: the child died or exceeded a limit; ret_text says how. */
bool child_run(void (*fn)(void *arg), void *arg, char *ret_text, size_t size);

#endif
