/* SPDX-License-Identifier: MIT */
/*
 * Makes the state that a mount would make of a device: log replayed, intents finished, orphans
 * deleted. The mount runs on an overlay (io/overlay.h), so the device is only read.
 */
#ifndef ZF_CHECK_RECOVERED_H
#define ZF_CHECK_RECOVERED_H

#include "base/report.h"
#include "io/dev.h"

/* Most bytes of memory for the overlay. A recovery writes every node that it changes. */
#define ZF_RECOVERED_BYTES_MAX (UINT64_C(512) << 20)

/*
 * The newest superblock of *ret_overlay is that of the recovered state. The caller closes
 * *ret_overlay; `dev` outlives it. -EFBIG: the overlay would take more than ZF_RECOVERED_BYTES_MAX.
 * -ENOMEM, or the error, already reported, of the mount or its first commit.
 */
int zf_recovered_open(struct zf_dev *dev, const struct zf_report *report,
		      struct zf_dev **ret_overlay);

#endif
