/* SPDX-License-Identifier: MIT */
/*
 * Reports, resets and finishes of a zoned block device. The kernel takes them as ioctls, which are
 * slow: milliseconds for a reset, up to a second for a finish. So a thread carries them out, one
 * after the other, and neither submitters nor the poller wait.
 */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/spawn.h"
#include "io/zbd_device.h"

/* Zones: as many as libzbd requests from the kernel at once. */
#define REPORT_CHUNK 8192

/* ---- reports ---- */

static int report_chunk(struct zf_zbd *zbd, uint32_t first, uint32_t count, struct zbd_zone *buffer,
			struct zf_zone_info *zones)
{
	const struct zf_geometry *g = &zbd->dev.geometry;
	unsigned int n = count;

	errno = 0;
	if (zbd_report_zones(zbd->zone_fd, (off_t)(first * g->zone_size),
			     (off_t)(count * g->zone_size), ZBD_RO_ALL, buffer, &n) != 0 ||
	    n != count)
		return zf_zbd_error(zbd, "report of zones", first * g->zone_size,
				    errno ? -errno : -EIO);
	for (uint32_t i = 0; i < count; i++)
		zf_zbd_geometry_zone_info(g, &buffer[i], &zones[i]);
	return 0;
}

static int report_zones(struct zf_zbd *zbd, uint32_t first, uint32_t count,
			struct zf_zone_info *zones)
{
	uint32_t chunk = count < REPORT_CHUNK ? count : REPORT_CHUNK;
	_zf_free_ struct zbd_zone *buffer = calloc(chunk, sizeof(*buffer));
	int r = buffer || count == 0 ? 0 : -ENOMEM;

	for (uint32_t done = 0; r == 0 && done < count; done += chunk) {
		if (chunk > count - done)
			chunk = count - done;
		r = report_chunk(zbd, first + done, chunk, buffer, zones + done);
	}
	return r;
}

int zf_zbd_report(struct zf_dev *dev, uint32_t first, uint32_t count, struct zf_zone_info *zones)
{
	return report_zones(zf_zbd_of(dev), first, count, zones);
}

/* Finds the zone's pointer after an error. 0 or the errors that dev.h lists. */
static int find_pointer(struct zf_zbd *zbd, uint32_t zone_no, uint32_t *ret_pointer)
{
	struct zf_zone_info info;
	int r = report_zones(zbd, zone_no, 1, &info);

	if (r == 0) {
		zf_zbd_resync(zbd, &info);
		r = report_zones(zbd, zone_no, 1, &info);
	}
	if (r < 0)
		return r;
	if (info.cond == ZF_ZONE_READONLY || info.cond == ZF_ZONE_OFFLINE) {
		zf_report(&zbd->dev.report, ZF_REPORT_ERROR, "%s: the zone at %" PRIu64 " is %s",
			  zbd->dev.path, info.start, zf_zone_cond_name(info.cond));
		return info.cond == ZF_ZONE_READONLY ? -EROFS : -ENXIO;
	}
	*ret_pointer = (uint32_t)((info.wp - info.start) >> ZF_BLOCK_SHIFT);
	return 0;
}

/* ---- jobs ---- */

/*
 * After an error, a report of the zone tells the cause, by the zone's condition, and the pointer.
 */
static int manage(struct zf_zbd *zbd, const struct zf_io *io, uint32_t *ret_pointer)
{
	bool resets = io->op == ZF_IO_RESET;
	int r, error;

	if (zbd_zones_operation(zbd->zone_fd, resets ? ZBD_OP_RESET : ZBD_OP_FINISH,
				(off_t)io->addr, (off_t)zbd->dev.geometry.zone_size) == 0) {
		*ret_pointer =
			resets ? 0 : (uint32_t)(zbd->dev.geometry.zone_capacity >> ZF_BLOCK_SHIFT);
		return 0;
	}
	error = zf_zbd_error(zbd, resets ? "reset" : "finish", io->addr, -errno);
	*ret_pointer = ZF_APPEND_POINTER_UNKNOWN;
	r = find_pointer(zbd, zf_zbd_zone_of(zbd, io), ret_pointer);
	return r == -EROFS || r == -ENXIO ? r : error;
}

/* The lock is dropped while the ioctl lasts. */
static void carry_out_locked(struct zf_zbd *zbd, const struct zf_zbd_job *job)
{
	uint32_t pointer = ZF_APPEND_POINTER_UNKNOWN;
	int r;

	zf_mutex_unlock(&zbd->lock);
	r = job->io ? manage(zbd, job->io, &pointer) : find_pointer(zbd, job->zone_no, &pointer);
	zf_mutex_lock(&zbd->lock);
	if (job->io)
		zf_append_queue_managed(zbd->queue, job->io, r, pointer);
	else
		zf_append_queue_reported(zbd->queue, job->zone_no, r, pointer);
	zf_zbd_push_locked(zbd);
}

static void *thread_main(void *arg)
{
	struct zf_zbd *zbd = arg;
	struct zf_zbd_job *job;

	zf_mutex_lock(&zbd->lock);
	while (!zbd->stopping) {
		struct zf_zbd_job current;

		job = STAILQ_FIRST(&zbd->jobs);
		if (!job) {
			zf_cond_wait(&zbd->wanted, &zbd->lock);
			continue;
		}
		STAILQ_REMOVE_HEAD(&zbd->jobs, link);
		current = *job;
		STAILQ_INSERT_HEAD(&zbd->free_jobs, job, link);
		carry_out_locked(zbd, &current);
	}
	zf_mutex_unlock(&zbd->lock);
	return NULL;
}

static void add_job_locked(struct zf_zbd *zbd, uint32_t zone_no, struct zf_io *io)
{
	struct zf_zbd_job *job = STAILQ_FIRST(&zbd->free_jobs);

	/* A zone with an entry in the queue has one job at most. */
	assert(job);
	STAILQ_REMOVE_HEAD(&zbd->free_jobs, link);
	job->zone_no = zone_no;
	job->io = io;
	STAILQ_INSERT_TAIL(&zbd->jobs, job, link);
	zf_cond_signal(&zbd->wanted);
}

void zf_zbd_report_locked(void *arg, uint32_t zone_no)
{
	add_job_locked(arg, zone_no, NULL);
}

void zf_zbd_manage_locked(void *arg, struct zf_io *io)
{
	add_job_locked(arg, zf_zbd_zone_of(arg, io), io);
}

/* ---- life ---- */

void zf_zbd_zones_init(struct zf_zbd *zbd)
{
	STAILQ_INIT(&zbd->jobs);
	STAILQ_INIT(&zbd->free_jobs);
	zf_cond_init(&zbd->wanted);
	for (unsigned int i = 0; i < ZF_APPEND_ZONES; i++)
		STAILQ_INSERT_TAIL(&zbd->free_jobs, &zbd->job_pool[i], link);
}

int zf_zbd_zones_start(struct zf_zbd *zbd)
{
	int r = zf_spawn(&zbd->thread, "zfuse-zones", thread_main, zbd);

	zbd->started = r == 0;
	return r;
}

void zf_zbd_zones_stop(struct zf_zbd *zbd)
{
	if (!zbd->started)
		return;
	zf_mutex_lock(&zbd->lock);
	zbd->stopping = true;
	zf_cond_signal(&zbd->wanted);
	zf_mutex_unlock(&zbd->lock);
	pthread_join(zbd->thread, NULL);
	zbd->started = false;
}
