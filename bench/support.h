/* SPDX-License-Identifier: MIT */
/* Helpers of the programs that use the library without FUSE. */
#ifndef ZF_BENCH_SUPPORT_H
#define ZF_BENCH_SUPPORT_H

#include <stdint.h>
#include <sys/types.h>

#include "fs/core/fs.h"

/* If the result is negative, says what failed and ends the program. */
void must(int64_t result, const char *what);

/* xorshift64: `random` must start with a value other than 0. */
uint64_t next_random(uint64_t *random);

/* Makes a file or directory, without a reference of the kernel, and returns its inode number. */
uint64_t make(struct zf_fs *fs, const struct zf_ctx *ctx, uint64_t parent, const char *name,
	      mode_t mode);

#endif
