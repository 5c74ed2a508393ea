/* SPDX-License-Identifier: MIT */
#include "repair/repair.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "check/check.h"
#include "fs/core/fs.h"
#include "io/overlay.h"
#include "repair/state.h"

#define CACHE_BYTES (UINT64_C(16) << 20)

/* Most memory for a try. Together with the tables it should stay below 512 MiB. */
#define TRY_BYTES (UINT64_C(256) << 20)

/* ---- one repair ---- */

static void deinit(struct zf_repair *repair)
{
	zf_repair_end(repair);
	zf_repair_forget_waiting(repair);
	zf_salvage_close(repair->salvage);
	zf_ring_close(repair->ring);
	zf_vector_deinit(&repair->zones);
	zf_vector_deinit(&repair->inodes);
	zf_vector_deinit(&repair->names);
	zf_vector_deinit(&repair->claims);
	zf_vector_deinit(&repair->xattrs);
	zf_vector_deinit(&repair->orphans);
	zf_vector_deinit(&repair->intents);
	zf_vector_deinit(&repair->by_address);
	zf_vector_deinit(&repair->made_names);
}

static int decide(struct zf_repair *repair)
{
	int r = zf_repair_open(repair);

	if (r == 0)
		r = zf_repair_gather(repair);
	if (r == 0)
		r = zf_repair_find_nodes(repair);
	if (r == 0)
		r = zf_repair_decide_names(repair);
	if (r == 0)
		r = zf_repair_decide_lost(repair);
	if (r == 0)
		r = zf_repair_decide_space(repair);
	if (r == 0)
		zf_repair_decide_log(repair);
	return r;
}

static int write_all(struct zf_repair *repair)
{
	int r;

	repair->super.inode_count = repair->counts.inodes;
	r = zf_repair_pin(repair);
	if (r == 0)
		r = zf_repair_reset_left(repair);
	if (r == 0)
		r = zf_repair_begin(repair);
	if (r == 0)
		r = zf_repair_write_files(repair);
	if (r == 0)
		r = zf_repair_write_space(repair);
	return r < 0 ? r : zf_repair_finish(repair);
}

/* What the runs of one zf_repair_run() have in common: the tries and the final repair. */
struct job {
	struct zf_dev *dev; /* or an overlay */
	const struct zf_repair_options *options;
	const struct zf_report *report;
	struct zf_repair_meter *meter;
	bool is_try;
};

static int run(const struct job *job, const struct zf_repair_options *options, bool keep_log,
	       struct zf_repair_counts *ret_counts)
{
	struct zf_repair repair = {
		.dev = job->dev,
		.report = job->report,
		.options = options,
		.keep_log = keep_log,
		.is_try = job->is_try,
		.meter = job->meter,
		.zones = ZF_VECTOR(struct zf_repair_zone),
		.inodes = ZF_VECTOR(struct zf_repair_inode),
		.names = ZF_VECTOR(struct zf_repair_name),
		.claims = ZF_VECTOR(struct zf_repair_claim),
		.xattrs = ZF_VECTOR(struct zf_repair_xattr),
		.orphans = ZF_VECTOR(uint64_t),
		.intents = ZF_VECTOR(struct zf_disk_intent),
		.by_address = ZF_VECTOR(struct zf_repair_claim *),
		.made_names = ZF_VECTOR(struct zf_repair_made_name),
	};
	int r;

	zf_repair_tell_init(&repair);
	r = decide(&repair);
	if (r == 0)
		r = write_all(&repair);
	if (r == 0)
		*ret_counts = repair.counts;
	deinit(&repair);
	return r;
}

/* ---- trying it out ---- */

struct first_error {
	char text[320];
};

static void note_first(void *arg, enum zf_report_level level, const char *message)
{
	struct first_error *first = arg;

	if (level == ZF_REPORT_ERROR && first->text[0] == '\0')
		snprintf(first->text, sizeof(first->text), "%s", message);
}

/* Counts the errors that fsck -n would find. */
static int check(struct zf_dev *dev, const struct zf_progress *progress, struct first_error *first,
		 uint64_t *ret_errors)
{
	const struct zf_check_options options = {.replay = true, .progress = progress};
	const struct zf_report report = {.fn = note_first, .arg = first};
	struct zf_check_counts counts;
	const struct zf_super *super;
	unsigned int stepped_over;
	struct zf_ring *ring;
	int r = zf_ring_open(dev, &report, &ring);

	if (r < 0)
		return r;
	r = zf_ring_newest(ring, &super, &stepped_over);
	if (r == 0)
		r = zf_check_run(dev, super, &options, &report, &counts);
	if (r == 0)
		*ret_errors = counts.errors;
	zf_ring_close(ring);
	return r;
}

/* ---- with the log, or without ---- */

/* The plans, in the order in which they are tried. */
enum plan {
	PLAN_KEEP,   /* the log stays, for a mount to replay */
	PLAN_REPLAY, /* the log is replayed on the new trees, and the result is repaired again */
	PLAN_DROP,   /* the log is given up */
	PLANS,
};

static int replay(struct zf_dev *dev, const struct zf_report *report)
{
	const struct zf_mount_options options = {.cache_bytes = CACHE_BYTES};
	struct zf_fs *fs;
	int r = zf_fs_mount(dev, &options, report, &fs);

	return r < 0 ? r : zf_fs_unmount(fs);
}

static int carry_out(const struct job *job, enum plan plan, struct zf_repair_counts *ret_counts)
{
	const struct zf_repair_options newest = {.dirty_bytes = job->options->dirty_bytes};
	struct zf_repair_counts counts;
	int r;

	job->meter->is_try = job->is_try;
	r = run(job, job->options, plan != PLAN_DROP, &counts);
	if (r < 0)
		return r;
	if (plan == PLAN_REPLAY) {
		uint64_t changes = counts.changes;

		r = replay(job->dev, job->report);
		if (r == 0)
			r = run(job, &newest, true, &counts);
		if (r < 0)
			return r;
		counts.changes += changes;
	}
	*ret_counts = counts;
	return 0;
}

/* 0: the plan leaves *ret_errors errors. -EFBIG: the try takes too much memory. */
static int try(const struct job *job, enum plan plan, struct first_error *first,
	       uint64_t *ret_errors)
{
	const struct zf_report report = {.fn = note_first, .arg = first};
	struct job trial = {
		.options = job->options, .report = &report, .meter = job->meter, .is_try = true};
	struct zf_repair_counts counts;
	uint64_t bytes_max = job->options->try_bytes ? job->options->try_bytes : TRY_BYTES;
	int r = zf_overlay_open(job->dev, bytes_max, &report, &trial.dev);

	if (r < 0)
		return r;
	r = carry_out(&trial, plan, &counts);
	if (r == 0)
		r = check(trial.dev, &job->meter->check.progress, first, ret_errors);
	if (r < 0 && zf_overlay_is_full(trial.dev))
		r = -EFBIG;
	zf_dev_close(trial.dev);
	return r;
}

static int give_up(struct zf_dev *dev, int r, const struct first_error *first,
		   const struct zf_report *report)
{
	if (first->text[0] != '\0')
		zf_report(report, ZF_REPORT_ERROR, "%s", first->text);
	else if (r < 0)
		zf_report(report, ZF_REPORT_ERROR, "%s: cannot be repaired: %s", zf_dev_path(dev),
			  strerror(-r));
	if (r < 0)
		return r;
	zf_report(report, ZF_REPORT_ERROR,
		  "%s: the repaired filesystem would still have errors; nothing was changed. Copy "
		  "the files out with 'zfusectl restore'",
		  zf_dev_path(dev));
	return -EUCLEAN;
}

/*
 * Chooses the first plan that leaves no errors; or else the plan that leaves the fewest, if these
 * are fewer than now. If there is no such plan, reports the reason and returns an error.
 */
static int choose_plan(const struct job *job, enum plan *ret_plan)
{
	struct first_error first;
	uint64_t errors = 0, fewest = UINT64_MAX;
	int r = 0;

	for (enum plan plan = PLAN_KEEP; plan < PLANS; plan++) {
		first = (struct first_error){0};
		r = try(job, plan, &first, &errors);
		if (r == 0 && errors < fewest) {
			fewest = errors;
			*ret_plan = plan;
		}
		/* Too large for a try in memory: takes the plan that is right most often. */
		if (r == -EFBIG)
			*ret_plan = PLAN_KEEP;
		if (r == -EFBIG || (r == 0 && errors == 0))
			return 0;
		if (r == -ENOSPC || r == -ENOMEM || r == -EPROTONOSUPPORT || r == -ENODEV)
			break;
	}
	/* No repair restores data that the device has lost; everything else is repaired. */
	if (fewest < UINT64_MAX && check(job->dev, NULL, &first, &errors) == 0 && fewest < errors)
		return 0;
	return give_up(job->dev, r, &first, job->report);
}

int zf_repair_run(struct zf_dev *dev, const struct zf_repair_options *options,
		  const struct zf_report *report, struct zf_repair_counts *ret_counts)
{
	struct zf_repair_meter meter;
	const struct job job = {.dev = dev, .options = options, .report = report, .meter = &meter};
	enum plan plan = PLAN_KEEP;
	int r;

	zf_repair_meter_init(&meter, options->progress);
	r = choose_plan(&job, &plan);
	if (r == 0)
		r = carry_out(&job, plan, ret_counts);
	if (r == 0)
		zf_repair_meter_end(&meter);
	return r;
}
