/* SPDX-License-Identifier: MIT */
/*
 * Buffers of large reads as contiguous memory.
 *
 * The device fills the buffer of a request directly. A buffer of 1 MiB is 256 pages, and each may
 * lie elsewhere in memory. If the driver takes at most 254 pieces, the kernel splits such a read in
 * two; and a queue of 256 descriptors, as virtio disks have, holds one such read at a time. So a
 * large read first replaces the pages of its buffer by huge pages. A buffer that has served small
 * requests only keeps its small pages, because few of them were ever touched (decision 0041).
 */
#ifndef ZF_FUSE_CONTIGUOUS_H
#define ZF_FUSE_CONTIGUOUS_H

#include <stddef.h>

/* The smallest read for which huge pages are made. */
#define ZF_CONTIGUOUS_MIN ((size_t)128 << 10)

/*
 * To be called before a read of `size` bytes into `buf`, the payload of an entry of a queue's ring.
 * Does nothing for small reads, for huge pages that exist already, and where the kernel cannot make
 * any (before Linux 6.1). The content stays, and other threads may use memory beside the buffer
 * meanwhile. The call may wait for memory, so the thread of a queue must not make it. Any other
 * thread may, several at once.
 */
void zf_contiguous_make(const void *buf, size_t size);

#endif
