/* SPDX-License-Identifier: MIT */
/*
 * The commands' JSON objects as text for people. A long answer comes in parts (ctl/ctl.h): each is
 * printed when it comes, by the same function as the result that ends it.
 */
#ifndef ZF_TOOLS_TEXT_H
#define ZF_TOOLS_TEXT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "table.h"

#define ZF_TEXT_ZONE_COLOURS 8
#define ZF_TEXT_FOLD	     8 /* children of the root in a graph, if nobody says how many */

/* One answer; begins as zeroes but for `out`, and for what says that it is set. */
struct zf_text {
	FILE *out;
	bool begun; /* a part was printed */
	bool last;  /* this is the result */
	struct zf_table table;
	uint64_t top; /* of a tree: its root's level */
	struct {
		uint64_t zones_a_cell;
		uint64_t zones, cells; /* in this cell so far; in all */
		unsigned int letter;
	} map; /* of zones */
	struct {
		/* Set by who begins: so many children of the root are drawn; what has this
		 * generation or a later one is new (0: what has the root's). */
		uint64_t fold, since;
		struct json_object *wanted; /* its keys are the addresses of what is drawn */
		uint64_t zone_size;
		uint64_t zones[ZF_TEXT_ZONE_COLOURS]; /* that have colours */
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

/* ---- helpers of theirs (text.c) ---- */

uint64_t zf_text_u64(struct json_object *object, const char *key);
const char *zf_text_string(struct json_object *object, const char *key); /* "" if missing */
struct json_object *zf_text_member(struct json_object *object, const char *key);
/* Of a node: "address", or the first of them. */
uint64_t zf_text_first_address(struct json_object *object);

#define ZF_TEXT_SIZE_MAX 32
#define ZF_TEXT_TIME_MAX 32
/* Of seconds since 1970, in local time: "2026-11-27 17:09:25". Returns buf. */
const char *zf_text_time(uint64_t seconds, char buf[ZF_TEXT_TIME_MAX]);

/* "64M", "1.5G", "512": powers of 1024. Returns buf. */
const char *zf_text_size(uint64_t bytes, char buf[ZF_TEXT_SIZE_MAX]);

/* Of a long answer there is one table. */
struct zf_table *zf_text_begin_table(struct zf_text *text, const struct zf_table_column *columns,
				     size_t column_count);
/* A cell with the size that a member is. */
void zf_text_add_size(struct zf_table *table, struct json_object *object, const char *key);

/* Any object: "member.member  value", a line each. */
void zf_text_object(struct json_object *object, FILE *out);

/* A "dump" of bytes (ctl/report_hex.h), a line or more each field. */
void zf_text_hex(struct json_object *dump, FILE *out);

/* A value on one line: "a 1, b 2". */
void zf_text_inline(struct json_object *value, FILE *out);

#endif
