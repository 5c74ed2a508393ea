/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/alloc.h"
#include "ctl/json.h"
#include "ctl/report.h"

#define CHUNK 1024u

/* What the filesystem says of a zone; bytes. */
struct entry {
	uint8_t role;
	uint64_t written, live, system_live, write_generation;
	bool retired; /* no longer used, as the mount has found */
};

struct entries {
	const struct zf_super *super;
	struct entry *entry; /* super->zone_count of them */
};

/* ---- mounted: from the allocator ---- */

static void load_from_alloc(struct zf_alloc *alloc, struct entries *entries)
{
	for (uint32_t z = 0; z < entries->super->zone_count; z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(alloc, z, &zone);
		entries->entry[z] = (struct entry){
			.role = zone.role,
			.written = (uint64_t)zone.written << ZF_BLOCK_SHIFT,
			.live = (uint64_t)zone.live << ZF_BLOCK_SHIFT,
			.system_live = (uint64_t)zone.system_live << ZF_BLOCK_SHIFT,
			.write_generation = zone.write_generation,
			.retired = zone.unusable,
		};
	}
}

/* ---- not mounted: from the zone tree ---- */

static int take_item(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct entries *entries = arg;
	struct zf_disk_zone disk;
	struct entry *entry;

	if (key->type != ZF_KEY_ZONE || key->objectid >= entries->super->zone_count ||
	    len != sizeof(disk))
		return 0;
	memcpy(&disk, value, sizeof(disk));
	entry = &entries->entry[key->objectid];
	entry->role = disk.role;
	entry->written = zf_le64_get(disk.pointer);
	entry->live = zf_le64_get(disk.live);
	entry->write_generation = zf_le64_get(disk.write_generation);
	return 0;
}

static int take_system_node(void *arg, const struct zf_node_expect *expect, const void *node,
			    int error)
{
	struct entries *entries = arg;

	for (unsigned int c = 0; node && c < entries->super->metadata_copies; c++) {
		uint64_t zone_no = expect->ptr.address[c] / entries->super->zone_size;

		if (zone_no < entries->super->zone_count)
			entries->entry[zone_no].system_live += entries->super->node_size;
	}
	return error == -ENOMEM ? error : 0;
}

static int load_from_trees(struct zf_forest *forest, unsigned int trees, struct entries *entries)
{
	const struct zf_key from = ZF_KEY_MIN, to = ZF_KEY_MAX;
	int r = zf_tree_walk(forest, ZF_TREE_ROOT, take_system_node, entries);

	if (r < 0)
		return r;
	if (!(trees >> ZF_TREE_ZONE & 1))
		return -EUCLEAN;
	r = zf_tree_walk(forest, ZF_TREE_ZONE, take_system_node, entries);
	return r < 0 ? r : zf_tree_scan(forest, ZF_TREE_ZONE, &from, &to, take_item, entries);
}

static int load_unmounted(const struct zf_report_source *source, struct entries *entries)
{
	struct zf_forest *forest;
	unsigned int trees;
	int r = zf_report_open_forest(source, source->report, &forest, &trees);

	if (r < 0)
		return r;
	r = load_from_trees(forest, trees, entries);
	zf_forest_free(forest);
	return r;
}

/* ---- one object a zone ---- */

static struct json_object *zone_object(uint32_t zone_no, const struct zf_zone_info *info,
				       const struct entry *entry)
{
	struct json_object *object = json_object_new_object();
	uint64_t live = entry->live + entry->system_live;

	zf_json_add_u64(object, "zone", zone_no);
	zf_json_add_u64(object, "start", info->start);
	zf_json_add_text(object, "type",
			 info->type == ZF_ZONE_CONVENTIONAL ? "conventional" : "sequential");
	zf_json_add_text(object, "condition", zf_zone_cond_short(info->cond));
	zf_json_add_text(object, "condition_name", zf_zone_cond_name(info->cond));
	zf_json_add_text(object, "role", zf_report_role_name(entry->role));
	zf_json_add_bool(object, "retired",
			 entry->retired || info->cond == ZF_ZONE_READONLY ||
				 info->cond == ZF_ZONE_OFFLINE);
	zf_json_add_u64(object, "capacity", info->capacity);
	zf_json_add_u64(object, "write_pointer",
			info->type == ZF_ZONE_CONVENTIONAL ? entry->written
							   : info->wp - info->start);
	zf_json_add_u64(object, "live", live);
	zf_json_add_u64(
		object, "unusable",
		entry->role != ZF_ROLE_SUPER && entry->written > live ? entry->written - live : 0);
	zf_json_add_u64(object, "write_generation", entry->write_generation);
	zf_json_add_u64(object, "resets", info->reset_count);
	return object;
}

static int add_zones(const struct zf_report_source *source, const struct entries *entries,
		     struct zf_zone_info *info, struct json_object *array)
{
	uint32_t count = entries->super->zone_count;

	for (uint32_t first = 0; first < count; first += CHUNK) {
		uint32_t n = (uint32_t)zf_min_u64(CHUNK, count - first);
		int r = zf_dev_report(source->dev, first, n, info);

		if (r < 0)
			return r;
		for (uint32_t i = 0; i < n; i++)
			zf_json_push(array,
				     zone_object(first + i, &info[i], &entries->entry[first + i]));
	}
	return 0;
}

static struct json_object *geometry_object(const struct zf_geometry *geometry)
{
	struct json_object *object = json_object_new_object();

	zf_json_add_u64(object, "zone_size", geometry->zone_size);
	zf_json_add_u64(object, "zone_capacity", geometry->zone_capacity);
	zf_json_add_u64(object, "zone_count", geometry->zone_count);
	zf_json_add_u64(object, "conventional", geometry->conventional);
	zf_json_add_u64(object, "max_open", geometry->max_open);
	zf_json_add_u64(object, "max_active", geometry->max_active);
	zf_json_add_u64(object, "append_limit", geometry->append_limit);
	zf_json_add_bool(object, "volatile_cache", geometry->volatile_cache);
	zf_json_add_bool(object, "unmapping_zeroes", geometry->unmapping_zeroes);
	zf_json_add_bool(object, "rotational", geometry->rotational);
	return object;
}

static int report_zones(const struct zf_report_source *source, struct entries *entries,
			struct zf_zone_info *info, struct json_object **ret_result)
{
	struct json_object *result, *array;
	int r = 0;

	if (source->mounted)
		load_from_alloc(zf_fs_alloc(source->fs), entries);
	else
		r = load_unmounted(source, entries);
	if (r < 0)
		return zf_json_fail(ret_result, r, "the zone tree cannot be read: %s",
				    strerror(-r));
	result = json_object_new_object();
	array = json_object_new_array();
	r = add_zones(source, entries, info, array);
	zf_json_add(result, "geometry", geometry_object(zf_dev_geometry(source->dev)));
	zf_json_add(result, "zones", array);
	if (r == 0 && !result)
		r = -ENOMEM;
	if (r < 0) {
		json_object_put(result);
		return r;
	}
	*ret_result = result;
	return 0;
}

int zf_report_zones(const struct zf_report_source *source, struct json_object *args,
		    struct json_object **ret_result)
{
	struct entries entries = {.super = source->super};
	struct zf_zone_info *info;
	int r = -ENOMEM;

	(void)args;
	if (source->super->zone_count > zf_dev_geometry(source->dev)->zone_count)
		return zf_json_fail(
			ret_result, -EUCLEAN, "the device has %u zones, the filesystem %u",
			zf_dev_geometry(source->dev)->zone_count, source->super->zone_count);
	entries.entry = calloc(source->super->zone_count, sizeof(*entries.entry));
	info = calloc(CHUNK, sizeof(*info));
	if (entries.entry && info)
		r = report_zones(source, &entries, info, ret_result);
	free(entries.entry);
	free(info);
	return r;
}
