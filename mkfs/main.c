/* SPDX-License-Identifier: MIT */
/*
 * mkfs.zfuse: checks the old content, asks no question, makes the filesystem, and prints what it
 * made.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <uuid.h>

#include "base/hash.h"
#include "io/image.h"
#include "io/zone_rules.h"
#include "mkfs.h"
#include "probe.h"

static char name[] = MKFS_NAME;
static const struct zf_report report = {.fn = zf_report_stderr, .arg = name};

struct mkfs_job {
	const struct mkfs_args *args;
	struct zf_format_options options;
	struct zf_geometry geometry; /* of the image that is to be created */
	bool wants_size;	     /* geometry.zone_count is still to be computed */
	bool is_fixed;		     /* the same output every time: nothing is random */
	int64_t latest_ns;	     /* SOURCE_DATE_EPOCH, or -1 */
	struct mkfs_tree tree;	     /* of --rootdir */
	struct mkfs_content content;
	const char *replaced;
};

/* ---- values that the library leaves to its caller ---- */

/*
 * The time of SOURCE_DATE_EPOCH, by which builds ask for output that is the same every time. -1:
 * not set; -EINVAL: not a time.
 */
static int64_t fixed_time(void)
{
	const char *text = getenv("SOURCE_DATE_EPOCH");
	long long seconds;
	char *end;

	if (!text)
		return -1;
	errno = 0;
	seconds = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || seconds < 0 ||
	    seconds > INT64_MAX / 1000000000 - 1) {
		mkfs_error("SOURCE_DATE_EPOCH is '%s', expected seconds since 1970", text);
		return -EINVAL;
	}
	return seconds;
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int make_secrets(struct zf_format_options *options)
{
	if (getrandom(&options->dir_hash_seed, sizeof(options->dir_hash_seed), 0) < 0 ||
	    getrandom(options->log_secret, sizeof(options->log_secret), 0) < 0) {
		mkfs_error("no random numbers: %s", strerror(errno));
		return -EIO;
	}
	return 0;
}

/* These values are not secret any more, because everybody who reads the UUID can compute them. */
static void derive_secrets(struct zf_format_options *options)
{
	const size_t len = sizeof(options->fsid);

	options->dir_hash_seed = zf_hash64_seed(options->fsid, len, 0);
	for (uint64_t i = 0; i < sizeof(options->log_secret) / 8; i++) {
		uint64_t part = zf_hash64_seed(options->fsid, len, 1 + i);

		for (unsigned int b = 0; b < 8; b++)
			options->log_secret[8 * i + b] = (uint8_t)(part >> 8 * b);
	}
}

static int fill_options(struct mkfs_job *job)
{
	const struct mkfs_args *args = job->args;
	struct zf_format_options *options = &job->options;
	int64_t seconds = fixed_time();

	if (seconds == -EINVAL)
		return -EINVAL;
	options->node_size = args->node_size;
	options->metadata_copies = args->metadata_copies;
	memcpy(options->label, args->label, sizeof(options->label));
	if (args->has_fsid)
		memcpy(options->fsid, args->fsid, sizeof(options->fsid));
	else
		uuid_generate_random(options->fsid);
	job->latest_ns = seconds < 0 ? -1 : seconds * 1000000000;
	options->now_ns = seconds < 0 ? now_ns() : job->latest_ns;
	job->is_fixed = args->has_fsid && seconds >= 0;
	if (job->is_fixed) {
		derive_secrets(options);
		return 0;
	}
	options->root_uid = getuid();
	options->root_gid = getgid();
	return make_secrets(options);
}

/* ---- the device ---- */

/* Refuses a device with content unless --force is given: mkfs never asks. */
static enum mkfs_exit check_contents(const struct mkfs_args *args, const struct zf_disk *disk,
				     char *found, size_t size)
{
	int r = zf_probe_contents(disk, args->image != NULL, &report, found, size);

	if (r < 0)
		return MKFS_FAILED;
	if (r == 0 || args->force)
		return MKFS_OK;
	mkfs_error("%s has %s: give -f to overwrite it", args->device, found);
	return MKFS_FAILED;
}

static int create_image(const struct mkfs_job *job)
{
	const struct zf_open_options options = {
		.lock_wait_ms = ZF_PROBE_LOCK_WAIT_MS,
		.image_uuid = job->is_fixed ? job->options.fsid : NULL,
	};
	const struct mkfs_args *args = job->args;
	int r = zf_image_create(args->device, &job->geometry, args->force, &options, &report);

	if (r == -EEXIST)
		mkfs_error("give -f to overwrite %s", args->device);
	return r;
}

static int open_device(const struct mkfs_args *args, struct zf_dev **ret_dev)
{
	const struct zf_open_options options = {
		.read_only = args->dry_run,
		.lock_wait_ms = ZF_PROBE_LOCK_WAIT_MS,
	};

	return zf_dev_open(args->device, &options, &report, ret_dev);
}

/* ---- the steps ---- */

static enum mkfs_exit print(const struct mkfs_result *result)
{
	if (result->args->quiet)
		return MKFS_OK;
	if (!result->args->json) {
		mkfs_print_text(result);
	} else if (mkfs_print_json(result) < 0) {
		mkfs_error("no memory to print the result");
		return MKFS_FAILED;
	}
	if (fflush(stdout) == 0)
		return MKFS_OK;
	mkfs_error("the result cannot be printed: %s", strerror(errno));
	return MKFS_FAILED;
}

static enum mkfs_exit check(const struct mkfs_job *job, struct mkfs_result *result,
			    struct zf_format_plan *ret_plan)
{
	if (zf_format_check(result->geometry, &job->options, &report, ret_plan) < 0)
		return MKFS_FAILED;
	if (!job->args->rootdir)
		return MKFS_OK;
	result->copied = &job->content;
	if (mkfs_check_room(&job->tree, &job->content, result->geometry, ret_plan) < 0)
		return MKFS_FAILED;
	return MKFS_OK;
}

static int fill(struct zf_dev *dev, const struct mkfs_job *job, const struct mkfs_result *result,
		struct mkfs_content *ret_copied)
{
	const struct mkfs_fill fill = {.tree = &job->tree, .latest_ns = job->latest_ns};
	int r = mkfs_fill(dev, &fill, &report, ret_copied);

	if (r == -ENOSPC)
		mkfs_tell_size(&job->tree, &job->content, result->geometry, result->plan);
	return r;
}

static enum mkfs_exit make_on(struct zf_dev *dev, const struct mkfs_job *job,
			      struct mkfs_result *result)
{
	struct mkfs_content copied;
	struct zf_format_plan plan;
	enum mkfs_exit exit_code = check(job, result, &plan);

	if (exit_code != MKFS_OK)
		return exit_code;
	result->plan = &plan;
	if (job->args->dry_run)
		return print(result);
	if (zf_fs_format(dev, &job->options, &report) < 0)
		return MKFS_FAILED;
	if (job->args->rootdir) {
		if (fill(dev, job, result, &copied) < 0)
			return MKFS_FAILED;
		result->copied = &copied;
	}
	return print(result);
}

/* Makes the filesystem on an existing device. */
static enum mkfs_exit make_on_device(const struct mkfs_job *job)
{
	struct mkfs_result result = {
		.args = job->args, .options = &job->options, .replaced = job->replaced};
	enum mkfs_exit exit_code;
	struct zf_dev *dev;

	if (open_device(job->args, &dev) < 0)
		return MKFS_FAILED;
	result.geometry = zf_dev_geometry(dev);
	result.backend = zf_dev_kind(dev);
	result.append = zf_append_mode_name(zf_dev_append_mode(dev));
	exit_code = make_on(dev, job, &result);
	zf_dev_close(dev);
	return exit_code;
}

/* The check comes first, so that a request that cannot succeed does not overwrite a user's file. */
static enum mkfs_exit make_image(const struct mkfs_job *job)
{
	bool is_new = access(job->args->device, F_OK) < 0;
	struct zf_format_plan plan;
	struct mkfs_result result = {.args = job->args,
				     .geometry = &job->geometry,
				     .backend = "image",
				     .append = zf_append_mode_name(ZF_APPEND_EMULATED),
				     .options = &job->options,
				     .plan = &plan,
				     .replaced = job->replaced};
	enum mkfs_exit exit_code = check(job, &result, &plan);

	if (exit_code != MKFS_OK)
		return exit_code;
	if (job->args->dry_run)
		return print(&result);
	if (create_image(job) < 0)
		return MKFS_FAILED;
	exit_code = make_on_device(job);
	if (exit_code != MKFS_OK && is_new)
		unlink(job->args->device);
	return exit_code;
}

/* ---- what to make ---- */

/* With --rootdir the size may be omitted: it is computed later. */
static int parse_image(struct mkfs_job *job)
{
	const struct mkfs_args *args = job->args;
	int r;

	if (!args->rootdir)
		return zf_image_parse_geometry(args->image, &report, &job->geometry);
	r = zf_image_parse_zones(args->image, ZF_ZONE_COUNT_MIN, &report, &job->geometry);
	job->wants_size = r == 0;
	return r;
}

static int compute_size(struct mkfs_job *job)
{
	struct zf_format_plan plan;
	uint64_t zones;
	int r = zf_format_check(&job->geometry, &job->options, &report, &plan);

	if (r < 0)
		return r;
	zones = mkfs_zones_for(&job->content, &job->geometry, &plan);
	if (zones > ZF_ZONE_COUNT_MAX) {
		mkfs_error("%s needs %" PRIu64
			   " zones, but at most %u are possible: choose a larger zone-size",
			   job->args->rootdir, zones, ZF_ZONE_COUNT_MAX);
		return -EINVAL;
	}
	job->geometry.zone_count = (uint32_t)zones;
	return 0;
}

static int prepare_tree(struct mkfs_job *job, char path[PATH_MAX])
{
	const struct mkfs_args *args = job->args;
	struct stat st;
	int r;

	job->tree = (struct mkfs_tree){.dir = path, .device = args->device};
	if (!realpath(args->rootdir, path) || stat(path, &st) < 0) {
		mkfs_error("%s: %s", args->rootdir, strerror(errno));
		return -ENOENT;
	}
	if (!S_ISDIR(st.st_mode)) {
		mkfs_error("%s is not a directory", args->rootdir);
		return -ENOTDIR;
	}
	mkfs_catch_signals();
	r = mkfs_count_tree(&job->tree, &job->content);
	return r == 0 && job->wants_size ? compute_size(job) : r;
}

int main(int argc, char **argv)
{
	struct mkfs_args args;
	struct mkfs_job job = {.args = &args};
	char found[256] = "", path[PATH_MAX];
	struct zf_disk disk;
	enum mkfs_exit exit_code;

	if (!mkfs_parse_args(argc, argv, &args, &exit_code))
		return exit_code;
	if (args.image && parse_image(&job) < 0)
		return MKFS_USAGE;
	if (zf_probe_disk(args.device, args.image != NULL, &report, &disk) < 0)
		return MKFS_FAILED;
	exit_code = check_contents(&args, &disk, found, sizeof(found));
	if (exit_code != MKFS_OK)
		return exit_code;
	job.replaced = found;
	if (fill_options(&job) < 0)
		return MKFS_FAILED;
	if (args.rootdir && prepare_tree(&job, path) < 0)
		return MKFS_FAILED;
	return args.image ? make_image(&job) : make_on_device(&job);
}
