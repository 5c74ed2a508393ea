/* SPDX-License-Identifier: MIT */
/*
 * The zbd backend: a zoned block device of the kernel, host-managed or host-aware, through libzbd
 * for its zones and io_uring (O_DIRECT) for its data.
 *
 * Linux has no zone append for user space on block devices, so it is emulated. Of each zone the
 * pointer is cached, in blocks from the zone's start: 4 bytes a zone, and nothing else is kept for
 * a zone that nobody writes. Appends that wait for one zone are merged, in the order in which they
 * came, into one vectored write of at most `max_sectors_kb`; writes are submitted in pointer order
 * under one lock a device, and a few are in flight in a zone where the kernel keeps them in
 * order (Linux 6.10 and later: zone write plugging), one where it does not. Zones do not wait for
 * each other. A write across a zone's capacity is refused here: the kernel would let it spill into
 * the next zone.
 *
 * After an error the cached pointer means nothing. Whatever waits for that zone waits until all
 * that is in flight there has come back and a zone report has told the pointer; then it goes on
 * from there. Appends that failed are answered with the error; those that the kernel refused only
 * because an earlier one had failed are sent again.
 *
 * FUA is RWF_DSYNC: one command where the disk has FUA, a write and a flush made by the kernel
 * where it has not. Opening takes one report of all zones, which also serves the reports of a
 * mount, until the first change. All zones have one capacity, that of the sequential ones; a
 * smaller zone at the end of a disk is not used. A disk is held like an image (io/image.h): flock,
 * and O_EXCL.
 *
 * Read next: io/append_queue.h; zbd_ring.c, zbd_zones.c, zbd_resync.c.
 */
#ifndef ZF_IO_ZBD_H
#define ZF_IO_ZBD_H

#include "io/open.h"

/* `options->append` is EMULATED, LOCKED, or BEST (which is EMULATED here). */
int zf_zbd_open(const char *path, const struct zf_open_options *options,
		const struct zf_report *report, struct zf_dev **ret_dev);

#endif
