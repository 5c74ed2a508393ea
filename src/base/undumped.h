/* SPDX-License-Identifier: MIT */
/*
 * Memory with users' data is left out of core dumps: the dump of a crashed daemon is stored, and
 * sent to people who may not read the files. Data on stacks, and in libfuse's buffers of requests,
 * is still in the dump (docs/security.md).
 */
#ifndef ZF_BASE_UNDUMPED_H
#define ZF_BASE_UNDUMPED_H

#include <stddef.h>

/* Leaves the mapping out of dumps until it is unmapped. `bytes`: start of a page; `len`: bytes. */
void zf_undumped(void *bytes, size_t len);

/*
 * Allocates `len` bytes, a multiple of ZF_BLOCK_SIZE, aligned to a block; free() frees them. Only
 * for buffers that are large or live long, because the call splits the kernel's mapping. NULL: no
 * memory.
 */
void *zf_undumped_alloc(size_t len);

/*
 * Maps `len` bytes of zeroes; a page takes memory when it is first written. munmap() unmaps them.
 * NULL: no memory.
 */
void *zf_undumped_map(size_t len);

#endif
