/* SPDX-License-Identifier: MIT */
/* Structures byte by byte (ctl/report_hex.h). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "dump.h"
#include "text.h"

static unsigned int digit(char c)
{
	return (unsigned int)(c <= '9' ? c - '0' : c - 'a' + 10);
}

/* Decodes lower-case hexadecimal digits, two a byte. The caller frees the result. */
static uint8_t *bytes_of(const char *hex, size_t len)
{
	uint8_t *bytes = malloc(len + 1);

	for (size_t i = 0; bytes && i < len; i++)
		bytes[i] = (uint8_t)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
	return bytes;
}

static void print_entry(struct json_object *entry, FILE *out)
{
	const char *hex = zf_text_string(entry, "bytes");
	uint64_t offset = zf_text_u64(entry, "offset");
	size_t len = strlen(hex) / 2;
	char note[ZF_DUMP_NOTE_MAX];
	uint8_t *bytes;
	bool withheld = json_object_get_boolean(zf_text_member(entry, "withheld"));

	zf_dump_note(zf_text_string(entry, "part"), zf_text_string(entry, "field"),
		     withheld ? "(not shown)" : zf_text_string(entry, "value"), note, sizeof(note));
	if (withheld) {
		zf_dump_withheld(out, offset, zf_text_u64(entry, "size"), note);
		return;
	}
	bytes = bytes_of(hex, len);
	if (bytes)
		zf_dump_bytes(out, offset, bytes, len, note);
	free(bytes);
}

void zf_text_hex(struct json_object *dump, FILE *out)
{
	for (size_t i = 0; dump && i < json_object_array_length(dump); i++)
		print_entry(json_object_array_get_idx(dump, i), out);
}

void zf_text_node_hex(struct zf_text *text, struct json_object *part)
{
	const char *error = zf_text_string(part, "error");

	if (!text->begun) {
		fprintf(text->out, "node %" PRIu64, zf_text_u64(part, "address"));
		if (error[0])
			fprintf(text->out, " is damaged: %s\n", error);
		else
			fprintf(text->out, " of tree %s\n", zf_text_string(part, "tree"));
	}
	zf_text_hex(zf_text_member(part, "dump"), text->out);
}

static void print_record(struct json_object *record, FILE *out)
{
	bool wins = json_object_get_boolean(zf_text_member(record, "wins"));
	const char *error = zf_text_string(record, "error");

	fprintf(out, "record at %" PRIu64 ", %s%s%s\n", zf_text_u64(record, "address"),
		wins ? "the one that counts" : zf_text_string(record, "status"),
		error[0] ? ": " : "", error);
	zf_text_hex(zf_text_member(record, "dump"), out);
	fputc('\n', out);
}

void zf_text_super_hex(struct zf_text *text, struct json_object *part)
{
	struct json_object *records = zf_text_member(part, "records");

	for (size_t i = 0; i < json_object_array_length(records); i++) {
		struct json_object *record = json_object_array_get_idx(records, i);

		if (zf_text_member(record, "dump"))
			print_record(record, text->out);
	}
	if (text->last)
		fprintf(text->out, "* %s\n", zf_text_string(part, "reason"));
}
