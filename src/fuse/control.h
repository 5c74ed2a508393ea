/* SPDX-License-Identifier: MIT */
/*
 * The daemon's end of the control socket (ctl/ctl.h): a thread that answers one request after the other, so that a
 * tool can see into a running filesystem.
 *
 * Besides the commands of its tables it answers:
 *   "daemon"    {"pid", "version", "device", "mountpoint", "transport": "io_uring" | "dev-fuse", "writeback", "read_only"}
 *   "requests"  {"lookup": 12, ...}: how many requests of each kind the kernel sent, "waited": how many of them were
 *               handed to a worker
 *   "wait"      answered when the daemon has let go of the device: null if the last commit worked, else its error
 *               (umount.fuse.zfuse waits with it)
 */
#ifndef ZF_FUSE_CONTROL_H
#define ZF_FUSE_CONTROL_H

#include "ctl/ctl.h"

#endif
