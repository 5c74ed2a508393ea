/* SPDX-License-Identifier: MIT */
#include "fuse/sync_later.h"

#include <errno.h>

#include "fuse/call.h"

/* Until the sync has ended, it counts as a call that runs: zf_call_end_all() waits for it. */
static void count(struct zf_daemon *daemon, int by)
{
	if (daemon->fuseblk)
		atomic_fetch_add(&daemon->calls_running, (unsigned int)by);
}

static void ended(struct zf_syncing *syncing, bool served, void *arg)
{
	struct zf_call *call = arg;
	struct zf_daemon *daemon = fuse_req_userdata(call->req);

	call->syncing = syncing;
	if (served)
		zf_call_finish(daemon, call);
	else
		zf_call_give_to_worker(daemon, call);
}

int zf_sync_later(struct zf_daemon *daemon, const struct zf_call *call)
{
	struct zf_call *copy = zf_call_park(call);
	int r;

	if (!copy)
		return -EAGAIN;
	/* Syncs of others may depend on it. */
	copy->after_end = true;
	count(daemon, 1);
	r = zf_fs_sync_later(daemon->fs, &copy->ctx, copy->ino, ended, copy);
	if (r == -EINPROGRESS)
		return r;
	count(daemon, -1);
	zf_call_discard(copy);
	return r;
}

int zf_sync_later_end(struct zf_daemon *daemon, struct zf_call *call)
{
	int r = zf_fs_sync_later_end(call->syncing);

	call->syncing = NULL;
	count(daemon, -1);
	return r;
}
