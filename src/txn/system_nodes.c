/* SPDX-License-Identifier: MIT */
#include "alloc/alloc.h"
#include "alloc/reserve.h"
#include "txn/system_nodes.h"

struct counter {
	struct zf_alloc *alloc;
	bool loaded;
	unsigned int count;
};

static int visit(void *arg, const struct zf_node_expect *expect, const void *node, int error)
{
	struct counter *counter = arg;

	if (error < 0)
		return error;
	counter->count++;
	return counter->loaded ? zf_alloc_load_system_node(counter->alloc, expect->ptr.address) : 0;
}

int zf_system_nodes_count(struct zf_forest *forest, struct zf_alloc *alloc, bool loaded)
{
	struct counter counter = {.alloc = alloc, .loaded = loaded};
	int r = zf_tree_walk(forest, ZF_TREE_ROOT, visit, &counter);

	if (r == 0)
		r = zf_tree_walk(forest, ZF_TREE_ZONE, visit, &counter);
	if (r == 0)
		zf_alloc_set_tail_max(alloc, counter.count);
	return r;
}
