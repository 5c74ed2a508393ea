/* SPDX-License-Identifier: MIT */
/*
 * Buffers of large reads as contiguous memory.
 *
 * The device fills the buffer of a request directly. A buffer of 1 MiB is 256 pages, and each may lie
 * elsewhere in memory. Then the kernel cuts the read in two where the driver takes at most 254 pieces,
 * and a queue of 256 descriptors, as virtio disks have, holds one such read at a time. So a large read
 * replaces the pages that its buffer lies in by huge pages. Buffers that have had small requests only
 * stay as they are: little of them was touched (decision 0041).
 */
#ifndef ZF_FUSE_CONTIGUOUS_H
#define ZF_FUSE_CONTIGUOUS_H

#include <stddef.h>

/* Reads of at least so many bytes are worth it. */
#define ZF_CONTIGUOUS_MIN ((size_t)128 << 10)

/*
 * Before a read of `size` bytes into `buf`, the payload of an entry of a queue's ring. Does nothing for
 * small ones, for huge pages that are made, and where the kernel cannot do it (before Linux 6.1). The
 * content stays, and other threads may use memory beside the buffer meanwhile. It may wait for memory:
 * not for the thread of a queue. Any other thread, several at once.
 */
void zf_contiguous_make(const void *buf, size_t size);

#endif
