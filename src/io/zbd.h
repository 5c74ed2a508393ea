/* SPDX-License-Identifier: MIT */
/*
 * The zbd backend: a zoned block device of the kernel, host-managed or host-aware, through libzbd
 * for its zones and io_uring (O_DIRECT) for its data.
 *
 * Linux has no zone append for user space on block devices, so this backend emulates it. It caches
 * each zone's pointer, in blocks from the zone's start: 4 bytes a zone, and nothing else is kept
 * for a zone that is not being written. Appends that wait for one zone are merged, in the order of
 * their submission, into one vectored write of at most `max_sectors_kb`. Writes are submitted in
 * pointer order under one lock per device. A few writes are in flight in a zone if the kernel keeps
 * them in order (Linux 6.10 and later: zone write plugging), else one. Zones do not wait for each
 * other. The backend refuses a write across a zone's capacity: the kernel would let the write spill
 * into the next zone.
 *
 * After an error the cached pointer is invalid. Further requests to that zone wait until all writes
 * in flight there have completed and a zone report has told the pointer; then they go on from that
 * pointer. Appends that failed get the error; appends that the kernel refused only because an
 * earlier one had failed are sent again.
 *
 * FUA is RWF_DSYNC: one command if the disk has FUA, else a write and a flush made by the kernel.
 * Opening takes one report of all zones, which also serves the reports of a mount, until the first
 * change. All zones have one capacity, that of the sequential zones; a smaller zone at the end of a
 * disk is not used. A disk is held like an image (io/image.h): flock, and O_EXCL.
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
