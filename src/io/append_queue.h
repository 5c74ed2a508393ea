/* SPDX-License-Identifier: MIT */
/*
 * Append queue: zone appends for a device that has only writes at the write pointer. This is the
 * logic of the zbd backend, without a device, so that tests can script the device.
 *
 * The queue caches the pointer of each zone, in blocks: 4 bytes a zone. A zone with requests that
 * wait or are in flight has an entry in a table of ZF_APPEND_ZONES. Requests to further zones wait
 * for a free entry. Requests of one zone are sent in the order in which they were submitted:
 *
 *     submit -> waiting -> sent, as part of a write at the pointer -> all of it landed -> done
 *                  ^                                 |
 *                  +---- refused, not its fault -----+ a write failed
 *
 * Up to `depth` writes are in flight in a zone. Requests that wait meanwhile are merged into the
 * next write, if they all are FUA or all are not, and together have at most `limit_bytes`. An
 * append is never split. A write or zeroes request that is larger than the limit is split.
 *
 * When a write fails, or lands in part, the zone's pointer is unknown: the queue sends nothing to
 * the zone until all writes in flight there have completed and a report has told the pointer. Then
 *
 *  - the first of the failed writes, in order of address, caused the failure: its requests get its
 *    error. Two exceptions, in which its requests are sent again: the error says "try again"; or
 *    it is -EIO, nothing of the write has landed, and its requests fail for the first time. (The
 *    kernel has a pointer of its own, which commands past the block layer make wrong. The report
 *    has corrected it.)
 *  - requests of a later write that began below the pointer get that write's error: their data may
 *    have landed,
 *  - all other failed writes were refused because of the first. Nothing of them has landed: their
 *    requests are sent again, before those that wait.
 *
 * So a round that does not try the first write again answers at least one request. No request is
 * answered twice.
 *
 * A reset or finish needs the zone alone: it is refused (-EIO) while requests of the zone wait or
 * are in flight. Requests that are submitted while it runs are refused, too.
 *
 * Not thread-safe: the device calls the queue under the device's lock. Any function of the queue
 * may call the operations below; the operations must not call the queue.
 */
#ifndef ZF_IO_APPEND_QUEUE_H
#define ZF_IO_APPEND_QUEUE_H

#include <bsd/sys/queue.h>

#include "io/dev.h"

#define ZF_APPEND_ZONES	 64 /* with requests that wait or are in flight */
#define ZF_APPEND_WRITES 64 /* in flight, in all zones */
/* The kernel splits a request to a block device that has more pages than this. */
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
	uint32_t start, count; /* blocks in the zone; after a failure: those not landed */
	int error;
	TAILQ_ENTRY(zf_zone_write) link;
};

struct zf_append_queue_ops {
	/* Submits a write, behind all writes submitted before. */
	void (*write)(void *arg, struct zf_zone_write *write);
	/* Asks the device for a zone's pointer. The answer: zf_append_queue_reported(). */
	void (*report)(void *arg, uint32_t zone_no);
	/* Carries out a RESET or FINISH. At its end: zf_append_queue_managed(). */
	void (*manage)(void *arg, struct zf_io *io);
	/*
	 * A write has failed for good: returns the error that its requests get. `passed`: the
	 * zone's pointer is past the write all the same, or could not be found out.
	 */
	int (*failed)(void *arg, const struct zf_zone_write *write, int error, bool passed);
	/* The request is done; the address of an append is set. */
	void (*done)(void *arg, struct zf_io *io, int result);
};

struct zf_append_queue_options {
	uint64_t zone_size; /* bytes */
	uint64_t capacity;  /* bytes, of a sequential zone */
	uint32_t zone_count;
	uint32_t limit_bytes; /* most bytes of one write: at most ZF_APPEND_SEGMENTS_MAX blocks */
	unsigned int depth;   /* writes in flight in one zone */
	bool merge;
};

/* Every pointer is unknown at first. 0 or -ENOMEM. */
int zf_append_queue_new(const struct zf_append_queue_options *options,
			const struct zf_append_queue_ops *ops, void *arg,
			struct zf_append_queue **ret_queue);
void zf_append_queue_free(struct zf_append_queue *queue); /* no request is in it; takes NULL */

/*
 * The cached pointer, in blocks from the zone's start. It may be set only while no request of the
 * zone waits or is in flight.
 */
void zf_append_queue_set_pointer(struct zf_append_queue *queue, uint32_t zone_no, uint32_t pointer);
uint32_t zf_append_queue_pointer(const struct zf_append_queue *queue, uint32_t zone_no);

/* An APPEND, WRITE, ZEROES, RESET or FINISH for a sequential zone. */
void zf_append_queue_submit(struct zf_append_queue *queue, struct zf_io *io);

/*
 * A write has completed. `result`: bytes, fewer than requested if the write was short, or -errno.
 * -EAGAIN, -EINTR, -ECANCELED: nothing has happened, the write may be tried again.
 */
void zf_append_queue_written(struct zf_append_queue *queue, struct zf_zone_write *write,
			     int64_t result);

/*
 * `result` < 0: the zone cannot be written, or its pointer could not be found out; all requests of
 * the zone get this error.
 */
void zf_append_queue_reported(struct zf_append_queue *queue, uint32_t zone_no, int result,
			      uint32_t pointer);

/* `pointer` is the zone's pointer now, or ZF_APPEND_POINTER_UNKNOWN. */
void zf_append_queue_managed(struct zf_append_queue *queue, struct zf_io *io, int result,
			     uint32_t pointer);

#endif
