/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/zone.h"
#include "alloc/zone_format.h"
#include "ctl/json.h"
#include "ctl/report.h"

/* This many zones are handled together, and are one part of the answer. */
#define CHUNK 512u

/* The filesystem's numbers for a zone, in bytes. */
struct entry {
	uint8_t role;
	uint64_t written, live, system_live, write_generation;
	bool retired; /* the mount has found that the zone cannot be used */
};

/* Sums over the zones of one role and condition, in bytes except for `zones`. */
struct sum {
	uint64_t zones, capacity, written, live, unusable;
};

struct lister {
	const struct zf_report_source *source;
	uint32_t zone_count;
	const char *role, *condition; /* only zones of this role and condition; NULL: of any */
	bool summary;		      /* only the sums, no list */
	struct sum sums[ZF_ROLE_COUNT + 1][ZF_ZONE_OFFLINE + 1]; /* the last role: unknown ones */
	/*
	 * If not mounted: the trees, and the number of nodes of the root and zone trees in each
	 * zone.
	 */
	struct zf_forest *forest;
	uint32_t *system_nodes;
	/* `count` zones from `first` on. */
	uint32_t first, count;
	struct entry entry[CHUNK];
	struct zf_zone_info info[CHUNK];
};

/* ---- mounted: from the allocator ---- */

static void load_from_alloc(struct lister *lister)
{
	struct zf_alloc *alloc = zf_fs_alloc(lister->source->fs);

	for (uint32_t i = 0; i < lister->count; i++) {
		struct zf_zone zone;

		zf_alloc_get_zone(alloc, lister->first + i, &zone);
		lister->entry[i] = (struct entry){
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
	struct lister *lister = arg;
	struct zf_disk_zone disk;
	struct entry *entry;

	if (key->type != ZF_KEY_ZONE || key->objectid < lister->first ||
	    key->objectid - lister->first >= lister->count || len != sizeof(disk))
		return 0;
	memcpy(&disk, value, sizeof(disk));
	entry = &lister->entry[key->objectid - lister->first];
	entry->role = disk.role;
	entry->written = zf_le64_get(disk.pointer);
	entry->live = zf_le64_get(disk.live);
	entry->write_generation = zf_le64_get(disk.write_generation);
	return 0;
}

static int take_system_node(void *arg, const struct zf_node_expect *expect, const void *node,
			    int error)
{
	struct lister *lister = arg;
	const struct zf_super *super = lister->source->super;

	for (unsigned int c = 0; node && c < super->metadata_copies; c++) {
		uint64_t zone_no = expect->ptr.address[c] / super->zone_size;

		if (zone_no < lister->zone_count)
			lister->system_nodes[zone_no]++;
	}
	return error == -ENOMEM ? error : 0;
}

static int open_trees(struct lister *lister)
{
	unsigned int trees;
	int r;

	lister->system_nodes = calloc(lister->zone_count, sizeof(*lister->system_nodes));
	if (!lister->system_nodes)
		return -ENOMEM;
	r = zf_report_open_forest(lister->source, lister->source->report, &lister->forest, &trees);
	if (r == 0)
		r = zf_tree_walk(lister->forest, ZF_TREE_ROOT, take_system_node, lister);
	if (r == 0 && !(trees >> ZF_TREE_ZONE & 1))
		r = -EUCLEAN;
	return r < 0 ? r : zf_tree_walk(lister->forest, ZF_TREE_ZONE, take_system_node, lister);
}

static int load_from_tree(struct lister *lister)
{
	const struct zf_key from = ZF_KEY(lister->first, 0, 0);
	const struct zf_key to = ZF_KEY(lister->first + lister->count - 1, UINT8_MAX, UINT64_MAX);

	memset(lister->entry, 0, sizeof(lister->entry));
	for (uint32_t i = 0; i < lister->count; i++)
		lister->entry[i].system_live = (uint64_t)lister->system_nodes[lister->first + i] *
					       lister->source->super->node_size;
	return zf_tree_scan(lister->forest, ZF_TREE_ZONE, &from, &to, take_item, lister);
}

/* ---- one zone ---- */

static uint64_t live_of(const struct entry *entry)
{
	return entry->live + entry->system_live;
}

static uint64_t unusable_of(const struct entry *entry)
{
	uint64_t live = live_of(entry);

	return entry->role != ZF_ROLE_SUPER && entry->written > live ? entry->written - live : 0;
}

static uint64_t pointer_of(const struct zf_zone_info *info, const struct entry *entry)
{
	return info->type == ZF_ZONE_CONVENTIONAL ? entry->written : info->wp - info->start;
}

static struct json_object *zone_object(uint32_t zone_no, const struct zf_zone_info *info,
				       const struct entry *entry)
{
	struct json_object *object = json_object_new_object();

	zf_json_add_u64(object, "zone", zone_no);
	zf_json_add_u64(object, "start", info->start);
	zf_json_add_text(object, "type",
			 info->type == ZF_ZONE_CONVENTIONAL ? "conventional" : "sequential");
	zf_json_add_text(object, "condition", zf_zone_cond_short(info->cond));
	zf_json_add_text(object, "condition_name", zf_zone_cond_name(info->cond));
	zf_json_add_text(object, "role", zf_zone_role_name(entry->role));
	zf_json_add_bool(object, "retired",
			 entry->retired || info->cond == ZF_ZONE_READONLY ||
				 info->cond == ZF_ZONE_OFFLINE);
	zf_json_add_u64(object, "capacity", info->capacity);
	zf_json_add_u64(object, "write_pointer", pointer_of(info, entry));
	zf_json_add_u64(object, "live", live_of(entry));
	zf_json_add_u64(object, "unusable", unusable_of(entry));
	zf_json_add_u64(object, "write_generation", entry->write_generation);
	zf_json_add_u64(object, "resets", info->reset_count);
	return object;
}

static bool is_asked_for(const struct lister *lister, const struct zf_zone_info *info,
			 const struct entry *entry)
{
	if (lister->role && strcmp(lister->role, zf_zone_role_name(entry->role)) != 0)
		return false;
	return !lister->condition || strcmp(lister->condition, zf_zone_cond_short(info->cond)) == 0;
}

/* ---- the sums ---- */

static void add_to_sum(struct lister *lister, const struct zf_zone_info *info,
		       const struct entry *entry)
{
	uint8_t role = entry->role < ZF_ROLE_COUNT ? entry->role : ZF_ROLE_COUNT;
	struct sum *sum = &lister->sums[role][info->cond];

	sum->zones++;
	sum->capacity += info->capacity;
	sum->written += pointer_of(info, entry);
	sum->live += live_of(entry);
	sum->unusable += unusable_of(entry);
}

static struct json_object *sum_object(uint8_t role, enum zf_zone_cond cond, const struct sum *sum)
{
	struct json_object *object = json_object_new_object();

	zf_json_add_text(object, "role", zf_zone_role_name(role));
	zf_json_add_text(object, "condition_name", zf_zone_cond_name(cond));
	zf_json_add_u64(object, "zones", sum->zones);
	zf_json_add_u64(object, "capacity", sum->capacity);
	zf_json_add_u64(object, "written", sum->written);
	zf_json_add_u64(object, "live", sum->live);
	zf_json_add_u64(object, "unusable", sum->unusable);
	return object;
}

static struct json_object *describe_sums(const struct lister *lister)
{
	struct json_object *array = json_object_new_array();

	for (uint8_t role = 0; role <= ZF_ROLE_COUNT; role++)
		for (unsigned int cond = 0; cond <= ZF_ZONE_OFFLINE; cond++)
			if (lister->sums[role][cond].zones > 0)
				zf_json_push(array,
					     sum_object(role, cond, &lister->sums[role][cond]));
	return array;
}

/* ---- all of them ---- */

static int load_chunk(struct lister *lister)
{
	int r = 0;

	if (lister->source->mounted)
		load_from_alloc(lister);
	else
		r = load_from_tree(lister);
	return r < 0 ? r
		     : zf_dev_report(lister->source->dev, lister->first, lister->count,
				     lister->info);
}

static int add_zone(struct lister *lister, uint32_t i, struct zf_report_list *list)
{
	const struct zf_zone_info *info = &lister->info[i];
	const struct entry *entry = &lister->entry[i];

	if (!is_asked_for(lister, info, entry))
		return 0;
	if (!lister->summary)
		return zf_report_list_push(list, zone_object(lister->first + i, info, entry));
	add_to_sum(lister, info, entry);
	return 0;
}

static int add_zones(struct lister *lister, struct zf_report_list *list)
{
	int r = 0;

	while (lister->first < lister->zone_count && r == 0) {
		lister->count = (uint32_t)zf_min_u64(CHUNK, lister->zone_count - lister->first);
		r = load_chunk(lister);
		for (uint32_t i = 0; i < lister->count && r == 0; i++)
			r = add_zone(lister, i, list);
		lister->first += lister->count;
	}
	return r;
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

static int list_zones(struct lister *lister, struct json_object **ret_result)
{
	struct zf_report_list list;
	int r = lister->source->mounted ? 0 : open_trees(lister);

	if (r < 0)
		return zf_json_fail(ret_result, r, "the zone tree cannot be read: %s",
				    strerror(-r));
	r = zf_report_list_begin(&list, lister->source, "zones", CHUNK);
	if (r < 0)
		return r;
	zf_json_add(list.result, "geometry", geometry_object(zf_dev_geometry(lister->source->dev)));
	r = add_zones(lister, &list);
	if (r < 0) {
		zf_report_list_drop(&list);
		return r;
	}
	if (lister->summary)
		zf_json_add(list.result, "summary", describe_sums(lister));
	zf_report_list_end(&list, ret_result);
	return 0;
}

static int get_args(struct lister *lister, struct json_object *args)
{
	uint64_t summary_above = UINT64_MAX;
	int r = zf_json_get_text(args, "role", &lister->role);

	if (r == 0)
		r = zf_json_get_text(args, "condition", &lister->condition);
	if (r == 0)
		r = zf_json_get_u64(args, "summary_above", &summary_above);
	lister->summary = lister->zone_count > summary_above;
	return r;
}

int zf_report_zones(const struct zf_report_source *source, struct json_object *args,
		    struct json_object **ret_result)
{
	uint32_t there = zf_dev_geometry(source->dev)->zone_count;
	struct lister *lister;
	int r;

	if (source->super->zone_count > there)
		return zf_json_fail(ret_result, -EUCLEAN,
				    "the device has %u zones, the filesystem %u", there,
				    source->super->zone_count);
	lister = calloc(1, sizeof(*lister));
	if (!lister)
		return -ENOMEM;
	lister->source = source;
	lister->zone_count = source->super->zone_count;
	r = get_args(lister, args);
	if (r == 0)
		r = list_zones(lister, ret_result);
	zf_forest_free(lister->forest);
	free(lister->system_nodes);
	free(lister);
	return r;
}
