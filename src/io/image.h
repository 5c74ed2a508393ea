/* SPDX-License-Identifier: MIT */
/*
 * The image backend: an emulated zoned device in one regular file or plain block device.
 *
 * Device byte N is file byte N. Geometry and zone table lie in a trailer behind the last zone
 * (io/image_format.h). The zone table is mapped shared, so kill -9 of the process leaves it as it
 * is. A reset is made durable in the trailer, with its count, before the zone's first new write is
 * submitted. After an unclean stop of the host (another boot id, not marked clean) the pointers are
 * lower bounds.
 *
 * I/O is O_DIRECT through io_uring where the host's filesystem allows it, buffered otherwise; FUA
 * is RWF_DSYNC. A request of zf_dev_run() is carried out on the calling thread, past the ring. A
 * reset punches the zone out of the file, except for up to two zones that are kept written. Where
 * small durable writes come, zeroes are written ahead of the pointer: each small durable write into
 * a hole would make the host commit its journal (io/image_warm.c). zf_zone_info.warm tells which
 * empty zones are written.
 *
 * Exclusive: until it is closed, the device holds flock(LOCK_EX) on the file description that does
 * the I/O; opening waits for the last owner, then says who holds the lock. A block device is also
 * opened with O_EXCL, and locked by fcntl(F_OFD_SETLK): a fuseblk mount keeps flock(LOCK_SH) only,
 * which udev respects and shares (io/image_file.c).
 */
#ifndef ZF_IO_IMAGE_H
#define ZF_IO_IMAGE_H

#include "io/open.h"

/*
 * Creates (or formats anew) an emulated device of geometry->zone_count zones in `path`; the file is
 * made sparse, with every zone empty. A block device must be large enough. With `force` unset an
 * existing non-empty file is refused with -EEXIST. Messages go to the report.
 */
int zf_image_create(const char *path, const struct zf_geometry *geometry, bool force,
		    const struct zf_open_options *options, const struct zf_report *report);

/*
 * Opens an image. -ENODEV: not an image (no trailer), with a message that says how to make one;
 * -EUCLEAN: a trailer that does not verify, or a truncated file; -EBUSY: still locked after the
 * wait; the message names the holder's process id if /proc/locks tells it.
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

/* The same, but without a size there are `zone_count` zones. Returns 1 if the size is given. */
int zf_image_parse_zones(const char *text, uint32_t zone_count, const struct zf_report *report,
			 struct zf_geometry *ret_geometry);

#endif
