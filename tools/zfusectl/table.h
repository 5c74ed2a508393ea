/* SPDX-License-Identifier: MIT */
/*
 * Aligned columns of text. A long table is printed part by part: columns become wider when they
 * have to, and only the first part has the titles.
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

/* The next cell, from left to right, row by row. Out of memory ends the program. */
void zf_table_add(struct zf_table *table, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* Prints the rows that were added since the last time, and forgets them. */
void zf_table_print(struct zf_table *table, FILE *out);

#endif
