/* SPDX-License-Identifier: MIT */
/*
 * The threads that may wait: they take parked calls (call.h) in order and run each to its reply.
 *
 * A thread is started when a call finds no idle thread, up to a bound, and stays until the end:
 * threads that come and go would cost more than they save. There is a bound because all threads may
 * be waiting for the same commit; calls beyond the bound are then served by the next commit.
 */
#ifndef ZF_FUSE_WORKERS_H
#define ZF_FUSE_WORKERS_H

struct zf_call;
struct zf_daemon;
struct zf_workers;

int zf_workers_new(struct zf_daemon *daemon, struct zf_workers **ret_workers);
/*
 * Runs the calls that are still parked, and those that these bring (sync_later.h), then ends the
 * threads. Takes NULL.
 */
void zf_workers_free(struct zf_workers *workers);

/* Takes over the call. */
void zf_workers_run(struct zf_workers *workers, struct zf_call *call);

#endif
