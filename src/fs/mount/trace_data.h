/* SPDX-License-Identifier: MIT */
/* The data of a trace (trace/data.h) begins with the contents of the device. */
#ifndef ZF_FS_MOUNT_TRACE_DATA_H
#define ZF_FS_MOUNT_TRACE_DATA_H

#include "io/dev.h"

/*
 * Copies the state of all zones and the bytes below their pointers to `fd`, and leaves out blocks
 * of zeroes. The caller makes sure that nothing is written to the device meanwhile. -errno: of the
 * device, or of the file.
 */
int zf_fs_trace_data(struct zf_dev *dev, const uint8_t fsid[16], int fd);

#endif
