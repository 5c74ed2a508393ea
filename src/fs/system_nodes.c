/* SPDX-License-Identifier: MIT */
/*
 * The nodes of the root and zone trees, which zone items do not count: they are written after the
 * items are. Whoever needs them walks the two trees, which are small.
 */
#include "alloc/alloc.h"
#include "btree/tree.h"
#include "fs/inode.h"

struct system_nodes {
	struct zf_alloc *alloc; /* NULL: only count them */
	unsigned int count;
};

static int visit_system_node(void *arg, const struct zf_node_expect *expect, const void *node,
			     int error)
{
	struct system_nodes *nodes = arg;

	if (error < 0)
		return error;
	nodes->count++;
	return nodes->alloc ? zf_alloc_load_system_node(nodes->alloc, expect->ptr.address) : 0;
}

static int walk_system_nodes(struct zf_forest *forest, struct zf_alloc *alloc, bool load)
{
	struct system_nodes nodes = {.alloc = load ? alloc : NULL};
	int r = zf_tree_walk(forest, ZF_TREE_ROOT, visit_system_node, &nodes);

	if (r == 0)
		r = zf_tree_walk(forest, ZF_TREE_ZONE, visit_system_node, &nodes);
	if (r == 0)
		zf_alloc_set_tail_max(alloc, nodes.count);
	return r;
}

int zf_fs_load_system_nodes(struct zf_forest *forest, struct zf_alloc *alloc)
{
	return walk_system_nodes(forest, alloc, true);
}

int zf_fs_set_tail_max(struct zf_forest *forest, struct zf_alloc *alloc)
{
	return walk_system_nodes(forest, alloc, false);
}
