/* SPDX-License-Identifier: MIT */
/*
 * The daemon's end of the control socket (ctl/ctl.h), through which a tool can look into a running
 * filesystem.
 *
 * One thread polls all connections. When a request has come completely, it hands the request to a
 * thread of its own (fuse/control_answer.h). So no client waits for another client that is slow to
 * send its request or to take its answer, nor for a command that takes long. The number of
 * connections, the number of running requests, and the time for which a client may keep the daemon
 * waiting are bounded.
 *
 * Besides the commands of ctl/report.h it answers:
 *
 *      "daemon"    {"pid", "version", "device", "mountpoint", "transport", "writeback",
 *                  "durability", "read_only", "mounted"}; transport is "io_uring" or
 *                  "dev-fuse", durability "fua" or "flush"; mounted is false when the kernel has
 *                  ended the mount
 *      "requests"  {"lookup": 12, ...}: how many requests of each kind the kernel has sent, and
 *                  "waited": how many of them a worker had to wait for
 *      "latencies" {"bounds_ns": [10000, ...], "requests": {"lookup": {"counts": [...], "total_ns"},
 *                  ...}, "write_bytes"}: for each kind, how many requests took up to each of these
 *                  times from their arrival to their answer, and in the last count how many took
 *                  longer; and how many bytes the WRITE requests have written
 *      "trace_start"  begins a trace (trace/trace.h), at the start of the file whose descriptor
 *                  comes with the request: null
 *      "trace_stop"   {"events", "dropped"}: how many events there were, and how many of them are
 *                  not in the file
 *      "wait"      answered when the daemon has closed the device: null if the last commit worked,
 *                  else the commit's error (umount.fuse.zfuse waits with this command);
 *                  a client that hangs up before gets no answer
 *
 * The thread begins its work when the kernel has sent its first request: from then on the mount is
 * served (zf_daemon_ready()). The mount's device number names the socket.
 */
#ifndef ZF_FUSE_CONTROL_H
#define ZF_FUSE_CONTROL_H

#include "ctl/ctl.h"

struct zf_control;
struct zf_daemon;

int zf_control_start(struct zf_daemon *daemon, struct zf_control **ret_control);
/* The kernel's first request has come, so requests to the mount are answered from now on. */
void zf_control_serving(struct zf_control *control);
/*
 * The loop has ended: control requests that have come completely are answered, later ones are
 * refused. To be called before the filesystem is unmounted. Takes NULL.
 */
void zf_control_stop(struct zf_control *control);
/*
 * The device is closed: answers the "wait" commands with `error`, and frees `control`. Takes NULL.
 */
void zf_control_finish(struct zf_control *control, int error);

#endif
