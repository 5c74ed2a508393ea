/* SPDX-License-Identifier: MIT */
/* What a backend implements. Only backends (image.c, memory.c, the simulator) include this. */
#ifndef ZF_IO_DEV_OPS_H
#define ZF_IO_DEV_OPS_H

#include <pthread.h>

#include "io/dev.h"

#define ZF_DEV_NOT_HERE 1 /* a result of zf_dev_ops.run */

struct zf_dev_ops {
	const char *kind;

	/* Queues the request. Must not call zf_dev_complete() before it returns. Any thread. */
	void (*submit)(struct zf_dev *dev, struct zf_io *io);

	/*
	 * Calls zf_dev_complete() for completed requests; with `wait`, blocks until a request has
	 * completed or wake() was called. The framework lets one thread in at a time, and only the
	 * framework's thread waits while nothing is in flight.
	 */
	void (*poll)(struct zf_dev *dev, bool wait);

	/* Makes the blocked poll(wait), or the next one, return. Any thread. */
	void (*wake)(struct zf_dev *dev);

	/*
	 * May be NULL. Carries the request out on the calling thread, which would wait for it
	 * anyway, and returns its result; or ZF_DEV_NOT_HERE: this request must be submitted.
	 */
	int (*run)(struct zf_dev *dev, struct zf_io *io);

	int (*read)(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
		    unsigned int iovcnt);
	/*
	 * May be NULL. The descriptor from which preadv() at an address of the device reads the
	 * bytes there, without blocking the submission to an io_uring; -1: there is none.
	 */
	int (*read_fd)(struct zf_dev *dev);
	int (*report)(struct zf_dev *dev, uint32_t first, uint32_t count,
		      struct zf_zone_info *zones);
	void (*warm)(struct zf_dev *dev, uint32_t zone_no); /* may be NULL */
	/* May be NULL: the pointers are never lower bounds. */
	int (*raise_pointer)(struct zf_dev *dev, uint32_t zone_no, uint64_t wp);
	/* May be NULL: resets are not counted. */
	int (*set_reset_count)(struct zf_dev *dev, uint32_t zone_no, uint64_t reset_count);
	int (*grow)(struct zf_dev *dev, uint32_t zone_count); /* may be NULL: cannot grow */
	void (*close)(struct zf_dev *dev);		      /* frees the backend's struct */
};

#define ZF_DEV_STATS (sizeof(struct zf_dev_stats) / sizeof(uint64_t))

/* The callers that wait for flushes: flush.c. The device's lock protects all but `begun`, `io`. */
struct zf_dev_flushing {
	_Atomic uint64_t begun; /* flushes so far: the current mark. Raised under the lock */
	uint64_t durable;	/* the newest flush that succeeded */
	_Atomic int error;	/* of the first flush that failed: none succeeds after it */
	bool running;
	struct zf_io io; /* the running flush, unless a thread carries it out by zf_dev_run() */
	struct zf_flush_wait *served, *wanted;
};

/* Embedded first in the backend's struct; the backend fills ops, path and geometry. */
struct zf_dev {
	const struct zf_dev_ops *ops;
	char *path;
	struct zf_geometry geometry;
	struct zf_report report;
	enum zf_append_mode append; /* set by open.c, which chose the backend */
	bool foreign;		    /* set by the backend: zf_dev_is_foreign() */
	/*
	 * The report of all zones that the backend made when it was opened, or NULL: a mount asks
	 * for it. It is valid until the first change of a zone, or until the backend sets
	 * had_error at its first error.
	 */
	_Atomic(struct zf_zone_info *) first_report;
	atomic_bool had_error;

	/* Private to the framework; see dev.c. */
	pthread_t thread;
	bool threaded;
	atomic_bool stopping;
	enum zf_durability durability;
	struct zf_mutex lock; /* ZF_RANK_DEV: `progress` and `flushing` */
	struct zf_cond progress;
	struct zf_dev_flushing flushing;
	struct zf_mutex poll_lock; /* ZF_RANK_POLL: held in ops->poll, protects `finished` */
	struct zf_io_list finished;
	atomic_uint in_flight; /* requests submitted and not yet handed back by the backend */
	_Atomic uint64_t stats[ZF_DEV_STATS];
	void (*record)(void *arg, const struct zf_io *io);
	void *record_arg;
};

/* Every backend calls these before it fills the rest, and at the end of close(). 0 or -ENOMEM. */
int zf_dev_init(struct zf_dev *dev, const struct zf_dev_ops *ops, const char *path,
		const struct zf_geometry *geometry, const struct zf_report *report);
void zf_dev_deinit(struct zf_dev *dev);

/* Waits, polling where there is no thread, until `flag` is set under the lock with a broadcast. */
void zf_dev_wait_until(struct zf_dev *dev, atomic_bool *flag);

/* A flush of the backend's own has failed: as if the framework's had failed. Any thread. */
void zf_dev_flush_failed(struct zf_dev *dev, int error);
/* The error of the first flush that failed, and so of all since; 0: none has failed. Any thread. */
int zf_dev_flush_error(struct zf_dev *dev);

/* Carries out a ZF_IO_READ on the calling thread, by ops->read, and returns its result. */
int zf_dev_read_request(struct zf_dev *dev, const struct zf_io *io);

/* Counts a successful read that bypassed zf_dev_read(). */
void zf_dev_count_read(struct zf_dev *dev, uint64_t bytes);
/* Trace such a read. The result of the first function is `submitted` of the second. */
uint64_t zf_dev_trace_read(uint64_t addr, uint64_t bytes);
void zf_dev_trace_read_end(uint64_t submitted, uint64_t addr, uint64_t bytes, int result);

/* Counts bytes that a backend wrote ahead of a pointer. */
void zf_dev_count_ahead(struct zf_dev *dev, uint64_t bytes);

/* Hands a finished request back. Only from within ops->poll. */
void zf_dev_complete(struct zf_dev *dev, struct zf_io *io, int result);

#endif
