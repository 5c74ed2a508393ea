/* SPDX-License-Identifier: MIT */
/* What the programs share that use the library without FUSE. */
#ifndef ZF_BENCH_SUPPORT_H
#define ZF_BENCH_SUPPORT_H

#include <stdint.h>
#include <sys/types.h>

#include "fs/core/fs.h"

/* A negative result ends the program, and says what failed. */
void must(int64_t result, const char *what);

/* xorshift64: `random` begins with anything but 0. */
uint64_t next_random(uint64_t *random);

/* The number of a new file or directory, to which the kernel has no reference. */
uint64_t make(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name,
	      mode_t mode);

#endif
