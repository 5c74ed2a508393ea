/* SPDX-License-Identifier: MIT */
#include "io/ring.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <string.h>

#define REAP_BATCH 64

int zf_ring_init(struct zf_ring *ring, unsigned int flags, const struct zf_ring_ops *ops,
		 struct zf_dev *dev, struct zf_mutex *lock)
{
	int r = io_uring_queue_init(ZF_RING_ENTRIES, &ring->uring, flags);

	if (r < 0 && !(r == -EINVAL && flags != 0))
		zf_report(&dev->report, ZF_REPORT_ERROR,
			  "io_uring is not available (see sysctl kernel.io_uring_disabled, or the "
			  "container's seccomp profile): %s",
			  strerror(-r));
	if (r < 0)
		return r;
	ring->ops = ops;
	ring->dev = dev;
	ring->lock = lock;
	ring->waking = false;
	return 0;
}

void zf_ring_deinit(struct zf_ring *ring)
{
	io_uring_queue_exit(&ring->uring);
}

/* ---- submission ---- */

struct io_uring_sqe *zf_ring_entry_locked(struct zf_ring *ring, void *data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring->uring);

	/* The ring has more entries than operations can be under way, and a push empties it. */
	assert(sqe);
	io_uring_sqe_set_data(sqe, data);
	return sqe;
}

/* EAGAIN means that the kernel is short of memory: the only remedy is to try again. */
void zf_ring_push_locked(struct zf_ring *ring)
{
	while (io_uring_sq_ready(&ring->uring) > 0) {
		int r = io_uring_submit(&ring->uring);

		assert(r >= 0 || r == -EAGAIN || r == -EBUSY || r == -EINTR);
		if (r < 0)
			sched_yield();
	}
}

void zf_ring_wake_locked(struct zf_ring *ring)
{
	if (ring->waking)
		return;
	ring->waking = true;
	io_uring_prep_nop(zf_ring_entry_locked(ring, NULL));
}

void zf_ring_wake(struct zf_ring *ring)
{
	zf_mutex_lock(ring->lock);
	zf_ring_wake_locked(ring);
	zf_ring_push_locked(ring);
	zf_mutex_unlock(ring->lock);
}

/* ---- completions ---- */

/* Returns whether the no-op that wakes the poller was among them. */
static bool take_batch_locked(struct zf_ring *ring, struct io_uring_cqe **cqes, unsigned int n)
{
	bool woken = false;

	for (unsigned int i = 0; i < n; i++) {
		if (io_uring_cqe_get_data(cqes[i]))
			ring->ops->reaped_locked(ring->dev, cqes[i]);
		else
			woken = true;
	}
	io_uring_cq_advance(&ring->uring, n);
	ring->waking &= !woken;
	if (ring->ops->settled_locked)
		ring->ops->settled_locked(ring->dev);
	zf_ring_push_locked(ring);
	return woken;
}

bool zf_ring_reap(struct zf_ring *ring)
{
	struct io_uring_cqe *cqes[REAP_BATCH];
	unsigned int n = io_uring_peek_batch_cqe(&ring->uring, cqes, REAP_BATCH);
	bool woken;

	if (n == 0)
		return false;
	zf_mutex_lock(ring->lock);
	woken = take_batch_locked(ring, cqes, n);
	zf_mutex_unlock(ring->lock);
	return woken || !STAILQ_EMPTY(&ring->dev->finished);
}

void zf_ring_wait(struct zf_ring *ring)
{
	struct io_uring_cqe *cqe;

	io_uring_wait_cqe(&ring->uring, &cqe);
}

void zf_ring_poll(struct zf_ring *ring, bool wait)
{
	while (!zf_ring_reap(ring) && wait)
		zf_ring_wait(ring);
}
