/* SPDX-License-Identifier: MIT */
/* Hints: recently edited leaves, so that the next edit near one of them need not descend. */
#include "btree/forest.h"

/*
 * Neighbouring keys mostly belong to one inode or, in the summary tree, to one zone. Inodes that
 * were made one after the other have neighbouring keys too, and share a slot.
 */
static unsigned int slot_of(const struct zf_key *key)
{
	return (unsigned int)((key->objectid >> 5) + key->type) % ZF_TREE_HINTS;
}

const struct zf_leaf *zf_hint_find_locked(const struct zf_tree *tree, const struct zf_key *key)
{
	const struct zf_hint *hint = &tree->hints[slot_of(key)];
	const struct zf_leaf *leaf = &hint->leaf;

	if (!leaf->node || hint->shape != tree->shape)
		return NULL;
	if (leaf->has_first && zf_key_cmp(key, &leaf->first) < 0)
		return NULL;
	if (leaf->has_next && zf_key_cmp(key, &leaf->next) >= 0)
		return NULL;
	return leaf;
}

/* The key that separates the path's leaf from the one before it. */
static void set_first(struct zf_leaf *leaf, const struct zf_path *path)
{
	leaf->has_first = false;
	for (uint8_t level = 1; level <= path->top && !leaf->has_first; level++) {
		leaf->has_first = path->slot[level] > 0;
		if (leaf->has_first)
			leaf->first = zf_node_key(path->node[level]->data, path->slot[level]);
	}
}

void zf_hint_set_locked(struct zf_tree *tree, const struct zf_key *key, const struct zf_path *path)
{
	struct zf_hint *hint = &tree->hints[slot_of(key)];
	struct zf_cnode *old = hint->leaf.node;

	hint->shape = tree->shape;
	hint->leaf.node = zf_cnode_ref(path->node[0]);
	hint->leaf.next = path->next[0];
	hint->leaf.has_next = path->has_next[0];
	set_first(&hint->leaf, path);
	zf_cnode_put(old);
}

void zf_hint_drop_all(struct zf_tree *tree)
{
	for (unsigned int i = 0; i < ZF_TREE_HINTS; i++) {
		zf_cnode_put(tree->hints[i].leaf.node);
		tree->hints[i].leaf.node = NULL;
	}
}

struct zf_cnode *zf_edit_hinted_leaf(const struct zf_edit *edit, const struct zf_key *key)
{
	const struct zf_leaf *leaf;
	struct zf_key lowest;

	/* The root and zone trees may be edited after sealing: such edits touch the whole path. */
	if (edit->writer->generation <= edit->tree->frozen)
		return NULL;
	leaf = zf_hint_find_locked(edit->tree, key);
	if (!leaf || !zf_edit_owns(edit, leaf->node) || zf_node_count(leaf->node->data) == 0)
		return NULL;
	/* A key below the leaf's first one might have to lower keys of the nodes above. */
	lowest = zf_node_key(leaf->node->data, 0);
	return zf_key_cmp(key, &lowest) < 0 ? NULL : leaf->node;
}
