/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "btree/forest.h"

struct walk {
	struct zf_forest *forest;
	zf_tree_walk_fn *fn;
	void *arg;
	void *buf[ZF_TREE_LEVEL_MAX]; /* allocated when a level first needs one */
};

/* The cached node if there is one (a dirty node exists only there), or a private copy. */
static int load(struct walk *walk, const struct zf_node_expect *expect, struct zf_cnode **ret_node,
		const void **ret_data)
{
	struct zf_forest *forest = walk->forest;
	struct zf_cnode *node =
		zf_cache_get(&forest->cache, expect->ptr.address[0], expect->ptr.generation);
	void **buf = &walk->buf[expect->level];
	int r;

	if (node && node->owner == expect->owner && node->level == expect->level) {
		r = zf_node_check_bounds(node->data, expect, &forest->report);
		if (r < 0) {
			zf_cnode_put(node);
			return r;
		}
		*ret_node = node;
		*ret_data = node->data;
		return 0;
	}
	zf_cnode_put(node);
	if (!*buf)
		*buf = aligned_alloc(ZF_BLOCK_SIZE, forest->shape.node_size);
	if (!*buf)
		return -ENOMEM;
	r = zf_forest_read_node(forest, expect, *buf);
	if (r < 0)
		return r;
	*ret_node = NULL;
	*ret_data = *buf;
	return 0;
}

/*
 * The recursion ends, because the level falls with each call. Even if a forged tree names a node in
 * many places, it ends soon: siblings' bounds are disjoint, so the node fits only one place.
 */
static int visit(struct walk *walk, const struct zf_node_expect *expect)
{
	struct zf_cnode *node;
	const void *data;
	unsigned int count;
	int r;

	r = load(walk, expect, &node, &data);
	if (r < 0)
		return walk->fn(walk->arg, expect, NULL, r);
	r = walk->fn(walk->arg, expect, data, 0);
	count = expect->level > 0 ? zf_node_count(data) : 0;
	for (unsigned int i = 0; i < count && r == 0; i++) {
		struct zf_node_expect child = zf_node_expect_child(expect, data, i);

		r = visit(walk, &child);
	}
	zf_cnode_put(node);
	return r;
}

int zf_tree_walk(struct zf_forest *forest, enum zf_tree_id id, zf_tree_walk_fn *fn, void *arg)
{
	struct walk walk = {.forest = forest, .fn = fn, .arg = arg};
	struct zf_node_expect root = {.owner = id};
	int r;

	zf_tree_get_root(forest, id, &root.ptr, &root.level);
	r = visit(&walk, &root);
	for (unsigned int i = 0; i < ZF_TREE_LEVEL_MAX; i++)
		free(walk.buf[i]);
	return r;
}
