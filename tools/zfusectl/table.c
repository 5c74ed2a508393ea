/* SPDX-License-Identifier: MIT */
#include "table.h"

#include <assert.h>
#include <err.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void zf_table_init(struct zf_table *table, const struct zf_table_column *columns,
		   size_t column_count)
{
	assert(column_count <= ZF_TABLE_COLUMNS_MAX);
	*table = (struct zf_table){.columns = columns, .column_count = column_count};
}

static void forget_cells(struct zf_table *table)
{
	for (size_t i = 0; i < table->cell_count; i++)
		free(table->cells[i]);
	table->cell_count = 0;
}

void zf_table_deinit(struct zf_table *table)
{
	forget_cells(table);
	free(table->cells);
}

void zf_table_add(struct zf_table *table, const char *format, ...)
{
	va_list ap;
	int n;

	if (table->cell_count == table->room) {
		table->room = table->room ? 2 * table->room : 64;
		table->cells = reallocarray(table->cells, table->room, sizeof(*table->cells));
		if (!table->cells)
			err(EXIT_FAILURE, NULL);
	}
	va_start(ap, format);
	n = vasprintf(&table->cells[table->cell_count], format, ap);
	va_end(ap);
	if (n < 0)
		err(EXIT_FAILURE, NULL);
	table->cell_count++;
}

static void print_cell(const struct zf_table *table, FILE *out, size_t column, size_t width,
		       const char *text)
{
	bool last = column + 1 == table->column_count;

	if (table->columns[column].right)
		fprintf(out, "%*s", (int)width, text);
	else
		fprintf(out, "%-*s", last ? 0 : (int)width, text);
	fputs(last ? "\n" : "  ", out);
}

static size_t measure(const struct zf_table *table, size_t column)
{
	const char *title = table->columns[column].title;
	size_t width = table->width[column];

	if (title && strlen(title) > width)
		width = strlen(title);
	for (size_t i = column; i < table->cell_count; i += table->column_count)
		if (strlen(table->cells[i]) > width)
			width = strlen(table->cells[i]);
	return width;
}

void zf_table_print(struct zf_table *table, FILE *out)
{
	bool titles = table->columns[0].title && !table->printed;

	for (size_t c = 0; c < table->column_count; c++)
		table->width[c] = measure(table, c);
	for (size_t c = 0; titles && c < table->column_count; c++)
		print_cell(table, out, c, table->width[c], table->columns[c].title);
	for (size_t i = 0; i < table->cell_count; i++)
		print_cell(table, out, i % table->column_count,
			   table->width[i % table->column_count], table->cells[i]);
	table->printed = true;
	forget_cells(table);
}
