/* SPDX-License-Identifier: MIT */
/* Lists the nodes of one level, with the properties that their parents require. */
#include <errno.h>

#include "btree/forest.h"

struct listing {
	uint8_t level; /* of the children */
	struct zf_key *from;
	zf_tree_child_fn *fn;
	void *arg;
};

static int tell_root(const struct zf_tree *tree, enum zf_tree_id id, const struct listing *listing)
{
	const struct zf_node_expect root = {.ptr = tree->root, .owner = id, .level = tree->level};
	int r = listing->fn(listing->arg, &root);

	return r < 0 ? r : 0;
}

static int tell_children(const struct zf_path *path, enum zf_tree_id id,
			 const struct listing *listing)
{
	const void *parent = path->node[path->bottom]->data;
	unsigned int count = zf_node_count(parent);
	int r = 0;

	for (unsigned int i = 0; i < count && r == 0; i++) {
		struct zf_node_expect child = {
			.ptr = zf_node_child(parent, i),
			.owner = id,
			.level = listing->level,
			.first_key = zf_node_key(parent, i),
			.check_first_key = true,
			.next_key = path->next[path->bottom],
			.check_next_key = path->has_next[path->bottom],
		};

		if (i + 1 < count) {
			child.next_key = zf_node_key(parent, i + 1);
			child.check_next_key = true;
		}
		r = listing->fn(listing->arg, &child);
	}
	return r < 0 ? r : 0;
}

/* 1: there is a next parent, whose range begins at *from. */
static int list_locked(struct zf_forest *forest, enum zf_tree_id id, struct zf_fetch *fetch,
		       void *arg)
{
	const struct listing *listing = arg;
	const struct zf_tree *tree = zf_forest_tree(forest, id);
	struct zf_path path;
	int r;

	if (listing->level >= tree->level)
		return listing->level == tree->level ? tell_root(tree, id, listing) : 0;
	zf_path_init(&path);
	r = zf_path_find_locked(forest, id, listing->from, (uint8_t)(listing->level + 1), fetch,
				&path);
	if (r == 0)
		r = tell_children(&path, id, listing);
	/* The cursor moves in one direction only, so the listing ends on any image. */
	if (r == 0 && path.has_next[path.bottom] &&
	    zf_key_cmp(&path.next[path.bottom], listing->from) > 0) {
		*listing->from = path.next[path.bottom];
		r = 1;
	}
	zf_path_release(&path);
	return r;
}

int zf_tree_children(struct zf_forest *forest, enum zf_tree_id id, uint8_t level,
		     struct zf_key *from, zf_tree_child_fn *fn, void *arg)
{
	struct listing listing = {.level = level, .from = from, .fn = fn, .arg = arg};

	return zf_fetch_look(forest, id, list_locked, &listing);
}
