/* SPDX-License-Identifier: MIT */
/* What would be lost on a disk that is to be written anew: mkfs.zfuse and zfusectl image ask. */
#ifndef ZF_TOOLS_PROBE_H
#define ZF_TOOLS_PROBE_H

#include "io/disk.h"

/* The last owner may be writing its last commit; mount and check wait as long. */
#define ZF_PROBE_LOCK_WAIT_MS 10000u

/*
 * Finds out what kind of disk `path` leads to. `for_image`: an image is to be made there, so it may
 * not be there yet, and a zoned disk is refused. Returns 0 or -errno, reported.
 */
int zf_probe_disk(const char *path, bool for_image, const struct zf_report *report,
		  struct zf_disk *ret_disk);

/*
 * What of it would be lost: a filesystem, a partition table, data. Looks without changing a byte.
 * Returns 1 and a text of what was found, 0 if there is nothing, or -errno, reported.
 */
int zf_probe_contents(const struct zf_disk *disk, bool for_image, const struct zf_report *report,
		      char *ret_found, size_t size);

#endif
