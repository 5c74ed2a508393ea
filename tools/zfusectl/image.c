/* SPDX-License-Identifier: MIT */
#include "image.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transfer/copy.h"
#include "io/image.h"
#include "meter.h"
#include "probe.h"
#include "text.h"

struct request {
	const char *source, *target;
	bool exports; /* makes a new image; else writes to an existing image or a disk */
	bool force, quiet;
	struct zf_meter *meter;
};

static char prefix[] = "zfusectl image";
static const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};

/* ---- the target ---- */

/* Otherwise the command would wait ten seconds for a lock that it holds itself. */
static bool is_same(const struct request *request)
{
	struct stat a, b;

	if (stat(request->source, &a) < 0 || stat(request->target, &b) < 0 ||
	    a.st_dev != b.st_dev || a.st_ino != b.st_ino)
		return false;
	zf_report(&report, ZF_REPORT_ERROR, "%s and %s are the same", request->source,
		  request->target);
	return true;
}

static int check_contents(const struct request *request, const struct zf_disk *disk)
{
	char found[256];
	int r;

	r = zf_probe_contents(disk, request->exports, &report, found, sizeof(found));
	if (r <= 0 || request->force)
		return r < 0 ? r : 0;
	zf_report(&report, ZF_REPORT_ERROR, "%s has %s: give -f to overwrite it", request->target,
		  found);
	return -EEXIST;
}

static int open_target(const struct request *request, const struct zf_disk *disk,
		       struct zf_dev *from, struct zf_dev **ret_dev)
{
	const struct zf_open_options options = {.lock_wait_ms = ZF_PROBE_LOCK_WAIT_MS};
	int r = 0;

	if (request->exports)
		r = zf_image_create(disk->path, zf_dev_geometry(from), request->force, &options,
				    &report);
	return r < 0 ? r : zf_disk_open(disk, &options, &report, ret_dev);
}

/* ---- copying ---- */

static void print_result(const struct request *request, const struct zf_dev *from,
			 const struct zf_dev *to)
{
	uint32_t zones = zf_dev_geometry(from)->zone_count, room = zf_dev_geometry(to)->zone_count;

	printf("copied %" PRIu32 " zones from %s (%s) to %s (%s)\n", zones, request->source,
	       zf_dev_kind(from), request->target, zf_dev_kind(to));
	if (room > zones)
		printf("%s has %" PRIu32 " zones: 'zfusectl grow %s' makes use of all\n",
		       request->target, room, request->target);
}

static int copy(const struct request *request, const struct zf_disk *disk, struct zf_dev *from)
{
	const struct zf_progress progress = {.fn = zf_meter_update, .arg = request->meter};
	struct zf_dev *to;
	int r = open_target(request, disk, from, &to);

	if (r < 0)
		return r;
	r = zf_transfer_copy(from, to, &progress, &report);
	zf_meter_end(request->meter);
	if (r == 0 && !request->quiet)
		print_result(request, from, to);
	zf_dev_close(to);
	return r;
}

/* The source is checked first, so the target is only overwritten if the source can be copied. */
static int copy_from(const struct request *request, struct zf_dev *from)
{
	bool was_there = access(request->target, F_OK) == 0;
	struct zf_disk disk;
	int r = zf_transfer_check(from, &report);

	if (r == 0)
		r = zf_probe_disk(request->target, request->exports, &report, &disk);
	if (r == 0)
		r = check_contents(request, &disk);
	if (r < 0)
		return r;
	r = copy(request, &disk, from);
	if (r < 0 && request->exports && !was_there)
		unlink(request->target);
	return r;
}

int zf_image_main(const struct zf_args *args)
{
	const struct zf_open_options options = {
		.read_only = true,
		.lock_wait_ms = ZF_PROBE_LOCK_WAIT_MS,
	};
	struct zf_meter meter;
	const struct request request = {
		.meter = &meter,
		.source = args->operands[0],
		.target = args->operands[1],
		.exports = args->id == ZF_COMMAND_IMAGE_EXPORT,
		.force = args->options[ZF_OPTION_FORCE].given,
		.quiet = args->options[ZF_OPTION_QUIET].given,
	};
	struct zf_dev *from;
	int r;

	zf_meter_init(&meter, args, "bytes");
	if (is_same(&request) || zf_dev_open(request.source, &options, &report, &from) < 0)
		return ZF_EXIT_PROBLEMS;
	r = copy_from(&request, from);
	zf_dev_close(from);
	return r < 0 ? ZF_EXIT_PROBLEMS : zf_args_flush(args);
}
