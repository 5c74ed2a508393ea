/* SPDX-License-Identifier: MIT */
/* What the kernel says of a disk in /sys: one attribute, one file, one line. */
#ifndef ZF_IO_SYSFS_H
#define ZF_IO_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads an attribute, without its newline. False: the kernel has no attribute of that name. */
bool zf_sysfs_read(const char *directory, const char *name, char *buf, size_t size);

/* Returns `otherwise` if there is no such attribute, or if it is no number. */
uint64_t zf_sysfs_read_number(const char *directory, const char *name, uint64_t otherwise);

#endif
