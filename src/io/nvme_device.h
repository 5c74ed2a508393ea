/* SPDX-License-Identifier: MIT */
/* The device over a ZNS namespace: what the files of the backend share. Life: nvme.c. */
#ifndef ZF_IO_NVME_DEVICE_H
#define ZF_IO_NVME_DEVICE_H

#include "base/bits.h"
#include "io/dev_ops.h"
#include "io/nvme_claim.h"
#include "io/nvme_queue.h"
#include "io/ring.h"

struct zf_nvme {
	struct zf_dev dev;
	struct zf_nvme_claim claim;
	uint32_t nsid;
	struct zf_nvme_drive drive;

	struct zf_mutex
		lock; /* ZF_RANK_DEV: all fields below, but of the ring only the submission side */
	struct zf_ring ring;
	struct zf_nvme_queue queue;
	STAILQ_HEAD(, zf_nvme_command) ready; /* the device's thread has to send them */
	bool poller_sleeps;		      /* and no thread has woken it yet */
};

static inline struct zf_nvme *zf_nvme_of(struct zf_dev *dev)
{
	return ZF_CONTAINER_OF(dev, struct zf_nvme, dev);
}

/* Reports in words that a request failed with this status. */
void zf_nvme_report_failure(struct zf_nvme *nvme, const struct zf_nvme_piece *piece, int status);

/* ---- nvme_ring.c ---- */

int zf_nvme_ring_init(struct zf_nvme *nvme);

/* struct zf_dev_ops */
void zf_nvme_submit(struct zf_dev *dev, struct zf_io *io);
void zf_nvme_poll(struct zf_dev *dev, bool wait);
void zf_nvme_wake(struct zf_dev *dev);

/* ---- nvme_here.c: on the calling thread, by ioctl(2), without the lock ---- */

/* struct zf_dev_ops */
int zf_nvme_run(struct zf_dev *dev, struct zf_io *io);
int zf_nvme_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov, unsigned int iovcnt);

/* ---- nvme_identify.c ---- */

/*
 * Fills nsid, drive and a report of all zones, which the caller frees. The sources are `fd`, the
 * character device at `path`, and the kernel's data about the block device `block_name`.
 * -EOPNOTSUPP: not a zoned namespace. Every error is reported.
 */
int zf_nvme_identify(int fd, const char *path, const char *block_name,
		     const struct zf_report *report, uint32_t *ret_nsid,
		     struct zf_nvme_drive *ret_drive, struct zf_zone_info **ret_zones);

/*
 * Like zf_dev_report(). -EIO: the drive's answers contradict each other.
 */
int zf_nvme_report_zones(int fd, const char *path, uint32_t nsid, const struct zf_nvme_drive *drive,
			 uint32_t first, uint32_t count, const struct zf_report *report,
			 struct zf_zone_info *zones);

#endif
