/* SPDX-License-Identifier: MIT */
/* The commands' JSON objects as text for people. */
#ifndef ZF_TOOLS_TEXT_H
#define ZF_TOOLS_TEXT_H

#include <json-c/json.h>
#include <stdio.h>

typedef void zf_text_fn(struct json_object *result, FILE *out);

zf_text_fn zf_text_super;
zf_text_fn zf_text_zones;
zf_text_fn zf_text_tree;
zf_text_fn zf_text_tree_dot; /* for graphviz */
zf_text_fn zf_text_node;
zf_text_fn zf_text_log;
zf_text_fn zf_text_file;
zf_text_fn zf_text_df;
zf_text_fn zf_text_check;
zf_text_fn zf_text_values; /* any object: "member.member  value", a line each */

/* ---- helpers of theirs (text.c) ---- */

uint64_t zf_text_u64(struct json_object *object, const char *key);
const char *zf_text_string(struct json_object *object, const char *key); /* "" if missing */
struct json_object *zf_text_member(struct json_object *object, const char *key);

#define ZF_TEXT_SIZE_MAX 32
/* "64M", "1.5G", "512": powers of 1024. Returns buf. */
const char *zf_text_size(uint64_t bytes, char buf[ZF_TEXT_SIZE_MAX]);

/* A value on one line: "a 1, b 2". */
void zf_text_inline(struct json_object *value, FILE *out);

#endif
