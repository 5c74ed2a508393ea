/* SPDX-License-Identifier: MIT */
/* Prints the answers of daemons as metrics of Prometheus, by one table of families. */
#ifndef ZF_TOOLS_METRICS_TEXT_H
#define ZF_TOOLS_METRICS_TEXT_H

#include <json-c/json.h>
#include <stdio.h>

/*
 * `filesystems`: an array of {"device": text, "up": bool}, each with the daemon's answers by the
 * names of the commands ("stats": {...}). Without an answer its samples are left out. No two
 * elements have the same device, which is a label of every sample.
 */
void zf_metrics_print(FILE *out, struct json_object *filesystems);

#endif
