/* SPDX-License-Identifier: MIT */
/*
 * Durable writes to one file share syncs. A write that another write's sync serves needs no worker:
 * the thread that has run the sync replies.
 *
 *      run --zf_sync_later--> -EINPROGRESS       the thread that brought it serves others
 *              it was served by a sync --> the thread of that sync runs the call: replied
 *              it has to run the sync --> a worker runs the call: syncs, replied
 *
 * The call runs once more when its wait has ended, with call->syncing set. It counts as parked
 * until it is replied to. Decision 0044 has measurements.
 */
#ifndef ZF_FUSE_SYNC_LATER_H
#define ZF_FUSE_SYNC_LATER_H

struct zf_call;
struct zf_daemon;

/*
 * Makes the data of the call's file durable. -EINPROGRESS: a copy of the call runs again, later or
 * before this function returns. -EAGAIN: the call needs a thread that may wait.
 */
int zf_sync_later(struct zf_daemon *daemon, const struct zf_call *call);
/* For a call that runs again: the result of the sync. It may wait if the call is at a worker. */
int zf_sync_later_end(struct zf_daemon *daemon, struct zf_call *call);

#endif
