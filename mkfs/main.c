/* SPDX-License-Identifier: MIT */
/* mkfs.zfuse: looks at what is there, asks nothing, makes the filesystem, says what it made. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>
#include <uuid.h>

#include "base/hash.h"
#include "io/image.h"
#include "mkfs.h"
#include "probe.h"

static char name[] = MKFS_NAME;
static const struct zf_report report = {.fn = zf_report_stderr, .arg = name};

/* ---- what the library does not make up ---- */

/*
 * SOURCE_DATE_EPOCH is how builds ask for output that is the same every time. -1: not set, -EINVAL:
 * not a time.
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

/* No secrets any more: whoever reads the UUID can compute them. */
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

static int fill_options(const struct mkfs_args *args, struct zf_format_options *ret_options)
{
	struct zf_format_options options = {
		.node_size = args->node_size,
		.metadata_copies = args->metadata_copies,
	};
	int64_t seconds = fixed_time();

	if (seconds == -EINVAL)
		return -EINVAL;
	memcpy(options.label, args->label, sizeof(options.label));
	if (args->has_fsid)
		memcpy(options.fsid, args->fsid, sizeof(options.fsid));
	else
		uuid_generate_random(options.fsid);
	options.now_ns = seconds < 0 ? now_ns() : seconds * 1000000000;
	if (args->has_fsid && seconds >= 0) {
		derive_secrets(&options);
	} else {
		int r = make_secrets(&options);

		if (r < 0)
			return r;
		options.root_uid = getuid();
		options.root_gid = getgid();
	}
	*ret_options = options;
	return 0;
}

/* ---- the device ---- */

/* Exits with what was found unless --force: mkfs never asks. */
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

static int create_image(const struct mkfs_args *args, const struct zf_geometry *geometry)
{
	const struct zf_open_options options = {.lock_wait_ms = ZF_PROBE_LOCK_WAIT_MS};
	int r = zf_image_create(args->device, geometry, args->force, &options, &report);

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

/* On a device that is there. */
static enum mkfs_exit make_on_device(const struct mkfs_args *args,
				     const struct zf_format_options *options, const char *replaced)
{
	struct zf_format_plan plan;
	struct mkfs_result result = {
		.args = args, .options = options, .plan = &plan, .replaced = replaced};
	enum mkfs_exit exit_code = MKFS_FAILED;
	struct zf_dev *dev;

	if (open_device(args, &dev) < 0)
		return MKFS_FAILED;
	result.geometry = zf_dev_geometry(dev);
	result.backend = zf_dev_kind(dev);
	result.append = zf_append_mode_name(zf_dev_append_mode(dev));
	if (zf_format_check(result.geometry, options, &report, &plan) == 0 &&
	    (args->dry_run || zf_fs_format(dev, options, &report) == 0))
		exit_code = print(&result);
	zf_dev_close(dev);
	return exit_code;
}

/* The check comes first: what does not do must not cost anybody their file. */
static enum mkfs_exit make_image(const struct mkfs_args *args,
				 const struct zf_format_options *options,
				 const struct zf_geometry *geometry, const char *replaced)
{
	struct zf_format_plan plan;
	const struct mkfs_result result = {.args = args,
					   .geometry = geometry,
					   .backend = "image",
					   .append = zf_append_mode_name(ZF_APPEND_EMULATED),
					   .options = options,
					   .plan = &plan,
					   .replaced = replaced};

	if (zf_format_check(geometry, options, &report, &plan) < 0)
		return MKFS_FAILED;
	if (args->dry_run)
		return print(&result);
	if (create_image(args, geometry) < 0)
		return MKFS_FAILED;
	return make_on_device(args, options, replaced);
}

int main(int argc, char **argv)
{
	struct zf_format_options options;
	struct zf_geometry geometry;
	struct zf_disk disk;
	char found[256] = "";
	struct mkfs_args args;
	enum mkfs_exit exit_code;

	if (!mkfs_parse_args(argc, argv, &args, &exit_code))
		return exit_code;
	if (args.image && zf_image_parse_geometry(args.image, &report, &geometry) < 0)
		return MKFS_USAGE;
	if (zf_probe_disk(args.device, args.image != NULL, &report, &disk) < 0)
		return MKFS_FAILED;
	exit_code = check_contents(&args, &disk, found, sizeof(found));
	if (exit_code != MKFS_OK)
		return exit_code;
	if (fill_options(&args, &options) < 0)
		return MKFS_FAILED;
	return args.image ? make_image(&args, &options, &geometry, found)
			  : make_on_device(&args, &options, found);
}
