/* SPDX-License-Identifier: MIT */
#include "salvage/leaves.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "salvage/found.h"

struct collect {
	const struct zf_leaf_source *source;
	enum zf_tree_id tree;
	struct zf_vector *leaves;
	uint64_t generation_max; /* no found leaf may be newer */
	void *entered;		 /* tsearch(3): addresses of the nodes entered, above the leaves */
	void *node[ZF_TREE_LEVEL_MAX];
};

static bool read_copies(const struct zf_leaf_source *source, const struct zf_node_expect *expect,
			bool any_csum, void *buf)
{
	const struct zf_node_shape *shape = source->shape;

	for (unsigned int copy = 0; copy < shape->copies; copy++) {
		struct zf_node_expect own = *expect;

		if (zf_dev_read_buf(source->dev, expect->ptr.address[copy], buf, shape->node_size) <
		    0)
			continue;
		if (any_csum)
			own.ptr.csum = zf_le64_get(zf_node_header(buf)->csum);
		if (zf_node_check(shape, buf, &own, true, NULL) == 0)
			return true;
	}
	return false;
}

int zf_leaves_read_node(const struct zf_leaf_source *source, const struct zf_node_expect *expect,
			void *buf)
{
	return read_copies(source, expect, false, buf) ? 0 : -EUCLEAN;
}

/* ---- a node that is not what its parent says ---- */

/*
 * The checksum in the parent's pointer identifies the node, because it covers the node's addresses
 * and generation.
 */
static const struct zf_found *find_elsewhere(const struct zf_leaf_source *source,
					     const struct zf_node_expect *expect)
{
	const struct zf_found *node = source->find_csum(source->arg, expect->ptr.csum);

	return node && node->owner == expect->owner && node->level == expect->level ? node : NULL;
}

/*
 * Reads the node at the pointer's address; or the found node that has the pointer's checksum; or a
 * node at the address with another checksum, if its generation and keys are those that the parent
 * says (*bounds). expect->ptr becomes that of the node that was read.
 */
static bool read_anywhere(const struct zf_leaf_source *source, struct zf_node_expect *expect,
			  const struct zf_node_expect *bounds, void *buf)
{
	const struct zf_found *found;

	if (read_copies(source, expect, false, buf))
		return true;
	found = find_elsewhere(source, expect);
	if (found) {
		expect->ptr = found->ptr;
		return read_copies(source, expect, false, buf);
	}
	return read_copies(source, expect, true, buf) &&
	       zf_node_check_bounds(buf, bounds, NULL) == 0;
}

/*
 * For a pointer whose address and checksum are both wrong, or whose leaf is gone: reads the only
 * found leaf of the pointer's generation and key range. That leaf may be another one that was
 * deleted since, so the result is a guess.
 */
static bool read_by_generation(const struct zf_leaf_source *source, struct zf_node_expect *expect,
			       const struct zf_leaf *leaf, void *buf)
{
	const struct zf_found_place place = {
		.owner = expect->owner,
		.level = expect->level,
		.generation = leaf->ptr.generation,
		.first = leaf->first,
		.end = leaf->end,
	};
	const struct zf_vector *nodes;
	const struct zf_found *found;

	if (source->get_found(source->arg, &nodes) < 0)
		return false;
	found = zf_found_at(nodes, &place);
	if (!found)
		return false;
	expect->ptr = found->ptr;
	return read_copies(source, expect, false, buf);
}

/*
 * Reads the leaf at the pointer's address, if it has the pointer's generation and at least one key
 * in the pointer's range. This is a guess.
 */
static bool read_in_place(const struct zf_leaf_source *source, struct zf_node_expect *expect,
			  const struct zf_leaf *leaf, void *buf)
{
	unsigned int slot;
	struct zf_key key;

	expect->ptr = leaf->ptr;
	if (!read_copies(source, expect, true, buf))
		return false;
	zf_node_search(buf, &leaf->first, &slot);
	if (slot >= zf_node_count(buf))
		return false;
	key = zf_node_key(buf, slot);
	return zf_key_cmp(&key, &leaf->end) < 0;
}

bool zf_leaves_read(const struct zf_leaf_source *source, enum zf_tree_id tree, struct zf_leaf *leaf,
		    void *buf)
{
	struct zf_node_expect expect = {.ptr = leaf->ptr, .owner = tree};
	const struct zf_node_expect bounds = {
		.first_key = leaf->first,
		.next_key = leaf->end,
		.check_first_key = zf_key_cmp(&leaf->first, &(struct zf_key){0}) > 0,
		.check_next_key = true,
	};

	if (!leaf->lost && !read_anywhere(source, &expect, &bounds, buf)) {
		leaf->guessed = read_by_generation(source, &expect, leaf, buf) ||
				read_in_place(source, &expect, leaf, buf);
		leaf->lost = !leaf->guessed;
	}
	leaf->ptr = expect.ptr;
	return !leaf->lost;
}

/* ---- found leaves in place of a node that cannot be read ---- */

static int compare_ranges(const void *a, const void *b)
{
	const struct zf_found *x = a, *y = b;

	if (zf_key_cmp(&x->last, &y->first) < 0)
		return -1;
	return zf_key_cmp(&x->first, &y->last) > 0;
}

static int compare_first(const void *a, const void *b)
{
	const struct zf_leaf *x = a, *y = b;

	return zf_key_cmp(&x->first, &y->first);
}

static bool is_within(const struct zf_found *found, const struct zf_leaf *range)
{
	return zf_key_cmp(&found->first, &range->first) >= 0 &&
	       zf_key_cmp(&found->last, &range->end) < 0;
}

static bool is_leaf_of(const struct zf_found *found, enum zf_tree_id tree, uint64_t generation_max)
{
	return found->owner == tree && found->level == 0 && found->count > 0 &&
	       found->ptr.generation <= generation_max;
}

static int push_leaf(struct collect *collect, const struct zf_leaf *leaf)
{
	return zf_vector_push(collect->leaves, leaf);
}

static void do_not_free(void *item)
{
	(void)item;
}

/*
 * `found` is sorted newest first. A leaf that overlaps a newer one is an older version of the same
 * keys, and is skipped.
 */
static int choose(struct collect *collect, const struct zf_vector *found,
		  const struct zf_leaf *range, uint64_t generation_max)
{
	void *chosen = NULL; /* tsearch(3); overlapping ranges compare as equal */
	int r = 0;

	ZF_VECTOR_FOREACH (found, struct zf_found, leaf) {
		void *place;

		if (r < 0 || !is_leaf_of(leaf, collect->tree, generation_max) ||
		    !is_within(leaf, range))
			continue;
		place = tsearch(leaf, &chosen, compare_ranges);
		if (!place)
			r = -ENOMEM;
		else if (*(struct zf_found **)place == leaf)
			r = push_leaf(collect, &(struct zf_leaf){
						       .first = leaf->first,
						       .end = zf_key_next(leaf->last),
						       .ptr = leaf->ptr,
					       });
	}
	tdestroy(chosen, do_not_free);
	return r;
}

/* `range`: the key range of the node that cannot be read. */
static int rebuild(struct collect *collect, const struct zf_leaf *range, uint64_t generation_max)
{
	const struct zf_vector *found;
	size_t before = collect->leaves->count;
	int r = collect->source->get_found(collect->source->arg, &found);

	if (r == 0)
		r = choose(collect, found, range, generation_max);
	if (r == 0 && collect->leaves->count == before)
		r = push_leaf(collect, range);
	zf_vector_sort(collect->leaves, before, compare_first);
	return r;
}

/* ---- walking ---- */

static int compare_addresses(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* 1: the node at `address` was entered before. */
static int enter(struct collect *collect, uint64_t address)
{
	uint64_t *item = malloc(sizeof(*item));
	void *place;

	if (!item)
		return -ENOMEM;
	*item = address;
	place = tsearch(item, &collect->entered, compare_addresses);
	if (!place || *(uint64_t **)place != item)
		free(item);
	if (!place)
		return -ENOMEM;
	return *(uint64_t **)place == item ? 0 : 1;
}

static struct zf_leaf range_of(const struct zf_node_expect *expect)
{
	return (struct zf_leaf){
		.first = expect->check_first_key ? expect->first_key : ZF_KEY_MIN,
		.end = expect->check_next_key ? expect->next_key : ZF_KEY_MAX,
		.ptr = expect->ptr,
		.lost = expect->level > 0,
	};
}

/*
 * Leaves are not newer than the node above them. The generation of an unusable node is in its
 * parent's pointer, and in the node itself if the node has the pointer's checksum. If the two
 * differ, one of them is wrong. The newer one is the bound, because it excludes no leaf of the
 * node.
 */
static uint64_t newest_below(const struct collect *collect, const struct zf_node_expect *expect,
			     void *buf)
{
	const struct zf_node_shape *shape = collect->source->shape;
	uint64_t newest = expect->ptr.generation;

	for (unsigned int copy = 0; copy < shape->copies; copy++)
		if (zf_dev_read_buf(collect->source->dev, expect->ptr.address[copy], buf,
				    shape->node_size) == 0 &&
		    zf_node_csum(buf, shape->node_size) == expect->ptr.csum)
			newest = zf_max_u64(newest, zf_node_generation(buf));
	return zf_min_u64(newest, collect->generation_max);
}

static int collect_node(struct collect *collect, const struct zf_node_expect *expect);

static int collect_children(struct collect *collect, const struct zf_node_expect *expect,
			    const void *node)
{
	unsigned int count = zf_node_count(node);
	int r = 0;

	for (unsigned int i = 0; i < count && r == 0; i++) {
		struct zf_node_expect child = zf_node_expect_child(expect, node, i);

		r = collect_node(collect, &child);
	}
	return r;
}

static int collect_node(struct collect *collect, const struct zf_node_expect *expect)
{
	struct zf_node_expect own = *expect;
	struct zf_leaf range = range_of(expect);
	void **buf = &collect->node[expect->level];
	int r;

	if (expect->level == 0)
		return push_leaf(collect, &range);
	if (!*buf)
		*buf = aligned_alloc(ZF_BLOCK_SIZE, collect->source->shape->node_size);
	if (!*buf)
		return -ENOMEM;
	r = enter(collect, expect->ptr.address[0]);
	if (r != 0)
		return r < 0 ? r : push_leaf(collect, &range);
	if (!read_anywhere(collect->source, &own, expect, *buf))
		return rebuild(collect, &range, newest_below(collect, expect, *buf));
	return collect_children(collect, &own, *buf);
}

int zf_leaves_collect(const struct zf_leaf_source *source, enum zf_tree_id tree,
		      const struct zf_node_expect *root, uint64_t generation_max,
		      struct zf_vector *ret_leaves)
{
	const struct zf_leaf all = {.first = ZF_KEY_MIN, .end = ZF_KEY_MAX, .lost = true};
	struct collect collect = {
		.source = source,
		.tree = tree,
		.leaves = ret_leaves,
		.generation_max = generation_max,
	};
	int r = root ? collect_node(&collect, root) : rebuild(&collect, &all, generation_max);

	tdestroy(collect.entered, free);
	for (unsigned int level = 0; level < ZF_TREE_LEVEL_MAX; level++)
		free(collect.node[level]);
	return r;
}

/* ---- cursors ---- */

int zf_leaf_cursor_init(struct zf_leaf_cursor *cursor, const struct zf_leaf_source *source,
			enum zf_tree_id tree, struct zf_vector *leaves)
{
	*cursor = (struct zf_leaf_cursor){
		.source = source,
		.tree = tree,
		.leaves = leaves,
		.node = aligned_alloc(ZF_BLOCK_SIZE, source->shape->node_size),
		.loaded = SIZE_MAX,
	};
	return cursor->node ? 0 : -ENOMEM;
}

void zf_leaf_cursor_deinit(struct zf_leaf_cursor *cursor)
{
	free(cursor->node);
	cursor->node = NULL;
}

static bool load(struct zf_leaf_cursor *cursor)
{
	struct zf_leaf *leaf = zf_vector_at(cursor->leaves, cursor->at);

	if (cursor->loaded == cursor->at)
		return true;
	cursor->loaded = SIZE_MAX;
	if (!zf_leaves_read(cursor->source, cursor->tree, leaf, cursor->node))
		return false;
	cursor->lost |= leaf->guessed;
	cursor->loaded = cursor->at;
	return true;
}

/* The last leaf whose first key is <= the key; if there is none, the first leaf. */
static size_t find_leaf(const struct zf_vector *leaves, const struct zf_key *key)
{
	size_t low = 0, high = leaves->count;

	while (low + 1 < high) {
		size_t middle = low + (high - low) / 2;
		const struct zf_leaf *leaf = zf_vector_at(leaves, middle);

		if (zf_key_cmp(&leaf->first, key) <= 0)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* True: an item with that key exists. */
static bool seek(struct zf_leaf_cursor *cursor, const struct zf_key *key)
{
	cursor->from = cursor->min = *key;
	cursor->at = find_leaf(cursor->leaves, key);
	cursor->slot = 0;
	if (cursor->at < cursor->leaves->count && load(cursor))
		return zf_node_search(cursor->node, key, &cursor->slot);
	return false;
}

void zf_leaf_cursor_seek(struct zf_leaf_cursor *cursor, const struct zf_key *key)
{
	seek(cursor, key);
}

void zf_leaf_cursor_seek_back(struct zf_leaf_cursor *cursor, const struct zf_key *key)
{
	if (seek(cursor, key))
		return;
	cursor->min = ZF_KEY_MIN;
	if (cursor->slot > 0) {
		cursor->slot--;
	} else if (cursor->at > 0) {
		/*
		 * The key may lie within the bounds of a leaf whose lower items are all deleted:
		 * the item before it is then in the leaf before.
		 */
		cursor->at--;
		cursor->slot = load(cursor) ? zf_node_count(cursor->node) - 1 : 0;
	}
}

/*
 * Skips keys that are too low. Keys ascend within a leaf, and between leaves unless one is damaged.
 */
static void skip_what_is_behind(struct zf_leaf_cursor *cursor)
{
	unsigned int count = zf_node_count(cursor->node);

	for (; cursor->slot < count; cursor->slot++) {
		struct zf_key key = zf_node_key(cursor->node, cursor->slot);

		if (zf_key_cmp(&key, &cursor->min) >= 0)
			return;
		cursor->lost = true;
	}
}

bool zf_leaf_cursor_next(struct zf_leaf_cursor *cursor, const struct zf_key *end,
			 struct zf_key *ret_key, const void **ret_value, size_t *ret_len)
{
	for (; cursor->at < cursor->leaves->count; cursor->at++, cursor->slot = 0) {
		const struct zf_leaf *leaf = zf_vector_at(cursor->leaves, cursor->at);

		if (zf_key_cmp(&leaf->first, end) >= 0)
			return false;
		if (!load(cursor)) {
			cursor->lost |= zf_key_cmp(&leaf->end, &cursor->from) > 0;
			continue;
		}
		skip_what_is_behind(cursor);
		if (cursor->slot >= zf_node_count(cursor->node))
			continue;
		*ret_key = zf_node_key(cursor->node, cursor->slot);
		if (zf_key_cmp(ret_key, end) >= 0)
			return false;
		*ret_value = zf_node_value(cursor->node, cursor->slot, ret_len, cursor->scratch);
		cursor->slot++;
		cursor->min = zf_key_next(*ret_key);
		return true;
	}
	return false;
}
