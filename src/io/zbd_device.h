/* SPDX-License-Identifier: MIT */
/* A zoned block device: what the files of the zbd backend share. Life: zbd.c. */
#ifndef ZF_IO_ZBD_DEVICE_H
#define ZF_IO_ZBD_DEVICE_H

#include "base/bits.h"
#include "io/append_queue.h"
#include "io/command.h"
#include "io/dev_ops.h"
#include "io/ring.h"
#include "io/zbd_geometry.h"

#define ZF_ZBD_IN_FLIGHT_MAX 256

/* Reads, flushes, and changes of conventional zones. The queue has the writes at pointers. */
struct zf_zbd_command {
	struct zf_command base;
	bool unmaps; /* ZEROES: the last attempt was by unmapping */
};

/* A job that takes an ioctl, so the zones thread runs it, after the jobs before it: zbd_zones.c */
struct zf_zbd_job {
	struct zf_io *io; /* RESET or FINISH; NULL: a report for the queue */
	uint32_t zone_no;
	STAILQ_ENTRY(zf_zbd_job) link;
};

STAILQ_HEAD(zf_zbd_jobs, zf_zbd_job);

struct zf_zbd {
	struct zf_dev dev;
	int fd;	     /* for data; the lock is on it */
	int zone_fd; /* libzbd's, for zones */
	bool read_only;
	bool has_fua;	    /* or has no cache to flush: a FUA write is one command */
	bool kernel_orders; /* it keeps the writes to a zone in order, by a pointer of its own */

	struct zf_mutex lock; /* ZF_RANK_DEV: submission side of the ring, and all fields below */
	struct zf_ring ring;
	struct zf_append_queue *queue; /* NULL if read-only */
	struct zf_zbd_command commands[ZF_ZBD_IN_FLIGHT_MAX];
	struct zf_command_pool pool;
	struct zf_io_list done; /* answered requests that the poller has to hand back */
	bool unmapping_refused; /* by the kernel */

	/* zbd_zones.c */
	pthread_t thread;
	bool started, stopping;
	struct zf_cond wanted;
	struct zf_zbd_job job_pool[ZF_APPEND_ZONES];
	struct zf_zbd_jobs jobs, free_jobs;
};

static inline struct zf_zbd *zf_zbd_of(struct zf_dev *dev)
{
	return ZF_CONTAINER_OF(dev, struct zf_zbd, dev);
}

static inline uint32_t zf_zbd_zone_of(const struct zf_zbd *zbd, const struct zf_io *io)
{
	return (uint32_t)(io->addr / zbd->dev.geometry.zone_size);
}

/* Converts an error of the kernel to one that dev.h names, and reports it. */
int zf_zbd_error(struct zf_zbd *zbd, const char *what, uint64_t address, int error);

/*
 * A FUA write has failed, but its data may be stored: if the disk has no FUA, the error may be that
 * of the flush which the kernel sent after the write.
 */
void zf_zbd_durable_write_failed(struct zf_zbd *zbd);

/* ---- zbd_ring.c ---- */

int zf_zbd_ring_init(struct zf_zbd *zbd);
/* Sets the request's result; the poller will hand the request back. */
void zf_zbd_answer_locked(struct zf_zbd *zbd, struct zf_io *io, int result);
/* Submits prepared entries, and wakes the poller if there are answered requests. */
void zf_zbd_push_locked(struct zf_zbd *zbd);

/* struct zf_append_queue_ops */
void zf_zbd_write_locked(void *arg, struct zf_zone_write *write);

/* struct zf_dev_ops */
void zf_zbd_submit(struct zf_dev *dev, struct zf_io *io);
void zf_zbd_poll(struct zf_dev *dev, bool wait);
void zf_zbd_wake(struct zf_dev *dev);
int zf_zbd_run(struct zf_dev *dev, struct zf_io *io);
int zf_zbd_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov, unsigned int iovcnt);

/* ---- zbd_resync.c ---- */

/*
 * After a failed write, while nothing of the zone is in flight: makes the kernel take over the
 * disk's pointer with the next report. Waits.
 */
void zf_zbd_resync(struct zf_zbd *zbd, const struct zf_zone_info *info);

/* ---- zbd_zones.c: a thread for requests that take an ioctl ---- */

void zf_zbd_zones_init(struct zf_zbd *zbd);
int zf_zbd_zones_start(struct zf_zbd *zbd);
void zf_zbd_zones_stop(struct zf_zbd *zbd); /* nothing in flight; also if never started */

/* struct zf_append_queue_ops */
void zf_zbd_report_locked(void *arg, uint32_t zone_no);
void zf_zbd_manage_locked(void *arg, struct zf_io *io);

/* struct zf_dev_ops. Any thread. */
int zf_zbd_report(struct zf_dev *dev, uint32_t first, uint32_t count, struct zf_zone_info *zones);

#endif
