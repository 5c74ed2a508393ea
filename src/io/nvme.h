/* SPDX-License-Identifier: MIT */
/*
 * The nvme backend: a ZNS namespace through its character device /dev/ngXnY, with native Zone
 * Append. Commands travel by io_uring command passthrough (SQE128, CQE32), past the block layer:
 * many appends are in flight in one zone, and complete in any order, each with the address where it
 * landed in its completion. FUA is a bit of the command. Geometry comes from Identify and Zone
 * Management Receive (libnvme), limits of the kernel from /sys/block.
 *
 * A request that exceeds the drive's transfer size is sent in pieces. An append never is, because
 * geometry.append_limit bounds it. Writes at the pointer are sent one at a time in each zone:
 * drives keep no order. If the calling thread waits for a read, append, reset, finish or flush, it
 * is one ioctl on that thread.
 *
 * A status of the drive is returned as an errno that io/dev.h names, and reported in the words of
 * the specification (zone full, too many active zones, zone is read-only, ...). -ENODEV: the drive
 * is gone.
 *
 * Exclusive: until it is closed, the device holds the block device of the same namespace (as for an
 * image: io/image.h), and flock on the character device. Read next: io/nvme_queue.h,
 * io/nvme_ring.c.
 */
#ifndef ZF_IO_NVME_H
#define ZF_IO_NVME_H

#include "io/open.h"

/*
 * `path` is the character device; `options->append` is NATIVE or BEST. Every error is reported.
 * -ENODEV: no NVMe namespace. -EOPNOTSUPP: no zones, or a kernel without passthrough. -ENOTSUP: the
 * block size is not 4096 bytes, or blocks have metadata. -EBUSY: in use, by either path. -EACCES,
 * -ENOENT as open(2).
 */
int zf_nvme_open(const char *path, const struct zf_open_options *options,
		 const struct zf_report *report, struct zf_dev **ret_dev);

#endif
