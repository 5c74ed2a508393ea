/* SPDX-License-Identifier: MIT */
/*
 * The io_uring of a device, as the image, zbd and NVMe backends use it.
 *
 *     zf_ring_entry_locked -> zf_ring_push_locked -> kernel -> zf_ring_poll -> ops->reaped_locked
 *
 * Order. Any thread prepares entries and pushes them, and holds the device's lock from the first
 * entry to the push: so the kernel gets entries in the order in which they were prepared. This
 * keeps writes to a zone in the order of its pointer. One thread at a time polls (the framework's
 * poll lock); it takes the device's lock for each batch of completions.
 *
 * Bounds. A backend has fewer operations under way than the ring has entries, and there is at most
 * one no-op that wakes the poller: so a free entry always exists.
 */
#ifndef ZF_IO_RING_H
#define ZF_IO_RING_H

#include <liburing.h>

#include "io/dev_ops.h"

#define ZF_RING_ENTRIES 512

struct zf_ring_ops {
	/* An operation has completed. May prepare others. */
	void (*reaped_locked)(struct zf_dev *dev, const struct io_uring_cqe *cqe);
	/*
	 * All completions of a batch were given to reaped_locked. Entries prepared until this
	 * returns are pushed. May be NULL.
	 */
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
 * `flags` as for io_uring_setup(2). -EINVAL: the kernel does not have these flags. Any other error
 * is reported in words.
 */
int zf_ring_init(struct zf_ring *ring, unsigned int flags, const struct zf_ring_ops *ops,
		 struct zf_dev *dev, struct zf_mutex *lock);
void zf_ring_deinit(struct zf_ring *ring); /* no operation is under way */

/*
 * Returns an entry, which the caller prepares with one of liburing's io_uring_prep_*(). `data`, not
 * NULL, is the user data of the completion.
 */
struct io_uring_sqe *zf_ring_entry_locked(struct zf_ring *ring, void *data);
/* Submits all prepared entries. */
void zf_ring_push_locked(struct zf_ring *ring);
/* Prepares the no-op that makes the waiting poller, or the next one, return. */
void zf_ring_wake_locked(struct zf_ring *ring);

/*
 * Whether the operation must be submitted again, because nothing has happened: when a thread ends,
 * the kernel cancels operations that the thread has submitted and that have not begun; and the
 * kernel may be interrupted, or short of memory.
 */
static inline bool zf_ring_is_to_be_repeated(int res)
{
	return res == -ECANCELED || res == -EINTR || res == -EAGAIN;
}

/* Takes the completions. True: a request was completed, or a wake-up asks the poller to return. */
bool zf_ring_reap(struct zf_ring *ring);
/* Waits until there is a completion to reap. */
void zf_ring_wait(struct zf_ring *ring);

/* The two together are zf_dev_ops.poll. */
void zf_ring_poll(struct zf_ring *ring, bool wait);
/* zf_dev_ops.wake */
void zf_ring_wake(struct zf_ring *ring);

#endif
