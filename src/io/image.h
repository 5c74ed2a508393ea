/* SPDX-License-Identifier: MIT */
/*
 * The image backend: an emulated zoned device in one regular file or plain block device.
 *
 * Device byte N is file byte N. Geometry and zone table lie in a trailer behind the last zone
 * (io/image_format.h), mapped shared: they survive kill -9 of the process as they are. A reset is
 * made durable in the trailer, with its count, before the zone's first new write is submitted.
 * After an unclean stop of the host (another boot id, not marked clean) the pointers are lower
 * bounds.
 *
 * I/O is O_DIRECT through io_uring where the host's filesystem allows it, buffered otherwise; FUA
 * is RWF_DSYNC. What somebody waits for (zf_dev_run) is done on his own thread, past the ring. A
 * reset punches the zone out of the file, but for up to two zones that are kept written, and where
 * small durable writes come, zeroes are written ahead of the pointer: in a hole each of them would
 * make the host commit its journal (io/image_warm.c). zf_zone_info.warm tells which empty zones
 * are written.
 *
 * Exclusive: the device holds flock(LOCK_EX) on the description that does the I/O until it is
 * closed; opening waits for the last owner, then says who holds it. A block device is opened with
 * O_EXCL besides, and holds a lock by fcntl(F_OFD_SETLK) too: a fuseblk mount keeps flock(LOCK_SH)
 * only, which udev respects and shares (io/image_file.c).
 */
#ifndef ZF_IO_IMAGE_H
#define ZF_IO_IMAGE_H

#include "io/open.h"

/*
 * Creates (or lays anew) an emulated device of geometry->zone_count zones in `path`; the file is
 * made sparse, with every zone empty. A block device must be large enough. With `force` unset an
 * existing non-empty file is refused with -EEXIST. Messages go to the report.
 */
int zf_image_create(const char *path, const struct zf_geometry *geometry, bool force,
		    const struct zf_open_options *options, const struct zf_report *report);

/*
 * Opens an image. -ENODEV: not an image (no trailer), with a message that says how to make one;
 * -EUCLEAN: a trailer that does not verify, or a truncated file; -EBUSY: still locked after the
 * wait, the message names the holder's process id where /proc/locks tells it.
 */
int zf_image_open(const char *path, const struct zf_open_options *options,
		  const struct zf_report *report, struct zf_dev **ret_dev);

/*
 * Parses "size=4G,zone-size=64M[,zone-capacity=..][,conventional=N][,max-open=N][,max-active=N]
 * [,append-limit=128K]" (suffixes K, M, G, T: powers of 1024). Defaults: size required,
 * zone-size 64M, capacity = size, no conventional zone, no limits, append-limit 1M.
 */
int zf_image_parse_geometry(const char *text, const struct zf_report *report,
			    struct zf_geometry *ret_geometry);

/* The same where the size may be left out: then there are `zone_count` zones. 1: it is given. */
int zf_image_parse_zones(const char *text, uint32_t zone_count, const struct zf_report *report,
			 struct zf_geometry *ret_geometry);

#endif
