/* SPDX-License-Identifier: MIT */
/*
 * Mounts the filesystem on the daemon's device, or finds an older state that can be mounted if it
 * is damaged.
 */
#ifndef ZF_FUSE_MOUNT_H
#define ZF_FUSE_MOUNT_H

struct zf_daemon;

/*
 * Sets daemon->fs. The inode of its root directory has been read by then: the kernel asks for that first, and a
 * mount that cannot answer is useless. Errors are reported; an error of damage with the newest
 * older state that can be mounted.
 */
int zf_daemon_mount(struct zf_daemon *daemon);

#endif
