/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "text.h"

static void print_edit(struct json_object *edit, FILE *out)
{
	const char *kind = zf_text_string(edit, "kind");
	struct json_object *key = zf_text_member(edit, "key");

	fprintf(out, "    %s ", kind);
	if (!key) {
		fprintf(out, "inode %" PRIu64 " to %" PRIu64 " bytes\n", zf_text_u64(edit, "inode"),
			zf_text_u64(edit, "size"));
		return;
	}
	fprintf(out, "(%" PRIu64 " %s %" PRIu64 ")", zf_text_u64(key, "objectid"),
		zf_text_string(edit, "type"), zf_text_u64(key, "offset"));
	if (strcmp(kind, "set") == 0)
		fprintf(out, " %" PRIu64 " bytes", zf_text_u64(edit, "value_bytes"));
	fputc('\n', out);
}

static void print_range(struct json_object *range, FILE *out)
{
	struct json_object *riding = zf_text_member(range, "riding");

	fprintf(out, "    %s %" PRIu64 " + %" PRIu64, zf_text_string(range, "type"),
		zf_text_u64(range, "offset"), zf_text_u64(range, "length"));
	if (riding)
		fprintf(out, " at %" PRIu64 "%s", zf_text_u64(range, "address"),
			json_object_get_boolean(riding) ? ", rides" : "");
	if (zf_text_u64(range, "flags") != 0)
		fprintf(out, ", flags %" PRIu64, zf_text_u64(range, "flags"));
	fputc('\n', out);
}

static void print_body(struct json_object *body, FILE *out)
{
	struct json_object *edits = zf_text_member(body, "edits");
	struct json_object *ranges = zf_text_member(body, "ranges");

	fprintf(out, "  %" PRIu64 " %s", zf_text_u64(body, "number"), zf_text_string(body, "type"));
	if (ranges)
		fprintf(out, " of inode %" PRIu64, zf_text_u64(body, "inode"));
	fputc('\n', out);
	for (size_t i = 0; edits && i < json_object_array_length(edits); i++)
		print_edit(json_object_array_get_idx(edits, i), out);
	for (size_t i = 0; ranges && i < json_object_array_length(ranges); i++)
		print_range(json_object_array_get_idx(ranges, i), out);
}

static void print_record(struct json_object *record, FILE *out)
{
	struct json_object *bodies = zf_text_member(record, "bodies");
	const char *error = zf_text_string(record, "error");
	bool carries = zf_text_u64(record, "carried_bytes") > 0;
	uint64_t headers = zf_text_u64(record, "header_blocks");
	uint64_t data = zf_text_u64(record, "data_blocks");

	fprintf(out,
		"\nrecord %" PRIu64 " at %" PRIu64 " (zone %" PRIu64 " + %" PRIu64
		"), generation %" PRIu64 ", %" PRIu64 " header block%s, %" PRIu64
		" data block%s%s: %s\n",
		zf_text_u64(record, "sequence"), zf_text_u64(record, "address"),
		zf_text_u64(record, "zone"), zf_text_u64(record, "offset"),
		zf_text_u64(record, "generation"), headers, headers == 1 ? "" : "s", data,
		data == 1 ? "" : "s", carries ? " (the first compressed into the header)" : "",
		error[0] ? error : zf_text_string(record, "fate"));
	zf_text_hex(zf_text_member(record, "dump"), out);
	for (size_t i = 0; bodies && i < json_object_array_length(bodies); i++)
		print_body(json_object_array_get_idx(bodies, i), out);
}

static void print_header(struct json_object *part, FILE *out)
{
	struct json_object *zones = zf_text_member(part, "zones");

	fprintf(out,
		"epoch %" PRIu64 "; in the trees up to record %" PRIu64 ", number %" PRIu64
		"; bodies to replay: %" PRIu64 "\n",
		zf_text_u64(part, "epoch"), zf_text_u64(part, "sequence"),
		zf_text_u64(part, "number"), zf_text_u64(part, "to_replay"));
	for (size_t i = 0; i < json_object_array_length(zones); i++) {
		struct json_object *zone = json_object_array_get_idx(zones, i);

		fprintf(out,
			"zone %" PRIu64 ": read from %" PRIu64 ", records end at %" PRIu64 "\n",
			zf_text_u64(zone, "zone"), zf_text_u64(zone, "from"),
			zf_text_u64(zone, "end"));
	}
}

void zf_text_log(struct zf_text *text, struct json_object *part)
{
	struct json_object *records = zf_text_member(part, "records");

	if (!text->begun)
		print_header(part, text->out);
	for (size_t i = 0; i < json_object_array_length(records); i++)
		print_record(json_object_array_get_idx(records, i), text->out);
}
