/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "btree/forest.h"

/*
 * Looks up one item: at *key, the first from *key on, or the last up to *key. The last two set *key
 * to the key found.
 */
struct lookup {
	struct zf_key *key;
	void *buf;
	size_t size;
	size_t *ret_len;
	bool below; /* true: the last item up to *key; false: the first from it on */
};

static void copy_value(const struct zf_cnode *leaf, unsigned int slot, const struct lookup *lookup)
{
	char scratch[ZF_PACKED_VALUE_MAX];
	size_t len;
	const void *value = zf_node_value(leaf->data, slot, &len, scratch);

	if (lookup->size > 0)
		memcpy(lookup->buf, value, zf_min_u64(len, lookup->size));
	if (lookup->ret_len)
		*lookup->ret_len = len;
}

static int lookup_locked(struct zf_forest *forest, enum zf_tree_id id, struct zf_fetch *fetch,
			 void *arg)
{
	const struct lookup *lookup = arg;
	struct zf_leaf leaf;
	unsigned int slot;
	int r;

	r = zf_forest_descend_leaf_locked(forest, id, lookup->key, fetch, &leaf);
	if (r < 0)
		return r;
	if (zf_node_search(leaf.node->data, lookup->key, &slot))
		copy_value(leaf.node, slot, lookup);
	else
		r = -ENOENT;
	zf_cnode_put(leaf.node);
	return r;
}

/* Takes the item in that slot, if there is one, and puts the leaf. */
static bool take_item(const struct zf_leaf *leaf, unsigned int slot, const struct lookup *lookup)
{
	bool found = slot < zf_node_count(leaf->node->data);

	if (found) {
		*lookup->key = zf_node_key(leaf->node->data, slot);
		copy_value(leaf->node, slot, lookup);
	}
	zf_cnode_put(leaf->node);
	return found;
}

/* Returns a slot behind the last one if the neighbour is not in the leaf. */
static unsigned int neighbour_slot(const struct zf_leaf *leaf, const struct zf_key *cursor,
				   bool below)
{
	unsigned int slot;

	if (!zf_node_search(leaf->node->data, cursor, &slot) && below)
		slot--; /* wraps if even the first key is above */
	return slot;
}

/* Moves the cursor to the neighbouring leaf; false: there is none. */
static bool move_cursor(const struct zf_leaf *leaf, struct zf_key *cursor, bool below)
{
	if (below) {
		if (!leaf->has_first || zf_key_cmp(&leaf->first, cursor) > 0)
			return false;
		*cursor = zf_key_prev(leaf->first);
		return true;
	}
	if (!leaf->has_next || zf_key_cmp(&leaf->next, cursor) <= 0)
		return false;
	*cursor = leaf->next;
	return true;
}

/*
 * Every leaf but an empty root holds at least one item, so the neighbouring leaf has the answer.
 * The loop does not rely on this: its cursor moves in one direction only, so it ends on any image.
 */
static int lookup_neighbour_locked(struct zf_forest *forest, enum zf_tree_id id,
				   struct zf_fetch *fetch, void *arg)
{
	const struct lookup *lookup = arg;
	struct zf_key cursor = *lookup->key;
	struct zf_leaf leaf;
	int r;

	do {
		r = zf_forest_descend_leaf_locked(forest, id, &cursor, fetch, &leaf);
		if (r < 0)
			return r;
		if (take_item(&leaf, neighbour_slot(&leaf, &cursor, lookup->below), lookup))
			return 0;
	} while (move_cursor(&leaf, &cursor, lookup->below));
	return -ENOENT;
}

int zf_tree_lookup(struct zf_forest *forest, enum zf_tree_id tree, const struct zf_key *key,
		   void *buf, size_t size, size_t *ret_len)
{
	struct zf_key exact = *key;
	struct lookup lookup = {.key = &exact, .buf = buf, .size = size, .ret_len = ret_len};

	return zf_fetch_look(forest, tree, lookup_locked, &lookup);
}

int zf_tree_lookup_ge(struct zf_forest *forest, enum zf_tree_id tree, struct zf_key *key, void *buf,
		      size_t size, size_t *ret_len)
{
	struct lookup lookup = {.key = key, .buf = buf, .size = size, .ret_len = ret_len};

	return zf_fetch_look(forest, tree, lookup_neighbour_locked, &lookup);
}

int zf_tree_lookup_le(struct zf_forest *forest, enum zf_tree_id tree, struct zf_key *key, void *buf,
		      size_t size, size_t *ret_len)
{
	struct lookup lookup = {
		.key = key, .buf = buf, .size = size, .ret_len = ret_len, .below = true};

	return zf_fetch_look(forest, tree, lookup_neighbour_locked, &lookup);
}

struct scan {
	struct zf_key cursor; /* items below it were seen */
	bool back;	      /* the last item below the cursor is wanted too */
	const struct zf_key *to;
	zf_tree_scan_fn *fn;
	void *arg;
	bool done;
	int result; /* of fn; may be -EAGAIN */
};

/*
 * False: the first wanted item lies further to the left, and the cursor has moved to the end of the
 * leaf there.
 */
static bool begins_here(const struct zf_leaf *leaf, struct scan *scan, unsigned int *ret_slot)
{
	bool exact = zf_node_search(leaf->node->data, &scan->cursor, ret_slot);

	if (scan->back && !exact && *ret_slot > 0) {
		--*ret_slot;
	} else if (scan->back && !exact && leaf->has_first &&
		   zf_key_cmp(&leaf->first, &scan->cursor) <= 0) {
		scan->cursor = zf_key_prev(leaf->first);
		return false;
	}
	scan->back = false;
	return true;
}

/* Scans one leaf. */
static int scan_locked(struct zf_forest *forest, enum zf_tree_id id, struct zf_fetch *fetch,
		       struct scan *scan)
{
	struct zf_leaf leaf;
	unsigned int slot, end;
	int r;

	r = zf_forest_descend_leaf_locked(forest, id, &scan->cursor, fetch, &leaf);
	if (r < 0)
		return r;
	if (!begins_here(&leaf, scan, &slot)) {
		zf_cnode_put(leaf.node);
		return 0;
	}
	end = zf_node_count(leaf.node->data);
	if (leaf.has_next) /* keeps the order even if a forged leaf reaches beyond its range */
		zf_node_search(leaf.node->data, &leaf.next, &end);
	for (; slot < end && !scan->done; slot++) {
		struct zf_key key = zf_node_key(leaf.node->data, slot);
		char scratch[ZF_PACKED_VALUE_MAX];
		size_t len;
		const void *value = zf_node_value(leaf.node->data, slot, &len, scratch);

		scan->done = zf_key_cmp(&key, scan->to) > 0;
		if (!scan->done)
			scan->result = scan->fn(scan->arg, &key, value, len);
		scan->done |= scan->result != 0;
	}
	zf_cnode_put(leaf.node);
	if (!leaf.has_next || zf_key_cmp(&leaf.next, scan->to) > 0 ||
	    zf_key_cmp(&leaf.next, &scan->cursor) <= 0)
		scan->done = true;
	else
		scan->cursor = leaf.next;
	return 0;
}

static int run_scan(struct zf_forest *forest, enum zf_tree_id id, struct scan *scan)
{
	struct zf_tree *tree = zf_forest_tree(forest, id);
	struct zf_fetch fetch;
	int r = 0;

	if (zf_key_cmp(&scan->cursor, scan->to) > 0)
		return 0;
	zf_fetch_init(&fetch);
	while (r == 0 && !scan->done) {
		zf_rwlock_rdlock(&tree->lock);
		r = scan_locked(forest, id, &fetch, scan);
		zf_rwlock_unlock(&tree->lock);
		if (r == -EAGAIN)
			r = zf_fetch_run(forest, &fetch);
	}
	zf_fetch_deinit(&fetch);
	return r < 0 ? r : scan->result;
}

int zf_tree_scan(struct zf_forest *forest, enum zf_tree_id id, const struct zf_key *from,
		 const struct zf_key *to, zf_tree_scan_fn *fn, void *arg)
{
	struct scan scan = {.cursor = *from, .to = to, .fn = fn, .arg = arg};

	return run_scan(forest, id, &scan);
}

int zf_tree_scan_le(struct zf_forest *forest, enum zf_tree_id id, const struct zf_key *from,
		    const struct zf_key *to, zf_tree_scan_fn *fn, void *arg)
{
	struct scan scan = {.cursor = *from, .back = true, .to = to, .fn = fn, .arg = arg};

	return run_scan(forest, id, &scan);
}
