/* SPDX-License-Identifier: MIT */
/*
 * What the bytes of a run say, for the page of its replay (replay/cut.js, replay/recovery.js): a page has no bytes, and
 * no reader of nodes.
 *
 *      "device"      {"volatile_cache", "append_limit", "max_active"}: what the trace does not tell
 *      "zones"       [[written, resets]]: when the run began
 *      "contents"    [[eight numbers]]: each block that was ever written, as sectors: equal numbers
 *                    are equal bytes. Content 0 is zeroes, content 1 garbage
 *      "lay"         [[address, content, ...]]: on the device when the run began
 *      "writes"      [[sequence of the submission, content, ...]]
 *      "superblocks" {content: {"address", "generation", ...}}: blocks that are whole records
 *      "records"     {content of the first block: {"contents", ..., "bodies"}}: whole log records
 *      "trees"       [{"generation", "set": [item], "gone": [key]}]: what each commit has changed
 *                    (lab/items.h), the first one against nothing
 */
#ifndef ZF_TOOLS_LAB_FACTS_H
#define ZF_TOOLS_LAB_FACTS_H

#include <json-c/json.h>

#include "lab/run.h"

/* A tree that cannot be read is reported, and left out. */
struct json_object *zf_lab_facts(const struct zf_lab_run *run, const struct zf_report *report);

#endif
