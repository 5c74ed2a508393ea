/* SPDX-License-Identifier: MIT */
#ifndef ZF_FUSE_SYNC_MOUNT_H
#define ZF_FUSE_SYNC_MOUNT_H

#include <sys/types.h>

/*
 * Has the kernel write what it has not written yet of the filesystem `st_dev` at the mountpoint.
 * That asks this daemon, and who asks waits for the answer whatever happens: if one of our own
 * threads did, and the daemon was killed meanwhile, the thread would keep /dev/fuse open, and wait
 * for ever. So another process asks. When the daemon dies, the kernel ends the connection, and with
 * it what that process waits for. -EINVAL: something else is mounted there; -EIO: it was told no
 * reason.
 */
int zf_sync_mount(const char *mountpoint, dev_t st_dev);

#endif
