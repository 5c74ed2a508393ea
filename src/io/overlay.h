/* SPDX-License-Identifier: MIT */
/*
 * An overlay: a device whose changes stay in memory, over a base device, which is only read.
 *
 * When it is opened, the overlay has the geometry, zones and bytes of the base device. Every write,
 * reset and finish obeys the same rules as on a device, and changes the overlay only: a written
 * block is kept in memory, and a zone that was reset shows no bytes of the base any more. So a
 * checker can try out what a mount would do on a device that it must not write to.
 *
 * For one thread: the overlay has no locks, and no thread of its own.
 */
#ifndef ZF_IO_OVERLAY_H
#define ZF_IO_OVERLAY_H

#include "io/dev.h"

/*
 * `base` stays the caller's, must outlive the overlay, and must not be written meanwhile.
 * `bytes_max`: the most memory for written blocks, which are kept compressed. -ENOMEM, or -errno of
 * the zone report.
 */
int zf_overlay_open(struct zf_dev *base, uint64_t bytes_max, const struct zf_report *report,
		    struct zf_dev **ret_dev);

/* True if a write has failed with -ENOMEM: bytes_max were in use, or there was no memory. */
bool zf_overlay_is_full(struct zf_dev *dev);

#endif
