/* SPDX-License-Identifier: MIT */
/* Is what a cut left what was promised? */
#ifndef ZF_TESTS_HOST_JUDGE_H
#define ZF_TESTS_HOST_JUDGE_H

#include "host/files.h"

/*
 * Checks the image's durable state, mounts it, compares every file, unmounts, checks it again with
 * its data. Returns whether all is right; says on stderr what is not.
 */
bool judge(const char *path, const struct promises *promises);

#endif
