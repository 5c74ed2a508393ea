/* SPDX-License-Identifier: MIT */
#include "dump.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define LINE 16u
/* Where notes begin: an offset, two spaces, the bytes with a space before each, a space. */
#define NOTE_COLUMN (4 + 1 + 3 * LINE + 2)

static bool all_zero(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != 0)
			return false;
	return true;
}

/* How many characters of the note fit into `room` columns: whole words, if one fits. */
static size_t fitting(const char *note, size_t room)
{
	size_t len = strlen(note);

	if (len <= room)
		return len;
	for (size_t i = room; i > 0; i--)
		if (note[i] == ' ')
			return i;
	return room;
}

/* Prints as much of the note as fits behind `used` columns. Returns the rest of the note. */
static const char *print_note(FILE *out, int used, const char *note)
{
	int column = used > (int)NOTE_COLUMN - 2 ? used + 2 : (int)NOTE_COLUMN;
	size_t len = fitting(note, (size_t)(ZF_DUMP_COLUMNS - column));

	if (len > 0)
		fprintf(out, "%*s%.*s", column - used, "", (int)len, note);
	fputc('\n', out);
	return note + len + (note[len] == ' ');
}

static void print_rest(FILE *out, const char *note)
{
	while (note[0])
		note = print_note(out, 0, note);
}

static int print_line(FILE *out, uint64_t offset, const uint8_t *p, size_t len)
{
	int used = fprintf(out, "%04" PRIx64 " ", offset);

	for (size_t i = 0; i < len; i++)
		used += fprintf(out, " %02x", p[i]);
	return used;
}

void zf_dump_bytes(FILE *out, uint64_t offset, const void *data, size_t len, const char *note)
{
	const uint8_t *p = data;
	size_t done = 0;

	while (done < len) {
		size_t left = len - done, count = left < LINE ? left : LINE;
		int used;

		if (left > 2 * LINE && all_zero(p + done, left)) {
			used = fprintf(out, "%04" PRIx64 "  00 * %zu", offset + done, left);
			count = left;
		} else {
			used = print_line(out, offset + done, p + done, count);
		}
		note = print_note(out, used, note);
		done += count;
	}
	print_rest(out, note);
}

void zf_dump_withheld(FILE *out, uint64_t offset, size_t len, const char *note)
{
	int used = fprintf(out, "%04" PRIx64 "  -- * %zu", offset, len);

	print_rest(out, print_note(out, used, note));
}

const char *zf_dump_note(const char *part, const char *name, const char *value, char *buf,
			 size_t size)
{
	snprintf(buf, size, "%s%s%s%s%s", part, part[0] ? " " : "", name, value[0] ? " " : "",
		 value);
	return buf;
}

void zf_dump_annotation(void *out, const struct zf_annotation *annotation)
{
	char note[ZF_DUMP_NOTE_MAX];

	zf_dump_bytes(out, annotation->offset, annotation->bytes, annotation->size,
		      zf_dump_note(annotation->part, annotation->name, annotation->value, note,
				   sizeof(note)));
}
