/* SPDX-License-Identifier: MIT */
#include "text.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

struct json_object *zf_text_member(struct json_object *object, const char *key)
{
	struct json_object *value = NULL;

	if (object && json_object_is_type(object, json_type_object))
		json_object_object_get_ex(object, key, &value);
	return value;
}

uint64_t zf_text_u64(struct json_object *object, const char *key)
{
	return json_object_get_uint64(zf_text_member(object, key));
}

const char *zf_text_string(struct json_object *object, const char *key)
{
	const char *text = json_object_get_string(zf_text_member(object, key));

	return text ? text : "";
}

uint64_t zf_text_first_address(struct json_object *object)
{
	struct json_object *address = zf_text_member(object, "address");

	if (json_object_is_type(address, json_type_array))
		address = json_object_array_get_idx(address, 0);
	return json_object_get_uint64(address);
}

const char *zf_text_time(uint64_t seconds, char buf[ZF_TEXT_TIME_MAX])
{
	time_t time = (time_t)seconds;
	struct tm local;

	if (!localtime_r(&time, &local) ||
	    strftime(buf, ZF_TEXT_TIME_MAX, "%Y-%m-%d %H:%M:%S", &local) == 0)
		snprintf(buf, ZF_TEXT_TIME_MAX, "%" PRIu64, seconds);
	return buf;
}

const char *zf_text_size(uint64_t bytes, char buf[ZF_TEXT_SIZE_MAX])
{
	static const char units[] = "\0KMGTPE";
	unsigned int unit = 0;
	double value = (double)bytes;

	while (value >= 1024 && units[unit + 1]) {
		value /= 1024;
		unit++;
	}
	if (value == (double)(uint64_t)value)
		snprintf(buf, ZF_TEXT_SIZE_MAX, "%.0f%.1s", value, &units[unit]);
	else
		snprintf(buf, ZF_TEXT_SIZE_MAX, "%.1f%.1s", value, &units[unit]);
	return buf;
}

void zf_text_inline(struct json_object *value, FILE *out)
{
	bool first = true;

	if (json_object_is_type(value, json_type_object)) {
		json_object_object_foreach(value, key, member)
		{
			fprintf(out, "%s%s ", first ? "" : ", ", key);
			if (strcmp(key, "mode") == 0)
				fprintf(out, "%#" PRIo64, json_object_get_uint64(member));
			else
				zf_text_inline(member, out);
			first = false;
		}
		return;
	}
	if (!json_object_is_type(value, json_type_array)) {
		fputs(json_object_is_type(value, json_type_null) ? "-"
								 : json_object_get_string(value),
		      out);
		return;
	}
	for (size_t i = 0; i < json_object_array_length(value); i++) {
		fputs(i ? " " : "[", out);
		zf_text_inline(json_object_array_get_idx(value, i), out);
	}
	fputs(json_object_array_length(value) ? "]" : "[]", out);
}

/* ---- any object ---- */

static void add_values(struct zf_table *table, const char *prefix, struct json_object *object)
{
	json_object_object_foreach(object, key, value)
	{
		char name[256];

		snprintf(name, sizeof(name), "%s%s%s", prefix, prefix[0] ? "." : "", key);
		if (json_object_is_type(value, json_type_object)) {
			add_values(table, name, value);
			continue;
		}
		zf_table_add(table, "%s", name);
		zf_table_add(table, "%s", value ? json_object_get_string(value) : "-");
	}
}

void zf_text_object(struct json_object *object, FILE *out)
{
	static const struct zf_table_column columns[] = {{NULL, false}, {NULL, false}};
	struct zf_table table;

	zf_table_init(&table, columns, 2);
	add_values(&table, "", object);
	zf_table_print(&table, out);
	zf_table_deinit(&table);
}

void zf_text_values(struct zf_text *text, struct json_object *result)
{
	zf_text_object(result, text->out);
}

/* ---- parts ---- */

void zf_text_print(struct zf_text *text, zf_text_fn *print, struct json_object *part, bool last)
{
	text->last = last;
	print(text, part);
	text->begun = true;
	if (!last)
		return;
	zf_table_deinit(&text->table);
	json_object_put(text->graph.wanted);
}

struct zf_table *zf_text_begin_table(struct zf_text *text, const struct zf_table_column *columns,
				     size_t column_count)
{
	if (!text->begun)
		zf_table_init(&text->table, columns, column_count);
	return &text->table;
}

void zf_text_add_size(struct zf_table *table, struct json_object *object, const char *key)
{
	char buf[ZF_TEXT_SIZE_MAX];

	zf_table_add(table, "%s", zf_text_size(zf_text_u64(object, key), buf));
}

/* ---- the ring ---- */

static void print_records(struct zf_text *text, struct json_object *records)
{
	static const struct zf_table_column columns[] = {
		{"", false},	  {"ADDRESS", true}, {"GENERATION", true}, {"STATUS", false},
		{"CLEAN", false}, {"INODES", true},  {"ROOT", true},
	};
	struct zf_table *table = zf_text_begin_table(text, columns, 7);

	for (size_t i = 0; i < json_object_array_length(records); i++) {
		struct json_object *record = json_object_array_get_idx(records, i);

		zf_table_add(table, "%s",
			     json_object_get_boolean(zf_text_member(record, "wins")) ? "*" : " ");
		zf_table_add(table, "%" PRIu64, zf_text_u64(record, "address"));
		zf_table_add(table, "%" PRIu64, zf_text_u64(record, "generation"));
		zf_table_add(table, "%s", zf_text_string(record, "status"));
		zf_table_add(table, "%s", zf_text_string(record, "clean"));
		zf_table_add(table, "%s", zf_text_string(record, "inode_count"));
		zf_table_add(table, "%s", zf_text_string(record, "root"));
	}
	zf_table_print(table, text->out);
}

void zf_text_super(struct zf_text *text, struct json_object *part)
{
	struct json_object *zones = zf_text_member(part, "zones");
	struct json_object *newest = zf_text_member(part, "newest");
	FILE *out = text->out;

	if (!text->begun) {
		for (size_t i = 0; i < json_object_array_length(zones); i++)
			fprintf(out, "zone %zu: %s\n", i,
				json_object_get_string(json_object_array_get_idx(zones, i)));
		fputc('\n', out);
	}
	print_records(text, zf_text_member(part, "records"));
	if (!text->last)
		return;
	fprintf(out, "\n* %s\n", zf_text_string(part, "reason"));
	if (newest) {
		fputc('\n', out);
		zf_text_object(newest, out);
	}
}

/* ---- space ---- */

static void print_roles(struct json_object *roles, FILE *out)
{
	fputs("zones:", out);
	json_object_object_foreach(roles, role, count)
		fprintf(out, " %s %s", json_object_get_string(count), role);
	fputc('\n', out);
}

void zf_text_df(struct zf_text *text, struct json_object *result)
{
	static const struct {
		const char *key, *note;
	} lines[] = {
		{"total", "in zones for data and metadata"},
		{"live_data", "named by files"},
		{"live_metadata", "nodes of the trees"},
		{"kept", "allocated for files and not written yet"},
		{"in_place", "free in overwrite zones"},
		{"reserved", "for metadata, log, reclaim, in flight"},
		{"reclaimable", "freed by reclaim on demand"},
		{"free", "can be written at once"},
	};
	static const struct zf_table_column columns[] = {
		{NULL, false}, {NULL, true}, {NULL, true}, {NULL, false}};
	char size[ZF_TEXT_SIZE_MAX];
	FILE *out = text->out;
	struct zf_table table;

	zf_table_init(&table, columns, 4);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		zf_table_add(&table, "%s", lines[i].key);
		zf_text_add_size(&table, result, lines[i].key);
		zf_table_add(&table, "%" PRIu64, zf_text_u64(result, lines[i].key));
		zf_table_add(&table, "%s", lines[i].note);
	}
	zf_table_print(&table, out);
	zf_table_deinit(&table);
	fprintf(out, "available (what df shows): %s\n",
		zf_text_size(zf_text_u64(result, "available"), size));
	if (zf_text_u64(result, "retired") > 0)
		fprintf(out, "retired, and not in the total: %s in zones that failed\n",
			zf_text_size(zf_text_u64(result, "retired"), size));
	fprintf(out, "inodes: %" PRIu64 " of at most %" PRIu64 "\n", zf_text_u64(result, "inodes"),
		zf_text_u64(result, "inodes_max"));
	print_roles(zf_text_member(result, "zones"), out);
}

/* ---- files ---- */

void zf_text_file(struct zf_text *text, struct json_object *part)
{
	static const struct zf_table_column columns[] = {
		{"OFFSET", true},  {"LENGTH", true}, {"TYPE", false},
		{"ADDRESS", true}, {"ZONE", true},   {"GENERATION", true},
	};
	struct json_object *extents = zf_text_member(part, "extents");
	struct zf_table *table = zf_text_begin_table(text, columns, 6);

	if (!text->begun)
		fprintf(text->out,
			"inode %" PRIu64 ", mode %" PRIo64 ", %" PRIu64 " bytes, %" PRIu64
			" blocks of 512\n",
			zf_text_u64(part, "ino"), zf_text_u64(part, "mode"),
			zf_text_u64(part, "size"), zf_text_u64(part, "blocks"));
	for (size_t i = 0; i < json_object_array_length(extents); i++) {
		struct json_object *extent = json_object_array_get_idx(extents, i);
		bool shared = json_object_get_boolean(zf_text_member(extent, "shared"));
		bool overwrite = json_object_get_boolean(zf_text_member(extent, "overwrite"));
		bool guaranteed = json_object_get_boolean(zf_text_member(extent, "guaranteed"));

		zf_table_add(table, "%" PRIu64, zf_text_u64(extent, "offset"));
		zf_table_add(table, "%" PRIu64, zf_text_u64(extent, "length"));
		zf_table_add(table, "%s%s%s%s", zf_text_string(extent, "type"),
			     shared ? ",shared" : "", overwrite ? ",overwritable" : "",
			     guaranteed ? ",guaranteed" : "");
		zf_table_add(table, "%s", zf_text_string(extent, "address"));
		zf_table_add(table, "%s", zf_text_string(extent, "zone"));
		zf_table_add(table, "%" PRIu64, zf_text_u64(extent, "generation"));
	}
	if (json_object_array_length(extents))
		zf_table_print(table, text->out);
}

/* ---- paths ---- */

void zf_text_path(struct zf_text *text, struct json_object *result)
{
	fprintf(text->out, "%s\n", zf_text_string(result, "path"));
}

static void print_place(struct json_object *file, FILE *out)
{
	const char *path = zf_text_string(file, "path");

	if (path[0])
		fputs(path, out);
	else
		fprintf(out, "inode %" PRIu64, zf_text_u64(file, "ino"));
	fprintf(out, ": offset %" PRIu64 "\n", zf_text_u64(file, "offset"));
}

void zf_text_resolve(struct zf_text *text, struct json_object *part)
{
	struct json_object *files = zf_text_member(part, "files");
	size_t count = json_object_array_length(files);

	for (size_t i = 0; i < count; i++)
		print_place(json_object_array_get_idx(files, i), text->out);
	if (!text->begun && text->last && count == 0)
		fprintf(text->out, "no file has this byte; zone %" PRIu64 ", role %s\n",
			zf_text_u64(part, "zone"), zf_text_string(part, "role"));
}

/* ---- check ---- */

void zf_text_check(struct zf_text *text, struct json_object *result)
{
	FILE *out = text->out;
	struct json_object *messages = zf_text_member(result, "messages");
	uint64_t errors = zf_text_u64(result, "errors");
	uint64_t dropped = zf_text_u64(result, "messages_dropped");
	uint64_t verified_bytes = zf_text_u64(result, "verified_bytes");
	char data[ZF_TEXT_SIZE_MAX], verified[ZF_TEXT_SIZE_MAX];

	for (size_t i = 0; i < json_object_array_length(messages); i++) {
		struct json_object *message = json_object_array_get_idx(messages, i);
		const char *level = zf_text_string(message, "level");

		fprintf(out, "%s%s%s\n", strcmp(level, "error") == 0 ? "" : level,
			strcmp(level, "error") == 0 ? "" : ": ", zf_text_string(message, "text"));
	}
	if (dropped)
		fprintf(out, "... and %" PRIu64 " more messages\n", dropped);
	fprintf(out,
		"generation %" PRIu64 ": %" PRIu64 " nodes, %" PRIu64 " inodes, %" PRIu64
		" names, %" PRIu64 " extents\n%s of data, ",
		zf_text_u64(result, "generation"), zf_text_u64(result, "nodes"),
		zf_text_u64(result, "inodes"), zf_text_u64(result, "names"),
		zf_text_u64(result, "extents"),
		zf_text_size(zf_text_u64(result, "data_bytes"), data));
	if (verified_bytes || !zf_text_u64(result, "data_bytes"))
		fprintf(out, "%s verified\n", zf_text_size(verified_bytes, verified));
	else
		fputs("not read (check --data, fsck.zfuse --check-data read it)\n", out);
	if (errors)
		fprintf(out, "%" PRIu64 " error%s\n", errors, errors == 1 ? "" : "s");
	else
		fputs("no errors\n", out);
}
