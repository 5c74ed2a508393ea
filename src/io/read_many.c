/* SPDX-License-Identifier: MIT */
/*
 * Reads that the calling thread carries out itself: several in flight together, or one on a ring of
 * the caller.
 *
 * Each thread that calls zf_dev_read_many() has an io_uring of its own: no lock is shared, and no
 * other thread is woken. If a read fails or is short, the backend alone repeats it, because the
 * backend knows how to continue and what to report.
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

/* Reads of one caller in flight. NVMe drives read single blocks at full rate from some 64 on. */
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

/* The calling thread's ring; NULL: the system gives none. */
static struct io_uring *get_ring(void)
{
	struct io_uring *ring;

	pthread_once(&key_once, make_key);
	if (!have_key)
		return NULL;
	ring = pthread_getspecific(key);
	return ring ? ring : make_ring();
}

/* ---- one read ---- */

/* False: the read breaks a rule, and is left to the backend, which reports the error. */
static bool is_sound(const struct zf_geometry *geometry, const struct zf_read *read)
{
	uint64_t size = geometry->zone_size * geometry->zone_count;
	uint64_t len = zf_iov_len(read->iov, read->iovcnt);

	return len > 0 && zf_zone_rules_check_iov(read->iov, read->iovcnt, len) == 0 &&
	       zf_is_aligned(read->addr, ZF_BLOCK_SIZE) && read->addr <= size &&
	       len <= size - read->addr;
}

int zf_dev_read_begin(struct zf_dev *dev, struct zf_read *read)
{
	int fd = dev->ops->read_fd ? dev->ops->read_fd(dev) : -1;

	read->result = -EINPROGRESS;
	if (fd < 0 || !is_sound(&dev->geometry, read))
		return -1;
	read->traced = zf_dev_trace_read(read->addr, zf_iov_len(read->iov, read->iovcnt));
	return fd;
}

/* Returns whether the read is done. If not, it is read again. */
static bool has_come(struct zf_read *read, int64_t result)
{
	uint64_t len = zf_iov_len(read->iov, read->iovcnt);

	if (result >= 0 && (uint64_t)result == len)
		read->result = 0;
	zf_dev_trace_read_end(read->traced, read->addr, len, read->result == 0 ? 0 : -EIO);
	return read->result == 0;
}

void zf_dev_read_end(struct zf_dev *dev, struct zf_read *read, int64_t result)
{
	if (has_come(read, result))
		zf_dev_count_read(dev, zf_iov_len(read->iov, read->iovcnt));
	else
		read->result = -EAGAIN;
}

/* ---- on the ring ---- */

struct batch {
	struct zf_dev *dev;
	struct zf_read *reads;
	unsigned int count, begun, in_flight;
	zf_read_done_fn *done;
	void *arg;
	/* Completed reads that were not handed over yet. */
	struct zf_read *came[DEPTH];
	unsigned int came_count;
};

static void begin(struct batch *batch, struct io_uring *ring, struct zf_read *read)
{
	int fd = zf_dev_read_begin(batch->dev, read);
	struct io_uring_sqe *sqe;

	if (fd < 0)
		return;
	sqe = io_uring_get_sqe(ring);
	/* The ring has DEPTH entries, and at most DEPTH reads are in flight. */
	assert(sqe);
	io_uring_prep_readv(sqe, fd, read->iov, read->iovcnt, read->addr);
	io_uring_sqe_set_data(sqe, read);
	batch->in_flight++;
}

/*
 * Begins half a ring of reads at a time: a system call for each completed read would cost more than
 * a ring that is not always full.
 */
static void begin_more(struct batch *batch, struct io_uring *ring)
{
	if (batch->in_flight > DEPTH / 2)
		return;
	while (batch->in_flight < DEPTH && batch->begun < batch->count)
		begin(batch, ring, &batch->reads[batch->begun++]);
}

/* Submits the reads that have begun. Returns when wait_count have completed, or earlier. */
static void enter(struct io_uring *ring, unsigned int wait_count)
{
	int r;

	if (wait_count == 0 && io_uring_sq_ready(ring) == 0)
		return;
	r = io_uring_submit_and_wait(ring, wait_count);
	/* EAGAIN: the kernel is short of memory. The caller will try again. */
	assert(r >= 0 || r == -EAGAIN || r == -EBUSY || r == -EINTR);
	if (r == -EAGAIN)
		sched_yield();
}

static void reap(struct batch *batch, struct io_uring *ring)
{
	struct io_uring_cqe *cqes[DEPTH];
	unsigned int n = io_uring_peek_batch_cqe(ring, cqes, DEPTH);

	for (unsigned int i = 0; i < n; i++) {
		batch->came[i] = io_uring_cqe_get_data(cqes[i]);
		(void)has_come(batch->came[i], cqes[i]->res);
	}
	io_uring_cq_advance(ring, n);
	batch->came_count = n;
	batch->in_flight -= n;
}

static void hand_over(const struct batch *batch)
{
	for (unsigned int i = 0; i < batch->came_count; i++) {
		struct zf_read *read = batch->came[i];

		if (read->result != 0)
			continue; /* zf_dev_read_many() reads it again */
		zf_dev_count_read(batch->dev, zf_iov_len(read->iov, read->iovcnt));
		batch->done(batch->arg, read);
	}
}

/*
 * Submits the next reads before it hands over the completed ones. Then it waits for half of those
 * in flight: so there are few system calls, and the other half is in flight while done() works on
 * the first. Returns only when no read is in flight: until then the kernel uses the buffers.
 */
static void run_on_ring(struct batch *batch, struct io_uring *ring)
{
	for (;;) {
		begin_more(batch, ring);
		if (batch->in_flight == 0 && batch->came_count == 0)
			return;
		enter(ring, batch->came_count == 0 ? (batch->in_flight + 1) / 2 : 0);
		hand_over(batch);
		reap(batch, ring);
	}
}

/* The calling thread's ring, if it helps; or NULL. */
static struct io_uring *ring_for(struct zf_dev *dev, unsigned int count)
{
	bool helps = count >= 2 && dev->ops->read_fd && dev->ops->read_fd(dev) >= 0;

	return helps ? get_ring() : NULL;
}

void zf_dev_read_many(struct zf_dev *dev, struct zf_read *reads, unsigned int count,
		      zf_read_done_fn *done, void *arg)
{
	struct io_uring *ring = ring_for(dev, count);

	if (ring) {
		struct batch batch = {
			.dev = dev, .reads = reads, .count = count, .done = done, .arg = arg};

		run_on_ring(&batch, ring);
	}
	for (struct zf_read *read = reads; read < reads + count; read++) {
		if (ring && read->result == 0)
			continue;
		read->result = zf_dev_read(dev, read->addr, read->iov, read->iovcnt);
		done(arg, read);
	}
}
