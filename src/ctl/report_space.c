/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "alloc/alloc.h"
#include "ctl/json.h"
#include "ctl/report.h"

/* How many zones each role has; empty ones have none. */
static struct json_object *count_roles(struct zf_alloc *alloc)
{
	struct json_object *object = json_object_new_object();
	uint64_t count[ZF_ROLE_COUNT] = {0};

	for (uint32_t z = 0; z < zf_alloc_zone_count(alloc); z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(alloc, z, &zone);
		if (zone.role < ZF_ROLE_COUNT)
			count[zone.role]++;
	}
	for (uint8_t role = 0; role < ZF_ROLE_COUNT; role++)
		zf_json_add_u64(object, role == ZF_ROLE_NONE ? "empty" : zf_report_role_name(role),
				count[role]);
	return object;
}

int zf_report_df(const struct zf_report_source *source, struct json_object *args,
		 struct json_object **ret_result)
{
	struct zf_alloc *alloc = zf_fs_alloc(source->fs);
	struct json_object *result = json_object_new_object();
	struct zf_statfs statfs;
	struct zf_space space;
	int r = zf_fs_statfs(source->fs, &statfs);

	(void)args;
	if (r < 0 || !result) {
		json_object_put(result);
		return r < 0 ? r : -ENOMEM;
	}
	zf_alloc_get_space(alloc, &space);
	zf_json_add_u64(result, "total", space.total);
	zf_json_add_u64(result, "live", space.live);
	zf_json_add_u64(result, "unusable", space.unusable);
	zf_json_add_u64(result, "in_place", space.in_place);
	zf_json_add_u64(result, "reserved", space.reserved);
	zf_json_add_u64(result, "kept", space.kept);
	zf_json_add_u64(result, "available", space.available);
	zf_json_add_u64(result, "inodes", statfs.files - statfs.files_free);
	zf_json_add_u64(result, "inodes_max", statfs.files);
	zf_json_add(result, "zones", count_roles(alloc));
	*ret_result = result;
	return 0;
}
