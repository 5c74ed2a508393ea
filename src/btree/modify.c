/* SPDX-License-Identifier: MIT */
/* Insert, set, update, create, relocate. Deleting is in remove.c. */
#include <assert.h>
#include <errno.h>

#include "btree/redistribute.h"

enum put_mode {
	PUT_INSERT,
	PUT_SET,
	PUT_UPDATE,
};

struct put {
	enum put_mode mode;
	struct zf_put item;
};

static int create_step(struct zf_edit *edit, void *arg)
{
	struct zf_cnode *root;
	struct zf_node_ptr ptr;
	int r;

	r = zf_edit_reserve(edit, 1);
	if (r < 0)
		return r;
	root = zf_edit_new_node(edit, 0, NULL);
	ptr = zf_edit_pending_ptr(root);
	zf_tree_replace_root_locked(edit->tree, &ptr, 0, edit->writer->generation);
	zf_cnode_put(root);
	return 0;
}

int zf_tree_create(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id id)
{
	struct zf_edit edit = {
		.forest = forest,
		.writer = writer,
		.id = id,
		.tree = zf_forest_tree(forest, id),
	};
	int r;

	zf_rwlock_wrlock(&edit.tree->lock);
	assert(edit.tree->root.address[0] == 0);
	r = create_step(&edit, NULL);
	zf_rwlock_unlock(&edit.tree->lock);
	return r;
}

/* Splits a full internal node and inserts child behind the path's slot. */
static struct zf_cnode *split_internal(struct zf_edit *edit, uint8_t level,
				       const struct zf_key *key, const struct zf_node_ptr *child)
{
	uint32_t node_size = edit->forest->shape.node_size;
	struct zf_cnode *node = edit->path.node[level];
	struct zf_cnode *right = zf_edit_new_node(edit, level, NULL);
	unsigned int count = zf_node_count(node->data), at = edit->path.slot[level] + 1;
	unsigned int keep = at == count ? count : count / 2;

	zf_forest_count(&edit->forest->splits);
	zf_node_move(right->data, node->data, node_size, keep, count - keep, false);
	if (at < keep)
		zf_node_insert_child(node->data, at, key, child);
	else
		zf_node_insert_child(right->data, at - keep, key, child);
	return right;
}

static void grow_root(struct zf_edit *edit, const struct zf_key *key,
		      const struct zf_node_ptr *right)
{
	struct zf_cnode *old = edit->path.node[edit->path.top];
	struct zf_cnode *root = zf_edit_new_node(edit, (uint8_t)(old->level + 1), NULL);
	struct zf_key first = zf_node_key(old->data, 0);
	struct zf_node_ptr ptr = zf_edit_pending_ptr(old);

	zf_node_insert_child(root->data, 0, &first, &ptr);
	zf_node_insert_child(root->data, 1, key, right);
	ptr = zf_edit_pending_ptr(root);
	zf_tree_replace_root_locked(edit->tree, &ptr, root->level, edit->writer->generation);
	zf_cnode_put(root);
}

/*
 * Inserts the right half of a split into the level above, and splits further levels if they are
 * full. right NULL: nothing was split.
 */
static void insert_upwards(struct zf_edit *edit, struct zf_cnode *right)
{
	unsigned int max = zf_node_children_max(edit->forest->shape.node_size);

	for (uint8_t level = 1; right; level++) {
		struct zf_key key = zf_node_key(right->data, 0);
		struct zf_node_ptr ptr = zf_edit_pending_ptr(right);
		struct zf_cnode *above = NULL;

		if (level > edit->path.top) {
			grow_root(edit, &key, &ptr);
		} else if (zf_node_count(edit->path.node[level]->data) < max) {
			zf_node_insert_child(edit->path.node[level]->data,
					     edit->path.slot[level] + 1, &key, &ptr);
		} else {
			above = split_internal(edit, level, &key, &ptr);
		}
		zf_cnode_put(right);
		right = above;
	}
}

/* For a key below all others: lowers keys on the path, as no key may be below its parent's. */
static void lower_keys(struct zf_edit *edit, const struct zf_key *key)
{
	for (uint8_t level = edit->path.top; level > 0; level--) {
		void *node = edit->path.node[level]->data;
		struct zf_key first = zf_node_key(node, edit->path.slot[level]);

		if (zf_key_cmp(key, &first) < 0)
			zf_node_set_key(node, edit->path.slot[level], key);
	}
}

/*
 * How many nodes a split of the leaf creates: one for the leaf, one for each full node above that
 * has to split too, and a new root if all levels split.
 */
static unsigned int count_splits(const struct zf_edit *edit)
{
	uint32_t node_size = edit->forest->shape.node_size;
	unsigned int splits = 1;

	while (splits <= edit->path.top &&
	       zf_node_count(edit->path.node[splits]->data) == zf_node_children_max(node_size))
		splits++;
	return splits > edit->path.top ? splits + 1 : splits;
}

/* Finds the item's slot in the leaf: 0 if the mode allows the put. */
static int find_slot(const struct zf_cnode *leaf, struct put *put)
{
	struct zf_put *item = &put->item;

	item->found = zf_node_search(leaf->data, item->key, &item->slot);
	if (item->found && put->mode == PUT_INSERT)
		return -EEXIST;
	return !item->found && put->mode == PUT_UPDATE ? -ENOENT : 0;
}

/* 1: the hint does not help; put by the path. */
static int put_by_hint(struct zf_edit *edit, struct put *put)
{
	uint32_t node_size = edit->forest->shape.node_size;
	struct zf_cnode *leaf = zf_edit_hinted_leaf(edit, put->item.key);
	int r = leaf ? find_slot(leaf, put) : 1;

	if (r != 0)
		return r;
	if (!zf_put_fits(leaf, node_size, &put->item))
		return 1;
	zf_put_item(leaf, node_size, &put->item);
	return 0;
}

/* Reserves nodes for copies and `splits`, copies the path, and lowers its keys for the item. */
static int take_path(struct zf_edit *edit, const struct zf_put *item, unsigned int splits)
{
	int r;

	if (splits > edit->path.top + 1u && edit->path.top + 1 == ZF_TREE_LEVEL_MAX)
		return -ENOSPC;
	r = zf_edit_reserve(edit, zf_edit_copies(edit, 0) + splits);
	if (r < 0)
		return r;
	zf_edit_copy_path(edit, 0);
	lower_keys(edit, item->key);
	return 0;
}

/* 1: the item is not put yet, but its leaf has more room now; try again. */
static int put_into_full_leaf(struct zf_edit *edit, const struct zf_put *item)
{
	struct zf_leaf_plan plan;
	int r;

	r = zf_leaf_plan_make_locked(edit, item, &plan);
	if (r < 0)
		return r;
	r = take_path(edit, item, plan.adds_leaf ? count_splits(edit) : 0);
	if (r == 0)
		insert_upwards(edit, zf_leaf_plan_apply_locked(edit, item, &plan));
	zf_leaf_plan_release(&plan);
	return r == 0 && !plan.puts ? 1 : r;
}

static int put_by_path(struct zf_edit *edit, struct put *put)
{
	uint32_t node_size = edit->forest->shape.node_size;
	const struct zf_put *item = &put->item;
	int r;

	r = zf_path_find_locked(edit->forest, edit->id, item->key, 0, edit->fetch, &edit->path);
	if (r == 0)
		r = find_slot(edit->path.node[0], put);
	if (r < 0)
		return r;
	if (!zf_put_fits(edit->path.node[0], node_size, item))
		return put_into_full_leaf(edit, item);
	r = take_path(edit, item, 0);
	if (r < 0)
		return r;
	zf_put_item(edit->path.node[0], node_size, item);
	zf_hint_set_locked(edit->tree, item->key, &edit->path);
	return 0;
}

static int put_step(struct zf_edit *edit, void *arg)
{
	struct put *put = arg;
	int r = put_by_hint(edit, put);

	while (r > 0) {
		zf_path_release(&edit->path);
		r = put_by_path(edit, put);
	}
	return r;
}

static int run_put(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id id,
		   enum put_mode mode, const struct zf_key *key, const void *value, size_t len)
{
	struct put put = {.mode = mode, .item = {.key = key, .value = value, .len = len}};

	if (len > zf_node_value_max(forest->shape.node_size))
		return -EINVAL;
	return zf_edit_run(forest, writer, id, put_step, &put);
}

int zf_tree_insert(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id tree,
		   const struct zf_key *key, const void *value, size_t len)
{
	return run_put(forest, writer, tree, PUT_INSERT, key, value, len);
}

int zf_tree_set(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id tree,
		const struct zf_key *key, const void *value, size_t len)
{
	return run_put(forest, writer, tree, PUT_SET, key, value, len);
}

int zf_tree_update(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id tree,
		   const struct zf_key *key, const void *value, size_t len)
{
	return run_put(forest, writer, tree, PUT_UPDATE, key, value, len);
}

struct relocation {
	uint8_t level;
	const struct zf_key *first_key;
	uint64_t address;
};

static int relocate_step(struct zf_edit *edit, void *arg)
{
	const struct relocation *relocation = arg;
	const struct zf_cnode *node;
	int r;

	r = zf_path_find_locked(edit->forest, edit->id, relocation->first_key, relocation->level,
				edit->fetch, &edit->path);
	if (r < 0)
		return r;
	if (edit->path.bottom != relocation->level)
		return 1;
	node = edit->path.node[relocation->level];
	if ((node->address[0] != relocation->address && node->address[1] != relocation->address) ||
	    zf_edit_owns(edit, node))
		return 1;
	r = zf_edit_reserve(edit, zf_edit_copies(edit, relocation->level));
	if (r < 0)
		return r;
	zf_edit_copy_path(edit, relocation->level);
	return 0;
}

int zf_tree_relocate(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id tree,
		     uint8_t level, const struct zf_key *first_key, uint64_t address)
{
	struct relocation relocation = {.level = level, .first_key = first_key, .address = address};

	return zf_edit_run(forest, writer, tree, relocate_step, &relocation);
}
