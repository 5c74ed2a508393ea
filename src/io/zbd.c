/* SPDX-License-Identifier: MIT */
#include "io/zbd.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/kernel.h"
#include "io/image_file.h"
#include "io/zbd_device.h"

/*
 * Writes in flight in a zone if the kernel keeps their order: one at the device, the others on
 * their way to it. The kernel gives the device one write to a zone at a time, so further requests had
 * better wait, and be merged.
 */
#define DEPTH 4

static const char *words_for(int error)
{
	switch (error) {
	case -EOVERFLOW:
		return "too many active zones";
	case -ETOOMANYREFS:
		return "too many open zones";
	default:
		return strerror(-error);
	}
}

int zf_zbd_error(struct zf_zbd *zbd, const char *what, uint64_t address, int error)
{
	zbd->dev.had_error = true;
	zf_report(&zbd->dev.report, ZF_REPORT_ERROR, "%s: %s at %" PRIu64 ": %s", zbd->dev.path,
		  what, address, words_for(error));
	return error == -EOVERFLOW || error == -ETOOMANYREFS ? -EOVERFLOW : -EIO;
}

static void answer_locked(void *arg, struct zf_io *io, int result)
{
	zf_zbd_answer_locked(arg, io, result);
}

void zf_zbd_durable_write_failed(struct zf_zbd *zbd)
{
	if (!zbd->has_fua)
		zf_dev_flush_failed(&zbd->dev, -EIO);
}

static int write_failed_locked(void *arg, const struct zf_zone_write *write, int error, bool passed)
{
	if (write->fua && passed)
		zf_zbd_durable_write_failed(arg);
	return zf_zbd_error(arg, "write", write->addr, error);
}

static const struct zf_append_queue_ops queue_ops = {
	.write = zf_zbd_write_locked,
	.report = zf_zbd_report_locked,
	.manage = zf_zbd_manage_locked,
	.failed = write_failed_locked,
	.done = answer_locked,
};

/* ---- life ---- */

static void zbd_free(struct zf_zbd *zbd)
{
	zf_zbd_zones_stop(zbd);
	zf_append_queue_free(zbd->queue);
	zf_cond_deinit(&zbd->wanted);
	zf_mutex_deinit(&zbd->lock);
	if (zbd->zone_fd >= 0)
		zbd_close(zbd->zone_fd);
	close(zbd->fd);
	zf_dev_deinit(&zbd->dev);
	free(zbd);
}

static void zf_zbd_close(struct zf_dev *dev)
{
	struct zf_zbd *zbd = zf_zbd_of(dev);

	zf_zbd_zones_stop(zbd);
	zf_ring_deinit(&zbd->ring);
	zbd_free(zbd);
}

static int zbd_read_fd(struct zf_dev *dev)
{
	return zf_zbd_of(dev)->fd;
}

static const struct zf_dev_ops zbd_ops = {
	.kind = "zbd",
	.submit = zf_zbd_submit,
	.poll = zf_zbd_poll,
	.wake = zf_zbd_wake,
	.run = zf_zbd_run,
	.read = zf_zbd_read,
	.read_fd = zbd_read_fd,
	.report = zf_zbd_report,
	.close = zf_zbd_close,
};

/* ---- opening ---- */

/* libzbd works only on descriptors that it has opened: so this is a second one of the same disk. */
static int open_zones(struct zf_zbd *zbd, struct zbd_info *ret_info)
{
	struct stat data, zones;

	zbd_set_log_level(ZBD_LOG_NONE);
	errno = 0;
	zbd->zone_fd =
		zbd_open(zbd->dev.path, (zbd->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC, ret_info);
	if (zbd->zone_fd < 0)
		return zf_image_file_fail(&zbd->dev.report, zbd->dev.path,
					  errno ? -errno : -ENOTSUP,
					  "cannot be opened as a zoned block device");
	if (fstat(zbd->fd, &data) < 0 || fstat(zbd->zone_fd, &zones) < 0 ||
	    data.st_rdev != zones.st_rdev)
		return zf_image_file_fail(&zbd->dev.report, zbd->dev.path, -ENODEV,
					  "became another device");
	return 0;
}

static int read_geometry(struct zf_zbd *zbd, const struct zbd_info *info)
{
	struct zf_zbd_limits limits;
	char directory[64];
	struct stat st;
	int r;

	if (fstat(zbd->fd, &st) < 0)
		return -errno;
	snprintf(directory, sizeof(directory), "/sys/dev/block/%u:%u/queue", major(st.st_rdev),
		 minor(st.st_rdev));
	r = zf_zbd_geometry_read_limits(directory, zbd->dev.path, &zbd->dev.report, &limits);
	if (r < 0)
		return r;
	zbd->has_fua = limits.fua || !limits.volatile_cache;
	return zf_zbd_geometry(info, &limits, zbd->dev.path, &zbd->dev.report, &zbd->dev.geometry);
}

/* The one report of all zones that opening and mounting take. */
static int read_zones(struct zf_zbd *zbd)
{
	struct zf_geometry *g = &zbd->dev.geometry;
	uint32_t count = g->zone_count;
	_zf_free_ struct zbd_zone *zones = calloc(count, sizeof(*zones));
	struct zf_zone_info *report = calloc(count, sizeof(*report));
	unsigned int n = count;
	int r;

	zbd->dev.first_report = report;
	if (!zones || !report)
		return -ENOMEM;
	errno = 0;
	if (zbd_report_zones(zbd->zone_fd, 0, (off_t)(count * g->zone_size), ZBD_RO_ALL, zones,
			     &n) != 0 ||
	    n != count)
		return zf_image_file_fail(&zbd->dev.report, zbd->dev.path, errno ? -errno : -EIO,
					  "its zones cannot be read");
	r = zf_zbd_geometry_add_zones(zones, zbd->dev.path, &zbd->dev.report, g);
	for (uint32_t z = 0; r == 0 && z < count; z++)
		zf_zbd_geometry_zone_info(g, &zones[z], &report[z]);
	return r;
}

/* Zones that cannot be written keep an unknown pointer: a write then gets the error of a report. */
static void set_pointers(struct zf_zbd *zbd)
{
	for (uint32_t z = zbd->dev.geometry.conventional; z < zbd->dev.geometry.zone_count; z++) {
		const struct zf_zone_info *info = &zbd->dev.first_report[z];

		if (info->cond != ZF_ZONE_READONLY && info->cond != ZF_ZONE_OFFLINE)
			zf_append_queue_set_pointer(
				zbd->queue, z,
				(uint32_t)((info->wp - info->start) >> ZF_BLOCK_SHIFT));
	}
}

static int make_queue(struct zf_zbd *zbd, enum zf_append_mode mode)
{
	const struct zf_geometry *g = &zbd->dev.geometry;
	struct zf_append_queue_options options = {
		.zone_size = g->zone_size,
		.capacity = g->zone_capacity,
		.zone_count = g->zone_count,
		.limit_bytes = g->append_limit,
		.depth = 1,
		.merge = mode != ZF_APPEND_LOCKED,
	};
	int r;

	/* Zone write plugging keeps the writes to a zone in order, however many are in flight. */
	zbd->kernel_orders = zf_kernel_is_at_least(6, 10);
	if (zbd->kernel_orders && options.merge)
		options.depth = DEPTH;
	r = zf_append_queue_new(&options, &queue_ops, zbd, &zbd->queue);
	if (r < 0)
		return r;
	set_pointers(zbd);
	return zf_zbd_zones_start(zbd);
}

static int set_up(struct zf_zbd *zbd, const struct zf_open_options *options)
{
	struct zbd_info info;
	int r = open_zones(zbd, &info);

	if (r == 0)
		r = read_geometry(zbd, &info);
	if (r == 0)
		r = read_zones(zbd);
	if (r < 0)
		return r;
	if (options->before_threads)
		options->before_threads();
	if (!zbd->read_only)
		r = make_queue(zbd, options->append);
	if (r < 0)
		return zf_image_file_fail(&zbd->dev.report, zbd->dev.path, r, "cannot be opened");
	return zf_zbd_ring_init(zbd);
}

int zf_zbd_open(const char *path, const struct zf_open_options *options,
		const struct zf_report *report, struct zf_dev **ret_dev)
{
	const struct zf_geometry unknown = {0};
	struct zf_image_file file;
	struct zf_zbd *zbd;
	int r;

	r = zf_image_file_open_for(path, options, true, report, &file);
	if (r < 0)
		return r;
	zbd = calloc(1, sizeof(*zbd));
	r = zbd ? zf_dev_init(&zbd->dev, &zbd_ops, path, &unknown, report) : -ENOMEM;
	if (r < 0) {
		free(zbd);
		close(file.fd);
		return r;
	}
	zbd->fd = file.fd;
	zbd->zone_fd = -1;
	zbd->read_only = options->read_only;
	zf_mutex_init(&zbd->lock, ZF_RANK_DEV);
	zf_zbd_zones_init(zbd);
	r = set_up(zbd, options);
	if (r < 0) {
		zbd_free(zbd);
		return r;
	}
	*ret_dev = &zbd->dev;
	return 0;
}
