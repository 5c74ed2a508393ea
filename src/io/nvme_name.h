/* SPDX-License-Identifier: MIT */
/*
 * The two names of an NVMe namespace. The kernel gives both the same numbers: /dev/ng0n1 is the
 * character device, for commands, and /dev/nvme0n1 the block device.
 */
#ifndef ZF_IO_NVME_NAME_H
#define ZF_IO_NVME_NAME_H

#include <stddef.h>

/*
 * Derives the other name, in the same directory, from the name alone; no file is looked at, so
 * resolve symbolic links first. -EINVAL: not such a name. -ENAMETOOLONG.
 */
int zf_nvme_block_name(const char *ng_path, char *buf, size_t size);
int zf_nvme_char_name(const char *block_path, char *buf, size_t size);

#endif
