/* SPDX-License-Identifier: MIT */
#include "fuse/drop_pages.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "fuse/open_inode.h"
#include "fuse/workers.h"

/*
 * The most calls held at once. The other half of ZF_BACKGROUND_MAX is left for the READs and WRITEs
 * for which held calls wait.
 */
#define HELD_MAX (ZF_BACKGROUND_MAX / 2)
/*
 * If no held call was done for so long, calls beyond the limit are answered early. Dropping a page
 * takes some microseconds; a locked page takes as long as the device needs to read it.
 */
#define STUCK_MS 20

struct zf_droppers {
	struct zf_daemon *daemon;
	struct zf_workers *workers;
	pthread_t relief;
	bool has_relief;

	struct zf_mutex lock; /* ZF_RANK_DAEMON */
	struct zf_cond some_beyond, end;
	/* Under lock. */
	struct zf_call_queue beyond; /* calls over the limit: answered early if `stuck` */
	unsigned int held;
	uint64_t done;
	bool stuck; /* no call was done for STUCK_MS */
	bool ending;
};

static void answer(fuse_req_t req, int result)
{
	if (result < 0)
		fuse_reply_err(req, -result);
	else
		fuse_reply_write(req, (size_t)result);
}

/* ---- dropping ---- */

static void drop(struct zf_daemon *daemon, const struct zf_call *call)
{
	if (zf_open_inode_begin_drop(call->inode)) {
		fuse_lowlevel_notify_inval_inode(daemon->session, call->ino, 0, 0);
		zf_open_inode_end_drop(call->inode);
	} else {
		fuse_lowlevel_notify_inval_inode(daemon->session, call->ino, (off_t)call->offset,
						 (off_t)call->size);
	}
}

/* Ends the hold of a call. True: the caller answers. */
static bool leave(struct zf_droppers *droppers, struct zf_call *call)
{
	bool answered;

	zf_mutex_lock(&droppers->lock);
	answered = call->hold == ZF_HOLD_ANSWERED;
	if (call->hold == ZF_HOLD_BEYOND)
		TAILQ_REMOVE(&droppers->beyond, call, held_link);
	droppers->held--;
	droppers->done++;
	droppers->stuck = false;
	zf_mutex_unlock(&droppers->lock);
	return !answered;
}

static int run_drop(struct zf_daemon *daemon, struct zf_call *call)
{
	drop(daemon, call);
	if (leave(daemon->droppers, call))
		answer(call->req, call->result);
	zf_open_inode_put(daemon->open_inodes, call->inode);
	return 0;
}

static int run_drop_later(struct zf_daemon *daemon, struct zf_call *call)
{
	uint64_t offset, len;

	zf_open_inode_take_later(daemon->open_inodes, call->inode, &offset, &len);
	fuse_lowlevel_notify_inval_inode(daemon->session, call->ino, (off_t)offset, (off_t)len);
	zf_open_inode_put(daemon->open_inodes, call->inode);
	return 0;
}

static int run_write_out(struct zf_daemon *daemon, struct zf_call *call)
{
	struct zf_droppers *droppers = daemon->droppers;

	fuse_lowlevel_notify_inval_inode(daemon->session, call->ino, (off_t)call->offset, 0);
	zf_mutex_lock(&droppers->lock);
	droppers->held--;
	droppers->done++;
	droppers->stuck = false;
	zf_mutex_unlock(&droppers->lock);
	/*
	 * The kernel's dirty pages are written now, so a short read is the end of the file:
	 * without an inode, may_end_later() is false.
	 */
	call->inode = NULL;
	call->run = call->then;
	return call->run(daemon, call);
}

static void enter(struct zf_droppers *droppers, struct zf_call *call)
{
	zf_mutex_lock(&droppers->lock);
	if (++droppers->held > HELD_MAX || zf_call_is_crowded(droppers->daemon, call)) {
		call->hold = ZF_HOLD_BEYOND;
		if (TAILQ_EMPTY(&droppers->beyond))
			zf_cond_signal(&droppers->some_beyond);
		TAILQ_INSERT_TAIL(&droppers->beyond, call, held_link);
	}
	zf_mutex_unlock(&droppers->lock);
}

static struct zf_call *keep(struct zf_droppers *droppers, const struct zf_call *call,
			    int (*run)(struct zf_daemon *, struct zf_call *))
{
	struct zf_call *copy = zf_call_keep(call);

	if (!copy)
		return NULL;
	copy->run = run;
	copy->after_end = true;
	zf_open_inode_get(droppers->daemon->open_inodes, copy->inode);
	return copy;
}

int zf_droppers_run(struct zf_droppers *droppers, const struct zf_call *call)
{
	struct zf_call *copy = keep(droppers, call, run_drop);

	if (!copy)
		return -ENOMEM;
	enter(droppers, copy);
	zf_workers_run(droppers->workers, copy);
	return 0;
}

int zf_droppers_answer_and_run(struct zf_droppers *droppers, const struct zf_call *call)
{
	struct zf_open_inodes *inodes = droppers->daemon->open_inodes;
	struct zf_call *copy = keep(droppers, call, run_drop_later);

	if (!copy)
		return -ENOMEM;
	fuse_reply_write(call->req, call->size);
	/* Ranges are collected per inode: if one waits already, its call drops this one, too. */
	if (zf_open_inode_drop_later(inodes, copy->inode, call->offset, call->size)) {
		zf_workers_run(droppers->workers, copy);
	} else {
		zf_open_inode_put(inodes, copy->inode);
		zf_call_discard(copy);
	}
	return 0;
}

bool zf_droppers_write_out(struct zf_droppers *droppers, const struct zf_call *call)
{
	struct zf_call *copy;
	bool enters;

	zf_mutex_lock(&droppers->lock);
	enters = droppers->held < HELD_MAX && !zf_call_is_crowded(droppers->daemon, call);
	droppers->held += enters;
	zf_mutex_unlock(&droppers->lock);
	if (!enters)
		return false;
	copy = zf_call_keep(call);
	if (!copy) {
		zf_mutex_lock(&droppers->lock);
		droppers->held--;
		zf_mutex_unlock(&droppers->lock);
		return false;
	}
	copy->then = copy->run;
	copy->run = run_write_out;
	zf_workers_run(droppers->workers, copy);
	return true;
}

/* ---- relief ---- */

static void answer_first_locked(struct zf_droppers *droppers)
{
	struct zf_call *call = TAILQ_FIRST(&droppers->beyond);
	fuse_req_t req = call->req;
	int result = call->result;

	TAILQ_REMOVE(&droppers->beyond, call, held_link);
	call->hold = ZF_HOLD_ANSWERED;
	/* Without the lock, a dropper may free the call. */
	zf_mutex_unlock(&droppers->lock);
	answer(req, result);
	zf_mutex_lock(&droppers->lock);
}

static void *relieve(void *arg)
{
	struct zf_droppers *droppers = arg;
	uint64_t done;

	zf_mutex_lock(&droppers->lock);
	while (!droppers->ending) {
		if (TAILQ_EMPTY(&droppers->beyond)) {
			zf_cond_wait(&droppers->some_beyond, &droppers->lock);
		} else if (droppers->stuck) {
			answer_first_locked(droppers);
		} else {
			done = droppers->done;
			zf_cond_wait_ms(&droppers->end, &droppers->lock, STUCK_MS);
			droppers->stuck = droppers->done == done;
		}
	}
	zf_mutex_unlock(&droppers->lock);
	return NULL;
}

/* ---- life ---- */

int zf_droppers_new(struct zf_daemon *daemon, struct zf_droppers **ret_droppers)
{
	struct zf_droppers *droppers = calloc(1, sizeof(*droppers));
	int r;

	if (!droppers)
		return -ENOMEM;
	droppers->daemon = daemon;
	TAILQ_INIT(&droppers->beyond);
	zf_mutex_init(&droppers->lock, ZF_RANK_DAEMON);
	zf_cond_init(&droppers->some_beyond);
	zf_cond_init(&droppers->end);
	r = zf_workers_new(daemon, &droppers->workers);
	if (r == 0) {
		r = -pthread_create(&droppers->relief, NULL, relieve, droppers);
		droppers->has_relief = r == 0;
	}
	if (r < 0) {
		zf_droppers_free(droppers);
		return r;
	}
	*ret_droppers = droppers;
	return 0;
}

void zf_droppers_free(struct zf_droppers *droppers)
{
	if (!droppers)
		return;
	zf_workers_free(droppers->workers);
	zf_mutex_lock(&droppers->lock);
	droppers->ending = true;
	zf_cond_signal(&droppers->some_beyond);
	zf_cond_signal(&droppers->end);
	zf_mutex_unlock(&droppers->lock);
	if (droppers->has_relief)
		pthread_join(droppers->relief, NULL);
	zf_cond_deinit(&droppers->end);
	zf_cond_deinit(&droppers->some_beyond);
	zf_mutex_deinit(&droppers->lock);
	free(droppers);
}
