/* SPDX-License-Identifier: MIT */
/* The names, sizes and extents of each commit of a run, as changes since the commit before. */
#ifndef ZF_TOOLS_LAB_TREE_H
#define ZF_TOOLS_LAB_TREE_H

#include <json-c/json.h>

#include "base/report.h"
#include "btree/key.h"
#include "superblock/super.h"

struct zf_sim;

struct zf_lab_tree_item {
	struct zf_key key;
	uint8_t *value; /* its own */
	size_t len;
};

/* An empty tree is zeroed. */
struct zf_lab_tree {
	struct zf_lab_tree_item *items; /* by key */
	size_t count, room;
};

/*
 * Reads the fs tree of `super` from the device into `tree`. Returns the changes against its former
 * content: {"set": [item], "gone": [key]} (lab/items.h). NULL: the tree cannot be read, reported.
 */
struct json_object *zf_lab_tree_next(struct zf_lab_tree *tree, const struct zf_sim *sim,
				     const struct zf_super *super, const struct zf_report *report);
void zf_lab_tree_deinit(struct zf_lab_tree *tree);

#endif
