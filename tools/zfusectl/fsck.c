/* SPDX-License-Identifier: MIT */
/*
 * fsck.zfuse: the program that fsck(8) runs. It checks like `zfusectl check`. On request it then
 * replays the log (-p), or repairs (-y, repair/repair.h), and checks again.
 */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "ctl/json.h"
#include "fs/core/fs.h"
#include "meter.h"
#include "repair/repair.h"
#include "superblock/ring.h"
#include "target.h"
#include "text.h"

/* Exit status of fsck(8): the bits are or-ed. */
enum {
	FSCK_OK = 0,
	FSCK_CORRECTED = 1,
	FSCK_ERRORS_LEFT = 4,
	FSCK_OPERATIONAL = 8,
	FSCK_USAGE = 16,
	FSCK_CANCELLED = 32,
};

enum mode {
	MODE_LOOK,   /* -n */
	MODE_PREEN,  /* -p, -a */
	MODE_REPAIR, /* -y */
};

/* fsck(8) and systemd-fsck show all passes as one bar, most of which is the first pass. */
enum pass {
	PASS_CHECK = 1,
	PASS_REPAIR,
	PASS_CHECK_AFTER,
};

struct fsck {
	const char *path;
	enum mode mode;
	bool has_mode, check_data, json, verbose;
	uint64_t generation; /* 0: the newest */
	bool is_lost;	     /* no superblock record has that generation: a repair may find it */
	int progress_fd;     /* -1: no progress is shown; 0: on the terminal */
	struct zf_meter meter;
	enum pass pass;
	uint64_t errors, data_errors; /* of the last check; `errors` includes data_errors */
	const struct zf_report *report;
	struct zf_target target;
	struct zf_super super; /* of `generation` */
	struct json_object *answer;
	struct json_object *messages; /* of the repair */
};

/* ---- progress, in the format of e2fsck ---- */

static void begin_pass(struct fsck *fsck, enum pass pass)
{
	fsck->pass = pass;
	/* The stages of a repair have different units, so only a percentage is shown. */
	zf_meter_begin(&fsck->meter, ZF_METER_LINE, pass == PASS_REPAIR ? NULL : "bytes");
}

static void tell_progress(void *arg, uint64_t done, uint64_t total)
{
	struct fsck *fsck = arg;

	if (fsck->progress_fd == 0)
		zf_meter_update(&fsck->meter, done, total);
	else if (fsck->progress_fd > 0)
		dprintf(fsck->progress_fd, "%d %" PRIu64 " %" PRIu64 " %s\n", (int)fsck->pass, done,
			total, fsck->path);
}

static int take_part(void *arg, struct json_object *part)
{
	struct json_object *progress = zf_text_member(part, "progress");

	tell_progress(arg, zf_text_u64(progress, "done"), zf_text_u64(progress, "total"));
	return 0;
}

/* ---- checking ---- */

static struct json_object *make_request(const struct fsck *fsck)
{
	struct json_object *request = json_object_new_object();

	zf_json_add_bool(request, "data", fsck->check_data);
	zf_json_add_bool(request, "progress", true);
	return request;
}

/* A repair looks for the generation's root node, and reports an error if there is none. */
static int choose_lost_generation(struct fsck *fsck, int error)
{
	if (error == -ENOENT && fsck->mode == MODE_REPAIR) {
		fsck->is_lost = true;
		return 0;
	}
	zf_report(fsck->report, ZF_REPORT_ERROR,
		  "%s: there is no superblock of generation %" PRIu64
		  "; 'zfusectl super' lists the existing ones",
		  fsck->path, fsck->generation);
	return error;
}

static int choose_generation(struct fsck *fsck)
{
	int r;

	if (fsck->generation == 0)
		return 0;
	if (!fsck->target.mounted && !fsck->target.ring)
		return choose_lost_generation(fsck, -ENOENT);
	if (fsck->target.mounted) {
		zf_report(fsck->report, ZF_REPORT_ERROR,
			  "%s: only the newest state of what is mounted can be checked",
			  fsck->path);
		return -EINVAL;
	}
	r = zf_ring_find(fsck->target.ring, fsck->generation, &fsck->super);
	if (r < 0)
		return choose_lost_generation(fsck, r);
	if (fsck->target.source.super &&
	    fsck->target.source.super->generation == fsck->generation) {
		fsck->generation = 0;
		return 0;
	}
	fsck->target.source.super = &fsck->super;
	fsck->target.source.older = true;
	return 0;
}

/* A filesystem that cannot be checked counts as one error. */
static int check(struct fsck *fsck, enum pass pass)
{
	const struct zf_control_parts parts = {.take = take_part, .arg = fsck};
	struct json_object *request, *result = NULL;
	struct zf_text text = {.out = stdout};
	int r;

	fsck->errors = 1;
	fsck->data_errors = 0;
	if (!fsck->target.mounted && !fsck->target.source.super) {
		zf_report(fsck->report, ZF_REPORT_ERROR, "%s: no superblock record is valid",
			  fsck->path);
		return 0;
	}
	request = make_request(fsck);
	begin_pass(fsck, pass);
	r = zf_target_run(&fsck->target, zf_report_find("check"), request, &parts, &result);
	zf_meter_end(&fsck->meter);
	json_object_put(request);
	if (r < 0)
		return r == -EUCLEAN ? 0 : r;
	fsck->errors = zf_text_u64(result, "errors");
	fsck->data_errors = zf_text_u64(result, "data_errors");
	if (!fsck->json)
		zf_text_print(&text, zf_text_check, result, true);
	zf_json_add(fsck->answer, pass == PASS_CHECK ? "check" : "after", result);
	return 0;
}

/* ---- replaying ---- */

static bool has_log(const struct fsck *fsck)
{
	return !fsck->target.mounted && fsck->target.source.super &&
	       !fsck->target.source.super->clean;
}

/* Replays the log by a mount and an unmount. */
static int replay(struct fsck *fsck)
{
	const struct zf_mount_options options = {0};
	struct zf_fs *fs;
	int r = zf_fs_mount(fsck->target.dev, &options, fsck->report, &fs);

	if (r == 0)
		r = zf_fs_unmount(fs);
	if (r < 0)
		zf_report(fsck->report, ZF_REPORT_ERROR, "%s: replaying the log failed: %s",
			  fsck->path, strerror(-r));
	else if (!fsck->json)
		printf("%s: the log of the last mount was replayed\n", fsck->path);
	zf_target_reread(&fsck->target);
	return r;
}

/* ---- repairing ---- */

static void take_message(void *arg, enum zf_report_level level, const char *message)
{
	struct fsck *fsck = arg;

	zf_meter_wipe(&fsck->meter);
	if (level == ZF_REPORT_ERROR)
		zf_report(fsck->report, level, "%s", message);
	else if (fsck->json)
		zf_json_push(fsck->messages, json_object_new_string(message));
	else
		printf("%s\n", message);
}

static void add_counts(struct fsck *fsck, const struct zf_repair_counts *counts)
{
	struct json_object *repair = json_object_new_object();

	zf_json_add_u64(repair, "generation", counts->generation);
	zf_json_add_u64(repair, "changes", counts->changes);
	zf_json_add_u64(repair, "inodes", counts->inodes);
	zf_json_add_u64(repair, "names", counts->names);
	zf_json_add_u64(repair, "extents", counts->extents);
	zf_json_add_u64(repair, "lost_and_found", counts->lost_and_found);
	zf_json_add_u64(repair, "unverified_blocks", counts->unverified_blocks);
	zf_json_add_bool(repair, "log_dropped", counts->log_dropped);
	zf_json_add(repair, "messages", json_object_get(fsck->messages));
	zf_json_add(fsck->answer, "repair", repair);
	if (fsck->json)
		return;
	printf("repaired as generation %" PRIu64 ": %" PRIu64 " changes, %" PRIu64
	       " inodes in lost+found, %" PRIu64 " blocks unverified\n",
	       counts->generation, counts->changes, counts->lost_and_found,
	       counts->unverified_blocks);
	if (fsck->verbose)
		printf("kept %" PRIu64 " inodes, %" PRIu64 " names, %" PRIu64 " extents\n",
		       counts->inodes, counts->names, counts->extents);
}

static int repair(struct fsck *fsck)
{
	const struct zf_progress progress = {.fn = tell_progress, .arg = fsck};
	const struct zf_repair_options options = {
		.generation = fsck->generation,
		.progress = &progress,
	};
	const struct zf_report report = {.fn = take_message, .arg = fsck};
	struct zf_repair_counts counts;
	int r;

	begin_pass(fsck, PASS_REPAIR);
	r = zf_repair_run(fsck->target.dev, &options, &report, &counts);
	zf_meter_end(&fsck->meter);
	fsck->generation = 0;
	zf_target_reread(&fsck->target);
	if (r == 0)
		add_counts(fsck, &counts);
	return r;
}

/* ---- the whole ---- */

static int status_of(int error)
{
	switch (error) {
	case -EUCLEAN:
	case -ENOSPC:
	case -EPROTONOSUPPORT:
	case -EROFS:
		return FSCK_ERRORS_LEFT;
	}
	return FSCK_OPERATIONAL;
}

/* The device was open read-only for the check: a sound filesystem is not written to. */
static int open_for_writing(struct fsck *fsck)
{
	zf_target_close(&fsck->target);
	return zf_target_open_damaged(fsck->path, true, fsck->report, &fsck->target);
}

static int repair_and_check(struct fsck *fsck)
{
	int r = open_for_writing(fsck);

	if (r < 0)
		return FSCK_OPERATIONAL | FSCK_ERRORS_LEFT;
	r = repair(fsck);
	if (r == 0 && has_log(fsck))
		r = replay(fsck);
	if (r < 0)
		return status_of(r);
	r = check(fsck, PASS_CHECK_AFTER);
	if (r < 0)
		return FSCK_CORRECTED | FSCK_OPERATIONAL;
	return FSCK_CORRECTED | (fsck->errors ? FSCK_ERRORS_LEFT : 0);
}

static void tell_what_to_do(const struct fsck *fsck)
{
	if (fsck->json)
		return;
	if (fsck->errors == fsck->data_errors)
		printf("file contents are damaged, which no repair restores: restore these files "
		       "from a backup ('zfusectl path %s INODE' tells which)\n",
		       fsck->path);
	else
		printf("'fsck.zfuse -y %s' repairs it; what can be read is copied out by "
		       "'zfusectl restore %s DIRECTORY'\n",
		       fsck->path, fsck->path);
}

static int run(struct fsck *fsck)
{
	int r;

	if (fsck->is_lost)
		return repair_and_check(fsck);
	r = check(fsck, PASS_CHECK);
	if (r < 0)
		return FSCK_OPERATIONAL;
	/* With a generation given, that state becomes the newest, even if it has no errors. */
	if (fsck->mode == MODE_REPAIR && (fsck->errors > fsck->data_errors || fsck->generation))
		return repair_and_check(fsck);
	if (fsck->errors > 0) {
		tell_what_to_do(fsck);
		return FSCK_ERRORS_LEFT;
	}
	if (fsck->mode == MODE_LOOK || fsck->generation || !has_log(fsck))
		return FSCK_OK;
	r = open_for_writing(fsck);
	if (r == 0)
		r = replay(fsck);
	return r < 0 ? status_of(r) : FSCK_OK;
}

static int run_on(struct fsck *fsck)
{
	int status, r = fsck->mode == MODE_LOOK
				? zf_target_open(fsck->path, false, fsck->report, &fsck->target)
				: zf_target_open_damaged(fsck->path, false, fsck->report,
							 &fsck->target);

	if (r < 0)
		return FSCK_OPERATIONAL;
	fsck->answer = json_object_new_object();
	fsck->messages = json_object_new_array();
	r = choose_generation(fsck);
	status = r < 0 ? FSCK_OPERATIONAL : run(fsck);
	zf_json_add_u64(fsck->answer, "status", (uint64_t)status);
	if (fsck->json)
		puts(json_object_to_json_string(fsck->answer));
	json_object_put(fsck->messages);
	json_object_put(fsck->answer);
	zf_target_close(&fsck->target);
	return status;
}

/* ---- the command line ---- */

static int usage(FILE *to, int status)
{
	fputs("Usage: fsck.zfuse [OPTION]... DEVICE\n"
	      "Checks a zfuse filesystem that is not mounted, and repairs it if asked to. See\n"
	      "fsck.zfuse(8).\n\n"
	      "  -n                only look (the default)\n"
	      "  -p, -a            replay the log, as a mount does, if nothing is wrong\n"
	      "  -y                repair what is wrong\n"
	      "  -f                accepted and ignored: every check reads all metadata\n"
	      "  -v                tell more\n"
	      "  -C[FD]            tell progress, on the terminal or to this descriptor\n"
	      "      --check-data  read all file data and compare its checksums\n"
	      "      --generation N  check an older superblock record ('zfusectl super' lists "
	      "them)\n"
	      "      --format FMT  text or json\n"
	      "  -h, --help        this\n"
	      "  -V, --version     the version\n\n"
	      "Other options of fsck(8) are taken and ignored.\n"
	      "Exit status, or-ed: 0 no errors, 1 errors were corrected, 4 errors are left, 8 it\n"
	      "could not be checked, 16 wrong usage, 32 cancelled.\n",
	      to);
	return status;
}

enum {
	OPTION_DATA = 256,
	OPTION_GENERATION,
	OPTION_FORMAT,
};

/* False: another mode was set before. (-a and -p are the same mode.) */
static bool set_mode(struct fsck *fsck, enum mode mode)
{
	bool other = fsck->has_mode && fsck->mode != mode;

	fsck->has_mode = true;
	fsck->mode = mode;
	return !other;
}

static bool set_progress(struct fsck *fsck, const char *value)
{
	uint64_t fd = 0;

	if (value && zf_parse_number(value, INT_MAX, &fd) < 0)
		return false;
	fsck->progress_fd = (int)fd;
	return true;
}

/* False: the option's value is invalid, or its mode contradicts another one. */
static bool take_option(struct fsck *fsck, int c, const char *value)
{
	switch (c) {
	case 'n':
		return set_mode(fsck, MODE_LOOK);
	case 'p':
	case 'a':
		return set_mode(fsck, MODE_PREEN);
	case 'y':
		return set_mode(fsck, MODE_REPAIR);
	case 'v':
		fsck->verbose = true;
		return true;
	case 'C':
		return set_progress(fsck, value);
	case OPTION_DATA:
		fsck->check_data = true;
		return true;
	case OPTION_GENERATION:
		return zf_parse_number(value, UINT64_MAX, &fsck->generation) == 0 &&
		       fsck->generation > 0;
	case OPTION_FORMAT:
		fsck->json = strcmp(value, "json") == 0;
		return fsck->json || strcmp(value, "text") == 0;
	}
	return true;
}

/* Ends a repair like a power cut: the repair writes its superblock record last. */
static void cancel(int signal)
{
	static const char text[] = "cancelled\n";
	ssize_t n = write(STDERR_FILENO, text, sizeof(text) - 1);

	(void)n;
	(void)signal;
	_exit(FSCK_CANCELLED);
}

static void catch_signals(void)
{
	const struct sigaction action = {.sa_handler = cancel};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{"check-data", no_argument, NULL, OPTION_DATA},
		{"generation", required_argument, NULL, OPTION_GENERATION},
		{"format", required_argument, NULL, OPTION_FORMAT},
		{0}};
	static char prefix[] = "fsck.zfuse";
	const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};
	struct fsck fsck = {.report = &report, .progress_fd = -1};
	int c;

	/* The letters include options without effect that fsck(8) may pass on. */
	while ((c = getopt_long(argc, argv, "aAnpyrfvTMPRC::t:hV", options, NULL)) != -1) {
		if (c == '?' || !take_option(&fsck, c, optarg))
			return usage(stderr, FSCK_USAGE);
		if (c == 'h')
			return usage(stdout, FSCK_OK);
		if (c == 'V') {
			puts("fsck.zfuse " ZF_VERSION);
			return FSCK_OK;
		}
	}
	if (optind + 1 != argc)
		return usage(stderr, FSCK_USAGE);
	fsck.path = argv[optind];
	catch_signals();
	return run_on(&fsck);
}
