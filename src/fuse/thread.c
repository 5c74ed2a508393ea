/* SPDX-License-Identifier: MIT */
#include "fuse/thread.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/lock.h"
#include "base/undumped.h"

/*
 * Each struct zf_thread starts at a cache line, because in most cases only its own thread writes to
 * it. (Others write `parked` and `waited`.)
 */
#define CACHE_LINE 64

const char *const zf_request_names[ZF_REQUEST_COUNT] = {
#define ZF_REQUEST_NAME(kind, name) [ZF_REQUEST_##kind] = #name,
	ZF_REQUESTS(ZF_REQUEST_NAME)
#undef ZF_REQUEST_NAME
};

const uint64_t zf_latency_bounds_ns[ZF_LATENCY_BOUNDS] = ZF_LATENCY_BOUNDS_NS;

/* libfuse starts its threads by itself, so a thread registers here with its first request. */
static SLIST_HEAD(, zf_thread) threads = SLIST_HEAD_INITIALIZER(threads);
static struct zf_mutex threads_lock; /* of the list */
static _Thread_local struct zf_thread *self;

void zf_threads_init(void)
{
	zf_mutex_init(&threads_lock, ZF_RANK_DAEMON);
}

struct zf_thread *zf_thread_self(void)
{
	struct zf_thread *thread;

	if (self)
		return self;
	thread = aligned_alloc(CACHE_LINE, zf_align_up(sizeof(*thread), CACHE_LINE));
	if (!thread)
		return NULL;
	memset(thread, 0, sizeof(*thread));
	zf_mutex_lock(&threads_lock);
	SLIST_INSERT_HEAD(&threads, thread, link);
	zf_mutex_unlock(&threads_lock);
	self = thread;
	return thread;
}

void *zf_thread_scratch(struct zf_thread *thread)
{
	if (!thread->scratch)
		thread->scratch = zf_undumped_alloc(ZF_SCRATCH_SIZE);
	return thread->scratch;
}

void zf_threads_count(uint64_t requests[ZF_REQUEST_COUNT], uint64_t *ret_waited)
{
	struct zf_thread *thread;
	uint64_t waited = 0;

	memset(requests, 0, ZF_REQUEST_COUNT * sizeof(requests[0]));
	zf_mutex_lock(&threads_lock);
	SLIST_FOREACH(thread, &threads, link)
	{
		for (unsigned int i = 0; i < ZF_REQUEST_COUNT; i++)
			requests[i] +=
				atomic_load_explicit(&thread->requests[i], memory_order_relaxed);
		waited += atomic_load_explicit(&thread->waited, memory_order_relaxed);
	}
	zf_mutex_unlock(&threads_lock);
	*ret_waited = waited;
}

/* Only the calling thread writes `sum`, so the addition needs no locked instruction. */
static void add_to_own(_Atomic uint64_t *sum, uint64_t n)
{
	atomic_store_explicit(sum, atomic_load_explicit(sum, memory_order_relaxed) + n,
			      memory_order_relaxed);
}

void zf_thread_note_latency(struct zf_thread *thread, enum zf_request kind, uint64_t took_ns)
{
	struct zf_latency *latency = &thread->latencies[kind];
	unsigned int bucket = 0;

	while (bucket < ZF_LATENCY_BOUNDS && took_ns > zf_latency_bounds_ns[bucket])
		bucket++;
	add_to_own(&latency->counts[bucket], 1);
	add_to_own(&latency->total_ns, took_ns);
}

void zf_thread_note_written(struct zf_thread *thread, uint64_t bytes)
{
	add_to_own(&thread->write_bytes, bytes);
}

void zf_threads_get_latency(enum zf_request kind, uint64_t counts[ZF_LATENCY_BUCKETS],
			    uint64_t *ret_total_ns)
{
	struct zf_thread *thread;

	memset(counts, 0, ZF_LATENCY_BUCKETS * sizeof(counts[0]));
	*ret_total_ns = 0;
	zf_mutex_lock(&threads_lock);
	SLIST_FOREACH(thread, &threads, link)
	{
		struct zf_latency *latency = &thread->latencies[kind];

		for (unsigned int i = 0; i < ZF_LATENCY_BUCKETS; i++)
			counts[i] +=
				atomic_load_explicit(&latency->counts[i], memory_order_relaxed);
		*ret_total_ns += atomic_load_explicit(&latency->total_ns, memory_order_relaxed);
	}
	zf_mutex_unlock(&threads_lock);
}

uint64_t zf_threads_get_written(void)
{
	struct zf_thread *thread;
	uint64_t bytes = 0;

	zf_mutex_lock(&threads_lock);
	SLIST_FOREACH(thread, &threads, link)
	bytes += atomic_load_explicit(&thread->write_bytes, memory_order_relaxed);
	zf_mutex_unlock(&threads_lock);
	return bytes;
}

void zf_threads_deinit(void)
{
	struct zf_thread *thread;

	while ((thread = SLIST_FIRST(&threads)) != NULL) {
		SLIST_REMOVE_HEAD(&threads, link);
		free(thread->scratch);
		free(thread);
	}
	zf_mutex_deinit(&threads_lock);
}
