/* SPDX-License-Identifier: MIT */
/*
 * Prints an answer that comes in parts (ctl/ctl.h) as one JSON object. An array that continues in
 * the next part stays open. In an answer of more than one part, each element of an array has a line
 * of its own.
 */
#ifndef ZF_TOOLS_JSON_OUT_H
#define ZF_TOOLS_JSON_OUT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>

/* The caller sets `out` and zeroes the rest. */
struct zf_json_out {
	FILE *out;
	bool begun;    /* a part was printed */
	bool elements; /* the open array has elements */
	char *open;    /* the name of the array that is not closed; NULL: none */
};

void zf_json_out_part(struct zf_json_out *json, struct json_object *part);
void zf_json_out_result(struct zf_json_out *json, struct json_object *result);

#endif
