/* SPDX-License-Identifier: MIT */
/*
 * Scrubs: the scrub that a mount makes in the background (fs/mount/scrubber.h), and single steps,
 * with which zfusectl scrubs a filesystem that is not mounted, or only read-only.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "base/cleanup.h"
#include "ctl/json.h"
#include "ctl/report.h"
#include "fs/mount/change.h"
#include "fs/mount/scrubber.h"

/* ---- places ---- */

static struct json_object *place_object(const struct zf_scrub_place *place)
{
	struct json_object *object = json_object_new_object();

	zf_json_add_u64(object, "tree", place->tree);
	zf_json_add_u64(object, "height", place->height);
	zf_json_add_u64(object, "objectid", place->from.objectid);
	zf_json_add_u64(object, "type", place->from.type);
	zf_json_add_u64(object, "offset", place->from.offset);
	zf_json_add_u64(object, "address", place->address);
	return object;
}

static int parse_place(struct json_object *object, struct zf_scrub_place *ret_place)
{
	static const char *const keys[] = {"tree", "height", "objectid",
					   "type", "offset", "address"};
	uint64_t values[ZF_ARRAY_SIZE(keys)] = {0};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(keys); i++)
		if (zf_json_get_u64(object, keys[i], &values[i]) < 0)
			return -EINVAL;
	*ret_place = (struct zf_scrub_place){
		.tree = (uint32_t)zf_min_u64(values[0], UINT32_MAX),
		.height = (uint32_t)zf_min_u64(values[1], UINT32_MAX),
		.from = ZF_KEY(values[2], (uint8_t)values[3], values[4]),
		.address = values[5],
	};
	return 0;
}

/* ---- a step ---- */

/* A badly damaged device has millions of damaged places; the count includes those left out. */
#define DAMAGE_MAX 1000u

struct report {
	struct zf_fs *fs;
	struct json_object *damage;
	uint64_t errors;
};

static struct json_object *damage_object(const struct zf_scrub_error *error, const char *path)
{
	struct json_object *object = json_object_new_object();

	zf_json_add_u64(object, "address", error->address);
	zf_json_add_u64(object, "bytes", error->len);
	if (error->is_node) {
		zf_json_add_text(object, "tree", zf_report_tree_name(error->tree));
		zf_json_add_bool(object, "repaired", error->repaired);
		return object;
	}
	zf_json_add_u64(object, "ino", error->ino);
	zf_json_add_u64(object, "offset", error->offset);
	if (path)
		zf_json_add_bytes(object, "path", path, strlen(path));
	return object;
}

static void add_error(void *arg, const struct zf_scrub_error *error)
{
	struct report *report = arg;
	_zf_free_ char *path = zf_scrubber_tell(report->fs, error);

	report->errors += !error->repaired;
	if (json_object_array_length(report->damage) < DAMAGE_MAX)
		zf_json_push(report->damage, damage_object(error, path));
}

/* During a step that may rewrite nodes, no remount can make the filesystem read-only. */
static int run_step(const struct zf_report_source *source, bool repair,
		    struct zf_scrub_place *place, struct zf_scrub_step *step)
{
	bool may_repair = repair && source->mounted && zf_change_begin(source->fs) == 0;
	int r = zf_scrub_step(source->fs, may_repair, place, step);

	if (may_repair)
		zf_change_end(source->fs);
	return r;
}

int zf_report_scrub_step(const struct zf_report_source *source, struct json_object *args,
			 struct json_object **ret_result)
{
	struct report report = {.fs = source->fs, .damage = json_object_new_array()};
	struct zf_scrub_step step = {.error = add_error, .arg = &report};
	struct json_object *result = json_object_new_object(), *at = NULL;
	struct zf_scrub_place place = {0};
	bool repair = false;
	int r = report.damage && result ? zf_json_get_bool(args, "repair", &repair) : -ENOMEM;

	if (r == 0 && args && json_object_object_get_ex(args, "place", &at))
		r = parse_place(at, &place);
	else
		zf_json_add_u64(result, "live_bytes", zf_scrubber_live_bytes(source->fs));
	if (r == 0)
		r = run_step(source, repair, &place, &step);
	zf_json_add_u64(result, "data_bytes", step.data_bytes);
	zf_json_add_u64(result, "node_bytes", step.node_bytes);
	zf_json_add_u64(result, "skipped", step.skipped);
	zf_json_add_u64(result, "errors", report.errors);
	zf_json_add(result, "damage", report.damage);
	if (r > 0)
		zf_json_add(result, "place", place_object(&place));
	if (r < 0)
		json_object_put(result);
	else
		*ret_result = result;
	return r < 0 ? r : *ret_result ? 0 : -ENOMEM;
}

/* ---- the scrub of a mount ---- */

static const char *state_name(struct zf_fs *fs, enum zf_scrub_state state)
{
	static const char *const names[ZF_SCRUB_STATE_COUNT] = {
		[ZF_SCRUB_NONE] = "none",	    [ZF_SCRUB_RUNNING] = "running",
		[ZF_SCRUB_PAUSED] = "paused",	    [ZF_SCRUB_FINISHED] = "finished",
		[ZF_SCRUB_CANCELLED] = "cancelled",
	};

	/*
	 * The scrub continues when the filesystem is mounted writable, or becomes writable again.
	 */
	return state == ZF_SCRUB_RUNNING && zf_fs_is_read_only(fs) ? "suspended" : names[state];
}

/* If the amount of live data changes during the scrub, the total is an estimate. */
static void add_progress(struct json_object *result, struct zf_fs *fs,
			 const struct zf_scrub_record *record)
{
	uint64_t done = record->data_bytes + record->node_bytes;
	uint64_t total = zf_max_u64(done, zf_scrubber_live_bytes(fs));

	if (record->state == ZF_SCRUB_FINISHED)
		total = done;
	zf_json_add_u64(result, "done_bytes", done);
	zf_json_add_u64(result, "total_bytes", total);
	if (record->active_ms > 0)
		zf_json_add_u64(result, "bytes_per_second",
				(uint64_t)((double)done * 1000 / (double)record->active_ms));
}

static struct json_object *status_object(struct zf_fs *fs)
{
	struct json_object *result = json_object_new_object();
	struct zf_scrub_record record;

	zf_scrubber_get(fs, &record);
	zf_json_add_text(result, "state", state_name(fs, record.state));
	zf_json_add_u64(result, "rate", record.rate);
	zf_json_add_u64(result, "started_at", record.started);
	zf_json_add_u64(result, "ended_at", record.ended);
	zf_json_add_u64(result, "completed_at", record.completed);
	zf_json_add_u64(result, "active_ms", record.active_ms);
	add_progress(result, fs, &record);
	zf_json_add_u64(result, "data_bytes", record.data_bytes);
	zf_json_add_u64(result, "node_bytes", record.node_bytes);
	zf_json_add_u64(result, "skipped", record.skipped);
	zf_json_add_u64(result, "errors", record.errors);
	zf_json_add_u64(result, "repaired", record.repaired);
	return result;
}

static struct json_object *damage_from(struct zf_fs *fs, uint64_t from)
{
	struct json_object *damage = json_object_new_array();
	struct zf_scrub_error error;
	char *path;

	for (; zf_scrubber_get_damage(fs, from, &error, &path) == 0; from++) {
		zf_json_push(damage, damage_object(&error, path));
		free(path);
	}
	return damage;
}

int zf_report_scrub_status(const struct zf_report_source *source, struct json_object *args,
			   struct json_object **ret_result)
{
	struct json_object *result;
	uint64_t from = 0;
	int r = zf_json_get_u64(args, "from", &from);

	if (r < 0)
		return r;
	result = status_object(source->fs);
	zf_json_add(result, "damage", damage_from(source->fs, from));
	*ret_result = result;
	return result ? 0 : -ENOMEM;
}

static int refuse(int error, struct json_object **ret_result)
{
	switch (error) {
	case -EBUSY:
		return zf_json_fail(ret_result, error,
				    "a scrub is running: `zfusectl scrub status` shows it");
	case -EEXIST:
		return zf_json_fail(ret_result, error,
				    "a scrub is paused: resume it, or cancel it first");
	case -ENOENT:
		return zf_json_fail(ret_result, error, "there is no such scrub");
	case -EROFS:
		return zf_json_fail(ret_result, error,
				    "the filesystem is read-only, so nothing can be written down: "
				    "`zfusectl scrub TARGET` verifies it in the foreground");
	default:
		return error;
	}
}

/* Runs `act`, and answers with the status. */
static int control(const struct zf_report_source *source, int (*act)(struct zf_fs *fs),
		   struct json_object **ret_result)
{
	int r = zf_change_begin(source->fs);

	if (r < 0)
		return refuse(r, ret_result);
	r = act(source->fs);
	zf_change_end(source->fs);
	if (r < 0)
		return refuse(r, ret_result);
	return zf_report_scrub_status(source, NULL, ret_result);
}

int zf_report_scrub_start(const struct zf_report_source *source, struct json_object *args,
			  struct json_object **ret_result)
{
	uint64_t rate = 0;
	int r = zf_json_get_u64(args, "rate", &rate);

	if (r < 0)
		return r;
	r = zf_change_begin(source->fs);
	if (r < 0)
		return refuse(r, ret_result);
	r = zf_scrubber_start(source->fs, rate);
	zf_change_end(source->fs);
	if (r < 0)
		return refuse(r, ret_result);
	return zf_report_scrub_status(source, NULL, ret_result);
}

int zf_report_scrub_pause(const struct zf_report_source *source, struct json_object *args,
			  struct json_object **ret_result)
{
	(void)args;
	return control(source, zf_scrubber_pause, ret_result);
}

int zf_report_scrub_resume(const struct zf_report_source *source, struct json_object *args,
			   struct json_object **ret_result)
{
	(void)args;
	return control(source, zf_scrubber_resume, ret_result);
}

int zf_report_scrub_cancel(const struct zf_report_source *source, struct json_object *args,
			   struct json_object **ret_result)
{
	(void)args;
	return control(source, zf_scrubber_cancel, ret_result);
}
