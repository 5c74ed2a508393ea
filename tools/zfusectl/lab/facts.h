/* SPDX-License-Identifier: MIT */
/*
 * Describes a run's bytes for the page of its replay (replay/cut.js, replay/recovery.js), because
 * the page has no bytes and cannot decode nodes.
 *
 *      "device"      {"volatile_cache", "append_limit", "max_active"}: these are not in the trace
 *      "zones"       [[written, resets]]: when the run began
 *      "contents"    [[eight numbers]]: each block that was ever written, as sectors: equal numbers
 *                    are equal bytes. Content 0 is zeroes, content 1 garbage
 *      "lay"         [[address, content, ...]]: on the device when the run began
 *      "writes"      [[sequence of the submission, content, ...]]
 *      "superblocks" {content: {"address", "generation", ...}}: blocks that are whole records
 *      "records"     {content of the first block: {"contents", ..., "bodies"}}: whole log records
 *      "trees"       [{"generation", "set": [item], "gone": [key]}]: the changes of each commit
 *                    (lab/items.h); the first commit is compared with an empty tree
 */
#ifndef ZF_TOOLS_LAB_FACTS_H
#define ZF_TOOLS_LAB_FACTS_H

#include <json-c/json.h>

#include "lab/run.h"

/* A tree that cannot be read is reported, and left out. */
struct json_object *zf_lab_facts(const struct zf_lab_run *run, const struct zf_report *report);

#endif
