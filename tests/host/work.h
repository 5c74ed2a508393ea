/* SPDX-License-Identifier: MIT */
/*
 * What is recorded: a filesystem is made on an image and used by several threads, which write,
 * fsync, and write durably, so that it commits, changes its log zone, reclaims and resets; it
 * becomes larger meanwhile. It is given up without an unmount, recovered, used again, and
 * unmounted.
 */
#ifndef ZF_TESTS_HOST_WORK_H
#define ZF_TESTS_HOST_WORK_H

#include <stdint.h>

/* Aborts where something fails that must not: nothing here loses anything. */
void work(const char *path, uint32_t conventional, uint64_t seed);

#endif
