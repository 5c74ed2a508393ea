/* SPDX-License-Identifier: MIT */
#include "io/open.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "io/dev_ops.h"
#include "io/disk.h"
#include "io/image.h"
#include "io/nvme.h"
#include "io/zbd.h"

/* ---- zoned disks ---- */

/* Is there a character device, and may this process use it? 0 or -errno. */
static int try_nvme_path(const struct zf_disk *disk, const struct zf_open_options *options)
{
	_zf_close_ int fd = -1;

	if (disk->nvme_path[0] == '\0')
		return -EOPNOTSUPP;
	fd = open(disk->nvme_path, (options->read_only ? O_RDONLY : O_RDWR) | O_CLOEXEC);
	return fd < 0 ? -errno : 0;
}

static int refuse_native(const struct zf_disk *disk, int error, const struct zf_report *report)
{
	if (disk->nvme_path[0] == '\0')
		zf_report(report, ZF_REPORT_ERROR,
			  "%s: only NVMe disks let programs append natively: leave out "
			  "append=native",
			  disk->path);
	else
		zf_report(report, ZF_REPORT_ERROR,
			  "%s cannot be opened for native appends: %s (docs/devices.md: "
			  "Permissions); or choose append=emulated",
			  disk->nvme_path, strerror(-error));
	return error;
}

/* No message for a read-only open, which needs no appends. */
static void tell_out_of_reach(const struct zf_disk *disk, int error,
			      const struct zf_open_options *options, const struct zf_report *report)
{
	if (disk->nvme_path[0] == '\0' || options->read_only)
		return;
	zf_report(report, ZF_REPORT_INFO, "%s cannot be opened (%s), so appends are emulated",
		  disk->nvme_path, strerror(-error));
}

static int open_native(const struct zf_disk *disk, const struct zf_open_options *options,
		       const struct zf_report *report, struct zf_dev **ret_dev)
{
	int r = zf_nvme_open(disk->nvme_path, options, report, ret_dev);

	if (r == 0)
		(*ret_dev)->append = ZF_APPEND_NATIVE;
	return r;
}

static int open_emulated(const struct zf_disk *disk, const struct zf_open_options *options,
			 const struct zf_report *report, struct zf_dev **ret_dev)
{
	int r = zf_zbd_open(disk->path, options, report, ret_dev);

	if (r == 0)
		(*ret_dev)->append =
			options->append == ZF_APPEND_LOCKED ? ZF_APPEND_LOCKED : ZF_APPEND_EMULATED;
	return r;
}

/* If native appends fail for any reason, the disk can be written without them. */
static int open_best(const struct zf_disk *disk, const struct zf_open_options *options,
		     const struct zf_report *report, struct zf_dev **ret_dev)
{
	int r = try_nvme_path(disk, options);

	if (r < 0) {
		tell_out_of_reach(disk, r, options, report);
		return open_emulated(disk, options, report, ret_dev);
	}
	r = open_native(disk, options, report, ret_dev);
	if (r != -EOPNOTSUPP && r != -EACCES && r != -EPERM)
		return r;
	zf_report(report, ZF_REPORT_WARNING,
		  "%s: appends are emulated instead (choose append=emulated to avoid this message)",
		  disk->path);
	return open_emulated(disk, options, report, ret_dev);
}

static int open_zoned(const struct zf_disk *disk, const struct zf_open_options *options,
		      const struct zf_report *report, struct zf_dev **ret_dev)
{
	int r;

	if (options->append == ZF_APPEND_BEST)
		return open_best(disk, options, report, ret_dev);
	if (options->append != ZF_APPEND_NATIVE)
		return open_emulated(disk, options, report, ret_dev);
	r = try_nvme_path(disk, options);
	if (r < 0)
		return refuse_native(disk, r, report);
	return open_native(disk, options, report, ret_dev);
}

/* ---- all ---- */

static int open_image(const struct zf_disk *disk, const struct zf_open_options *options,
		      const struct zf_report *report, struct zf_dev **ret_dev)
{
	int r = zf_image_open(disk->path, options, report, ret_dev);

	if (r == 0)
		(*ret_dev)->append = ZF_APPEND_EMULATED;
	return r;
}

int zf_disk_open(const struct zf_disk *disk, const struct zf_open_options *options,
		 const struct zf_report *report, struct zf_dev **ret_dev)
{
	char user[PATH_MAX + 32];
	int r = disk->kind == ZF_DISK_ZONED ? open_zoned(disk, options, report, ret_dev)
					    : open_image(disk, options, report, ret_dev);

	if (r == -EBUSY && disk->kind != ZF_DISK_FILE && zf_disk_user(disk, user, sizeof(user)))
		zf_report(report, ZF_REPORT_ERROR, "%s is %s", disk->path, user);
	return r;
}

int zf_dev_open(const char *path, const struct zf_open_options *options,
		const struct zf_report *report, struct zf_dev **ret_dev)
{
	struct zf_disk disk;
	struct stat st;
	int r;

	if (stat(path, &st) < 0) {
		r = -errno;
		zf_report(report, ZF_REPORT_ERROR, "%s: %s", path, strerror(-r));
		return r;
	}
	r = zf_disk_find("", path, &st, report, &disk);
	return r < 0 ? r : zf_disk_open(&disk, options, report, ret_dev);
}
