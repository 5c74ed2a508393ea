/* SPDX-License-Identifier: MIT */
/*
 * The workload that is recorded. A filesystem is made on an image and used by several threads,
 * which write, fsync, and write durably, so that it commits, changes its log zone, reclaims and
 * resets; meanwhile it is grown. It is given up without an unmount, recovered, used again, and
 * unmounted.
 */
#ifndef ZF_TESTS_HOST_WORK_H
#define ZF_TESTS_HOST_WORK_H

#include <stdint.h>

/* Aborts if any call fails: there are no faults here. */
void work(const char *path, uint32_t conventional, uint64_t seed);

#endif
