/* SPDX-License-Identifier: MIT */
#include "fs/core/sync_share.h"

#include <assert.h>

#include "base/plant.h"
#include "fs/core/inode.h"

void zf_sync_share_init(struct zf_sync_share *share)
{
	*share = (struct zf_sync_share){0};
	STAILQ_INIT(&share->threads);
	STAILQ_INIT(&share->threadless);
}

void zf_sync_share_deinit(struct zf_sync_share *share)
{
	assert(!share->running && !share->offered && !share->offered_threadless);
	assert(STAILQ_EMPTY(&share->threads) && STAILQ_EMPTY(&share->threadless));
}

/* ---- a caller comes ---- */

static void begin_locked(struct zf_sync_share *share)
{
	share->running = true;
	share->offered = NULL;
	share->offered_threadless = false;
	share->begun++;
}

/* True: the caller runs the next sync. False: it was served, and the shard's lock was given up. */
static bool wait_for_turn_locked(struct zf_inode *inode, struct zf_sync_waiter *waiter)
{
	struct zf_inode_shard *shard = zf_inode_shard(inode);
	struct zf_sync_share *share = &inode->sync_share;

	/* A caller that resumes may have come before all that wait. */
	if (waiter->number <= share->begun)
		STAILQ_INSERT_HEAD(&share->threads, waiter, link);
	else
		STAILQ_INSERT_TAIL(&share->threads, waiter, link);
	do {
		zf_mutex_unlock(&shard->lock);
		if (zf_turn_wait(&waiter->turn))
			return false;
		zf_mutex_lock(&shard->lock);
	} while (share->offered != waiter);
	STAILQ_REMOVE(&share->threads, waiter, zf_sync_waiter, link);
	return true;
}

/* The waiter has a number. Gives up the shard's lock. */
static enum zf_sync_turn take_turn_and_unlock(struct zf_inode *inode, struct zf_sync_waiter *waiter,
					      bool may_wait)
{
	struct zf_inode_shard *shard = zf_inode_shard(inode);
	struct zf_sync_share *share = &inode->sync_share;
	enum zf_sync_turn r = ZF_SYNC_RUN;

	zf_turn_init(&waiter->turn);
	if (share->served >= waiter->number) {
		r = ZF_SYNC_SERVED;
	} else if (share->running && !may_wait) {
		r = ZF_SYNC_BUSY;
	} else if (!share->running || wait_for_turn_locked(inode, waiter)) {
		begin_locked(share);
	} else {
		zf_turn_deinit(&waiter->turn);
		return ZF_SYNC_SERVED;
	}
	zf_mutex_unlock(&shard->lock);
	zf_turn_deinit(&waiter->turn);
	return r;
}

enum zf_sync_turn zf_sync_share_begin(struct zf_inode *inode, bool may_wait)
{
	const struct zf_sync_share *share = &inode->sync_share;
	struct zf_sync_waiter waiter = {.wait_ended = NULL};

	zf_mutex_lock(&zf_inode_shard(inode)->lock);
	waiter.number = share->begun + 1;
	if (ZF_PLANTED(ZF_BUG_FSYNC_SERVED_AT_REST) ||
	    (ZF_PLANTED(ZF_BUG_FSYNC_SERVED_EARLY) && share->running))
		waiter.number--;
	return take_turn_and_unlock(inode, &waiter, may_wait);
}

void zf_sync_share_join(struct zf_inode *inode, struct zf_sync_waiter *waiter)
{
	struct zf_inode_shard *shard = zf_inode_shard(inode);
	struct zf_sync_share *share = &inode->sync_share;
	bool waits;

	zf_mutex_lock(&shard->lock);
	waiter->number = share->begun + 1;
	waits = share->running || share->offered || share->offered_threadless;
	if (waits)
		STAILQ_INSERT_TAIL(&share->threadless, waiter, link);
	else
		share->offered_threadless = true;
	zf_mutex_unlock(&shard->lock);
	if (!waits)
		waiter->wait_ended(waiter, false);
}

enum zf_sync_turn zf_sync_share_resume(struct zf_inode *inode, struct zf_sync_waiter *waiter)
{
	waiter->wait_ended = NULL; /* it has a thread now */
	zf_mutex_lock(&zf_inode_shard(inode)->lock);
	return take_turn_and_unlock(inode, waiter, true);
}

/* ---- a sync ends ---- */

/* Moves the waiters of `from` that have been served to `served`. */
static void take_served_locked(const struct zf_sync_share *share, struct zf_sync_waiters *from,
			       struct zf_sync_waiters *served)
{
	struct zf_sync_waiter *waiter;

	while ((waiter = STAILQ_FIRST(from)) && share->served >= waiter->number) {
		STAILQ_REMOVE_HEAD(from, link);
		STAILQ_INSERT_TAIL(served, waiter, link);
		if (!waiter->wait_ended)
			zf_turn_end(&waiter->turn);
	}
}

/* Returns the caller to which the next sync is offered now. NULL: none waits. */
static struct zf_sync_waiter *offer_locked(struct zf_sync_share *share)
{
	struct zf_sync_waiter *thread = STAILQ_FIRST(&share->threads);
	struct zf_sync_waiter *threadless = thread ? NULL : STAILQ_FIRST(&share->threadless);

	if (thread)
		zf_turn_offer(&thread->turn);
	if (threadless)
		STAILQ_REMOVE_HEAD(&share->threadless, link);
	share->offered = thread;
	share->offered_threadless = threadless;
	return thread ? thread : threadless;
}

/* The waiter may be gone when this function returns. */
static void tell(struct zf_sync_waiter *waiter, bool served)
{
	if (waiter->wait_ended)
		waiter->wait_ended(waiter, served);
	else
		zf_turn_wake(&waiter->turn);
}

void zf_sync_share_end(struct zf_inode *inode, int result)
{
	struct zf_sync_waiters served = STAILQ_HEAD_INITIALIZER(served);
	struct zf_inode_shard *shard = zf_inode_shard(inode);
	struct zf_sync_share *share = &inode->sync_share;
	struct zf_sync_waiter *offered, *waiter, *next;

	zf_mutex_lock(&shard->lock);
	share->running = false;
	if (result == 0)
		share->served = share->begun;
	take_served_locked(share, &share->threads, &served);
	take_served_locked(share, &share->threadless, &served);
	offered = offer_locked(share);
	zf_mutex_unlock(&shard->lock);
	if (offered)
		tell(offered, false);
	STAILQ_FOREACH_SAFE (waiter, &served, link, next)
		tell(waiter, true);
}
