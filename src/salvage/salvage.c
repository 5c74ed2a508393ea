/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>

#include "alloc/zone_format.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "salvage/found.h"
#include "salvage/state.h"

/* ---- searching ---- */

/*
 * The zone has no nodes if its item gives it another role than metadata and it was not reset since
 * the item was written.
 */
static bool has_data(const struct zf_disk_zone *item, const struct zf_zone_info *zone)
{
	if (zf_le64_get(item->reset_count) != zone->reset_count)
		return false;
	return item->role != ZF_ROLE_META && item->role != ZF_ROLE_NONE &&
	       item->role < ZF_ROLE_COUNT;
}

static int find_nothing(void *arg, const struct zf_vector **ret_found)
{
	static const struct zf_vector nothing = ZF_VECTOR(struct zf_found);

	(void)arg;
	*ret_found = &nothing;
	return 0;
}

static const struct zf_found *find_no_csum(void *arg, uint64_t csum)
{
	(void)arg;
	(void)csum;
	return NULL;
}

static void skip_data(struct zf_leaf_cursor *cursor, const struct zf_zone_info *zones,
		      uint32_t zone_count, bool *skip)
{
	const void *value;
	struct zf_key key;
	size_t len;

	zf_leaf_cursor_seek(cursor, &ZF_KEY_MIN);
	while (zf_leaf_cursor_next(cursor, &ZF_KEY_MAX, &key, &value, &len))
		if (key.type == ZF_KEY_ZONE && key.objectid < zone_count &&
		    len == sizeof(struct zf_disk_zone))
			skip[key.objectid] = has_data(value, &zones[key.objectid]);
}

static void keep_zone_of(const struct zf_salvage *salvage, const struct zf_node_ptr *ptr,
			 bool *skip)
{
	const struct zf_geometry *geometry = salvage->shape.geometry;

	for (unsigned int c = 0; c < ZF_COPIES_MAX; c++)
		if (ptr->address[c] / geometry->zone_size < geometry->zone_count)
			skip[ptr->address[c] / geometry->zone_size] = false;
}

/* A zone with the root of a tree has nodes, even if the zone tree contradicts that. */
static void keep_roots(const struct zf_salvage *salvage, bool *skip)
{
	keep_zone_of(salvage, &salvage->super.root, skip);
	for (unsigned int tree = 0; tree < ZF_TREE_COUNT; tree++)
		if (salvage->roots[tree].known)
			keep_zone_of(salvage, &salvage->roots[tree].root.ptr, skip);
}

/* Skips the zones that have no nodes according to the zone tree's readable items. */
static int choose_zones(struct zf_salvage *salvage, bool *skip)
{
	uint32_t zone_count = salvage->shape.geometry->zone_count;
	const struct zf_root *root = &salvage->roots[ZF_TREE_ZONE].root;
	const struct zf_node_expect expect = {
		.ptr = root->ptr, .owner = ZF_TREE_ZONE, .level = root->level};
	const struct zf_leaf_source source = {
		.dev = salvage->dev,
		.shape = &salvage->shape,
		.get_found = find_nothing,
		.find_csum = find_no_csum,
	};
	_zf_free_ struct zf_zone_info *zones = calloc(zone_count, sizeof(*zones));
	struct zf_vector leaves = ZF_VECTOR(struct zf_leaf);
	struct zf_leaf_cursor cursor = {0};
	int r;

	if (!zones)
		return -ENOMEM;
	if (!salvage->roots[ZF_TREE_ZONE].known)
		return 0;
	r = zf_dev_report(salvage->dev, 0, zone_count, zones);
	if (r == 0)
		r = zf_leaves_collect(&source, ZF_TREE_ZONE, &expect, 0, &leaves);
	if (r == 0)
		r = zf_leaf_cursor_init(&cursor, &source, ZF_TREE_ZONE, &leaves);
	if (r == 0)
		skip_data(&cursor, zones, zone_count, skip);
	keep_roots(salvage, skip);
	zf_leaf_cursor_deinit(&cursor);
	zf_vector_deinit(&leaves);
	return r;
}

/* Compares pointers to struct zf_found. */
static int cmp_csum(const void *a, const void *b)
{
	uint64_t x = (*(const struct zf_found *const *)a)->ptr.csum;
	uint64_t y = (*(const struct zf_found *const *)b)->ptr.csum;

	return x < y ? -1 : x > y;
}

static int index_found(struct zf_salvage *salvage)
{
	int r = 0;

	ZF_VECTOR_FOREACH (&salvage->found, struct zf_found, node)
		if (r == 0)
			r = zf_vector_push(&salvage->by_csum, &node);
	zf_vector_sort(&salvage->by_csum, 0, cmp_csum);
	return r;
}

const struct zf_found *zf_salvage_find_csum(void *arg, uint64_t csum)
{
	const struct zf_found key = {.ptr = {.csum = csum}}, *pointer = &key, **place;
	struct zf_salvage *salvage = arg;
	const struct zf_vector *found;

	if (zf_salvage_search(salvage, &found) < 0)
		return NULL;
	place = zf_vector_find(&salvage->by_csum, &pointer, cmp_csum);
	return place ? *place : NULL;
}

static bool has_files(const struct zf_vector *found)
{
	ZF_VECTOR_FOREACH (found, struct zf_found, node)
		if (node->owner == ZF_TREE_FS && node->level == 0)
			return true;
	return false;
}

/*
 * Every filesystem has a leaf of the fs tree. If the scan finds none, the zone tree was wrong, and
 * all zones are scanned.
 */
static int scan(struct zf_salvage *salvage, const bool *skip)
{
	int r = zf_found_scan(salvage->dev, &salvage->shape, skip, salvage->progress,
			      &salvage->found);

	if (r < 0 || has_files(&salvage->found))
		return r;
	salvage->found.count = 0;
	return zf_found_scan(salvage->dev, &salvage->shape, NULL, salvage->progress,
			     &salvage->found);
}

int zf_salvage_search(void *arg, const struct zf_vector **ret_found)
{
	struct zf_salvage *salvage = arg;
	_zf_free_ bool *skip = NULL;
	int r = 0;

	*ret_found = &salvage->found;
	if (salvage->searched)
		return 0;
	skip = calloc(salvage->shape.geometry->zone_count, sizeof(*skip));
	if (!skip)
		return -ENOMEM;
	r = choose_zones(salvage, skip);
	if (r == 0)
		r = scan(salvage, skip);
	if (r == 0)
		r = index_found(salvage);
	salvage->searched = r == 0;
	return r;
}

/* ---- life ---- */

/*
 * Is `root` the only node of its level? Earlier roots of this level overlap its key range. If an
 * older node does not overlap it, the level had several nodes and the nodes above them are lost.
 */
static bool is_alone(const struct zf_vector *found, const struct zf_found *root)
{
	ZF_VECTOR_FOREACH (found, struct zf_found, other)
		if (other->owner == root->owner && other->level == root->level &&
		    other->count > 0 && other->ptr.generation <= root->ptr.generation &&
		    (zf_key_cmp(&other->last, &root->first) < 0 ||
		     zf_key_cmp(&other->first, &root->last) > 0))
			return false;
	return true;
}

/*
 * Guesses the root of a tree that no root item names. A commit writes all nodes from a changed leaf
 * up to the root, so the root is the newest node. If a found node has a higher level, either the
 * tree was once higher or the root was not found. False then, and the caller uses the leaves found.
 */
static bool guess_root(const struct zf_salvage *salvage, const struct zf_vector *found,
		       enum zf_tree_id tree, struct zf_root *ret_root)
{
	const struct zf_found *root = NULL;
	uint8_t highest = 0;

	ZF_VECTOR_FOREACH (found, struct zf_found, node) {
		if (node->owner != tree || node->ptr.generation > salvage->super.generation)
			continue;
		highest = node->level > highest ? node->level : highest;
		if (!root || node->ptr.generation > root->ptr.generation ||
		    (node->ptr.generation == root->ptr.generation && node->level >= root->level))
			root = node;
	}
	if (!root || root->level < highest || !is_alone(found, root))
		return false;
	*ret_root = (struct zf_root){.ptr = root->ptr, .level = root->level};
	return true;
}

static int find_root(struct zf_salvage *salvage, enum zf_tree_id tree)
{
	const struct zf_vector *found;
	int r = zf_salvage_search(salvage, &found);

	if (r == 0)
		salvage->roots[tree].known =
			guess_root(salvage, found, tree, &salvage->roots[tree].root);
	return r;
}

static const struct zf_found *newest_leaf_of_files(const struct zf_salvage *salvage)
{
	ZF_VECTOR_FOREACH (&salvage->found, struct zf_found, node)
		if (node->owner == ZF_TREE_FS && node->level == 0 && node->count > 0 &&
		    node->ptr.generation <= salvage->super.generation)
			return node;
	return NULL;
}

/*
 * The root item says that the fs tree is a single leaf, and that leaf cannot be read. Its items are
 * nowhere else, so a root or leaves are taken from the nodes found, and the guess is noted
 * (files_guessed, files_generation).
 */
static int find_files(struct zf_salvage *salvage)
{
	uint64_t generation = salvage->roots[ZF_TREE_FS].root.ptr.generation;
	int r = find_root(salvage, ZF_TREE_FS);
	const struct zf_found *leaf = r == 0 ? newest_leaf_of_files(salvage) : NULL;

	if (!leaf)
		return r;
	salvage->files_guessed =
		!salvage->roots[ZF_TREE_FS].known || leaf->ptr.generation < generation;
	if (leaf->ptr.generation < generation)
		salvage->files_generation = leaf->ptr.generation;
	return r;
}

static bool is_of_another_tree(const struct zf_salvage *salvage, const struct zf_node_ptr *ptr,
			       enum zf_tree_id tree)
{
	ZF_VECTOR_FOREACH (&salvage->found, struct zf_found, node)
		if (node->ptr.address[0] == ptr->address[0] || node->ptr.csum == ptr->csum)
			return node->owner != tree;
	return false;
}

/*
 * Corrects a root item whose node cannot be read:
 *   - if a node of the tree has the item's checksum, that node is the root, whatever address and
 *     level the item has;
 *   - if the item says that the root of the fs tree is a leaf, the level may be wrong, too:
 *     find_files() takes what is found. Only the fs tree is made from older nodes, because its
 *     content is stored nowhere else;
 *   - if address or checksum are those of another tree's node, the item is useless.
 */
static int correct_root(struct zf_salvage *salvage, enum zf_tree_id tree)
{
	struct zf_root *root = &salvage->roots[tree].root;
	const struct zf_node_expect expect = {
		.ptr = root->ptr, .owner = tree, .level = root->level};
	_zf_free_ void *buf = aligned_alloc(ZF_BLOCK_SIZE, salvage->shape.node_size);
	const struct zf_found *node;

	if (!buf)
		return -ENOMEM;
	if (zf_leaves_read_node(&salvage->source, &expect, buf) == 0)
		return 0;
	node = zf_salvage_find_csum(salvage, expect.ptr.csum);
	if (node && node->owner == tree)
		*root = (struct zf_root){.ptr = node->ptr, .level = node->level};
	else if (tree == ZF_TREE_FS && root->level == 0)
		return find_files(salvage);
	else if (is_of_another_tree(salvage, &expect.ptr, tree))
		return find_root(salvage, tree);
	return 0;
}

int zf_salvage_collect(struct zf_salvage *salvage, enum zf_tree_id tree)
{
	struct zf_node_expect expect = {.owner = tree};
	int r = salvage->roots[tree].known ? correct_root(salvage, tree) : find_root(salvage, tree);

	if (r < 0)
		return r;
	expect.ptr = salvage->roots[tree].root.ptr;
	expect.level = salvage->roots[tree].root.level;
	return zf_leaves_collect(&salvage->source, tree,
				 salvage->roots[tree].known ? &expect : NULL,
				 salvage->super.generation, &salvage->leaves[tree]);
}

static int check_leaves(const struct zf_salvage *salvage)
{
	ZF_VECTOR_FOREACH (&salvage->leaves[ZF_TREE_FS], struct zf_leaf, leaf)
		if (!leaf->lost)
			return 0;
	zf_report(salvage->report, ZF_REPORT_ERROR,
		  "%s: nothing of the fs tree (names, extents) can be read",
		  zf_dev_path(salvage->dev));
	return -EUCLEAN;
}

static int open_salvage(struct zf_salvage *salvage, const struct zf_salvage_options *options)
{
	int r = zf_salvage_choose_state(salvage, options);

	if (r == 0)
		r = zf_salvage_collect(salvage, ZF_TREE_FS);
	if (r == 0)
		r = check_leaves(salvage);
	if (r == 0)
		r = zf_salvage_collect(salvage, ZF_TREE_SUMMARY);
	if (r == 0)
		r = zf_leaf_cursor_init(&salvage->summary, &salvage->source, ZF_TREE_SUMMARY,
					&salvage->leaves[ZF_TREE_SUMMARY]);
	if (r == 0)
		r = zf_leaf_cursor_init(&salvage->files, &salvage->source, ZF_TREE_FS,
					&salvage->leaves[ZF_TREE_FS]);
	return r;
}

int zf_salvage_open(struct zf_dev *dev, const struct zf_salvage_options *options,
		    const struct zf_report *report, struct zf_salvage **ret_salvage)
{
	struct zf_salvage *salvage = calloc(1, sizeof(*salvage));
	int r;

	if (!salvage)
		return -ENOMEM;
	salvage->dev = dev;
	salvage->report = report;
	salvage->progress = options->progress;
	salvage->walk_progress = options->walk_progress;
	salvage->shape.geometry = zf_dev_geometry(dev);
	salvage->source = (struct zf_leaf_source){
		.dev = dev,
		.shape = &salvage->shape,
		.get_found = zf_salvage_search,
		.find_csum = zf_salvage_find_csum,
		.arg = salvage,
	};
	salvage->found = ZF_VECTOR(struct zf_found);
	salvage->by_csum = ZF_VECTOR(struct zf_found *);
	for (unsigned int tree = 0; tree < ZF_TREE_COUNT; tree++)
		salvage->leaves[tree] = ZF_VECTOR(struct zf_leaf);
	r = open_salvage(salvage, options);
	if (r < 0) {
		zf_salvage_close(salvage);
		return r;
	}
	*ret_salvage = salvage;
	return 0;
}

void zf_salvage_close(struct zf_salvage *salvage)
{
	if (!salvage)
		return;
	zf_leaf_cursor_deinit(&salvage->summary);
	zf_leaf_cursor_deinit(&salvage->files);
	zf_vector_deinit(&salvage->by_csum);
	zf_vector_deinit(&salvage->found);
	for (unsigned int tree = 0; tree < ZF_TREE_COUNT; tree++)
		zf_vector_deinit(&salvage->leaves[tree]);
	free(salvage);
}

void zf_salvage_get_state(const struct zf_salvage *salvage, struct zf_salvage_state *ret_state)
{
	*ret_state = (struct zf_salvage_state){
		.generation = salvage->super.generation,
		.has_super = salvage->has_super,
		.record_generation = salvage->record_generation,
		.searched = salvage->searched,
		.files_generation = salvage->files_generation,
		.files_guessed = salvage->files_guessed,
	};
}

const struct zf_health *zf_salvage_get_health(const struct zf_salvage *salvage)
{
	return &salvage->health;
}

const struct zf_super *zf_salvage_get_super(const struct zf_salvage *salvage)
{
	return &salvage->super;
}

/* ---- items ---- */

bool zf_salvage_is_sound(const struct zf_salvage *salvage, enum zf_tree_id tree,
			 const struct zf_key *key, const void *value, size_t len)
{
	const struct zf_item_check check = {
		.value_max = zf_node_value_max(salvage->shape.node_size),
		.dir_hash_seed = salvage->super.dir_hash_seed,
		.any_seed = !salvage->has_seed,
		.generation_max = salvage->super.generation,
		.device_bytes =
			salvage->shape.geometry->zone_size * salvage->shape.geometry->zone_count,
	};

	return zf_item_check(&check, tree, key, value, len) == 0;
}

uint64_t zf_salvage_next_inode(struct zf_salvage *salvage, uint64_t ino)
{
	const struct zf_key from = ZF_KEY(ino, ZF_KEY_INODE, 0);
	/*
	 * A damaged key may hold UINT64_MAX. The number after that is 0: a walk would start again.
	 */
	const struct zf_key end = ZF_KEY(ZF_SUPER_COUNTER_MAX + 1, 0, 0);
	const void *value;
	struct zf_key key;
	size_t len;

	zf_leaf_cursor_seek(&salvage->files, &from);
	return zf_leaf_cursor_next(&salvage->files, &end, &key, &value, &len) ? key.objectid : 0;
}

uint32_t zf_salvage_value_max(const struct zf_salvage *salvage)
{
	return zf_node_value_max(salvage->shape.node_size);
}

int zf_salvage_items(struct zf_salvage *salvage, uint64_t ino, zf_salvage_item_fn *fn, void *arg,
		     bool *ret_lost)
{
	const struct zf_key from = ZF_KEY(ino, ZF_KEY_INODE, 0), end = ZF_KEY(ino + 1, 0, 0);
	struct zf_leaf_cursor *cursor = &salvage->files;
	const void *value;
	struct zf_key key;
	size_t len;
	int r = 0;

	cursor->lost = false;
	zf_leaf_cursor_seek(cursor, &from);
	while (r == 0 && zf_leaf_cursor_next(cursor, &end, &key, &value, &len)) {
		if (zf_salvage_is_sound(salvage, ZF_TREE_FS, &key, value, len))
			r = fn(arg, &key, value, len);
		else
			cursor->lost = true;
	}
	*ret_lost = cursor->lost;
	return r;
}
