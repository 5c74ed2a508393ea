/* SPDX-License-Identifier: MIT */
/* Traces of the mount (trace/trace.h), started by a mount option or by the control socket. */
#ifndef ZF_FUSE_TRACE_H
#define ZF_FUSE_TRACE_H

#include <json-c/json.h>

struct zf_daemon;
struct zf_trace_about;

/*
 * Opens the files of -o trace=FILE and -o trace-data=FILE, and truncates them. To be called while
 * the daemon is still in the user's working directory. Does nothing without these options. 0, or
 * -errno, which is reported.
 */
int zf_daemon_trace_open(struct zf_daemon *daemon);

/* What the header of a trace says about this run of the daemon. */
extern const struct zf_trace_about zf_daemon_trace_about;

/*
 * Commands of the control socket, on a thread that may wait. After an error *ret_result is a
 * message. zf_daemon_trace_start() takes over *fd, and sets it to -1, on success only.
 */
int zf_daemon_trace_start(struct zf_daemon *daemon, int *fd, struct json_object **ret_result);
int zf_daemon_trace_stop(struct json_object **ret_result);

/* Ends a trace that is running. To be called when no more events will happen. */
void zf_daemon_trace_end(struct zf_daemon *daemon);

#endif
