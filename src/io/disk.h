/* SPDX-License-Identifier: MIT */
/*
 * What a path leads to, as the kernel describes it in /sys: a file, a plain block device, or a
 * zoned one and its other name. These functions neither open nor change a disk, except
 * zf_disk_open().
 *
 * `root` is put before /sys, /dev and /proc. It is "" except in tests, which have such trees of
 * their own.
 *
 * Read next: io/open.h, which is built on this.
 */
#ifndef ZF_IO_DISK_H
#define ZF_IO_DISK_H

#include <limits.h>
#include <sys/stat.h>

#include "io/open.h"

enum zf_disk_kind {
	ZF_DISK_FILE,  /* a regular file */
	ZF_DISK_PLAIN, /* a block device without zones, whole or a partition */
	ZF_DISK_ZONED,
};

struct zf_disk {
	const char *root; /* the caller's */
	enum zf_disk_kind kind;
	char path[PATH_MAX];	  /* of the file or block device */
	char nvme_path[PATH_MAX]; /* ZONED: the same disk's character device; "": it has none */
	char sys[PATH_MAX];	  /* its directory in /sys; "" for a file */
};

/*
 * Finds what `path` leads to; `st` is its stat. A character device of NVMe stands for its disk.
 * -ENOTSUP: a zoned disk that zfuse cannot use. -EINVAL: neither file nor disk. Both are reported.
 */
int zf_disk_find(const char *root, const char *path, const struct stat *st,
		 const struct zf_report *report, struct zf_disk *ret_disk);

/* May an image be made there? -EINVAL, reported: not on a disk that has zones of its own. */
int zf_disk_check_for_image(const struct zf_disk *disk, const struct zf_report *report);

/* Opens the disk with the backend that serves it best: the second half of zf_dev_open(). */
int zf_disk_open(const struct zf_disk *disk, const struct zf_open_options *options,
		 const struct zf_report *report, struct zf_dev **ret_dev);

/*
 * Who uses a block device, as far as the kernel tells, and what to do: "mounted at /mnt: unmount
 * it first". Returns false if the kernel knows of no user.
 */
bool zf_disk_user(const struct zf_disk *disk, char *buf, size_t size);

#endif
