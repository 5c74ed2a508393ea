/* SPDX-License-Identifier: MIT */
/*
 * The io_uring of a device, as the image, zbd and NVMe backends use it.
 *
 *     zf_ring_entry_locked -> zf_ring_push_locked -> the kernel -> zf_ring_poll ->
 * ops->reaped_locked
 *
 * Order. Any thread prepares entries and pushes them, under the device's lock, which it holds from
 * the one to the other: so the kernel gets them in the order in which they were prepared. That is
 * what keeps writes to a zone in the order of its pointer. One thread at a time polls (the
 * framework's poll lock); it takes the device's lock for each batch that has come back.
 *
 * Bounds. A backend has fewer operations under way than the ring has entries, and there is at most
 * one no-op that wakes the poller: so an entry is always there.
 */
#ifndef ZF_IO_RING_H
#define ZF_IO_RING_H

#include <liburing.h>

#include "io/dev_ops.h"

#define ZF_RING_ENTRIES 512

struct zf_ring_ops {
	/* An operation has come back. May prepare others. */
	void (*reaped_locked)(struct zf_dev *dev, const struct io_uring_cqe *cqe);
	/* All of a batch have; what is prepared until it returns is pushed. May be NULL. */
	void (*settled_locked)(struct zf_dev *dev);
};

struct zf_ring {
	struct io_uring uring;
	const struct zf_ring_ops *ops;
	struct zf_dev *dev;
	struct zf_mutex *lock; /* the device's: protects the submission side, and `waking` */
	bool waking;	       /* a no-op is on its way to the poller */
};

/*
 * `flags` as for io_uring_setup(2). -EINVAL: a kernel without them. Any other error is reported
 * in words.
 */
int zf_ring_init(struct zf_ring *ring, unsigned int flags, const struct zf_ring_ops *ops,
		 struct zf_dev *dev, struct zf_mutex *lock);
void zf_ring_deinit(struct zf_ring *ring); /* nothing is under way */

/*
 * An entry, to be prepared by one of liburing's io_uring_prep_*(). `data`, not NULL, is what the
 * completion has.
 */
struct io_uring_sqe *zf_ring_entry_locked(struct zf_ring *ring, void *data);
/* Submits all that is prepared. */
void zf_ring_push_locked(struct zf_ring *ring);
/* Prepares the no-op that makes a poller who waits, or the next one, return. */
void zf_ring_wake_locked(struct zf_ring *ring);

/*
 * When a thread ends, the kernel cancels what it has submitted and not begun; and it may be
 * interrupted, or short of memory. Nothing has happened then.
 */
static inline bool zf_ring_is_to_be_repeated(int res)
{
	return res == -ECANCELED || res == -EINTR || res == -EAGAIN;
}

/* Takes what has come back. True: something was completed, or somebody wants the poller to return.
 */
bool zf_ring_reap(struct zf_ring *ring);
/* Returns when there is something to reap. */
void zf_ring_wait(struct zf_ring *ring);

/* The two together are zf_dev_ops.poll. */
void zf_ring_poll(struct zf_ring *ring, bool wait);
/* zf_dev_ops.wake */
void zf_ring_wake(struct zf_ring *ring);

#endif
