/* SPDX-License-Identifier: MIT */
/*
 * Mounts the filesystem on an overlay (recovered.h), and checks the state that the mount has
 * committed there. A mount that fails is an error, and so is a log whose replay leaves errors.
 *
 * This is the last check, and runs only if the others found no error: the mount would meet the same
 * errors again.
 */
#include <errno.h>
#include <string.h>

#include "check/recovered.h"
#include "check/state.h"
#include "superblock/ring.h"

/* Warnings are about the device, and were reported before. */
static void forward_error(void *arg, enum zf_report_level level, const char *message)
{
	const struct zf_check *check = arg;

	if (level == ZF_REPORT_ERROR)
		zf_report(&check->report, level, "after recovery: %s", message);
}

static int check_newest(struct zf_check *check, struct zf_dev *overlay, const struct zf_ring *ring,
			const struct zf_report *report)
{
	const struct zf_check_options options = {.data = check->options->data};
	const struct zf_super *newest;
	struct zf_check_counts counts;
	unsigned int stepped_over;
	int r = zf_ring_newest(ring, &newest, &stepped_over);

	if (r < 0 || newest->generation == check->super->generation)
		return r;
	return zf_check_run(overlay, newest, &options, report, &counts);
}

static int check_overlay(struct zf_check *check, struct zf_dev *overlay,
			 const struct zf_report *report)
{
	struct zf_ring *ring;
	int r = zf_ring_open(overlay, report, &ring);

	if (r < 0)
		return r;
	r = check_newest(check, overlay, ring, report);
	zf_ring_close(ring);
	return r;
}

static int judge(struct zf_check *check, int r)
{
	if (r == -ENOMEM)
		return r;
	if (r == -EFBIG)
		zf_report(&check->report, ZF_REPORT_WARNING,
			  "the filesystem after a replay of the log was not checked: the check "
			  "needs more than %" PRIu64 " MiB of memory",
			  (uint64_t)(ZF_RECOVERED_BYTES_MAX >> 20));
	else if (r < 0)
		zf_report(&check->report, ZF_REPORT_ERROR,
			  "the filesystem cannot be mounted read-write: %s", strerror(-r));
	return 0;
}

int zf_check_replay(struct zf_check *check)
{
	const struct zf_report report = {.fn = forward_error, .arg = check};
	struct zf_dev *overlay;
	int r = zf_recovered_open(check->dev, &report, &overlay);

	if (r == 0) {
		r = check_overlay(check, overlay, &report);
		zf_dev_close(overlay);
	}
	return judge(check, r);
}
