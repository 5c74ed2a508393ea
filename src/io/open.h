/* SPDX-License-Identifier: MIT */
/*
 * How zf_dev_open() opens a disk: by its path, with the backend that serves it best:
 *
 *   a regular file, a plain block device that holds an image    the image backend  (io/image.h)
 *   a zoned block device, /dev/sdX or /dev/nvmeXnY              zbd                (io/zbd.h)
 *   the same disk's NVMe character device, /dev/ngXnY           nvme               (io/nvme.h)
 *
 * Either name of an NVMe disk means the disk: `append` says which path to it is taken, whichever
 * name was given. The two must not be mixed while the disk is in use (the kernel does not see what
 * goes past its block layer), so both are claimed: each backend locks what it writes to, and the
 * nvme backend claims the block device too. Here nothing is held.
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
	 * A block device with an image on it, or a copy of an image, that was made larger has its
	 * trailer somewhere behind its zones: it is looked for from here on, a whole block. 0: only
	 * at the end.
	 */
	uint64_t image_search_from;
	const uint8_t *image_uuid; /* 16 bytes, for a new image's table; NULL: random */
	/*
	 * Called when nothing is left to be opened, before the device starts a thread: a thread has
	 * the privileges that its creator had. NULL: nobody asks. Not called where no thread starts.
	 */
	void (*before_threads)(void);
};

#endif
