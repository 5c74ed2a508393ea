/* SPDX-License-Identifier: MIT */
/*
 * What would a mount make of it? One is tried, with all of its recovery, on an overlay over the
 * device (io/overlay.h), and what it has committed there is checked in turn. So a mount that
 * refuses is an error, and so is a log whose replay leaves errors.
 *
 * This comes last, and only where nothing else was found: a mount would find the same again.
 */
#include <errno.h>
#include <string.h>

#include "check/state.h"
#include "fs/core/fs.h"
#include "io/overlay.h"
#include "superblock/ring.h"

/* Recovery writes the nodes that it changes, some of them several times. */
#define OVERLAY_BYTES_MAX (UINT64_C(512) << 20)
#define CACHE_BYTES	  (UINT64_C(16) << 20)

/* Warnings are about what the device looks like, and have been told. */
static void forward_error(void *arg, enum zf_report_level level, const char *message)
{
	const struct zf_check *check = arg;

	if (level == ZF_REPORT_ERROR)
		zf_report(&check->report, level, "after recovery: %s", message);
}

static int check_result(struct zf_check *check, struct zf_fs *fs, const struct zf_report *report)
{
	const struct zf_check_options options = {.data = check->options->data};
	const struct zf_super *newest;
	struct zf_check_counts counts;
	unsigned int stepped_over;
	int r = zf_ring_newest(zf_fs_ring(fs), &newest, &stepped_over);

	if (r < 0 || newest->generation == check->super->generation)
		return r;
	return zf_check_run(zf_fs_dev(fs), newest, &options, report, &counts);
}

static int mount_and_check(struct zf_check *check, struct zf_dev *overlay)
{
	const struct zf_report report = {.fn = forward_error, .arg = check};
	const struct zf_mount_options options = {.cache_bytes = CACHE_BYTES};
	const struct zf_ctx ctx = {.may_wait = true};
	struct zf_fs *fs;
	int r = zf_fs_mount(overlay, &options, &report, &fs);

	if (r < 0)
		return r;
	/* The intents that were finished, and the orphans that were deleted. */
	r = zf_fs_syncfs(fs, &ctx);
	if (r == 0)
		r = check_result(check, fs, &report);
	zf_fs_abandon(fs);
	return r;
}

static int judge(struct zf_check *check, bool is_full, int r)
{
	if (r < 0 && is_full) {
		zf_report(
			&check->report, ZF_REPORT_WARNING,
			"what a mount makes of the log was not checked: it needs more than %" PRIu64
			" MiB of memory",
			(uint64_t)(OVERLAY_BYTES_MAX >> 20));
		return 0;
	}
	if (r == -ENOMEM)
		return r;
	if (r < 0)
		zf_report(&check->report, ZF_REPORT_ERROR, "it cannot be mounted read-write: %s",
			  strerror(-r));
	return 0;
}

int zf_check_replay(struct zf_check *check)
{
	struct zf_dev *overlay;
	int r = zf_overlay_open(check->dev, OVERLAY_BYTES_MAX, NULL, &overlay);
	bool is_full;

	if (r < 0)
		return r;
	r = mount_and_check(check, overlay);
	is_full = zf_overlay_is_full(overlay);
	zf_dev_close(overlay);
	return judge(check, is_full, r);
}
