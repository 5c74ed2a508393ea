/* SPDX-License-Identifier: MIT */
/*
 * Prints aligned columns of text. A long table is printed in parts: only the first part has the
 * titles, and columns of later parts may become wider.
 */
#ifndef ZF_TOOLS_TABLE_H
#define ZF_TOOLS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct zf_table_column {
	const char *title; /* NULL: no title line */
	bool right;	   /* numbers */
};

#define ZF_TABLE_COLUMNS_MAX 10

struct zf_table {
	const struct zf_table_column *columns;
	size_t column_count;
	char **cells; /* row by row */
	size_t cell_count, room;
	size_t width[ZF_TABLE_COLUMNS_MAX]; /* so far */
	bool printed;
};

void zf_table_init(struct zf_table *table, const struct zf_table_column *columns,
		   size_t column_count);
void zf_table_deinit(struct zf_table *table);

/* Adds the next cell, from left to right, row by row. If there is no memory, the program ends. */
void zf_table_add(struct zf_table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints the rows that were added since the last time, and forgets them. */
void zf_table_print(struct zf_table *table, FILE *out);

#endif
