/* SPDX-License-Identifier: MIT */
#include "support/format_doc.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define LINE_MAX_BYTES 4096

struct doc {
	FILE *file;
	const char *path;
	unsigned int line_no;
	char line[LINE_MAX_BYTES];
};

static bool next_line(struct doc *doc)
{
	if (!fgets(doc->line, sizeof(doc->line), doc->file))
		return false;
	doc->line[strcspn(doc->line, "\n")] = '\0';
	doc->line_no++;
	return true;
}

/* Goes to the line after the heading that contains `text`. */
static void open_section(struct doc *doc, const char *path, const char *text)
{
	*doc = (struct doc){.path = path, .file = fopen(path, "r")};
	if (!doc->file)
		fail_msg("%s: cannot be opened", path);
	while (next_line(doc))
		if (doc->line[0] == '#' && strstr(doc->line, text))
			return;
	fail_msg("%s: no heading names %s", path, text);
}

static void open_struct_section(struct doc *doc, const char *path, const struct zf_fields *fields)
{
	char text[128];

	snprintf(text, sizeof(text), "`struct %s`", fields->name);
	open_section(doc, path, text);
}

/* The next row of a table whose first cell is a number; false at the end of the section. */
static bool next_row(struct doc *doc)
{
	while (next_line(doc) && doc->line[0] != '#')
		if (doc->line[0] == '|' &&
		    isdigit((unsigned char)doc->line[1 + strspn(doc->line + 1, " ")]))
			return true;
	return false;
}

/* "| a | b |" becomes "a", "b", ... */
static unsigned int split_row(char *line, char *cells[], unsigned int max)
{
	unsigned int count = 0;
	char *save = NULL;

	for (char *cell = strtok_r(line, "|", &save); cell && count < max;
	     cell = strtok_r(NULL, "|", &save)) {
		size_t len;

		cell += strspn(cell, " `");
		for (len = strlen(cell); len > 0 && strchr(" `", cell[len - 1]); len--)
			cell[len - 1] = '\0';
		cells[count++] = cell;
	}
	return count;
}

static void check_row(struct doc *doc, const struct zf_field *field)
{
	char line[LINE_MAX_BYTES], type[32], *cells[5];

	strcpy(line, doc->line);
	if (split_row(line, cells, 5) != 5)
		fail_msg("%s:%u: not offset, size, type, field, meaning", doc->path, doc->line_no);
	zf_field_type_to_text(field, type, sizeof(type));
	if (strtoul(cells[0], NULL, 10) != field->offset ||
	    strtoul(cells[1], NULL, 10) != field->size || strcmp(cells[2], type) != 0 ||
	    strcmp(cells[3], field->name) != 0)
		fail_msg("%s:%u: has \"%s\", expected | %u | %u | %s | `%s` |", doc->path,
			 doc->line_no, doc->line, field->offset, field->size, type, field->name);
	if (cells[4][0] == '\0')
		fail_msg("%s:%u: says nothing about %s", doc->path, doc->line_no, field->name);
}

void zf_format_doc_check(const char *path, const struct zf_fields *fields)
{
	struct doc doc;

	open_struct_section(&doc, path, fields);
	for (unsigned int i = 0; i < fields->count; i++) {
		if (!next_row(&doc))
			fail_msg("%s:%u: the table of %s ends before %s", path, doc.line_no,
				 fields->name, fields->field[i].name);
		check_row(&doc, &fields->field[i]);
	}
	if (next_row(&doc))
		fail_msg("%s:%u: a row that %s does not have", path, doc.line_no, fields->name);
	fclose(doc.file);
}

static void check_example_lines(struct doc *doc, char *expected)
{
	char *save = NULL;

	for (char *line = strtok_r(expected, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		if (!next_line(doc) || strcmp(doc->line, line) != 0)
			fail_msg("%s:%u: has \"%s\", expected \"%s\"", doc->path, doc->line_no,
				 doc->line, line);
	if (!next_line(doc) || strncmp(doc->line, "```", 3) != 0)
		fail_msg("%s:%u: the example goes on", doc->path, doc->line_no);
}

static void check_block(struct doc *doc, const char *what, const char *expected)
{
	char *text = strdup(expected);

	assert_non_null(text);
	if (getenv("ZF_PRINT_EXAMPLE"))
		fputs(expected, stdout);
	do {
		if (!next_line(doc) || doc->line[0] == '#')
			fail_msg("%s:%u: no example of %s", doc->path, doc->line_no, what);
	} while (strncmp(doc->line, "```", 3) != 0);
	check_example_lines(doc, text);
	fclose(doc->file);
	free(text);
}

void zf_format_doc_check_block(const char *path, const char *heading, const char *expected)
{
	struct doc doc;

	open_section(&doc, path, heading);
	check_block(&doc, heading, expected);
}

void zf_format_doc_check_example(const char *path, const struct zf_fields *fields,
				 const char *expected)
{
	struct doc doc;

	open_struct_section(&doc, path, fields);
	check_block(&doc, fields->name, expected);
}

void zf_format_doc_check_line(const char *path, const char *heading, const char *start)
{
	struct doc doc;

	open_section(&doc, path, heading);
	do {
		if (!next_line(&doc) || doc.line[0] == '#')
			fail_msg("%s:%u: no line under \"%s\" starts with \"%s\"", path,
				 doc.line_no, heading, start);
	} while (strncmp(doc.line, start, strlen(start)) != 0);
	fclose(doc.file);
}
