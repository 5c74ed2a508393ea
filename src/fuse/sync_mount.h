/* SPDX-License-Identifier: MIT */
#ifndef ZF_FUSE_SYNC_MOUNT_H
#define ZF_FUSE_SYNC_MOUNT_H

#include <sys/types.h>

/*
 * Has the kernel write the dirty pages of the filesystem `st_dev`, which is mounted at the
 * mountpoint. The sync sends requests to this daemon, and the thread that calls sync waits for the
 * answers, also if it is killed. If one of our own threads called it, and the daemon was killed
 * meanwhile, that thread would keep /dev/fuse open, and wait for ever. So another process calls
 * sync. When the daemon dies, the kernel ends the connection, and with it the wait of that process.
 * -EINVAL: another filesystem is mounted there; -EIO: sync failed for an unknown reason.
 */
int zf_sync_mount(const char *mountpoint, dev_t st_dev);

#endif
