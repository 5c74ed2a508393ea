/* SPDX-License-Identifier: MIT */
/*
 * How zf_dev_open() opens a disk: by its path, with the backend that serves it best:
 *
 *   a regular file, a plain block device that holds an image    the image backend  (io/image.h)
 *   a zoned block device, /dev/sdX or /dev/nvmeXnY              zbd                (io/zbd.h)
 *   the same disk's NVMe character device, /dev/ngXnY           nvme               (io/nvme.h)
 *
 * Both names of an NVMe disk mean the same disk: `append` decides which device is used, whichever
 * name was given. The two devices must not be used at the same time, because the kernel's block
 * layer does not see commands to the character device. So each backend locks the device that it
 * writes to, and the nvme backend claims the block device, too. This file holds no lock.
 *
 * Read next: io/disk.h, which finds out what a path leads to.
 */
#ifndef ZF_IO_OPEN_H
#define ZF_IO_OPEN_H

#include "io/dev.h"

struct zf_open_options {
	bool read_only;	       /* never writes; takes a shared lock */
	bool unclaimed;	       /* a block device is left for a fuseblk mount to claim */
	uint32_t lock_wait_ms; /* for the last owner; 10000 for mount, mkfs, check */
	enum zf_append_mode append;
	/*
	 * If a block device with an image on it, or a copy of an image, was made larger, its
	 * trailer lies somewhere behind its zones. It is searched for from this address on, a whole
	 * block. 0: only at the end.
	 */
	uint64_t image_search_from;
	const uint8_t *image_uuid; /* 16 bytes, for a new image's table; NULL: random */
	/*
	 * Called after everything was opened and before the device starts a thread, so that the
	 * program can give up privileges: a thread gets those of its creator. NULL: none. Not
	 * called if no thread starts.
	 */
	void (*before_threads)(void);
};

#endif
