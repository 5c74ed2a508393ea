/* SPDX-License-Identifier: MIT */
/* Judges whether a cut left what was promised. */
#ifndef ZF_TESTS_HOST_JUDGE_H
#define ZF_TESTS_HOST_JUDGE_H

#include "host/files.h"

/*
 * Checks the image's durable state, mounts it, compares every file, unmounts, and checks it again
 * with its data. Returns whether everything is right; errors are printed to stderr.
 */
bool judge(const char *path, const struct promises *promises);

#endif
