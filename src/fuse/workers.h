/* SPDX-License-Identifier: MIT */
/*
 * The threads that may wait: they take parked calls in order and run each to its reply.
 *
 * A thread is started when a call finds none idle, up to a bound, and stays until the end: threads
 * that come and go would cost more than they give back. The bound is there because each of them may
 * be waiting for the same commit: calls beyond it are served by the next one.
 */
#ifndef ZF_FUSE_WORKERS_H
#define ZF_FUSE_WORKERS_H

struct zf_call;
struct zf_daemon;
struct zf_workers;

int zf_workers_new(struct zf_daemon *daemon, struct zf_workers **ret_workers);
/* Runs what is still parked, then ends the threads. Takes NULL. */
void zf_workers_free(struct zf_workers *workers);

/* Takes over the call. */
void zf_workers_run(struct zf_workers *workers, struct zf_call *call);

#endif
