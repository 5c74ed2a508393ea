/* SPDX-License-Identifier: MIT */
/*
 * Buffers of large reads as contiguous memory.
 *
 * The device fills the buffer of a request directly. A buffer of 1 MiB is 256 pages, and each may lie
 * elsewhere in memory. Then the kernel cuts the read in two where the driver takes at most 254 pieces,
 * and a queue of 256 descriptors, as virtio disks have, holds one such read at a time. So the pages of
 * the buffer are replaced by huge pages when the first large read comes for it. Buffers that have had
 * small requests only stay as they are: little of them was touched.
 *
 * One struct zf_contiguous for each thread that brings requests, zeroed at first; only that thread
 * uses it.
 */
#ifndef ZF_FUSE_CONTIGUOUS_H
#define ZF_FUSE_CONTIGUOUS_H

#include <stddef.h>

/* Reads of at least so many bytes are worth it. */
#define ZF_CONTIGUOUS_MIN ((size_t)128 << 10)
/* Buffers that are remembered: more than a queue has. */
#define ZF_CONTIGUOUS_BUFFERS 16u

struct zf_contiguous {
	const void *done[ZF_CONTIGUOUS_BUFFERS];
	unsigned int count; /* of them */
	unsigned int failures;
};

/*
 * Before a read of `size` bytes into `buf`, which is in memory that was mapped with mmap(2), private and
 * anonymous. Does nothing for small ones, for buffers that are done, and where the kernel cannot do it
 * (before 6.1). The content stays; other threads may use memory beside the buffer meanwhile.
 */
void zf_contiguous_make(struct zf_contiguous *contiguous, const void *buf, size_t size);

#endif
