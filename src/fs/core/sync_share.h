/* SPDX-License-Identifier: MIT */
/*
 * Data syncs of one file are shared. One runs at a time, and it serves every caller that has
 * written before it began. The others wait. When a sync has ended, the wait of the callers that it
 * has served ends, and one of the rest runs the next sync. If a sync fails, only the caller that
 * ran it gets the error; the others are served by another one.
 *
 *      caller --no sync runs--> runs one --> answered
 *        |
 *        +--a sync runs--> waits --a sync that began later has ended--> answered
 *                            |
 *                            +--the next sync is offered to it--> runs it, unless another caller
 *                                                                 has begun it first
 *
 * A caller waits on its thread, or it is threadless: it leaves a waiter behind, and a function is
 * called when its wait has ended.
 *
 * A thread waits only while another thread runs a sync, or while the next sync is offered to
 * another thread that waits. It never waits for a threadless caller, because that caller may need
 * the same thread. So the next sync is offered to a thread if one waits. If it is offered to a
 * threadless caller, a thread that comes before that caller runs it.
 *
 * Invariant: while callers wait, a sync runs, or the next one is offered. A caller to which a sync
 * was offered always comes (zf_sync_share_resume()), even if another one has run that sync.
 */
#ifndef ZF_FS_SYNC_SHARE_H
#define ZF_FS_SYNC_SHARE_H

#include <bsd/sys/queue.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/turn.h"

struct zf_inode;

enum zf_sync_turn {
	ZF_SYNC_RUN,	/* the caller runs a sync, and then calls zf_sync_share_end() */
	ZF_SYNC_SERVED, /* a sync has served the caller */
	ZF_SYNC_BUSY,	/* the caller would have to wait for another caller's sync */
};

/* A caller that waits. */
struct zf_sync_waiter {
	STAILQ_ENTRY(zf_sync_waiter) link;
	uint64_t number;     /* a sync of this number, or a later one, serves it */
	struct zf_turn turn; /* of a thread */
	/*
	 * Of a threadless caller (else NULL): called once, without locks. `served`: a sync has
	 * served the caller. Otherwise the next one is offered to it, and it calls
	 * zf_sync_share_resume().
	 */
	void (*wait_ended)(struct zf_sync_waiter *waiter, bool served);
};

STAILQ_HEAD(zf_sync_waiters, zf_sync_waiter);

/* Embedded in every inode; under the lock of the inode's shard. */
struct zf_sync_share {
	bool running;
	uint64_t begun, served; /* numbers of the last sync that began, and succeeded */
	/* In order of arrival. */
	struct zf_sync_waiters threads, threadless;
	/* To whom the next sync is offered; if one runs, to none. */
	struct zf_sync_waiter *offered; /* a thread; NULL: none */
	bool offered_threadless;	/* a threadless caller, which is in no list any more */
};

void zf_sync_share_init(struct zf_sync_share *share);
/* No caller waits. */
void zf_sync_share_deinit(struct zf_sync_share *share);

/* Without `may_wait` it does not sleep. ZF_SYNC_BUSY only without `may_wait`. */
enum zf_sync_turn zf_sync_share_begin(struct zf_inode *inode, bool may_wait);
/*
 * Waits without a thread: waiter->wait_ended is called later, or before this function returns. If
 * no sync runs or is offered, the next one is offered to this caller at once. Until the wait has
 * ended the inode must have a use.
 */
void zf_sync_share_join(struct zf_inode *inode, struct zf_sync_waiter *waiter);
/*
 * For a threadless caller to which a sync was offered, on a thread that may sleep: ZF_SYNC_RUN or
 * ZF_SYNC_SERVED. Callers that wait depend on this call.
 */
enum zf_sync_turn zf_sync_share_resume(struct zf_inode *inode, struct zf_sync_waiter *waiter);
/* The caller's sync has ended. result: 0 or -errno. It may call wait_ended() of waiters. */
void zf_sync_share_end(struct zf_inode *inode, int result);

#endif
