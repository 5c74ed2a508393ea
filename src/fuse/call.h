/* SPDX-License-Identifier: MIT */
/*
 * One request of the kernel's, decoded.
 *
 * A handler fills a struct zf_call on its stack, from what libfuse gives it, and dispatches it. The
 * call's run() asks src/fs/ and replies, on the thread that brought the request: waking another one
 * costs more than anything else here. Only when src/fs/ says -EAGAIN, that it would have to wait,
 * is the call copied and handed to a worker, who runs the same function again with may_wait set.
 *
 *      handler --zf_call_dispatch--> run --> replied
 *                                     |
 *                                  -EAGAIN --parked--> a worker: run --> replied
 *
 * A small read may be on its way to the device meanwhile, without a thread that waits (ring_read.h).
 *
 * What a call points to: over io_uring, the payload of a request stays where it is until the reply,
 * so nothing is copied; read from /dev/fuse it is in a buffer that the thread reads its next
 * request into, so names and data are copied with the call.
 *
 * How many may be parked. Over io_uring the kernel has a number of slots for each processor
 * (daemon->uring_depth), and a parked request keeps its slot. When all slots are taken, further
 * requests of that processor queue up in the kernel, in order, also those that need not wait: so
 * there are more slots than programs are likely to wait on one processor. From /dev/fuse a bounded
 * number is parked, and the next one that has to wait does so on the thread that read it.
 */
#ifndef ZF_FUSE_CALL_H
#define ZF_FUSE_CALL_H

#include <bsd/sys/queue.h>

#include "fuse/daemon.h"
#include "fuse/thread.h"

/*
 * Requests that the kernel may have under way at once without waiting for the answer: reads ahead,
 * pages that it writes, and asynchronous direct I/O.
 */
#define ZF_BACKGROUND_MAX 128

/* Of a direct write that is held until pages are dropped (drop_pages.h). */
enum zf_hold {
	ZF_HOLD_WITHIN, /* the number that may be */
	ZF_HOLD_BEYOND,
	ZF_HOLD_ANSWERED, /* before its pages were dropped */
};

struct zf_open_inode;

struct zf_call {
	fuse_req_t req;
	enum zf_request kind;
	/*
	 * 0 when it has replied, -errno when it has not and this is the reply; -EINPROGRESS when it
	 * will reply later, on this thread (ring_read.h).
	 */
	int (*run)(struct zf_daemon *daemon, struct zf_call *call);

	bool durable; /* waits for one durable write, mostly */
	bool after_end; /* runs after zf_call_end_all() too: it asks nothing of src/fs/, or holds the gate */
	struct zf_ctx ctx; /* who asks is filled in by the dispatch */
	uint64_t ino, other_ino;
	const char *name, *other_name;
	const void *data;
	size_t size; /* of data, or of what is asked for */
	uint64_t offset, other_offset;
	unsigned int flags;
	mode_t mode;
	uint64_t rdev;
	struct zf_setattr set;
	bool may_be_write; /* a SETATTR that nobody must see fail (ops_attr.c) */
	struct fuse_file_info fi;
	/* Of a write, but of a mapping's pages; of a direct read under the writeback cache; of what
	 * changes a range. */
	struct zf_open_inode *inode;
	bool direct; /* it is a direct write ... */
	int result;  /* ... that is held, with this as its answer */
	/* Of a read: what runs when the pages behind it are written. */
	int (*then)(struct zf_daemon *daemon, struct zf_call *call);

	int64_t began_ns; /* when it came; 0: a part of a call whose time was taken already */
	/* Of a parked call. */
	struct zf_thread *thread; /* that brought it */
	STAILQ_ENTRY(zf_call) link;
	/* Of one that is held; under the droppers' lock. */
	enum zf_hold hold;
	TAILQ_ENTRY(zf_call) held_link;
};

STAILQ_HEAD(zf_call_list, zf_call);
TAILQ_HEAD(zf_call_queue, zf_call);

/*
 * Of a fuseblk mount, on the thread that brought DESTROY: from now on calls are answered with ENOTCONN, and none is in
 * src/fs/ any more when this returns.
 */
void zf_call_end_all(struct zf_daemon *daemon);

/* Runs a call that the caller made, here or by a worker. Replies in any case. */
void zf_call_dispatch(struct zf_call *call);

/* A worker's part: runs a parked call to its reply, and frees it. */
void zf_call_finish(struct zf_daemon *daemon, struct zf_call *call);

/*
 * A copy of a call that needs its data no more; it counts as parked until zf_call_finish() or
 * zf_call_discard(). NULL: no memory.
 */
struct zf_call *zf_call_keep(const struct zf_call *call);
void zf_call_discard(struct zf_call *call);
/* A worker runs a copy of the call to its reply; or the calling thread does, if there is no memory. */
void zf_call_hand_over(struct zf_daemon *daemon, struct zf_call *call);
/* Notes the latency of a call that the calling thread has answered, with this result. */
void zf_call_note_answered(const struct zf_call *call, int result);
/* So many are parked that hardly a slot is left in the queue by which this one came. */
bool zf_call_is_crowded(const struct zf_daemon *daemon, const struct zf_call *call);

/*
 * Where to put an answer of up to `size` bytes: the request's own buffer over io_uring (then the
 * reply copies nothing), this thread's scratch otherwise. Valid until the reply. -ENOMEM; -EINVAL
 * if it is too large.
 */
int zf_call_buffer(struct zf_call *call, size_t size, char **ret_buf);

#endif
