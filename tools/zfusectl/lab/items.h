/* SPDX-License-Identifier: MIT */
/*
 * Items of the fs tree that make up names, sizes and extents, and log bodies that change such
 * items, as JSON for the page of a replay.
 *
 *      ["i", inode, mode, "size"]                       an inode
 *      ["n", directory, "hash", [[name, inode, type]]]  names that share a hash
 *      ["x", inode, offset, type, bytes, address]       an extent
 *      ["t", 3, number, inode, from, to]                an unfinished truncation
 *
 * The first three elements are an item's key; other items are left out. Sizes are text, because a
 * file's size may exceed the exact integers of JavaScript.
 */
#ifndef ZF_TOOLS_LAB_ITEMS_H
#define ZF_TOOLS_LAB_ITEMS_H

#include <json-c/json.h>

#include "log/body.h"

/* NULL: an item of another kind, or one whose value is malformed. */
struct json_object *zf_lab_item(const struct zf_key *key, const void *value, size_t len);
/* The key alone; NULL as above. */
struct json_object *zf_lab_key(const struct zf_key *key);

/*
 * {"number", "edits": [["set", item], ["delete", key], ["resize", inode, "size"]]}, or
 * {"number", "inode", "mode", "size", "ranges": [[type, offset, bytes, address, riding]]}. The body
 * was viewed as one of a record at address 0, so the address of a riding range is relative to its
 * record.
 */
struct json_object *zf_lab_body(const struct zf_log_body_view *body);

#endif
