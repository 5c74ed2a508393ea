/* SPDX-License-Identifier: MIT */
/*
 * Prints the commands' JSON objects as text. A long answer comes in parts (ctl/ctl.h). The same
 * function prints each part when it comes, and the result that ends the answer.
 */
#ifndef ZF_TOOLS_TEXT_H
#define ZF_TOOLS_TEXT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "table.h"

#define ZF_TEXT_ZONE_COLOURS 8
#define ZF_TEXT_FOLD	     8 /* default number of children of the root in a graph */

/* One answer. The caller sets `out`, and graph.fold and graph.since, and zeroes the rest. */
struct zf_text {
	FILE *out;
	bool begun; /* a part was printed */
	bool last;  /* the current part is the result */
	struct zf_table table;
	uint64_t top; /* of a tree: its root's level */
	struct {
		uint64_t zones_a_cell;
		uint64_t zones, cells; /* zones in this cell so far; cells in all */
		unsigned int letter;
	} map; /* of zones */
	struct {
		/* fold: children of the root that are drawn. since: a node of this generation
		 * or a later one is new (0: the root's generation). */
		uint64_t fold, since;
		struct json_object *wanted; /* its keys are the addresses of the nodes to draw */
		uint64_t zone_size;
		uint64_t zones[ZF_TEXT_ZONE_COLOURS]; /* zones that have a colour */
		unsigned int zone_count;
		uint64_t nodes, drawn;
	} graph; /* of a tree */
};

typedef void zf_text_fn(struct zf_text *text, struct json_object *part);

/* Prints one part, or the result. */
void zf_text_print(struct zf_text *text, zf_text_fn *print, struct json_object *part, bool last);

zf_text_fn zf_text_super;
zf_text_fn zf_text_super_hex;
zf_text_fn zf_text_zones;
zf_text_fn zf_text_zones_map;
zf_text_fn zf_text_tree;
zf_text_fn zf_text_tree_dot; /* for graphviz */
zf_text_fn zf_text_node;
zf_text_fn zf_text_node_hex;
zf_text_fn zf_text_log;
zf_text_fn zf_text_file;
zf_text_fn zf_text_path;
zf_text_fn zf_text_resolve;
zf_text_fn zf_text_df;
zf_text_fn zf_text_check;
zf_text_fn zf_text_values; /* any object */

/* ---- helpers of these functions (text.c) ---- */

uint64_t zf_text_u64(struct json_object *object, const char *key);
const char *zf_text_string(struct json_object *object, const char *key); /* "" if missing */
struct json_object *zf_text_member(struct json_object *object, const char *key);
/* A node's "address", or the first one if it has several. */
uint64_t zf_text_first_address(struct json_object *object);

#define ZF_TEXT_SIZE_MAX 32
#define ZF_TEXT_TIME_MAX 32
/* `seconds` since 1970, printed in local time: "2026-11-27 17:09:25". Returns buf. */
const char *zf_text_time(uint64_t seconds, char buf[ZF_TEXT_TIME_MAX]);

/* "64M", "1.5G", "512": powers of 1024. Returns buf. */
const char *zf_text_size(uint64_t bytes, char buf[ZF_TEXT_SIZE_MAX]);

/* The table of an answer; all parts of a long answer share it. */
struct zf_table *zf_text_begin_table(struct zf_text *text, const struct zf_table_column *columns,
				     size_t column_count);
/* Adds a cell with the size in member `key`. */
void zf_text_add_size(struct zf_table *table, struct json_object *object, const char *key);

/* Prints any object: "member.member  value", a line each. */
void zf_text_object(struct json_object *object, FILE *out);

/* Prints a "dump" of bytes (ctl/report_hex.h): a line or more for each field. */
void zf_text_hex(struct json_object *dump, FILE *out);

/* Prints a value on one line: "a 1, b 2". */
void zf_text_inline(struct json_object *value, FILE *out);

#endif
