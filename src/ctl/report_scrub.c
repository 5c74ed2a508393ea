/* SPDX-License-Identifier: MIT */
/*
 * What `zfusectl scrub` asks: a step at a time. zfusectl decides when the next one is, and so how much
 * is read in a second; when it is interrupted the scrub is over, and nobody has to be told.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "alloc/zone.h"
#include "base/bits.h"
#include "ctl/json.h"
#include "ctl/report.h"
#include "fs/mount/change.h"
#include "fs/space/scrub.h"

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

/* A badly damaged device has millions; the count tells of the others. */
#define DAMAGE_MAX 1000u

struct report {
	struct zf_fs *fs;
	struct json_object *damage;
	uint64_t errors;
};

static void add_error(void *arg, const struct zf_scrub_error *error)
{
	struct report *report = arg;
	struct json_object *object;
	char path[PATH_MAX];

	report->errors += !error->repaired;
	if (json_object_array_length(report->damage) >= DAMAGE_MAX)
		return;
	object = json_object_new_object();
	zf_json_add_u64(object, "address", error->address);
	zf_json_add_u64(object, "bytes", error->len);
	if (error->is_node) {
		zf_json_add_text(object, "tree", zf_report_tree_name(error->tree));
		zf_json_add_bool(object, "repaired", error->repaired);
	} else {
		zf_json_add_u64(object, "ino", error->ino);
		zf_json_add_u64(object, "offset", error->offset);
		if (zf_fs_path(report->fs, error->ino, path, sizeof(path)) == 0)
			zf_json_add_bytes(object, "path", path, strlen(path));
	}
	zf_json_push(report->damage, object);
}

static uint64_t live_bytes(struct zf_alloc *alloc)
{
	uint64_t blocks = 0;

	for (uint32_t z = 2; z < zf_alloc_zone_count(alloc); z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(alloc, z, &zone);
		blocks += zone.role == ZF_ROLE_OVERWRITE ? 0 : zone.live + zone.system_live;
	}
	return blocks << ZF_BLOCK_SHIFT;
}

/* A node is written anew while no remount makes the filesystem read-only. */
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
		zf_json_add_u64(result, "live_bytes", live_bytes(zf_fs_alloc(source->fs)));
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
