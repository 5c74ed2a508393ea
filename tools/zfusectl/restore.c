/* SPDX-License-Identifier: MIT */
#include "restore.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "check/recovered.h"
#include "ctl/ctl.h"
#include "ctl/json.h"
#include "interrupt.h"
#include "io/open.h"
#include "json_out.h"
#include "restore_internal.h"
#include "text.h"

#define LOCK_WAIT_MS 10000u

/* ---- the list ---- */

/* The path below the destination directory. The caller frees it. */
static char *path_of(const struct restore *restore, const struct restore_place *place)
{
	char *path = strdup(place->name);

	for (size_t at = place->dir; at != 0 && path;) {
		const struct restore_dir *dir = zf_vector_at(&restore->dirs, at);
		char *longer = NULL;

		if (asprintf(&longer, "%s/%s", dir->name, path) < 0)
			longer = NULL;
		free(path);
		path = longer;
		at = dir->parent;
	}
	return path;
}

void restore_tell(struct restore *restore, const struct restore_place *place, const char *format,
		  ...)
{
	_zf_free_ char *path = path_of(restore, place), *problem = NULL;
	struct json_object *object;
	va_list args;
	int n;

	va_start(args, format);
	n = vasprintf(&problem, format, args);
	va_end(args);
	if (n < 0)
		problem = NULL;
	restore->damaged++;
	if (!restore->problems) {
		printf("%s: %s\n", path ? path : place->name, problem ? problem : format);
		return;
	}
	object = json_object_new_object();
	zf_json_add_text(object, "path", path ? path : place->name);
	zf_json_add_text(object, "problem", problem ? problem : format);
	zf_json_push(restore->problems, object);
}

int restore_fail(struct restore *restore, const struct restore_place *place, const char *what)
{
	int error = errno;
	_zf_free_ char *path = path_of(restore, place);

	zf_report(restore->report, ZF_REPORT_ERROR, "%s/%s %s: %s", restore->args->operands[1],
		  path ? path : place->name, what, strerror(error));
	return error ? -error : -EIO;
}

/* ---- the destination ---- */

static bool is_empty(int fd)
{
	int copy = dup(fd);
	DIR *stream = copy < 0 ? NULL : fdopendir(copy);
	unsigned int names = 0;

	while (stream && names < 3 && readdir(stream))
		names++;
	if (stream)
		closedir(stream);
	return names == 2;
}

/* Opens the destination, which must be new or empty, so that no existing file is touched. */
static int open_base(struct restore *restore, const char *path)
{
	if (mkdir(path, 0700) < 0 && errno != EEXIST) {
		zf_report(restore->report, ZF_REPORT_ERROR, "%s cannot be made: %s", path,
			  strerror(errno));
		return -1;
	}
	restore->base = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (restore->base < 0) {
		zf_report(restore->report, ZF_REPORT_ERROR, "%s: %s", path, strerror(errno));
		return -1;
	}
	if (is_empty(restore->base))
		return 0;
	zf_report(restore->report, ZF_REPORT_ERROR,
		  "%s is not empty: name a directory that is, or one that does not exist", path);
	return -1;
}

/* ---- the source ---- */

static int open_source(const char *path, const struct zf_report *report, struct zf_dev **ret_dev)
{
	const struct zf_open_options options = {.read_only = true, .lock_wait_ms = LOCK_WAIT_MS};
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
		zf_report(report, ZF_REPORT_ERROR,
			  "%s is a directory: name the device; copy what is mounted with cp(1)",
			  path);
		return -EISDIR;
	}
	return zf_dev_open(path, &options, report, ret_dev);
}

static int open_salvage(struct restore *restore, struct zf_dev *dev, const struct zf_report *report)
{
	const struct zf_arg *generation = &restore->args->options[ZF_OPTION_GENERATION];
	const struct zf_salvage_options options = {
		.generation = generation->given ? generation->number : 0,
		.progress = &restore->progress};
	int r = zf_salvage_open(dev, &options, report, &restore->salvage);

	if (r == -ENOMEM)
		zf_report(report, ZF_REPORT_ERROR, "not enough memory");
	return r;
}

/*
 * Would a mount go on from a state as new as the salvage's? A mount takes the newest record that
 * can be read. If a power cut tore the newest record, the mount lacks one commit, and the log has
 * the operations of that commit.
 */
static bool mounts_as_new_a_state(struct restore *restore, struct zf_dev *dev)
{
	struct zf_salvage_state state;

	if (open_salvage(restore, dev, NULL) < 0)
		return false;
	zf_salvage_get_state(restore->salvage, &state);
	zf_salvage_close(restore->salvage);
	restore->salvage = NULL;
	return state.generation <= state.record_generation + 1;
}

/*
 * Mounts the filesystem on an overlay in memory, which replays what was synced after the last
 * commit. NULL: the device is read as it is, because it cannot be mounted, a mount would step over
 * a newer state, or an older state was asked for.
 */
static struct zf_dev *replay_log(struct restore *restore, struct zf_dev *dev)
{
	struct zf_dev *overlay;

	if (restore->args->options[ZF_OPTION_GENERATION].given ||
	    !mounts_as_new_a_state(restore, dev) || zf_recovered_open(dev, NULL, &overlay) < 0)
		return NULL;
	restore->replayed = true;
	return overlay;
}

/* ---- the result ---- */

static struct json_object *describe(const struct restore *restore, bool whole)
{
	struct json_object *result = json_object_new_object();
	struct zf_salvage_state state;

	zf_salvage_get_state(restore->salvage, &state);
	zf_json_add_u64(result, "generation", state.generation);
	zf_json_add_bool(result, "by_superblock", state.has_super);
	zf_json_add_bool(result, "searched", state.searched);
	zf_json_add_bool(result, "files_guessed", state.files_guessed);
	if (state.files_generation > 0)
		zf_json_add_u64(result, "files_generation", state.files_generation);
	zf_json_add_bool(result, "log_replayed", restore->replayed);
	zf_json_add_u64(result, "names", restore->files);
	zf_json_add_u64(result, "bytes", restore->bytes);
	zf_json_add_u64(result, "unverified_bytes", restore->unverified);
	zf_json_add_u64(result, "refused", restore->refused);
	zf_json_add_u64(result, "problem_count", restore->damaged);
	zf_json_add_bool(result, "whole", whole);
	zf_json_add(result, "problems", json_object_get(restore->problems));
	return result;
}

static void print_json(const struct restore *restore, bool whole)
{
	struct zf_json_out json = {.out = stdout};
	struct json_object *result = describe(restore, whole);

	zf_json_out_result(&json, result);
	json_object_put(result);
}

static void print_text(const struct restore *restore, bool whole)
{
	const char *done = restore->base < 0 ? "can be restored" : "restored";
	char bytes[ZF_TEXT_SIZE_MAX], unverified[ZF_TEXT_SIZE_MAX];
	struct zf_salvage_state state;

	zf_salvage_get_state(restore->salvage, &state);
	printf("%s: %" PRIu64 " names, %s of data, as of generation %" PRIu64 "%s\n", done,
	       restore->files, zf_text_size(restore->bytes, bytes), state.generation,
	       state.has_super ? "" : " (its superblock is lost)");
	if (state.files_generation > 0)
		printf("the tree of files is that of generation %" PRIu64
		       ": what changed later is lost\n",
		       state.files_generation);
	else if (state.files_guessed)
		puts("the root of the tree of files is lost: files that were deleted may be back");
	if (!restore->replayed)
		puts("operations in the log after that commit are missing");
	if (restore->unverified > 0)
		printf("of that, unverified (checksums lost): %s\n",
		       zf_text_size(restore->unverified, unverified));
	if (restore->refused > 0)
		printf("owners, modes or times that %s does not take: %" PRIu64 "\n",
		       restore->args->operands[1], restore->refused);
	if (restore->damaged > 0)
		printf("problems: %" PRIu64 ", listed above\n", restore->damaged);
	else if (whole)
		puts("nothing was lost");
}

static int tell_result(const struct restore *restore, int error)
{
	struct zf_salvage_state state;
	bool whole;
	int status;

	zf_salvage_get_state(restore->salvage, &state);
	whole = error == 0 && restore->damaged == 0 && restore->refused == 0 &&
		!state.files_guessed;
	if (zf_args_json(restore->args))
		print_json(restore, whole);
	else
		print_text(restore, whole);
	if (error == -EINTR)
		zf_report(restore->report, ZF_REPORT_WARNING, "interrupted");
	else if (error == -ENOMEM)
		zf_report(restore->report, ZF_REPORT_ERROR, "not enough memory");
	status = zf_args_flush(restore->args);
	return whole ? status : ZF_EXIT_PROBLEMS;
}

/* ---- the command ---- */

static int run(struct restore *restore)
{
	int r;

	restore->dirs = ZF_VECTOR(struct restore_dir);
	restore->open_dir = SIZE_MAX;
	restore->chunk_size = zf_salvage_value_max(restore->salvage);
	restore->buf = aligned_alloc(ZF_BLOCK_SIZE, RESTORE_CHUNK);
	r = restore->buf ? restore_tree(restore) : -ENOMEM;
	zf_meter_end(&restore->meter);
	restore_free_tree(restore);
	free(restore->buf);
	return tell_result(restore, r);
}

int zf_restore_main(const struct zf_args *args)
{
	static char prefix[] = "zfusectl restore";
	const struct zf_report report = {.fn = zf_report_stderr, .arg = prefix};
	struct restore restore = {.args = args, .report = &report, .base = -1};
	bool dry = args->options[ZF_OPTION_DRY_RUN].given;
	int status = ZF_EXIT_PROBLEMS;
	struct zf_dev *dev = NULL, *overlay;

	if (!dry && !args->operands[1])
		return zf_args_usage(args, "missing DIRECTORY, where to; or --dry-run");
	if (open_source(args->operands[0], &report, &dev) < 0)
		return ZF_EXIT_PROBLEMS;
	zf_interrupt_catch();
	zf_meter_init(&restore.meter, args, "bytes");
	restore.progress = (struct zf_progress){.fn = zf_meter_update, .arg = &restore.meter};
	if (zf_args_json(args))
		restore.problems = json_object_new_array();
	overlay = replay_log(&restore, dev);
	if (open_salvage(&restore, overlay ? overlay : dev, &report) == 0 &&
	    (dry || open_base(&restore, args->operands[1]) == 0))
		status = run(&restore);
	zf_meter_end(&restore.meter);
	zf_salvage_close(restore.salvage);
	json_object_put(restore.problems);
	if (restore.base >= 0)
		close(restore.base);
	zf_dev_close(overlay);
	zf_dev_close(dev);
	return status;
}
