/* SPDX-License-Identifier: MIT */
/*
 * Memory with users' data is left out of core dumps: a dump of a daemon that crashed is stored and
 * sent to people who may not read the files. What passes over a stack, or through libfuse's buffers
 * of requests, is still in it (docs/security.md).
 */
#ifndef ZF_BASE_UNDUMPED_H
#define ZF_BASE_UNDUMPED_H

#include <stddef.h>

/* Leaves the mapping out, until it is unmapped. `bytes`: where a page begins; `len`: in bytes. */
void zf_undumped(void *bytes, size_t len);

/*
 * A buffer that begins at a block, of `len` bytes, a multiple of ZF_BLOCK_SIZE; free() frees it. For
 * buffers that are large, or live long: the call divides the kernel's mapping. NULL: no memory.
 */
void *zf_undumped_alloc(size_t len);

#endif
