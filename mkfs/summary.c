/* SPDX-License-Identifier: MIT */
/* Prints what was made, for people and for programs. */
#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdio.h>
#include <uuid.h>

#include "mkfs.h"

/* "64 MiB", "3.5 GiB", "512 bytes": cut to one decimal. */
static const char *size_to_text(uint64_t bytes, char *buf, size_t size)
{
	static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	uint64_t tenths = 0;
	int unit = -1;

	for (; bytes >= 1024 && unit < 5; unit++) {
		tenths = bytes % 1024 * 10 / 1024;
		bytes /= 1024;
	}
	if (unit < 0)
		snprintf(buf, size, "%" PRIu64 " bytes", bytes);
	else if (tenths)
		snprintf(buf, size, "%" PRIu64 ".%" PRIu64 " %s", bytes, tenths, units[unit]);
	else
		snprintf(buf, size, "%" PRIu64 " %s", bytes, units[unit]);
	return buf;
}

static void print_line(const char *name, const char *value)
{
	printf("  %-12s %s\n", name, value);
}

static void print_zones(const struct zf_geometry *g)
{
	char size[32], capacity[32], line[128];

	size_to_text(g->zone_size, size, sizeof(size));
	size_to_text(g->zone_capacity, capacity, sizeof(capacity));
	snprintf(line, sizeof(line), "%" PRIu32 " of %s, capacity %s", g->zone_count, size,
		 capacity);
	print_line("zones", line);
	snprintf(line, sizeof(line), "%" PRIu32, g->conventional);
	print_line("conventional", g->conventional ? line : "none");
}

static void print_path(const struct mkfs_result *result)
{
	char line[64];

	snprintf(line, sizeof(line), "%s, appends %s", result->backend, result->append);
	print_line("written by", line);
}

static void print_limit(const char *name, uint32_t limit, uint32_t needed)
{
	char line[64];

	if (limit == 0)
		snprintf(line, sizeof(line), "no limit (%" PRIu32 " needed)", needed);
	else
		snprintf(line, sizeof(line), "%" PRIu32 " (%" PRIu32 " needed)", limit, needed);
	print_line(name, line);
}

static void print_space(const struct zf_geometry *g, const struct zf_format_plan *plan)
{
	char size[32], line[128];

	size_to_text(plan->node_size, size, sizeof(size));
	print_line("node size", size);
	print_line("metadata", plan->metadata_copies == 1 ? "1 copy" : "2 copies");
	snprintf(line, sizeof(line), "%" PRIu32 " zones, %s", plan->ring_zones,
		 size_to_text(plan->ring_zones * g->zone_capacity, size, sizeof(size)));
	print_line("superblock", line);
	snprintf(line, sizeof(line), "%" PRIu32 " zones, %s", plan->reserved_zones,
		 size_to_text(plan->reserved_zones * g->zone_capacity, size, sizeof(size)));
	print_line("reserve", line);
	snprintf(line, sizeof(line), "%" PRIu32 " zones, %s (%" PRIu64 " bytes)",
		 plan->usable_zones, size_to_text(plan->usable_bytes, size, sizeof(size)),
		 plan->usable_bytes);
	print_line("usable", line);
}

static void print_copied(const struct mkfs_result *result)
{
	const struct mkfs_content *copied = result->copied;
	char size[32], line[128];

	if (!copied)
		return;
	snprintf(line, sizeof(line), "%" PRIu64 " files, %s (%" PRIu64 " bytes)", copied->files,
		 size_to_text(copied->bytes, size, sizeof(size)), copied->bytes);
	print_line(result->args->dry_run ? "would copy" : "copied", line);
}

void mkfs_print_text(const struct mkfs_result *result)
{
	const struct mkfs_args *args = result->args;
	char fsid[37];

	uuid_unparse_lower(result->options->fsid, fsid);
	printf("%s %s%s\n", args->dry_run ? "Would make zfuse on" : "Made zfuse on", args->device,
	       args->image ? ", a new emulated zoned device" : "");
	if (result->replaced[0])
		printf("  %-12s %s\n", args->dry_run ? "would lose" : "replaced", result->replaced);
	print_line("label", args->label[0] ? args->label : "none");
	print_line("UUID", fsid);
	print_path(result);
	print_zones(result->geometry);
	print_limit("max open", result->geometry->max_open, result->plan->active_needed);
	print_limit("max active", result->geometry->max_active, result->plan->active_needed);
	print_space(result->geometry, result->plan);
	print_copied(result);
}

static void add_number(struct json_object *object, const char *name, uint64_t value)
{
	json_object_object_add(object, name, json_object_new_uint64(value));
}

static void add_string(struct json_object *object, const char *name, const char *value)
{
	json_object_object_add(object, name, json_object_new_string(value));
}

static struct json_object *make_json(const struct mkfs_result *result)
{
	const struct zf_geometry *g = result->geometry;
	const struct zf_format_plan *plan = result->plan;
	struct json_object *object = json_object_new_object();
	char fsid[37];

	if (!object)
		return NULL;
	uuid_unparse_lower(result->options->fsid, fsid);
	add_string(object, "device", result->args->device);
	json_object_object_add(object, "dry_run", json_object_new_boolean(result->args->dry_run));
	json_object_object_add(object, "new_image",
			       json_object_new_boolean(result->args->image != NULL));
	add_string(object, "replaced", result->replaced);
	add_string(object, "uuid", fsid);
	add_string(object, "label", result->args->label);
	add_string(object, "device_kind", result->backend);
	add_string(object, "append", result->append);
	add_number(object, "zone_count", g->zone_count);
	add_number(object, "zone_size", g->zone_size);
	add_number(object, "zone_capacity", g->zone_capacity);
	add_number(object, "conventional_zones", g->conventional);
	add_number(object, "max_open", g->max_open);
	add_number(object, "max_active", g->max_active);
	add_number(object, "active_needed", plan->active_needed);
	add_number(object, "node_size", plan->node_size);
	add_number(object, "metadata_copies", plan->metadata_copies);
	add_number(object, "superblock_zones", plan->ring_zones);
	add_number(object, "reserved_zones", plan->reserved_zones);
	add_number(object, "usable_zones", plan->usable_zones);
	add_number(object, "usable_bytes", plan->usable_bytes);
	if (result->copied) {
		add_number(object, "copied_files", result->copied->files);
		add_number(object, "copied_bytes", result->copied->bytes);
	}
	return object;
}

int mkfs_print_json(const struct mkfs_result *result)
{
	struct json_object *object = make_json(result);

	if (!object)
		return -ENOMEM;
	puts(json_object_to_json_string_ext(object, JSON_C_TO_STRING_PRETTY |
							    JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(object);
	return 0;
}
