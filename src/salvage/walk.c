/* SPDX-License-Identifier: MIT */
/* All items of a tree, leaf by leaf. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "salvage/state.h"

struct walk {
	struct zf_salvage *salvage;
	enum zf_tree_id tree;
	zf_salvage_walk_fn *fn;
	void *arg;
	void *node, *next; /* buffers */
	struct zf_key last;
	bool any; /* `last` is the key of an item */
	bool lost;
};

static bool read_leaf(struct walk *walk, struct zf_leaf *leaf, void *buf)
{
	return zf_leaves_read(&walk->salvage->source, walk->tree, leaf, buf);
}

/*
 * Is the key behind the end of leaf `i`? The end that the parent gives may be damaged and too low:
 * the key still belongs to the leaf if the next leaf's first key is above it.
 */
static bool is_behind(struct walk *walk, size_t i, const struct zf_key *key)
{
	const struct zf_vector *leaves = &walk->salvage->leaves[walk->tree];
	const struct zf_leaf *leaf = zf_vector_at(leaves, i);
	struct zf_key first;

	if (zf_key_cmp(key, &leaf->end) < 0)
		return false;
	if (i + 1 == leaves->count)
		return false;
	if (!read_leaf(walk, zf_vector_at(leaves, i + 1), walk->next) ||
	    zf_node_count(walk->next) == 0)
		return true;
	first = zf_node_key(walk->next, 0);
	return zf_key_cmp(key, &first) >= 0;
}

static bool is_sound(const struct walk *walk, const struct zf_key *key, const void *value,
		     size_t len)
{
	return walk->tree == ZF_TREE_ZONE ||
	       zf_salvage_is_sound(walk->salvage, walk->tree, key, value, len);
}

static int walk_leaf(struct walk *walk, size_t i)
{
	uint8_t scratch[ZF_PACKED_VALUE_MAX];
	int r = 0;

	for (unsigned int slot = 0; slot < zf_node_count(walk->node) && r == 0; slot++) {
		struct zf_key key = zf_node_key(walk->node, slot);
		const void *value;
		size_t len;

		if ((walk->any && zf_key_cmp(&key, &walk->last) <= 0) || is_behind(walk, i, &key)) {
			walk->lost = true;
			continue;
		}
		walk->last = key;
		walk->any = true;
		value = zf_node_value(walk->node, slot, &len, scratch);
		r = walk->fn(walk->arg, &key, value, len, is_sound(walk, &key, value, len));
	}
	return r;
}

static int walk_leaves(struct walk *walk)
{
	const struct zf_vector *leaves = &walk->salvage->leaves[walk->tree];
	int r = 0;

	for (size_t i = 0; i < leaves->count && r == 0; i++) {
		struct zf_leaf *leaf = zf_vector_at(leaves, i);

		if (read_leaf(walk, leaf, walk->node))
			r = walk_leaf(walk, i);
		walk->lost |= leaf->lost || leaf->guessed;
		zf_progress(walk->salvage->walk_progress, i + 1, leaves->count);
	}
	return r;
}

int zf_salvage_walk(struct zf_salvage *salvage, enum zf_tree_id tree, zf_salvage_walk_fn *fn,
		    void *arg, bool *ret_lost)
{
	_zf_free_ void *node = aligned_alloc(ZF_BLOCK_SIZE, salvage->shape.node_size);
	_zf_free_ void *next = aligned_alloc(ZF_BLOCK_SIZE, salvage->shape.node_size);
	struct walk walk = {
		.salvage = salvage, .tree = tree, .fn = fn, .arg = arg, .node = node, .next = next};
	int r = node && next ? 0 : -ENOMEM;

	if (r == 0 && salvage->leaves[tree].count == 0)
		r = zf_salvage_collect(salvage, tree);
	if (r == 0)
		r = walk_leaves(&walk);
	*ret_lost = walk.lost || (tree == ZF_TREE_FS && salvage->files_guessed);
	return r;
}
