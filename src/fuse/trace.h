/* SPDX-License-Identifier: MIT */
/* Traces of the mount (trace/trace.h): by a mount option, or by the control socket. */
#ifndef ZF_FUSE_TRACE_H
#define ZF_FUSE_TRACE_H

#include <json-c/json.h>

struct zf_daemon;
struct zf_trace_about;

/*
 * Opens the files of -o trace=FILE and -o trace-data=FILE, while the user's directory is still the
 * daemon's; replaces what is there. A no-op without the option. 0, or -errno, which is reported.
 */
int zf_daemon_trace_open(struct zf_daemon *daemon);

/* What a trace of this daemon says of its run. */
extern const struct zf_trace_about zf_daemon_trace_about;

/*
 * By the control socket, on a thread that may wait. *ret_result is a message after an error. The
 * first takes *fd over, and sets it to -1, on success only.
 */
int zf_daemon_trace_start(struct zf_daemon *daemon, int *fd, struct json_object **ret_result);
int zf_daemon_trace_stop(struct json_object **ret_result);

/* Nothing more will happen that a trace could tell: ends one that is running. */
void zf_daemon_trace_end(struct zf_daemon *daemon);

#endif
