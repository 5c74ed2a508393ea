/* SPDX-License-Identifier: MIT */
#include "dump.h"

#include <stdbool.h>
#include <stdint.h>

#define LINE	  16u
#define VALUE_MAX 1024

static bool all_zero(const uint8_t *p, unsigned int len)
{
	for (unsigned int i = 0; i < len; i++)
		if (p[i] != 0)
			return false;
	return true;
}

static void print_note(FILE *out, unsigned int columns_left, const char *note)
{
	if (note[0])
		fprintf(out, "%*s  %s", (int)columns_left, "", note);
	fputc('\n', out);
}

static void print_line(FILE *out, unsigned int offset, const uint8_t *p, unsigned int len,
		       const char *note)
{
	fprintf(out, "%04x ", offset);
	for (unsigned int i = 0; i < len; i++)
		fprintf(out, " %02x", p[i]);
	print_note(out, 3 * (LINE - len), note);
}

void zf_dump_bytes_at(FILE *out, unsigned int base, const char *note, const void *data,
		      unsigned int len)
{
	const uint8_t *p = data;

	for (unsigned int done = 0; done < len; done += LINE) {
		unsigned int left = len - done;
		const char *line_note = done ? "" : note;

		if (left > 2 * LINE && all_zero(p + done, left)) {
			int n = fprintf(out, "%04x  00 * %u", base + done, left);

			print_note(out, 5 + 3 * LINE - (unsigned int)n, line_note);
			return;
		}
		print_line(out, base + done, p + done, left < LINE ? left : LINE, line_note);
	}
}

void zf_dump_annotated_at(FILE *out, unsigned int base, const char *prefix,
			  const struct zf_fields *fields, const void *data)
{
	for (unsigned int i = 0; i < fields->count; i++) {
		const struct zf_field *field = &fields->field[i];
		char value[VALUE_MAX], note[VALUE_MAX + 128];

		zf_field_value_to_text(field, data, value, sizeof(value));
		snprintf(note, sizeof(note), "%s%s%s%s", prefix, field->name, value[0] ? " " : "",
			 value);
		zf_dump_bytes_at(out, base + field->offset, note,
				 (const uint8_t *)data + field->offset, field->size);
	}
}

void zf_dump_annotated(FILE *out, const struct zf_fields *fields, const void *data)
{
	zf_dump_annotated_at(out, 0, "", fields, data);
}

void zf_dump_values(FILE *out, const struct zf_fields *fields, const void *data)
{
	for (unsigned int i = 0; i < fields->count; i++) {
		char value[VALUE_MAX];

		if (fields->field[i].kind == ZF_FIELD_ZERO)
			continue;
		fprintf(out, "%-24s %s\n", fields->field[i].name,
			zf_field_value_to_text(&fields->field[i], data, value, sizeof(value)));
	}
}
