/* SPDX-License-Identifier: MIT */
/*
 * An answer as one JSON object, printed as its parts come (ctl/ctl.h): an array that goes on in the
 * next part stays open. In an answer of more than one part each element of an array has a line of
 * its own.
 */
#ifndef ZF_TOOLS_JSON_OUT_H
#define ZF_TOOLS_JSON_OUT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stdio.h>

/* Begins as zeroes but for `out`. */
struct zf_json_out {
	FILE *out;
	bool begun;    /* a part was printed */
	bool elements; /* the open array has some */
	char *open;    /* the name of the array that was not closed; NULL: none */
};

void zf_json_out_part(struct zf_json_out *json, struct json_object *part);
void zf_json_out_result(struct zf_json_out *json, struct json_object *result);

#endif
