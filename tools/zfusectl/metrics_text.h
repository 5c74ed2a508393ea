/* SPDX-License-Identifier: MIT */
/* What the daemons of mounted filesystems answer, as metrics of Prometheus: one table of families. */
#ifndef ZF_TOOLS_METRICS_TEXT_H
#define ZF_TOOLS_METRICS_TEXT_H

#include <json-c/json.h>
#include <stdio.h>

/*
 * `filesystems`: an array of {"device": text, "up": bool} with the daemon's answers beside these, by the names
 * of the commands ("stats": {...}). Answers that are missing leave their samples out. No two have the same device,
 * which is the label that every sample has.
 */
void zf_metrics_print(FILE *out, struct json_object *filesystems);

#endif
