/* SPDX-License-Identifier: MIT */
/* What a backend implements. Only backends (image.c, memory.c, the simulator) include this. */
#ifndef ZF_IO_DEV_OPS_H
#define ZF_IO_DEV_OPS_H

#include <pthread.h>

#include "io/dev.h"

struct zf_dev_ops {
	const char *kind;

	/* Queues the request. Must not call zf_dev_complete() before it returns. Any thread. */
	void (*submit)(struct zf_dev *dev, struct zf_io *io);

	/*
	 * Calls zf_dev_complete() for what has completed; with `wait`, blocks for at least one if
	 * any is in flight. One thread at a time (the framework serialises it).
	 */
	unsigned int (*poll)(struct zf_dev *dev, bool wait);

	/* Makes a poll(wait) that is blocked return. Any thread. */
	void (*wake)(struct zf_dev *dev);

	int (*read)(struct zf_dev *dev, uint64_t addr, const struct iovec *iov, unsigned int iovcnt);
	int (*report)(struct zf_dev *dev, uint32_t first, uint32_t count, struct zf_zone_info *zones);
	int (*raise_pointer)(struct zf_dev *dev, uint32_t zone_no, uint64_t wp);
	void (*close)(struct zf_dev *dev); /* frees the backend's struct */
};

/* Embedded first in the backend's struct; the backend fills ops, path and geometry. */
struct zf_dev {
	const struct zf_dev_ops *ops;
	char *path;
	struct zf_geometry geometry;
	struct zf_report report;

	/* The framework's; see dev.c. */
	pthread_t thread;
	bool threaded;
	atomic_bool stopping;
	struct zf_mutex lock; /* ZF_RANK_DEV: protects nothing but `progress` */
	struct zf_cond progress;
	struct zf_mutex poll_lock;
	atomic_uint in_flight;
	_Atomic uint64_t stats[sizeof(struct zf_dev_stats) / sizeof(uint64_t)];
	void (*record)(void *arg, const struct zf_io *io);
	void *record_arg;
};

/* Called by every backend when it has filled its part, and at the end of its close(). */
void zf_dev_init(struct zf_dev *dev, const struct zf_dev_ops *ops, const char *path,
		 const struct zf_geometry *geometry, const struct zf_report *report);
void zf_dev_deinit(struct zf_dev *dev);

/* Hands a finished request back: counts it, shows it to the recorder, calls io->done. */
void zf_dev_complete(struct zf_dev *dev, struct zf_io *io, int result);

#endif
