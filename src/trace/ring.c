/* SPDX-License-Identifier: MIT */
#include "trace/ring.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/bits.h"

static pthread_mutex_t rings_lock = PTHREAD_MUTEX_INITIALIZER;
static SLIST_HEAD(, zf_trace_ring) rings = SLIST_HEAD_INITIALIZER(rings);

static pthread_once_t key_once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static bool have_key;
static _Thread_local struct zf_trace_ring *mine;

/* ---- life ---- */

static void leave(void *arg)
{
	struct zf_trace_ring *ring = arg;

	pthread_mutex_lock(&rings_lock);
	ring->owned = false;
	pthread_mutex_unlock(&rings_lock);
}

static void make_key(void)
{
	have_key = pthread_key_create(&key, leave) == 0;
}

/* Takes a ring that another thread has left, or makes a new one. */
static struct zf_trace_ring *take(void)
{
	struct zf_trace_ring *ring;

	pthread_mutex_lock(&rings_lock);
	SLIST_FOREACH(ring, &rings, link)
	{
		if (!ring->owned)
			break;
	}
	if (!ring) {
		ring = calloc(1, sizeof(*ring));
		if (ring)
			SLIST_INSERT_HEAD(&rings, ring, link);
	}
	if (ring)
		ring->owned = true;
	pthread_mutex_unlock(&rings_lock);
	return ring;
}

struct zf_trace_ring *zf_trace_ring_mine(void)
{
	if (mine)
		return mine;
	pthread_once(&key_once, make_key);
	mine = have_key ? take() : NULL;
	if (!mine)
		return NULL;
	mine->thread = (uint32_t)gettid();
	mine->named = 0;
	if (pthread_setspecific(key, mine) != 0) {
		leave(mine);
		mine = NULL;
	}
	return mine;
}

int zf_trace_rings_each(int (*each)(struct zf_trace_ring *ring, void *arg), void *arg)
{
	struct zf_trace_ring *ring;
	int r = 0;

	pthread_mutex_lock(&rings_lock);
	ring = SLIST_FIRST(&rings);
	pthread_mutex_unlock(&rings_lock);
	/* No ring leaves the list, and new rings are inserted at its head. */
	for (; ring && r == 0; ring = SLIST_NEXT(ring, link))
		r = each(ring, arg);
	return r;
}

/* ---- in and out ---- */

bool zf_trace_ring_put(struct zf_trace_ring *ring, const struct zf_disk_trace_record *record)
{
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	if (head - atomic_load_explicit(&ring->tail, memory_order_acquire) ==
	    ZF_TRACE_RING_RECORDS) {
		atomic_fetch_add_explicit(&ring->dropped, 1, memory_order_relaxed);
		return false;
	}
	ring->records[head % ZF_TRACE_RING_RECORDS] = *record;
	atomic_store_explicit(&ring->head, head + 1, memory_order_release);
	return true;
}

int zf_trace_ring_drain(struct zf_trace_ring *ring, int fd)
{
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	while (tail < head) {
		uint64_t at = tail % ZF_TRACE_RING_RECORDS;
		uint64_t count = zf_min_u64(head - tail, ZF_TRACE_RING_RECORDS - at);
		int r = zf_trace_write(fd, &ring->records[at], count * sizeof(ring->records[0]));

		if (r < 0)
			return r;
		tail += count;
		atomic_store_explicit(&ring->tail, tail, memory_order_release);
	}
	return 0;
}

int zf_trace_write(int fd, const void *buf, size_t len)
{
	const uint8_t *at = buf;

	while (len > 0) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}
