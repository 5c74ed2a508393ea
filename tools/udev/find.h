/* SPDX-License-Identifier: MIT */
/*
 * Which zfuse is on a disk, for udev: its UUID and label, and nothing else of it.
 *
 * It is asked of every disk, in use or not. So it takes no lock, which a mount would wait for; it
 * reads at most ten blocks and no zone report; and it writes nothing.
 */
#ifndef ZF_TOOLS_UDEV_FIND_H
#define ZF_TOOLS_UDEV_FIND_H

#include "superblock/super_format.h"

struct zf_found {
	char uuid[37];
	char label[ZF_SUPER_LABEL_SIZE]; /* "" also for a format that is not known here */
};

/*
 * Looks on the disk or image that `fd` is open on, which may be O_DIRECT. Returns 0, or -ENODEV if
 * there is no superblock. What cannot be read holds none.
 */
int zf_find_super(int fd, struct zf_found *ret_found);

#endif
