/* SPDX-License-Identifier: MIT */
/* Finds what mkfs.zfuse or `zfusectl image` would destroy on a disk. */
#ifndef ZF_TOOLS_PROBE_H
#define ZF_TOOLS_PROBE_H

#include "io/disk.h"

/* The former owner may still write its last commit. A mount and a check wait as long. */
#define ZF_PROBE_LOCK_WAIT_MS 10000u

/*
 * Finds out what kind of disk `path` is. `for_image`: the caller will make an image there, so
 * `path` need not exist, and a zoned disk is refused. Returns 0 or -errno, reported.
 */
int zf_probe_disk(const char *path, bool for_image, const struct zf_report *report,
		  struct zf_disk *ret_disk);

/*
 * Looks for a filesystem, a partition table or data on the disk, without changing a byte. Returns 1
 * and a text of what was found, 0 if there is nothing, or -errno, reported.
 */
int zf_probe_contents(const struct zf_disk *disk, bool for_image, const struct zf_report *report,
		      char *ret_found, size_t size);

#endif
