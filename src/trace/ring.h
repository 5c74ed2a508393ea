/* SPDX-License-Identifier: MIT */
/*
 * A ring for each thread that tells events: the thread puts records in, the drainer takes them out.
 *
 * A ring is made with its thread's first event and left to another thread when that ends. It is in
 * the list for good: the drainer goes through it while threads come and go.
 *
 *      tail (the drainer's)          head (the thread's)
 *        |                             |
 *   -----xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-------------   both only grow; a record's place is its
 *                                                       number modulo ZF_TRACE_RING_RECORDS
 *
 * `putting` is what zf_trace_stop() waits for. The thread sets it and then looks at the switch; who
 * stops turns the switch off and then looks at `putting`. Both are sequentially consistent, so that
 * one of them sees the other.
 */
#ifndef ZF_TRACE_RING_H
#define ZF_TRACE_RING_H

#include <bsd/sys/queue.h>

#include "trace/trace.h"

#define ZF_TRACE_RING_RECORDS 32768u /* a power of two */

struct zf_trace_ring {
	SLIST_ENTRY(zf_trace_ring) link;
	bool owned; /* by a thread; under the lock of the list */

	/* The thread's. */
	uint32_t thread; /* its id in the kernel */
	uint64_t named;	 /* the number of the trace in which it has told its name */
	atomic_bool putting;
	_Atomic uint64_t head;
	_Atomic uint64_t dropped; /* in this trace */

	/* The drainer's. */
	_Atomic uint64_t tail;
	uint64_t dropped_told;

	struct zf_disk_trace_record records[ZF_TRACE_RING_RECORDS];
};

/* The calling thread's; NULL: no memory. */
struct zf_trace_ring *zf_trace_ring_mine(void);

/* By its thread. False: it is full, and the record counts as dropped. */
bool zf_trace_ring_put(struct zf_trace_ring *ring, const struct zf_disk_trace_record *record);

/*
 * Calls `each` for all rings, one after the other; until it fails. New rings may be made meanwhile,
 * and need not be seen.
 */
int zf_trace_rings_each(int (*each)(struct zf_trace_ring *ring, void *arg), void *arg);

/* Writes what is in the ring to the file, a copy of nothing. -errno: of the file. */
int zf_trace_ring_drain(struct zf_trace_ring *ring, int fd);

/* All of it, however many calls that takes. -errno. */
int zf_trace_write(int fd, const void *buf, size_t len);

#endif
