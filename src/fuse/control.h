/* SPDX-License-Identifier: MIT */
/*
 * The daemon's end of the control socket (ctl/ctl.h), so that a tool can see into a running
 * filesystem.
 *
 * One thread polls all connections, and hands each request that has come as a whole to a thread of
 * its own (fuse/control_answer.h). So nobody waits for a client that is slow to ask or to take its
 * answer, nor for a command that takes long. Connections, requests that run and the time for which
 * a client may keep the daemon waiting are bounded.
 *
 * Besides the commands of ctl/report.h it answers:
 *
 *      "daemon"    {"pid", "version", "device", "mountpoint", "transport", "writeback",
 *                  "durability", "read_only", "mounted"}; transport is "io_uring" or
 *                  "dev-fuse", durability "fua" or "flush"; mounted is false once the kernel has
 *                  let go of the mount
 *      "requests"  {"lookup": 12, ...}: how many requests of each kind the kernel has sent, and
 *                  "waited": how many of them a worker had to wait for
 *      "latencies" {"bounds_ns": [10000, ...], "requests": {"lookup": {"counts": [...], "total_ns"},
 *                  ...}, "write_bytes"}: how many requests of each kind have taken up to each of these
 *                  times, and in the last count longer, from when they came until they were answered;
 *                  and how much the WRITE requests among them have written
 *      "trace_start"  begins a trace (trace/trace.h) in the file whose descriptor comes with the
 *                  request, from its start: null
 *      "trace_stop"   {"events", "dropped"}: how many there were, and how many of them are not in the
 *                  file
 *      "wait"      answered when the daemon has let go of the device: null if the last commit
 *                  worked, else its error (umount.fuse.zfuse waits with it);
 *                  who hangs up before is forgotten
 *
 * The thread begins when the kernel has sent its first request: from then on the mount is served
 * (zf_daemon_ready). Its device number names the socket.
 */
#ifndef ZF_FUSE_CONTROL_H
#define ZF_FUSE_CONTROL_H

#include "ctl/ctl.h"

struct zf_control;
struct zf_daemon;

int zf_control_start(struct zf_daemon *daemon, struct zf_control **ret_control);
/* The kernel's first request has come, so whoever asks the mount is answered. */
void zf_control_serving(struct zf_control *control);
/*
 * The loop has ended: requests that have come are answered, later ones refused. To be called before
 * the filesystem is unmounted. Takes NULL.
 */
void zf_control_stop(struct zf_control *control);
/* The device is free: tells those who wait, and frees. Takes NULL. */
void zf_control_finish(struct zf_control *control, int error);

#endif
