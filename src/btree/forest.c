/* SPDX-License-Identifier: MIT */
#include "btree/forest.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

static void tree_init(struct zf_tree *tree)
{
	zf_rwlock_init(&tree->lock, ZF_RANK_TREE);
	for (unsigned int i = 0; i < ZF_TREE_LEVEL_MAX; i++) {
		TAILQ_INIT(&tree->running[i]);
		TAILQ_INIT(&tree->freezing[i]);
	}
}

int zf_forest_new(struct zf_dev *dev, const struct zf_forest_options *options,
		  const struct zf_report *report, struct zf_forest **ret_forest)
{
	struct zf_forest *forest = calloc(1, sizeof(*forest));
	int r;

	if (!forest)
		return -ENOMEM;
	assert(options->shape.node_size >= ZF_NODE_SIZE_MIN);
	assert(options->shape.node_size <= ZF_NODE_SIZE_MAX);
	assert(options->shape.copies >= 1 && options->shape.copies <= ZF_COPIES_MAX);
	forest->dev = dev;
	forest->shape = options->shape;
	forest->shape.geometry = zf_dev_geometry(dev);
	if (report)
		forest->report = *report;
	r = zf_cache_init(&forest->cache, options->shape.node_size, options->cache_bytes);
	if (r < 0) {
		free(forest);
		return r;
	}
	for (unsigned int i = 0; i < ZF_TREE_COUNT; i++)
		tree_init(&forest->trees[i]);
	*ret_forest = forest;
	return 0;
}

void zf_forest_free(struct zf_forest *forest)
{
	if (!forest)
		return;
	for (unsigned int i = 0; i < ZF_TREE_COUNT; i++) {
		zf_hint_drop_all(&forest->trees[i]);
		zf_rwlock_deinit(&forest->trees[i].lock);
	}
	zf_cache_deinit(&forest->cache);
	free(forest);
}

const struct zf_node_shape *zf_forest_shape(const struct zf_forest *forest)
{
	return &forest->shape;
}

void zf_tree_replace_root_locked(struct zf_tree *tree, const struct zf_node_ptr *ptr, uint8_t level,
				 uint64_t generation)
{
	tree->root = *ptr;
	tree->level = level;
	tree->changed = generation;
	atomic_store_explicit(&tree->height, (unsigned char)(level + 1), memory_order_relaxed);
}

void zf_tree_set_root(struct zf_forest *forest, enum zf_tree_id id, const struct zf_node_ptr *ptr,
		      uint8_t level)
{
	struct zf_tree *tree = zf_forest_tree(forest, id);

	zf_rwlock_wrlock(&tree->lock);
	zf_tree_replace_root_locked(tree, ptr, level, 0);
	tree->shape++;
	tree->frozen_root = *ptr;
	tree->frozen_level = level;
	zf_rwlock_unlock(&tree->lock);
}

void zf_tree_get_root(struct zf_forest *forest, enum zf_tree_id id, struct zf_node_ptr *ret_ptr,
		      uint8_t *ret_level)
{
	struct zf_tree *tree = zf_forest_tree(forest, id);

	zf_rwlock_rdlock(&tree->lock);
	*ret_ptr = tree->root;
	*ret_level = tree->level;
	zf_rwlock_unlock(&tree->lock);
}

/*
 * An item operation copies at most the path, one node per level (h levels). It creates one node for
 * each level that splits, and a new root: 2h + 1. A neighbour that shares the items of a full leaf
 * is the writer's already (btree/redistribute.h), and making three leaves of two creates only one.
 * If a packed leaf becomes three, the second new leaf does not split the levels above again:
 * 2h + 2. Deleting copies at most the path (a merge absorbs the neighbour into the node on the
 * path, so the neighbour is only freed) and creates at most an empty root. All these nodes are
 * reserved before the first change (the two new leaves of a packed one are reserved one after the
 * other, each before it is made), so a restart costs nothing.
 *
 * Between this call and the operation, other operations may make the tree higher. So h is one level
 * more than the tree has, and at least four. To outgrow h, a root of at least three levels has to
 * fill and split, and the new root has to fill. That takes more than (children_max / 2)^2 > 1000
 * other insertions in between.
 */
unsigned int zf_forest_worst_nodes(struct zf_forest *forest)
{
	unsigned int height = 3;

	for (unsigned int i = 0; i < ZF_TREE_COUNT; i++) {
		unsigned int h =
			atomic_load_explicit(&forest->trees[i].height, memory_order_relaxed);

		if (h > height)
			height = h;
	}
	return 2 * (height + 1) + 1;
}

void zf_forest_get_stats(struct zf_forest *forest, struct zf_forest_stats *ret_stats)
{
	*ret_stats = (struct zf_forest_stats){
		.cache_hits = zf_cache_hits(&forest->cache),
		.cache_misses = forest->misses,
		.nodes_cached = forest->cache.nodes,
		.nodes_dirty = forest->cache.nodes_dirty,
		.nodes_max = forest->cache.nodes_max * forest->cache.shard_count,
		.nodes_copied = forest->copied,
		.splits = forest->splits,
		.shares = forest->shares,
		.merges = forest->merges,
		.damaged = forest->damaged,
	};
}
