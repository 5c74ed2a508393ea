/* SPDX-License-Identifier: MIT */
/*
 * The state that a mount would make of a device: its log replayed, its intents finished, its orphans
 * deleted. One is tried on an overlay (io/overlay.h): the device is only read.
 */
#ifndef ZF_CHECK_RECOVERED_H
#define ZF_CHECK_RECOVERED_H

#include "base/report.h"
#include "io/dev.h"

/* Bytes of memory that the overlay may take. Recovery writes each node that it changes. */
#define ZF_RECOVERED_BYTES_MAX (UINT64_C(512) << 20)

/*
 * `dev` outlives *ret_overlay, whose newest superblock is that of the recovered state; the caller
 * closes it. -EFBIG: the overlay would take more memory than that. -ENOMEM, or what the mount or its
 * first commit met, and has reported.
 */
int zf_recovered_open(struct zf_dev *dev, const struct zf_report *report,
		      struct zf_dev **ret_overlay);

#endif
