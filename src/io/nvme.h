/* SPDX-License-Identifier: MIT */
/*
 * The nvme backend: a ZNS namespace through its character device /dev/ngXnY, with native Zone
 * Append. Commands travel by io_uring command passthrough (SQE128, CQE32), past the block layer:
 * many appends in flight in one zone, completing in any order, each with the address where it
 * landed in its completion. FUA is a bit of the command. Geometry comes from Identify and Zone
 * Management Receive (libnvme).
 *
 * A status of the drive becomes the errno that io/dev.h names, and a report in the words of the
 * specification (zone full, too many active zones, zone is read-only, ...).
 */
#ifndef ZF_IO_NVME_H
#define ZF_IO_NVME_H

#include "io/open.h"

/* `path` is the character device; `options->append` is NATIVE or BEST. */
int zf_nvme_open(const char *path, const struct zf_open_options *options,
		 const struct zf_report *report, struct zf_dev **ret_dev);

#endif
