/* SPDX-License-Identifier: MIT */
/*
 * An overlay: a device whose changes stay in memory, over another one, which is only read.
 *
 * It begins as what the device below is when it is opened: its geometry, zones and bytes. Every
 * write, reset and finish obeys the same rules and is kept here: a block that was written is copied,
 * a zone that was reset shows nothing of what lies below any more. So whoever checks can try out
 * what a mount would do, on a device that he may not write to.
 *
 * For one thread: nothing here is locked, and it has no thread of its own.
 */
#ifndef ZF_IO_OVERLAY_H
#define ZF_IO_OVERLAY_H

#include "io/dev.h"

/*
 * `base` stays the caller's, outlives the overlay, and is not written to by anybody meanwhile.
 * `bytes_max`: of memory for what is written, which is kept compressed. -ENOMEM, or -errno of the zone report.
 */
int zf_overlay_open(struct zf_dev *base, uint64_t bytes_max, const struct zf_report *report,
		    struct zf_dev **ret_dev);

/* A write has failed with -ENOMEM, because bytes_max were in use or there was no memory. */
bool zf_overlay_is_full(struct zf_dev *dev);

#endif
