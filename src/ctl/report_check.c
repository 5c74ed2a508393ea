/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "check/check.h"
#include "ctl/json.h"
#include "ctl/report.h"
#include "salvage/salvage.h"

/*
 * A badly damaged device has millions of errors. More messages help nobody, and the counts include
 * all errors.
 */
#define MESSAGES_MAX 1000u

struct messages {
	struct json_object *array;
	uint64_t dropped;
};

static void add_message(void *arg, enum zf_report_level level, const char *message)
{
	static const char *const levels[] = {
		[ZF_REPORT_ERROR] = "error",
		[ZF_REPORT_WARNING] = "warning",
		[ZF_REPORT_INFO] = "info",
	};
	struct messages *messages = arg;
	struct json_object *object;

	if (json_object_array_length(messages->array) >= MESSAGES_MAX) {
		messages->dropped++;
		return;
	}
	object = json_object_new_object();
	zf_json_add_text(object, "level", levels[level]);
	zf_json_add_bytes(object, "text", message, strlen(message));
	zf_json_push(messages->array, object);
}

static struct json_object *result_object(const struct zf_report_source *source,
					 const struct zf_check_counts *counts,
					 const struct messages *messages)
{
	struct json_object *result = json_object_new_object();

	zf_json_add_u64(result, "errors", counts->errors);
	zf_json_add_u64(result, "data_errors", counts->data_errors);
	zf_json_add_u64(result, "generation", source->super->generation);
	zf_json_add_u64(result, "nodes", counts->nodes);
	zf_json_add_u64(result, "inodes", counts->inodes);
	zf_json_add_u64(result, "names", counts->names);
	zf_json_add_u64(result, "extents", counts->extents);
	zf_json_add_u64(result, "data_bytes", counts->data_bytes);
	zf_json_add_u64(result, "verified_bytes", counts->verified_bytes);
	zf_json_add(result, "messages", json_object_get(messages->array));
	zf_json_add_u64(result, "messages_dropped", messages->dropped);
	return result;
}

/* ---- progress ---- */

/* The time between two progress parts. */
#define TELL_NS INT64_C(500000000)

struct teller {
	const struct zf_control_parts *parts; /* NULL: progress was not asked for */
	int64_t told_ns;
	uint64_t done, total;
};

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* A client that takes no more parts is not told again. */
static void tell(struct teller *teller)
{
	struct json_object *part = json_object_new_object();
	struct json_object *progress = json_object_new_object();

	zf_json_add_u64(progress, "done", teller->done);
	zf_json_add_u64(progress, "total", teller->total);
	zf_json_add(part, "progress", progress);
	if (teller->parts->take(teller->parts->arg, part) < 0)
		teller->parts = NULL;
	json_object_put(part);
}

static void take_progress(void *arg, uint64_t done, uint64_t total)
{
	struct teller *teller = arg;
	int64_t now = now_ns();

	teller->done = done;
	teller->total = total;
	if (!teller->parts || now - teller->told_ns < TELL_NS)
		return;
	teller->told_ns = now;
	tell(teller);
}

static int check(const struct zf_report_source *source, struct json_object *args,
		 const struct zf_report *report, struct zf_check_counts *ret_counts)
{
	struct teller teller = {.told_ns = now_ns()};
	const struct zf_progress progress = {.fn = take_progress, .arg = &teller};
	struct zf_check_options options = {
		.replay = !source->mounted && !source->older,
		.progress = &progress,
	};
	bool tells = false;
	int r = zf_json_get_bool(args, "data", &options.data);

	if (r == 0)
		r = zf_json_get_bool(args, "progress", &tells);
	if (r < 0)
		return r;
	teller.parts = tells ? source->parts : NULL;
	r = zf_check_run(source->dev, source->super, &options, report, ret_counts);
	if (r == 0 && teller.parts)
		tell(&teller);
	return r;
}

static void tell_newer(const struct zf_report_source *source, const struct zf_report *report,
		       uint64_t newer)
{
	const char *path = zf_dev_path(source->dev);

	zf_report(
		report, ZF_REPORT_WARNING,
		"the files of generation %" PRIu64
		" can be read, though its superblock record is damaged. If the power did not fail, "
		"save them before the device is mounted: 'fsck.zfuse -y --generation %" PRIu64
		" %s' makes that generation the newest; 'zfusectl restore %s DIRECTORY' copies its "
		"files",
		newer, newer, path, path);
}

/*
 * A power cut tears the superblock record that is being written, after all else of its commit is
 * durable. No program was told that such a commit is durable, and the log's records are replayed.
 * But if the medium has lost a record later, its commit was reported as durable. The check cannot
 * tell these cases apart; only people can.
 */
static int tell_stepped_over(const struct zf_report_source *source, const struct zf_report *report)
{
	uint64_t generation = source->super->generation, newer = 0;
	unsigned int count = source->stepped_over;
	int r = 0;

	if (count == 0 || source->older)
		return 0;
	zf_report(report, ZF_REPORT_WARNING,
		  "%u superblock record%s newer than generation %" PRIu64
		  " %s damaged. A mount goes on from generation %" PRIu64
		  ", and replays the log. If the power failed while %s written, nothing that was "
		  "durable is lost",
		  count, count == 1 ? "" : "s", generation, count == 1 ? "is" : "are", generation,
		  count == 1 ? "it was" : "they were");
	if (!source->mounted)
		r = zf_salvage_find_newer(source->dev, generation, &newer);
	if (newer)
		tell_newer(source, report, newer);
	return r;
}

int zf_report_check(const struct zf_report_source *source, struct json_object *args,
		    struct json_object **ret_result)
{
	struct messages messages = {.array = json_object_new_array()};
	const struct zf_report report = {.fn = add_message, .arg = &messages};
	struct zf_check_counts counts;
	int r = messages.array ? 0 : -ENOMEM;

	if (r == 0)
		r = tell_stepped_over(source, &report);
	if (r == 0)
		r = check(source, args, &report, &counts);
	if (r == 0) {
		*ret_result = result_object(source, &counts, &messages);
		r = *ret_result ? 0 : -ENOMEM;
	}
	json_object_put(messages.array);
	return r;
}
