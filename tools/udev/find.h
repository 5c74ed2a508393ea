/* SPDX-License-Identifier: MIT */
/*
 * Finds the UUID and label of a zfuse filesystem on a disk, for udev.
 *
 * udev asks for every disk, in use or not. So the search takes no lock, because a mount would wait
 * for it, and writes nothing. It reads at most ten blocks of a disk that has neither zones nor a
 * trailer; otherwise only what is written of the ring's zones, by a binary search of some twenty
 * blocks for each.
 */
#ifndef ZF_TOOLS_UDEV_FIND_H
#define ZF_TOOLS_UDEV_FIND_H

#include "superblock/super_format.h"

struct zf_found {
	char uuid[37];
	char label[ZF_SUPER_LABEL_SIZE]; /* "": none, or a format that this version does not know */
};

/*
 * Searches the disk or image `fd`, which may be open with O_DIRECT. Returns 0, or -ENODEV if there
 * is no superblock. An unreadable block counts as one without a superblock.
 */
int zf_find_super(int fd, struct zf_found *ret_found);

#endif
