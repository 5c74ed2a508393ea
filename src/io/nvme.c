/* SPDX-License-Identifier: MIT */
#include "io/nvme.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "io/nvme_device.h"
#include "io/nvme_status.h"
#include "io/zone_rules.h"

static const char *const op_names[ZF_IO_OP_COUNT] = {
	[ZF_IO_READ] = "read",	   [ZF_IO_WRITE] = "write", [ZF_IO_APPEND] = "append",
	[ZF_IO_ZEROES] = "zeroes", [ZF_IO_RESET] = "reset", [ZF_IO_FINISH] = "finish",
	[ZF_IO_FLUSH] = "flush",
};

void zf_nvme_report_failure(struct zf_nvme *nvme, const struct zf_nvme_piece *piece, int status)
{
	char text[ZF_NVME_STATUS_TEXT_MAX];

	nvme->dev.had_error = true;
	zf_report(&nvme->dev.report, ZF_REPORT_ERROR,
		  "%s: %s of %" PRIu64 " bytes at %" PRIu64 " (zone %" PRIu64 "): %s",
		  nvme->dev.path, op_names[piece->op], piece->len, piece->addr,
		  piece->addr / nvme->dev.geometry.zone_size, zf_nvme_status_text(status, text));
}

/* ---- struct zf_dev_ops ---- */

static int nvme_report(struct zf_dev *dev, uint32_t first, uint32_t count,
		       struct zf_zone_info *zones)
{
	struct zf_nvme *nvme = zf_nvme_of(dev);

	return zf_nvme_report_zones(nvme->claim.char_fd, dev->path, nvme->nsid, &nvme->drive, first,
				    count, &dev->report, zones);
}

static void nvme_free(struct zf_nvme *nvme)
{
	zf_mutex_deinit(&nvme->lock);
	zf_nvme_unclaim(&nvme->claim);
	zf_dev_deinit(&nvme->dev);
	free(nvme);
}

static void nvme_close(struct zf_dev *dev)
{
	struct zf_nvme *nvme = zf_nvme_of(dev);

	zf_ring_deinit(&nvme->ring);
	nvme_free(nvme);
}

/*
 * Reads through the block device: the block layer splits reads that are too large for the drive,
 * and needs no ring with larger entries. It does not see appends and resets, but reads have no
 * order relative to these.
 */
static int nvme_read_fd(struct zf_dev *dev)
{
	return zf_nvme_of(dev)->claim.read_fd;
}

static const struct zf_dev_ops nvme_ops = {
	.kind = "nvme",
	.submit = zf_nvme_submit,
	.poll = zf_nvme_poll,
	.wake = zf_nvme_wake,
	.run = zf_nvme_run,
	.read = zf_nvme_read,
	.read_fd = nvme_read_fd,
	.report = nvme_report,
	.close = nvme_close,
};

/* ---- opening ---- */

/* Owns the claim and the zones from here on, whatever happens. */
static int nvme_new(const char *path, struct zf_nvme_claim *claim, uint32_t nsid,
		    const struct zf_nvme_drive *drive, struct zf_zone_info *zones,
		    const struct zf_report *report, struct zf_dev **ret_dev)
{
	struct zf_nvme *nvme = calloc(1, sizeof(*nvme));
	int r = -ENOMEM;

	if (nvme)
		r = zf_dev_init(&nvme->dev, &nvme_ops, path, &drive->geometry, report);
	if (r < 0) {
		free(nvme);
		free(zones);
		zf_nvme_unclaim(claim);
		return r;
	}
	zf_mutex_init(&nvme->lock, ZF_RANK_DEV);
	nvme->claim = *claim;
	nvme->nsid = nsid;
	nvme->drive = *drive;
	nvme->dev.first_report = zones;
	zf_nvme_queue_init(&nvme->queue, &nvme->drive);
	r = zf_nvme_ring_init(nvme);
	if (r < 0) {
		nvme_free(nvme);
		return r;
	}
	*ret_dev = &nvme->dev;
	return 0;
}

int zf_nvme_open(const char *path, const struct zf_open_options *options,
		 const struct zf_report *report, struct zf_dev **ret_dev)
{
	struct zf_nvme_claim claim;
	struct zf_nvme_drive drive;
	_zf_free_ struct zf_zone_info *zones = NULL;
	uint32_t nsid;
	int r;

	r = zf_nvme_claim(path, options, report, &claim);
	if (r < 0)
		return r;
	r = zf_nvme_identify(claim.char_fd, path, claim.block_name, report, &nsid, &drive, &zones);
	if (r == 0)
		r = zf_geometry_check(&drive.geometry, report);
	if (r < 0) {
		zf_nvme_unclaim(&claim);
		return r;
	}
	drive.read_only = options->read_only;
	return nvme_new(path, &claim, nsid, &drive, zf_steal_ptr(&zones), report, ret_dev);
}
