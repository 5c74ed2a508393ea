/* SPDX-License-Identifier: MIT */
/*
 * One request of the kernel, decoded.
 *
 * A handler fills a struct zf_call on its stack, from what libfuse gives it, and dispatches the
 * call. The call's run() calls src/fs/ and replies, on the thread that brought the request: waking
 * another thread costs more than anything else here. Only when src/fs/ returns -EAGAIN, because it
 * would have to wait, is the call copied and handed to a worker (the call is *parked*). The worker
 * runs the same function again with may_wait set.
 *
 *      handler --zf_call_dispatch--> run --> replied
 *                                     |
 *                                  -EAGAIN --parked--> a worker: run --> replied
 *
 * Some small reads need no worker: the queue's own ring reads the device, and no thread waits
 * (ring_read.h). A durable write that another one's sync serves needs none either (sync_later.h).
 *
 * What a call points to: over io_uring the payload of a request stays where it is until the reply,
 * so nothing is copied. A request from /dev/fuse lies in a buffer that the thread reuses for its
 * next request, so names and data are copied with the call.
 *
 * How many calls may be parked: over io_uring the kernel has a number of slots for each processor
 * (daemon->uring_depth), and a parked request keeps its slot. When all slots are taken, further
 * requests of that processor queue up in the kernel, in order, also those that need not wait. So
 * there are more slots than programs are likely to wait on one processor. From /dev/fuse a bounded
 * number of calls is parked; the next call that has to wait does so on the thread that read it.
 */
#ifndef ZF_FUSE_CALL_H
#define ZF_FUSE_CALL_H

#include <bsd/sys/queue.h>

#include "fuse/daemon.h"
#include "fuse/thread.h"

/*
 * The most requests that the kernel may have under way without waiting for their answers:
 * read-ahead, page writeback, and asynchronous direct I/O.
 */
#define ZF_BACKGROUND_MAX 128

/* Of a direct write whose answer is held until pages are dropped (drop_pages.h). */
enum zf_hold {
	ZF_HOLD_WITHIN, /* within the number of writes that may be held */
	ZF_HOLD_BEYOND,
	ZF_HOLD_ANSWERED, /* it was answered before its pages were dropped */
};

struct zf_open_inode;

struct zf_call {
	fuse_req_t req;
	enum zf_request kind;
	/*
	 * 0: it has replied, or a dropper will (drop_pages.h). -EINPROGRESS: the call is replied to
	 * later, by this thread or another one (ring_read.h, sync_later.h). Any other -errno: it
	 * has not replied, and the caller sends this error as the reply.
	 */
	int (*run)(struct zf_daemon *daemon, struct zf_call *call);

	bool durable; /* in most cases it waits for one durable write only */
	/*
	 * Runs after zf_call_end_all(), too: without src/fs/, with the gate, or counted in
	 * calls_running already.
	 */
	bool after_end;
	struct zf_ctx ctx; /* zf_call_dispatch() fills in the caller */
	uint64_t ino, other_ino;
	const char *name, *other_name;
	const void *data;
	size_t size; /* of data, or of the answer that is asked for */
	uint64_t offset, other_offset;
	unsigned int flags;
	mode_t mode;
	uint64_t rdev;
	struct zf_setattr set;
	bool may_be_write; /* a SETATTR that must not fail (ops_attr.c) */
	struct fuse_file_info fi;
	/*
	 * Set for a write, unless it writes pages of the kernel's cache (fi->writepage); for a
	 * direct read under the writeback cache; for a request that changes a range. Else NULL.
	 */
	struct zf_open_inode *inode;
	bool direct; /* a direct write */
	int result;  /* its answer while it is held */
	/* Of a read: the run() that follows when the dirty pages behind its range are written. */
	int (*then)(struct zf_daemon *daemon, struct zf_call *call);

	/* Set when the wait of a durable write has ended (sync_later.h). */
	struct zf_syncing *syncing;

	int64_t began_ns; /* when it came; 0: part of a call whose latency was noted already */
	/* Of a parked call. */
	struct zf_thread *thread; /* the one that brought it */
	STAILQ_ENTRY(zf_call) link;
	/* Of a held call; under the lock of struct zf_droppers. */
	enum zf_hold hold;
	TAILQ_ENTRY(zf_call) held_link;
};

STAILQ_HEAD(zf_call_list, zf_call);
TAILQ_HEAD(zf_call_queue, zf_call);

/*
 * For a fuseblk mount, on the thread that brought DESTROY. From now on calls are answered with
 * -ENOTCONN; when this function returns, no call is in src/fs/ any more.
 */
void zf_call_end_all(struct zf_daemon *daemon);

/* Runs the caller's call, on this thread or by a worker. Replies in any case. */
void zf_call_dispatch(struct zf_call *call);

/* Runs a parked call to its reply, and frees the call; on a worker, or if it need not wait. */
void zf_call_finish(struct zf_daemon *daemon, struct zf_call *call);

/*
 * Returns a copy of the call that outlives the handler, and counts as parked until
 * zf_call_finish() or zf_call_discard(). It is not handed to a worker. NULL: no memory, or too many
 * calls are parked.
 */
struct zf_call *zf_call_park(const struct zf_call *call);
/* A worker runs the parked call to its reply. */
void zf_call_give_to_worker(struct zf_daemon *daemon, struct zf_call *call);
/*
 * Returns a copy of a call that no longer needs its names and data. The copy counts as parked until
 * zf_call_finish() or zf_call_discard(). NULL: no memory.
 */
struct zf_call *zf_call_keep(const struct zf_call *call);
void zf_call_discard(struct zf_call *call);
/*
 * A worker runs a copy of the call to its reply; without memory for the copy, or with too many
 * parked calls, the calling thread runs the call.
 */
void zf_call_hand_over(struct zf_daemon *daemon, struct zf_call *call);
/* Notes the latency of a call that the calling thread has answered, with this result. */
void zf_call_note_answered(const struct zf_call *call, int result);
/* So many calls are parked that hardly a slot is left in the queue that brought this call. */
bool zf_call_is_crowded(const struct zf_daemon *daemon, const struct zf_call *call);

/*
 * Returns a buffer for an answer of up to `size` bytes: over io_uring the request's own buffer
 * (then the reply copies nothing), otherwise the scratch memory of this thread. Valid until the
 * reply. -ENOMEM; -EINVAL: `size` is too large.
 */
int zf_call_buffer(struct zf_call *call, size_t size, char **ret_buf);

#endif
