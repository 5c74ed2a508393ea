/* SPDX-License-Identifier: MIT */
/* Exit statuses of the daemon and its helpers: those of mount(8). */
#ifndef ZF_FUSE_STATUS_H
#define ZF_FUSE_STATUS_H

enum zf_exit {
	ZF_EXIT_OK = 0,
	ZF_EXIT_USAGE = 1,  /* wrong usage, or not permitted */
	ZF_EXIT_SYSTEM = 2, /* no memory, no thread, no /dev/fuse */
	ZF_EXIT_MOUNT = 32, /* the mount, or the unmount, failed */
};

#endif
