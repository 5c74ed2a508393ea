/* SPDX-License-Identifier: MIT */
/*
 * Where the space is: the parts add up to the total. "free" and "reclaimable" together are the free
 * space of statfs(). Space that is in no other part is "reserved": it may be in use later, but
 * never by user data.
 */
#include <errno.h>

#include "alloc/reserve.h"
#include "alloc/zone.h"
#include "alloc/zone_format.h"
#include "base/bits.h"
#include "ctl/json.h"
#include "ctl/report.h"

/* The number of zones of each role; empty zones have none. */
static struct json_object *count_roles(struct zf_alloc *alloc, uint64_t *ret_metadata)
{
	struct json_object *object = json_object_new_object();
	uint64_t count[ZF_ROLE_COUNT] = {0}, metadata = 0;

	for (uint32_t z = 0; z < zf_alloc_zone_count(alloc); z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(alloc, z, &zone);
		if (zone.role < ZF_ROLE_COUNT)
			count[zone.role]++;
		if (zone.role == ZF_ROLE_META)
			metadata += (uint64_t)zone.live + zone.system_live;
	}
	for (uint8_t role = 0; role < ZF_ROLE_COUNT; role++)
		zf_json_add_u64(object, role == ZF_ROLE_NONE ? "empty" : zf_zone_role_name(role),
				count[role]);
	*ret_metadata = metadata << ZF_BLOCK_SHIFT;
	return object;
}

/* Takes a part from the rest of the total; a mangled image may claim more than the rest. */
static void add_part(struct json_object *result, const char *key, uint64_t bytes, uint64_t *left)
{
	bytes = zf_min_u64(bytes, *left);
	*left -= bytes;
	zf_json_add_u64(result, key, bytes);
}

static void add_parts(struct json_object *result, const struct zf_space *space, uint64_t metadata)
{
	uint64_t left = space->total, reclaimable;

	metadata = zf_min_u64(metadata, space->live);
	/* The reclaimable space beyond `available` is part of the reserved space. */
	reclaimable = zf_min_u64(space->reclaimable, space->available);
	zf_json_add_u64(result, "total", space->total);
	add_part(result, "live_data", space->live - metadata, &left);
	add_part(result, "live_metadata", metadata, &left);
	add_part(result, "in_place", space->in_place, &left);
	add_part(result, "free", space->available - reclaimable, &left);
	add_part(result, "reclaimable", reclaimable, &left);
	add_part(result, "kept", space->kept, &left);
	zf_json_add_u64(result, "reserved", left);
}

int zf_report_df(const struct zf_report_source *source, struct json_object *args,
		 struct json_object **ret_result)
{
	struct zf_alloc *alloc = zf_fs_alloc(source->fs);
	struct json_object *result = json_object_new_object(), *zones;
	struct zf_statfs statfs;
	struct zf_space space;
	uint64_t metadata;
	int r = zf_fs_statfs(source->fs, &statfs);

	(void)args;
	if (r < 0 || !result) {
		json_object_put(result);
		return r < 0 ? r : -ENOMEM;
	}
	zones = count_roles(alloc, &metadata);
	zf_alloc_get_space(alloc, &space);
	add_parts(result, &space, metadata);
	zf_json_add_u64(result, "available", space.allocatable);
	zf_json_add_u64(result, "unusable", space.unusable);
	zf_json_add_u64(result, "retired", space.retired);
	zf_json_add_u64(result, "inodes", statfs.files - statfs.files_free);
	zf_json_add_u64(result, "inodes_max", statfs.files);
	zf_json_add(result, "zones", zones);
	*ret_result = result;
	return 0;
}
