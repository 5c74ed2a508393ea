/* SPDX-License-Identifier: MIT */
#include "image.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "transfer/copy.h"
#include "io/image.h"
#include "probe.h"
#include "text.h"

enum {
	EXIT_OK = 0,
	EXIT_PROBLEMS = 1,
	EXIT_USAGE = 2,
};

struct request {
	const char *action, *source, *target;
	bool exports; /* an image is made; else one that is there, or a disk, is written */
	bool force, quiet, help;
};

static char prefix[] = "zfusectl image";
static const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};

/* ---- the command line ---- */

static int usage(const char *format, const char *what)
{
	fputs("zfusectl image: ", stderr);
	fprintf(stderr, format, what);
	fputs("\nTry 'zfusectl image --help'.\n", stderr);
	return EXIT_USAGE;
}

static void print_help(void)
{
	puts("Usage: zfusectl image export [OPTIONS] DISK FILE\n"
	     "       zfusectl image import [OPTIONS] FILE DISK\n"
	     "Copies a filesystem that is not mounted, with the zones as they are.\n"
	     "export makes an image in FILE, with the geometry of DISK. import writes to DISK,\n"
	     "whose zones must have the same size and capacity; there may be more of them.\n\n"
	     "  -f, --force  overwrite what is there\n"
	     "  -q, --quiet  print nothing but errors\n"
	     "  -h, --help   this\n\n"
	     "Exit status: 0 it was copied, 1 it was not, 2 wrong usage.");
}

static int check(const struct request *request)
{
	if (strcmp(request->action, "export") != 0 && strcmp(request->action, "import") != 0)
		return usage("export or import, not '%s'", request->action);
	if (!request->source || !request->target)
		return usage("%s: from where to where?", request->action);
	return EXIT_OK;
}

static int parse(int argc, char **argv, struct request *request)
{
	static const struct option options[] = {
		{"force", no_argument, NULL, 'f'},
		{"quiet", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "fqh", options, NULL)) != -1) {
		switch (c) {
		case 'f':
			request->force = true;
			break;
		case 'q':
			request->quiet = true;
			break;
		case 'h':
			request->help = true;
			return EXIT_OK;
		default:
			fputs("Try 'zfusectl image --help'.\n", stderr);
			return EXIT_USAGE;
		}
	}
	if (optind == argc)
		return usage("%s", "export or import?");
	if (optind + 3 < argc)
		return usage("too many arguments: '%s'", argv[optind + 3]);
	request->action = argv[optind];
	request->exports = strcmp(request->action, "export") == 0;
	request->source = optind + 1 < argc ? argv[optind + 1] : NULL;
	request->target = optind + 2 < argc ? argv[optind + 2] : NULL;
	return check(request);
}

/* ---- the target ---- */

/* Nobody waits ten seconds to hear that a file is in use by this very command. */
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

static void show_progress(void *arg, uint64_t done, uint64_t total)
{
	unsigned int percent = total ? (unsigned int)(done * 100 / total) : 100, *shown = arg;

	if (percent == *shown)
		return;
	*shown = percent;
	fprintf(stderr, "\r%3u %%%s", percent, done == total ? "\n" : "");
}

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
	unsigned int shown = 0;
	struct zf_copy_progress progress = {.arg = &shown};
	struct zf_dev *to;
	int r = open_target(request, disk, from, &to);

	if (r < 0)
		return r;
	if (!request->quiet && isatty(STDERR_FILENO))
		progress.fn = show_progress;
	r = zf_fs_copy(from, to, &progress, &report);
	if (r == 0 && !request->quiet)
		print_result(request, from, to);
	zf_dev_close(to);
	return r;
}

/* What was there is overwritten only by a source that can be copied. */
static int copy_from(const struct request *request, struct zf_dev *from)
{
	bool was_there = access(request->target, F_OK) == 0;
	struct zf_disk disk;
	int r = zf_fs_copy_check(from, &report);

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

int zf_image_main(int argc, char **argv)
{
	const struct zf_open_options options = {
		.read_only = true,
		.lock_wait_ms = ZF_PROBE_LOCK_WAIT_MS,
	};
	struct request request = {0};
	int status = parse(argc, argv, &request), r;
	struct zf_dev *from;

	if (status != EXIT_OK)
		return status;
	if (request.help) {
		print_help();
		return EXIT_OK;
	}
	if (is_same(&request) || zf_dev_open(request.source, &options, &report, &from) < 0)
		return EXIT_PROBLEMS;
	r = copy_from(&request, from);
	zf_dev_close(from);
	if (r < 0 || fflush(stdout) != 0 || ferror(stdout))
		return EXIT_PROBLEMS;
	return EXIT_OK;
}
