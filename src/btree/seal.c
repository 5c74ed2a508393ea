/* SPDX-License-Identifier: MIT */
/*
 * The functions for a commit. Only the committing thread calls them.
 *
 *      freeze(N)   running dirty nodes -> freezing. Writers of N + 1 copy them from now on.
 *      seal(N)     bottom-up: checksum into the node, then into the parents' pointers
 *      (write)     zf_forest_dirty_node()
 *      clean(N)    the nodes may leave the cache
 *
 * A node of N can have two parents: the frozen one and, if that was copied meanwhile, its running
 * copy. If the parent was copied after it was filled in, the copy has the checksum. If it was
 * copied before, the copy has 0, and is patched at the end of seal(). Filling in, patching and
 * copying all happen under the tree's write lock, so there is no third case; a split or merge only
 * moves the pointer to another running node. So when clean() makes a node evictable, every pointer
 * to the node has the checksum, which verifies the node when it is read back.
 */
#include <assert.h>
#include <errno.h>

#include "btree/forest.h"

uint64_t zf_forest_dirty_bytes(struct zf_forest *forest)
{
	return forest->cache.nodes_dirty * forest->shape.node_size;
}

/* The result is a little too low while zf_forest_clean() makes frozen nodes clean one by one. */
uint64_t zf_forest_running_bytes(struct zf_forest *forest)
{
	uint64_t dirty = forest->cache.nodes_dirty, frozen = forest->nodes_frozen;

	return dirty > frozen ? (dirty - frozen) * forest->shape.node_size : 0;
}

void zf_forest_freeze(struct zf_forest *forest, uint64_t generation)
{
	forest->nodes_frozen = forest->cache.nodes_dirty;
	for (unsigned int i = 0; i < ZF_TREE_COUNT; i++) {
		struct zf_tree *tree = &forest->trees[i];

		zf_rwlock_wrlock(&tree->lock);
		assert(tree->changed <= generation);
		tree->frozen = generation;
		tree->frozen_root = tree->root;
		tree->frozen_level = tree->level;
		for (unsigned int l = 0; l < ZF_TREE_LEVEL_MAX; l++)
			TAILQ_CONCAT(&tree->freezing[l], &tree->running[l], dirty_link);
		zf_rwlock_unlock(&tree->lock);
	}
}

/* The tree's write lock is held. Pointers without a checksum lead to dirty, so cached, nodes. */
static void fill_in(struct zf_forest *forest, struct zf_node_ptr *ptr, uint64_t generation)
{
	struct zf_cnode *node;

	if (ptr->csum != 0 || ptr->generation > generation || ptr->address[0] == 0)
		return;
	node = zf_cache_get(&forest->cache, ptr->address[0], ptr->generation);
	assert(node && node->csum != 0);
	ptr->csum = node->csum;
	zf_cnode_put(node);
}

static void fill_in_children(struct zf_forest *forest, struct zf_cnode *node, uint64_t generation)
{
	unsigned int count = zf_node_count(node->data);

	for (unsigned int i = 0; i < count; i++) {
		struct zf_node_ptr ptr = zf_node_child(node->data, i);

		if (ptr.csum != 0)
			continue;
		fill_in(forest, &ptr, generation);
		zf_node_set_child(node->data, i, &ptr);
	}
}

static int seal_node(struct zf_forest *forest, struct zf_tree *tree, struct zf_cnode *node,
		     uint64_t generation)
{
	const struct zf_node_expect expect = {
		.ptr = zf_edit_pending_ptr(node),
		.owner = node->owner,
		.level = node->level,
	};
	int r;

	if (node->level > 0) {
		zf_rwlock_wrlock(&tree->lock);
		fill_in_children(forest, node, generation);
		zf_rwlock_unlock(&tree->lock);
	}
	r = zf_node_check(&forest->shape, node->data, &expect, false, &forest->report);
	if (r < 0)
		return r;
	node->csum = zf_node_csum(node->data, forest->shape.node_size);
	zf_node_set_csum(node->data, node->csum);
	ZF_TRACE(node_sealed, .generation = generation, .address = node->address[0],
		 .second = node->address[1], .items = zf_node_count(node->data),
		 .tree = (uint8_t)node->owner, .level = node->level);
	return 0;
}

static void patch_running_locked(struct zf_forest *forest, struct zf_tree *tree,
				 uint64_t generation)
{
	struct zf_cnode *node;

	for (unsigned int l = 1; l < ZF_TREE_LEVEL_MAX; l++) {
		TAILQ_FOREACH (node, &tree->running[l], dirty_link)
			fill_in_children(forest, node, generation);
	}
	fill_in(forest, &tree->root, generation);
	fill_in(forest, &tree->frozen_root, generation);
}

int zf_forest_seal(struct zf_forest *forest, enum zf_tree_id id, uint64_t generation,
		   struct zf_node_ptr *ret_root, uint8_t *ret_level)
{
	struct zf_tree *tree = zf_forest_tree(forest, id);
	struct zf_cnode *node;
	int r;

	assert(tree->frozen == generation);
	for (unsigned int l = 0; l < ZF_TREE_LEVEL_MAX; l++) {
		TAILQ_FOREACH (node, &tree->freezing[l], dirty_link) {
			r = seal_node(forest, tree, node, generation);
			if (r < 0)
				return r;
		}
	}
	zf_rwlock_wrlock(&tree->lock);
	/* The commit's own edits come after the freeze, but belong to the frozen generation. */
	if (tree->changed <= generation) {
		tree->frozen_root = tree->root;
		tree->frozen_level = tree->level;
	}
	patch_running_locked(forest, tree, generation);
	*ret_root = tree->frozen_root;
	*ret_level = tree->frozen_level;
	ZF_TRACE(tree_sealed, .generation = generation, .address = ret_root->address[0],
		 .tree = (uint8_t)id, .level = *ret_level);
	zf_rwlock_unlock(&tree->lock);
	return 0;
}

const void *zf_forest_dirty_node(struct zf_forest *forest, uint64_t address, unsigned int copy,
				 uint64_t generation)
{
	struct zf_cnode *node = zf_cache_find_dirty(&forest->cache, address, copy, generation);

	return node ? node->data : NULL;
}

void zf_forest_clean(struct zf_forest *forest, uint64_t generation)
{
	struct zf_cnode *node;

	for (unsigned int i = 0; i < ZF_TREE_COUNT; i++) {
		struct zf_tree *tree = &forest->trees[i];

		assert(tree->frozen == generation);
		for (unsigned int l = 0; l < ZF_TREE_LEVEL_MAX; l++) {
			while ((node = TAILQ_FIRST(&tree->freezing[l]))) {
				assert(node->csum != 0);
				TAILQ_REMOVE(&tree->freezing[l], node, dirty_link);
				zf_cache_make_clean(&forest->cache, node);
			}
		}
	}
	forest->nodes_frozen = 0;
}
