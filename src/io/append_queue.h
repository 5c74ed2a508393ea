/* SPDX-License-Identifier: MIT */
/*
 * Append queue: zone appends for a device that has only writes at the write pointer. This is the
 * logic of the zbd backend, without a device, so that tests can script the device.
 *
 * Of each zone the pointer is cached, in blocks: 4 bytes a zone. A zone with requests that wait or
 * are in flight has an entry in a table of ZF_APPEND_ZONES. Requests to further zones wait for a
 * free entry. Requests of one zone are sent in the order in which they came:
 *
 *     submit -> waiting -> sent, as part of a write at the pointer -> all of it landed -> done
 *                  ^                                 |
 *                  +---- refused, not its fault -----+ a write failed
 *
 * Up to `depth` writes are in flight in a zone. Requests that wait meanwhile are merged into the
 * next write, if they are alike (FUA or not) and together have at most `limit_bytes`. An append is
 * never split. A write or zeroes request that is larger than the limit is split.
 *
 * When a write fails, or lands in part, the zone's pointer is unknown: nothing is sent to the zone
 * until all that is in flight there has come back and a report has told the pointer. Then
 *
 *  - the first of the failed writes, in order of address, is the one that failed: its requests get
 *    its error (unless it said "try again"; or -EIO, nothing of it has landed, and it is the first
 *    time: the kernel has a pointer of its own, which is wrong after commands that went past it,
 *    and the report has put that right),
 *  - so do requests of a later one that began below the pointer: their data may have landed,
 *  - all others were refused because of the first. Nothing of them has landed: they are sent again,
 *    before those that wait.
 *
 * So each round answers at least one request, and no request is answered twice.
 *
 * A reset or finish needs the zone alone: it is refused (-EIO) while requests of the zone wait or
 * are in flight, and requests that come while it runs are refused, too.
 *
 * Not thread-safe: the device calls it under its lock. The operations below are called from within
 * any of the functions; they must not call back.
 */
#ifndef ZF_IO_APPEND_QUEUE_H
#define ZF_IO_APPEND_QUEUE_H

#include <bsd/sys/queue.h>

#include "io/dev.h"

#define ZF_APPEND_ZONES	 64 /* with something waiting or in flight */
#define ZF_APPEND_WRITES 64 /* in flight, in all zones */
/* A block device takes no more pages in one request without cutting it. */
#define ZF_APPEND_SEGMENTS_MAX	  256

#define ZF_APPEND_POINTER_UNKNOWN UINT32_MAX

struct zf_append_queue;

/* One write at a zone's pointer, from ops->write() to zf_append_queue_written(). */
struct zf_zone_write {
	uint64_t addr; /* bytes */
	uint64_t len;  /* bytes */
	bool fua;
	unsigned int iovcnt;
	struct iovec iov[ZF_APPEND_SEGMENTS_MAX];

	/* Private to the queue. */
	struct zf_append_zone *zone;
	uint32_t start, count; /* blocks in the zone; of a failed one, what has not landed */
	int error;
	TAILQ_ENTRY(zf_zone_write) link;
};

struct zf_append_queue_ops {
	/* Submits a write, behind those that were submitted before. */
	void (*write)(void *arg, struct zf_zone_write *write);
	/* Asks the device for a zone's pointer: zf_append_queue_reported(). */
	void (*report)(void *arg, uint32_t zone_no);
	/* Carries out a RESET or FINISH: zf_append_queue_managed(). */
	void (*manage)(void *arg, struct zf_io *io);
	/*
	 * A write has failed for good: returns what its requests are told. `passed`: the zone's
	 * pointer stands behind it all the same, or could not be told.
	 */
	int (*failed)(void *arg, const struct zf_zone_write *write, int error, bool passed);
	/* The request is answered; the address of an append is set. */
	void (*done)(void *arg, struct zf_io *io, int result);
};

struct zf_append_queue_options {
	uint64_t zone_size; /* bytes */
	uint64_t capacity;  /* bytes, of a sequential zone */
	uint32_t zone_count;
	uint32_t limit_bytes; /* of one write: at most ZF_APPEND_SEGMENTS_MAX blocks */
	unsigned int depth;   /* writes in flight in one zone */
	bool merge;
};

/* Every pointer is unknown at first. 0 or -ENOMEM. */
int zf_append_queue_new(const struct zf_append_queue_options *options,
			const struct zf_append_queue_ops *ops, void *arg,
			struct zf_append_queue **ret_queue);
void zf_append_queue_free(struct zf_append_queue *queue); /* nothing in it; takes NULL */

/*
 * The cached pointer, in blocks from the zone's start. It may be set only while no request of the
 * zone waits or is in flight.
 */
void zf_append_queue_set_pointer(struct zf_append_queue *queue, uint32_t zone_no, uint32_t pointer);
uint32_t zf_append_queue_pointer(const struct zf_append_queue *queue, uint32_t zone_no);

/* An APPEND, WRITE, ZEROES, RESET or FINISH for a sequential zone. */
void zf_append_queue_submit(struct zf_append_queue *queue, struct zf_io *io);

/*
 * A write has come back: bytes, fewer than asked for if it was cut short, or -errno. -EAGAIN,
 * -EINTR, -ECANCELED: it may be tried again, nothing has happened.
 */
void zf_append_queue_written(struct zf_append_queue *queue, struct zf_zone_write *write,
			     int64_t result);

/* `result` < 0: nothing can be written there, or nobody knows where; whoever waits is told that. */
void zf_append_queue_reported(struct zf_append_queue *queue, uint32_t zone_no, int result,
			      uint32_t pointer);

/* `pointer` is where it is now, ZF_APPEND_POINTER_UNKNOWN if that is not known. */
void zf_append_queue_managed(struct zf_append_queue *queue, struct zf_io *io, int result,
			     uint32_t pointer);

#endif
