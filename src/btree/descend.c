/* SPDX-License-Identifier: MIT */
/* Descends a tree, through cached nodes only. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "btree/forest.h"

/*
 * A cached node was verified against some pointer, perhaps not the present one. So its tree and
 * level are compared with those that are expected here.
 */
static int check_kind(struct zf_forest *forest, const struct zf_cnode *node, enum zf_tree_id id,
		      uint8_t level)
{
	if (node->owner != id)
		return zf_report_corrupt(&forest->report, "node", node->address[0],
					 "owner has %u, expected %u", (unsigned int)node->owner,
					 (unsigned int)id);
	if (node->level != level)
		return zf_report_corrupt(&forest->report, "node", node->address[0],
					 "level has %u, expected %u", node->level, level);
	return 0;
}

static int get_node(struct zf_forest *forest, enum zf_tree_id id, const struct zf_node_ptr *ptr,
		    uint8_t level, struct zf_cnode **ret_node)
{
	struct zf_cnode *node = zf_cache_get(&forest->cache, ptr->address[0], ptr->generation);
	int r;

	if (!node)
		return -EAGAIN;
	r = check_kind(forest, node, id, level);
	if (r < 0) {
		zf_cnode_put(node);
		return r;
	}
	*ret_node = node;
	return 0;
}

static void want_root(struct zf_fetch *fetch, enum zf_tree_id id, const struct zf_tree *tree)
{
	fetch->want = (struct zf_node_expect){.ptr = tree->root, .owner = id, .level = tree->level};
	fetch->dispensable = false;
}

int zf_forest_descend_root_locked(struct zf_forest *forest, enum zf_tree_id id,
				  struct zf_fetch *fetch, struct zf_cnode **ret_node)
{
	struct zf_tree *tree = zf_forest_tree(forest, id);
	int r = get_node(forest, id, &tree->root, tree->level, ret_node);

	if (r == -EAGAIN)
		want_root(fetch, id, tree);
	return r;
}

/* Notes the properties of the parent's child in `slot`, which zf_fetch_run() will read. */
static void want_child(struct zf_fetch *fetch, enum zf_tree_id id, const struct zf_cnode *parent,
		       unsigned int slot, const struct zf_key *next)
{
	fetch->want = (struct zf_node_expect){
		.ptr = zf_node_child(parent->data, slot),
		.owner = id,
		.level = (uint8_t)(parent->level - 1),
		.first_key = zf_node_key(parent->data, slot),
		.check_first_key = true,
		.check_next_key = next != NULL,
	};
	if (next)
		fetch->want.next_key = *next;
	fetch->dispensable = false;
}

/* next: every key of the parent is below it; NULL: no bound. */
static int get_child(struct zf_forest *forest, enum zf_tree_id id, const struct zf_cnode *parent,
		     unsigned int slot, const struct zf_key *next, struct zf_fetch *fetch,
		     struct zf_cnode **ret_node)
{
	struct zf_node_ptr ptr = zf_node_child(parent->data, slot);
	struct zf_key sibling;
	int r;

	r = get_node(forest, id, &ptr, (uint8_t)(parent->level - 1), ret_node);
	if (r != -EAGAIN)
		return r;
	if (slot + 1 < zf_node_count(parent->data)) {
		sibling = zf_node_key(parent->data, slot + 1);
		next = &sibling;
	}
	want_child(fetch, id, parent, slot, next);
	return -EAGAIN;
}

int zf_forest_descend_leaf_locked(struct zf_forest *forest, enum zf_tree_id id,
				  const struct zf_key *key, struct zf_fetch *fetch,
				  struct zf_leaf *leaf)
{
	const struct zf_leaf *hint = zf_hint_find_locked(zf_forest_tree(forest, id), key);
	struct zf_cnode *node, *child = NULL;
	int r;

	if (hint) {
		*leaf = *hint;
		zf_cnode_ref(leaf->node);
		return 0;
	}
	leaf->has_first = leaf->has_next = false;
	r = zf_forest_descend_root_locked(forest, id, fetch, &node);
	if (r < 0)
		return r;
	while (node->level > 0) {
		unsigned int slot = zf_node_search_child(node->data, key);

		r = get_child(forest, id, node, slot, leaf->has_next ? &leaf->next : NULL, fetch,
			      &child);
		if (slot > 0) {
			leaf->first = zf_node_key(node->data, slot);
			leaf->has_first = true;
		}
		if (slot + 1 < zf_node_count(node->data)) {
			leaf->next = zf_node_key(node->data, slot + 1);
			leaf->has_next = true;
		}
		zf_cnode_put(node);
		if (r < 0)
			return r;
		node = child;
	}
	leaf->node = node;
	return 0;
}

void zf_path_init(struct zf_path *path)
{
	memset(path->node, 0, sizeof(path->node));
	path->top = path->bottom = 0;
}

void zf_path_release(struct zf_path *path)
{
	for (unsigned int i = 0; i <= path->top; i++)
		zf_cnode_put(path->node[i]);
	zf_path_init(path);
}

static int check_bounds(struct zf_forest *forest, const struct zf_path *path,
			const struct zf_cnode *node, unsigned int slot)
{
	const struct zf_cnode *parent = path->node[node->level + 1];
	struct zf_node_expect expect = {
		.ptr.address = {node->address[0], node->address[1]},
		.first_key = zf_node_key(parent->data, slot),
		.check_first_key = true,
	};

	if (slot + 1 < zf_node_count(parent->data)) {
		expect.next_key = zf_node_key(parent->data, slot + 1);
		expect.check_next_key = true;
	} else if (path->has_next[parent->level]) {
		expect.next_key = path->next[parent->level];
		expect.check_next_key = true;
	}
	return zf_node_check_bounds(node->data, &expect, &forest->report);
}

static int get_checked_child(struct zf_forest *forest, enum zf_tree_id id,
			     const struct zf_path *path, uint8_t level, unsigned int slot,
			     struct zf_fetch *fetch, struct zf_cnode **ret_node)
{
	struct zf_cnode *child = NULL;
	int r;

	r = get_child(forest, id, path->node[level + 1], slot,
		      path->has_next[level + 1] ? &path->next[level + 1] : NULL, fetch, &child);
	if (r < 0)
		return r;
	r = check_bounds(forest, path, child, slot);
	if (r < 0) {
		zf_cnode_put(child);
		return r;
	}
	*ret_node = child;
	return 0;
}

static void set_next(struct zf_path *path, uint8_t level)
{
	const void *parent = path->node[level + 1]->data;
	unsigned int slot = path->slot[level + 1];

	path->has_next[level] = path->has_next[level + 1];
	path->next[level] = path->next[level + 1];
	if (slot + 1 < zf_node_count(parent)) {
		path->has_next[level] = true;
		path->next[level] = zf_node_key(parent, slot + 1);
	}
}

int zf_path_find_locked(struct zf_forest *forest, enum zf_tree_id id, const struct zf_key *key,
			uint8_t level, struct zf_fetch *fetch, struct zf_path *path)
{
	struct zf_cnode *node;
	int r;

	if (!path->node[path->top]) {
		r = zf_forest_descend_root_locked(forest, id, fetch, &node);
		if (r < 0)
			return r;
		path->top = path->bottom = node->level;
		path->node[path->top] = node;
		path->has_next[path->top] = false;
	}
	while (path->bottom > level) {
		uint8_t below = (uint8_t)(path->bottom - 1);
		unsigned int slot = zf_node_search_child(path->node[path->bottom]->data, key);

		r = get_checked_child(forest, id, path, below, slot, fetch, &node);
		if (r < 0)
			return r;
		path->slot[path->bottom] = slot;
		path->node[below] = node;
		set_next(path, below);
		path->bottom = below;
	}
	return 0;
}

int zf_path_sibling_locked(struct zf_forest *forest, enum zf_tree_id id, struct zf_path *path,
			   uint8_t level, unsigned int slot, bool wait, struct zf_fetch *fetch,
			   struct zf_cnode **ret_node)
{
	int r = get_checked_child(forest, id, path, level, slot, fetch, ret_node);

	if (r != -EAGAIN)
		return r;
	if (!wait || fetch->dispense)
		return -ENOENT;
	fetch->dispensable = true;
	return -EAGAIN;
}
