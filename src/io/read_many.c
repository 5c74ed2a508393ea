/* SPDX-License-Identifier: MIT */
/*
 * Several reads in flight together, submitted and awaited by one thread.
 *
 * Each thread that needs it has an io_uring of its own: no lock is shared, and no other thread is
 * woken. What comes back as an error, or short, is read once more by the backend alone, which knows
 * how to go on and what to report.
 */
#include <assert.h>
#include <errno.h>
#include <liburing.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "base/bits.h"
#include "io/dev_ops.h"
#include "io/iov.h"
#include "io/zone_rules.h"

/* In flight at once, of one caller. NVMe drives read single blocks at their full rate from some 64
 * on. */
#define DEPTH 64u

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* a thread's ring */
static bool have_key;

static void free_ring(void *arg)
{
	struct io_uring *ring = arg;

	io_uring_queue_exit(ring);
	free(ring);
}

static void make_key(void)
{
	have_key = pthread_key_create(&key, free_ring) == 0;
}

static struct io_uring *make_ring(void)
{
	struct io_uring *ring = calloc(1, sizeof(*ring));

	if (!ring)
		return NULL;
	if (io_uring_queue_init(DEPTH, ring, 0) < 0) {
		free(ring);
		return NULL;
	}
	if (pthread_setspecific(key, ring) != 0) {
		free_ring(ring);
		return NULL;
	}
	return ring;
}

/* The calling thread's; NULL: the system gives none. */
static struct io_uring *get_ring(void)
{
	struct io_uring *ring;

	pthread_once(&key_once, make_key);
	if (!have_key)
		return NULL;
	ring = pthread_getspecific(key);
	return ring ? ring : make_ring();
}

/* ---- on the ring ---- */

struct batch {
	const struct zf_geometry *geometry;
	int fd;
	struct zf_read *reads;
	unsigned int count, begun, in_flight;
};

/* A read that breaks a rule is left to the backend, which says what is wrong with it. */
static bool is_sound(const struct zf_geometry *geometry, const struct zf_read *read)
{
	uint64_t size = geometry->zone_size * geometry->zone_count;
	uint64_t len = zf_iov_len(read->iov, read->iovcnt);

	return len > 0 && zf_zone_rules_check_iov(read->iov, read->iovcnt, len) == 0 &&
	       zf_is_aligned(read->addr, ZF_BLOCK_SIZE) && read->addr <= size &&
	       len <= size - read->addr;
}

static void begin(struct batch *batch, struct io_uring *ring, struct zf_read *read)
{
	struct io_uring_sqe *sqe;

	read->result = -EINPROGRESS;
	if (!is_sound(batch->geometry, read))
		return;
	sqe = io_uring_get_sqe(ring);
	/* The ring has as many entries as are in flight at most. */
	assert(sqe);
	io_uring_prep_readv(sqe, batch->fd, read->iov, read->iovcnt, read->addr);
	io_uring_sqe_set_data(sqe, read);
	read->traced = zf_dev_trace_read(read->addr, zf_iov_len(read->iov, read->iovcnt));
	batch->in_flight++;
}

static void reap(struct batch *batch, struct io_uring *ring)
{
	struct io_uring_cqe *cqe;
	unsigned int head, n = 0;

	io_uring_for_each_cqe(ring, head, cqe)
	{
		struct zf_read *read = io_uring_cqe_get_data(cqe);
		uint64_t len = zf_iov_len(read->iov, read->iovcnt);

		if (cqe->res >= 0 && (uint64_t)cqe->res == len)
			read->result = 0;
		zf_dev_trace_read_end(read->traced, read->addr, len, read->result == 0 ? 0 : -EIO);
		n++;
	}
	io_uring_cq_advance(ring, n);
	batch->in_flight -= n;
}

/* Returns when nothing is in flight, whatever happened: until then the buffers are the kernel's. */
static void run_on_ring(struct batch *batch, struct io_uring *ring)
{
	int r;

	for (;;) {
		while (batch->in_flight < DEPTH && batch->begun < batch->count)
			begin(batch, ring, &batch->reads[batch->begun++]);
		if (batch->in_flight == 0)
			return;
		r = io_uring_submit_and_wait(ring, 1);
		/* Short of memory the kernel says EAGAIN: nothing better to do than to ask again.
		 */
		assert(r >= 0 || r == -EAGAIN || r == -EBUSY || r == -EINTR);
		if (r == -EAGAIN)
			sched_yield();
		reap(batch, ring);
	}
}

void zf_dev_read_many(struct zf_dev *dev, struct zf_read *reads, unsigned int count)
{
	struct batch batch = {
		.geometry = &dev->geometry,
		.fd = count > 1 && dev->ops->read_fd ? dev->ops->read_fd(dev) : -1,
		.reads = reads,
		.count = count,
	};
	struct io_uring *ring = batch.fd >= 0 ? get_ring() : NULL;

	if (ring)
		run_on_ring(&batch, ring);
	for (struct zf_read *read = reads; read < reads + count; read++) {
		if (ring && read->result == 0)
			zf_dev_count_read(dev, zf_iov_len(read->iov, read->iovcnt));
		else
			read->result = zf_dev_read(dev, read->addr, read->iov, read->iovcnt);
	}
}
