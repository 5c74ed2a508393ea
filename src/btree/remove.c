/* SPDX-License-Identifier: MIT */
/* Delete and delete_range: remove entries from one node, then adjust the nodes above it. */
#include <assert.h>
#include <errno.h>

#include "btree/forest.h"

/* What happens to a node of the path from which entries were removed. */
enum fate {
	FATE_KEEP,
	FATE_UNLINK,	 /* no entry is left in it */
	FATE_MERGE_LEFT, /* it absorbs its left neighbour */
	FATE_MERGE_RIGHT,
};

struct removal {
	uint8_t level; /* entries [first, first + n) of this level's node are removed */
	unsigned int first, n;
	uint8_t low;  /* the level of the lowest node of the path that stays */
	uint8_t last; /* the level of the highest node that loses entries */
	bool empties_root;
	enum fate fate[ZF_TREE_LEVEL_MAX];
	struct zf_cnode *sibling[ZF_TREE_LEVEL_MAX];
	unsigned int touched; /* nodes allocated and freed */
};

/*
 * Nodes below a quarter are merged, if the result is at most three quarters full: so the next
 * insertion does not split it.
 */
static bool is_underfull(const struct zf_edit *edit, uint32_t used)
{
	return used < zf_node_capacity(edit->forest->shape.node_size) / 4;
}

/* `used`: bytes of the node without entries [first, first + n). */
static bool may_merge(const struct zf_edit *edit, const struct zf_cnode *node, unsigned int first,
		      unsigned int n, uint32_t used, const struct zf_cnode *sibling)
{
	uint32_t node_size = edit->forest->shape.node_size;
	uint32_t most = zf_node_capacity(node_size) / 4 * 3;

	if (used + zf_node_used(sibling->data, node_size) > most)
		return false;
	return zf_node_used_together(node->data, node_size, first, n, sibling->data) <= most;
}

/*
 * Looks for a neighbour to merge with. If a neighbour is in the cache, only cached ones are tried,
 * because merging is only tidiness and should not cost reads. If none is, one neighbour is read.
 */
static int plan_merge(struct zf_edit *edit, struct removal *removal, uint8_t level,
		      unsigned int first, unsigned int n, uint32_t used)
{
	const struct zf_path *path = &edit->path;
	unsigned int count = zf_node_count(path->node[level + 1]->data), absent = 0, tried = 0;
	unsigned int slot = path->slot[level + 1];
	const unsigned int beside[2] = {slot - 1, slot + 1}; /* wraps beyond count */

	for (unsigned int i = 0; i < 4; i++) {
		unsigned int at = beside[i % 2];
		bool wait = i >= 2;
		struct zf_cnode *sibling;
		int r;

		if (at >= count || (wait && absent < tried))
			continue;
		r = zf_path_sibling_locked(edit->forest, edit->id, &edit->path, level, at, wait,
					   edit->fetch, &sibling);
		tried++;
		if (r == -ENOENT) {
			absent++;
			continue;
		}
		if (r < 0)
			return r;
		if (may_merge(edit, path->node[level], first, n, used, sibling)) {
			removal->sibling[level] = sibling;
			removal->fate[level] = at < slot ? FATE_MERGE_LEFT : FATE_MERGE_RIGHT;
			return 0;
		}
		zf_cnode_put(sibling);
	}
	return 0;
}

static int plan(struct zf_edit *edit, struct removal *removal)
{
	uint32_t node_size = edit->forest->shape.node_size;
	const struct zf_path *path = &edit->path;
	unsigned int first = removal->first, n = removal->n;
	int r;

	removal->low = removal->level;
	for (uint8_t l = removal->level;; l++) {
		const void *node = path->node[l]->data;
		uint32_t used =
			zf_node_used(node, node_size) - zf_node_used_by(node, node_size, first, n);

		removal->last = l;
		if (l == path->top) {
			removal->empties_root = l > 0 && n == zf_node_count(node);
			return 0;
		}
		if (n == zf_node_count(node)) {
			removal->fate[l] = FATE_UNLINK;
			removal->low = (uint8_t)(l + 1);
		} else if (is_underfull(edit, used)) {
			r = plan_merge(edit, removal, l, first, n, used);
			if (r < 0)
				return r;
		}
		if (removal->fate[l] == FATE_KEEP)
			return 0;
		first = path->slot[l + 1];
		n = 1;
	}
}

static void free_node(struct zf_edit *edit, struct removal *removal, const struct zf_node_ptr *ptr)
{
	zf_edit_free_node(edit, ptr);
	removal->touched++;
}

/* Frees the children that are cut off, unread, and the emptied nodes above them. */
static void free_unlinked(struct zf_edit *edit, struct removal *removal, unsigned int up_to)
{
	const struct zf_path *path = &edit->path;

	for (unsigned int i = 0; i < removal->n && removal->level > 0; i++) {
		struct zf_node_ptr ptr =
			zf_node_child(path->node[removal->level]->data, removal->first + i);

		free_node(edit, removal, &ptr);
	}
	for (unsigned int l = removal->level; l < up_to; l++) {
		struct zf_node_ptr ptr = zf_edit_pending_ptr(path->node[l]);

		free_node(edit, removal, &ptr);
	}
}

static void replace_by_empty_leaf(struct zf_edit *edit)
{
	struct zf_cnode *root = zf_edit_new_node(edit, 0, NULL);
	struct zf_node_ptr ptr = zf_edit_pending_ptr(root);

	zf_tree_replace_root_locked(edit->tree, &ptr, 0, edit->writer->generation);
	zf_cnode_put(root);
}

/* Returns the slot of the absorbed neighbour in the parent. */
static unsigned int merge(struct zf_edit *edit, struct removal *removal, uint8_t level)
{
	struct zf_cnode *node = edit->path.node[level], *sibling = removal->sibling[level];
	struct zf_cnode *parent = edit->path.node[level + 1];
	unsigned int slot = edit->path.slot[level + 1];
	bool left = removal->fate[level] == FATE_MERGE_LEFT;
	struct zf_node_ptr ptr = zf_edit_pending_ptr(sibling);

	zf_forest_count(&edit->forest->merges);
	zf_node_absorb(node->data, sibling->data, edit->forest->shape.node_size, 0,
		       zf_node_count(sibling->data), left);
	free_node(edit, removal, &ptr);
	if (!left)
		return slot + 1;
	struct zf_key key = zf_node_key(parent->data, slot - 1);

	zf_node_set_key(parent->data, slot, &key);
	return slot - 1;
}

/* Replaces a root with a single child by the child. Stops at a root that is not in the cache. */
static void collapse_root(struct zf_edit *edit)
{
	struct zf_tree *tree = edit->tree;
	struct zf_cnode *root;
	bool again = true;

	while (again && tree->level > 0) {
		root = zf_cache_get(&edit->forest->cache, tree->root.address[0],
				    tree->root.generation);
		again = root && root->owner == edit->id && root->level == tree->level &&
			zf_node_count(root->data) == 1;
		if (again) {
			struct zf_node_ptr ptr = tree->root, child = zf_node_child(root->data, 0);

			zf_tree_replace_root_locked(tree, &child, (uint8_t)(tree->level - 1),
						    edit->writer->generation);
			zf_edit_free_node(edit, &ptr);
		}
		zf_cnode_put(root);
	}
}

static void apply(struct zf_edit *edit, struct removal *removal)
{
	unsigned int first = removal->first, n = removal->n;

	if (removal->empties_root) {
		free_unlinked(edit, removal, edit->path.top + 1u);
		replace_by_empty_leaf(edit);
		return;
	}
	free_unlinked(edit, removal, removal->low);
	zf_edit_copy_path(edit, removal->low);
	if (removal->low > removal->level) {
		first = edit->path.slot[removal->low];
		n = 1;
	}
	for (uint8_t l = removal->low; l <= removal->last; l++) {
		zf_node_remove(edit->path.node[l]->data, edit->forest->shape.node_size, first, n);
		if (removal->sibling[l])
			first = merge(edit, removal, l);
		n = 1;
	}
	if (removal->last == edit->path.top)
		collapse_root(edit);
}

/*
 * Removes the entries [first, first + n) of the path's node at `level`, which is the path's lowest.
 * *touched grows by the nodes allocated and freed.
 */
static int remove_locked(struct zf_edit *edit, unsigned int first, unsigned int n,
			 unsigned int *touched)
{
	struct removal removal = {.level = edit->path.bottom, .first = first, .n = n};
	struct zf_key key = zf_node_key(edit->path.node[edit->path.bottom]->data, first);
	unsigned int fresh;
	int r;

	r = plan(edit, &removal);
	if (r == 0) {
		fresh = removal.empties_root ? 1 : zf_edit_copies(edit, removal.low);
		r = zf_edit_reserve(edit, fresh);
		removal.touched = fresh;
	}
	if (r == 0) {
		apply(edit, &removal);
		*touched += removal.touched;
		if (removal.last == 0)
			zf_hint_set_locked(edit->tree, &key, &edit->path);
	}
	for (unsigned int l = 0; l < ZF_TREE_LEVEL_MAX; l++)
		zf_cnode_put(removal.sibling[l]);
	return r;
}

/* 1: the hint does not help; delete by the path. */
static int delete_by_hint(struct zf_edit *edit, const struct zf_key *key)
{
	uint32_t node_size = edit->forest->shape.node_size, left;
	struct zf_cnode *leaf = zf_edit_hinted_leaf(edit, key);
	unsigned int slot;

	if (!leaf)
		return 1;
	if (!zf_node_search(leaf->data, key, &slot))
		return -ENOENT;
	left = zf_node_used(leaf->data, node_size) -
	       zf_node_used_by(leaf->data, node_size, slot, 1);
	if (zf_node_count(leaf->data) == 1 || is_underfull(edit, left))
		return 1;
	zf_node_remove(leaf->data, node_size, slot, 1);
	return 0;
}

static int delete_step(struct zf_edit *edit, void *arg)
{
	const struct zf_key *key = arg;
	unsigned int slot, touched = 0;
	int r = delete_by_hint(edit, key);

	if (r <= 0)
		return r;
	r = zf_path_find_locked(edit->forest, edit->id, key, 0, edit->fetch, &edit->path);
	if (r < 0)
		return r;
	if (!zf_node_search(edit->path.node[0]->data, key, &slot))
		return -ENOENT;
	return remove_locked(edit, slot, 1, &touched);
}

int zf_tree_delete(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id tree,
		   const struct zf_key *key)
{
	struct zf_key copy = *key;

	return zf_edit_run(forest, writer, tree, delete_step, &copy);
}

struct range {
	struct zf_key cursor; /* no key of the range is left below it */
	struct zf_key to;
	unsigned int touched, max;
	bool any; /* at least one entry was removed */
	bool done;
};

static int remove_of_range(struct zf_edit *edit, struct range *range, unsigned int first,
			   unsigned int n)
{
	int r = remove_locked(edit, first, n, &range->touched);

	range->any |= r == 0;
	return r;
}

/*
 * Do the keys that child `slot` of the path's level-1 node may hold end within the range? The
 * caller has made sure that they begin there.
 */
static bool ends_in_range(const struct zf_path *path, unsigned int slot, const struct zf_key *to)
{
	const void *parent = path->node[1]->data;
	struct zf_key next, max = ZF_KEY_MAX;

	if (slot + 1 < zf_node_count(parent))
		next = zf_node_key(parent, slot + 1);
	else if (path->has_next[1])
		next = path->next[1];
	else
		return zf_key_cmp(to, &max) == 0;
	next = zf_key_prev(next);
	return zf_key_cmp(&next, to) <= 0;
}

/* Unlinks, unread, the leaves that lie wholly in the range by the keys of the level-1 node. */
static int unlink_leaves(struct zf_edit *edit, struct range *range, bool *ret_any)
{
	const struct zf_path *path = &edit->path;
	const void *parent = path->node[1]->data;
	unsigned int count = zf_node_count(parent), end;
	unsigned int first = zf_node_search_child(parent, &range->cursor);
	struct zf_key key = zf_node_key(parent, first);

	if (zf_key_cmp(&key, &range->cursor) < 0)
		first++;
	for (end = first; end < count && ends_in_range(path, end, &range->to); end++) {
		if (range->touched + (end - first) >= range->max)
			break;
	}
	*ret_any = end > first;
	return end > first ? remove_of_range(edit, range, first, end - first) : 0;
}

/* Removes only items from the leaf at the cursor, because it reaches beyond the range. */
static int remove_items(struct zf_edit *edit, struct range *range)
{
	const struct zf_path *path = &edit->path;
	const void *leaf = path->node[0]->data;
	unsigned int first, end;

	zf_node_search(leaf, &range->cursor, &first);
	if (zf_node_search(leaf, &range->to, &end))
		end++;
	if (first < end)
		return remove_of_range(edit, range, first, end - first);
	if (path->has_next[0] && zf_key_cmp(&path->next[0], &range->to) <= 0)
		range->cursor = path->next[0];
	else
		range->done = true;
	return 0;
}

static int range_round(struct zf_edit *edit, struct range *range)
{
	bool any = false;
	int r;

	r = zf_path_find_locked(edit->forest, edit->id, &range->cursor, 1, edit->fetch,
				&edit->path);
	if (r == 0 && edit->path.top >= 1)
		r = unlink_leaves(edit, range, &any);
	if (r < 0 || any)
		return r;
	r = zf_path_find_locked(edit->forest, edit->id, &range->cursor, 0, edit->fetch,
				&edit->path);
	return r < 0 ? r : remove_items(edit, range);
}

static int range_step(struct zf_edit *edit, void *arg)
{
	struct range *range = arg;
	int r;

	while (!range->done) {
		if (range->touched >= range->max)
			return 1;
		r = range_round(edit, range);
		zf_path_release(&edit->path);
		if (r < 0)
			return r;
	}
	return 0;
}

int zf_tree_delete_range(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id tree,
			 const struct zf_key *from, const struct zf_key *to, unsigned int max_nodes)
{
	struct range range = {.cursor = *from, .to = *to, .max = max_nodes > 0 ? max_nodes : 1};

	int r;

	if (zf_key_cmp(from, to) > 0)
		return 0;
	r = zf_edit_run(forest, writer, tree, range_step, &range);
	/* For the caller, an error means that nothing was deleted. */
	return r < 0 && range.any ? 1 : r;
}
