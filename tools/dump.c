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

static void print_bytes(FILE *out, const struct zf_field *field, const uint8_t *p, const char *note)
{
	for (unsigned int done = 0; done < field->size; done += LINE) {
		unsigned int left = field->size - done;
		const char *line_note = done ? "" : note;

		if (left > 2 * LINE && all_zero(p + done, left)) {
			int n = fprintf(out, "%04x  00 * %u", field->offset + done, left);

			print_note(out, 5 + 3 * LINE - (unsigned int)n, line_note);
			return;
		}
		print_line(out, field->offset + done, p + done, left < LINE ? left : LINE,
			   line_note);
	}
}

void zf_dump_annotated(FILE *out, const struct zf_fields *fields, const void *data)
{
	for (unsigned int i = 0; i < fields->count; i++) {
		const struct zf_field *field = &fields->field[i];
		char value[VALUE_MAX], note[VALUE_MAX + 64];

		zf_field_value_to_text(field, data, value, sizeof(value));
		snprintf(note, sizeof(note), "%s%s%s", field->name, value[0] ? " " : "", value);
		print_bytes(out, field, (const uint8_t *)data + field->offset, note);
	}
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
