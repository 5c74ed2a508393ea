/* SPDX-License-Identifier: MIT */
/* From the daemon's device to its filesystem; and what to try if that is damaged. */
#ifndef ZF_FUSE_MOUNT_H
#define ZF_FUSE_MOUNT_H

struct zf_daemon;

/*
 * Sets daemon->fs. Its root directory can be read then: the kernel looks at that first, and a mount
 * that cannot answer is none. Errors are reported, those of damage with the newest older state that
 * can be mounted.
 */
int zf_daemon_mount(struct zf_daemon *daemon);

#endif
