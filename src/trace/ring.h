/* SPDX-License-Identifier: MIT */
/*
 * A ring for each thread that has events: the thread puts records in, the drainer takes them out.
 *
 * A ring is made at its thread's first event. When the thread ends, another thread may take the
 * ring over. A ring never leaves the list: so the drainer can go through the list while threads
 * come and go.
 *
 *      tail (the drainer's)          head (the thread's)
 *        |                             |
 *   -----xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-------------   both only grow; a record's place is its
 *                                                       number modulo ZF_TRACE_RING_RECORDS
 *
 * zf_trace_stop() waits until `putting` is false. The thread sets `putting` and then reads the
 * switch; zf_trace_stop() turns the switch off and then reads `putting`. All these accesses are
 * sequentially consistent, so at least one of the two sees the other's store.
 */
#ifndef ZF_TRACE_RING_H
#define ZF_TRACE_RING_H

#include <bsd/sys/queue.h>

#include "trace/trace.h"

#define ZF_TRACE_RING_RECORDS 32768u /* a power of two */

struct zf_trace_ring {
	SLIST_ENTRY(zf_trace_ring) link;
	bool owned; /* a thread uses it; under the lock of the list */

	/* Written by the thread. */
	uint32_t thread; /* its id in the kernel */
	uint64_t named;	 /* the number of the last trace that has the thread's name */
	atomic_bool putting;
	_Atomic uint64_t head;
	_Atomic uint64_t dropped; /* in this trace */

	/* Written by the drainer. */
	_Atomic uint64_t tail;
	uint64_t dropped_told;

	struct zf_disk_trace_record records[ZF_TRACE_RING_RECORDS];
};

/* The calling thread's ring; NULL: no memory. */
struct zf_trace_ring *zf_trace_ring_mine(void);

/* Called by the ring's thread. False: the ring is full, and the record counts as dropped. */
bool zf_trace_ring_put(struct zf_trace_ring *ring, const struct zf_disk_trace_record *record);

/*
 * Calls `each` for all rings, one after the other, until it fails. Rings made meanwhile may be
 * left out.
 */
int zf_trace_rings_each(int (*each)(struct zf_trace_ring *ring, void *arg), void *arg);

/* Writes the records in the ring to the file, without copying them. -errno: of the file. */
int zf_trace_ring_drain(struct zf_trace_ring *ring, int fd);

/* Writes all bytes, with as many calls of write(2) as needed. -errno. */
int zf_trace_write(int fd, const void *buf, size_t len);

#endif
