/* SPDX-License-Identifier: MIT */
/* Chooses the state to read: by a superblock, by a root that was found, or by leaves. */
#include "salvage/state.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "salvage/found.h"

/* ---- the root tree ---- */

static void take_item(struct zf_salvage *salvage, const struct zf_key *key, const void *value,
		      size_t len)
{
	struct zf_root *root;

	if (zf_health_has_key(key))
		(void)zf_health_decode(key, value, len, NULL, &salvage->health);
	if (key->type != ZF_KEY_ROOT || key->offset != 0 || key->objectid <= ZF_TREE_ROOT ||
	    key->objectid >= ZF_TREE_COUNT)
		return;
	root = &salvage->roots[key->objectid].root;
	salvage->roots[key->objectid].known =
		zf_root_decode(&salvage->shape, salvage->super.generation,
			       (enum zf_tree_id)key->objectid, value, len, NULL, root) == 0;
}

/*
 * A tree whose root item is missing or wrong stays unknown (roots[].known); its root or leaves are
 * then chosen from the nodes found.
 */
static int read_roots(struct zf_salvage *salvage)
{
	const struct zf_node_expect expect = {
		.ptr = salvage->super.root,
		.owner = ZF_TREE_ROOT,
		.level = salvage->super.root_level,
	};
	struct zf_vector leaves = ZF_VECTOR(struct zf_leaf);
	struct zf_leaf_cursor cursor = {0};
	const void *value;
	struct zf_key key;
	size_t len;
	int r;

	memset(salvage->roots, 0, sizeof(salvage->roots));
	salvage->health = (struct zf_health){0};
	r = zf_leaves_collect(&salvage->source, ZF_TREE_ROOT, &expect, salvage->super.generation,
			      &leaves);
	if (r == 0)
		r = zf_leaf_cursor_init(&cursor, &salvage->source, ZF_TREE_ROOT, &leaves);
	if (r == 0) {
		zf_leaf_cursor_seek(&cursor, &ZF_KEY_MIN);
		while (zf_leaf_cursor_next(&cursor, &ZF_KEY_MAX, &key, &value, &len))
			take_item(salvage, &key, value, len);
	}
	zf_leaf_cursor_deinit(&cursor);
	zf_vector_deinit(&leaves);
	return r;
}

/* ---- roots that were found ---- */

static void take_found_root(struct zf_salvage *salvage, const struct zf_found *found)
{
	salvage->super.root = found->ptr;
	salvage->super.root_level = found->level;
	salvage->super.generation = found->ptr.generation;
}

/*
 * Takes the newest root tree, of generation `min` to `max`, that names the root of the fs tree. A
 * root tree is a single leaf. 0, or -ENOENT: there is none.
 */
static int find_root(struct zf_salvage *salvage, uint64_t min, uint64_t max)
{
	const struct zf_vector *found;
	int r = zf_salvage_search(salvage, &found);

	ZF_VECTOR_FOREACH (found, struct zf_found, node) {
		if (r < 0)
			break;
		if (node->owner != ZF_TREE_ROOT || node->level != 0 || node->ptr.generation < min ||
		    node->ptr.generation > max)
			continue;
		take_found_root(salvage, node);
		r = read_roots(salvage);
		if (r == 0 && salvage->roots[ZF_TREE_FS].known)
			return 0;
	}
	return r < 0 ? r : -ENOENT;
}

/* ---- superblocks ---- */

/*
 * Reads the record of `generation` (0: the newest). If there is none, any other record, because
 * each has the filesystem's id and shape. *ret_stepped_over: how many newer slots are damaged; not
 * 0 if the record of `generation` is missing. 0, or -ENOENT: there is no record.
 */
static int read_super(struct zf_salvage *salvage, uint64_t generation,
		      unsigned int *ret_stepped_over)
{
	const struct zf_super *newest;
	struct zf_ring *ring;
	int r = zf_ring_open(salvage->dev, NULL, &ring);

	if (r < 0)
		return r == -ENODEV ? -ENOENT : r;
	r = generation ? zf_ring_find(ring, generation, &salvage->super) : -ENOENT;
	*ret_stepped_over = r < 0;
	if (r < 0) {
		r = zf_ring_newest(ring, &newest, ret_stepped_over);
		if (r == 0)
			salvage->super = *newest;
		else if (r != -EPROTONOSUPPORT)
			r = zf_ring_older(ring, UINT64_MAX, &salvage->super);
	}
	zf_ring_close(ring);
	return r;
}

/*
 * A damaged slot newer than the record may be that of a commit to this filesystem. Such a commit's
 * nodes are on the device, so its root is looked for.
 */
static int choose_by_super(struct zf_salvage *salvage, uint64_t generation,
			   unsigned int stepped_over)
{
	const struct zf_super super = salvage->super;
	int r = zf_super_check_geometry(&super, salvage->shape.geometry, salvage->report);

	if (r < 0)
		return r;
	salvage->has_super = generation ? super.generation == generation : stepped_over == 0;
	r = read_roots(salvage);
	if (r < 0 || salvage->has_super)
		return r;
	r = generation ? find_root(salvage, generation, generation)
		       : find_root(salvage, super.generation + 1, UINT64_MAX);
	if (r != -ENOENT || generation)
		return r;
	salvage->super = super;
	salvage->has_super = true;
	return read_roots(salvage);
}

/* ---- without a superblock ---- */

static void make_super(struct zf_salvage *salvage)
{
	const struct zf_geometry *geometry = salvage->shape.geometry;

	salvage->super = (struct zf_super){
		.zone_size = geometry->zone_size,
		.zone_capacity = geometry->zone_capacity,
		.zone_count = geometry->zone_count,
		.node_size = salvage->shape.node_size,
		.metadata_copies = salvage->shape.copies,
	};
	memcpy(salvage->super.fsid, salvage->shape.fsid, sizeof(salvage->super.fsid));
}

/* The generation of the first fs leaf found: they are sorted newest first. 0: there is none. */
static uint64_t newest_leaf(const struct zf_salvage *salvage)
{
	ZF_VECTOR_FOREACH (&salvage->found, struct zf_found, node)
		if (node->owner == ZF_TREE_FS && node->level == 0)
			return node->ptr.generation;
	return 0;
}

/* If no root was found either, the state is that of the newest leaves. */
static int choose_without_super(struct zf_salvage *salvage, uint64_t generation)
{
	int r = zf_found_identify(salvage->dev, &salvage->shape);

	if (r == -ENODEV)
		zf_report(salvage->report, ZF_REPORT_ERROR,
			  "%s: there is no zfuse filesystem on it: neither a superblock nor a node",
			  zf_dev_path(salvage->dev));
	if (r < 0)
		return r;
	make_super(salvage);
	salvage->has_seed = false;
	r = generation ? find_root(salvage, generation, generation)
		       : find_root(salvage, 1, UINT64_MAX);
	if (r != -ENOENT || generation)
		return r;
	memset(salvage->roots, 0, sizeof(salvage->roots));
	salvage->super.generation = newest_leaf(salvage);
	return 0;
}

/* The same as read_super(), for the record in the options. */
static int take_super(struct zf_salvage *salvage, const struct zf_super *super,
		      uint64_t *generation, unsigned int *ret_stepped_over)
{
	salvage->super = *super;
	*generation = super->generation;
	*ret_stepped_over = 0;
	return 0;
}

int zf_salvage_choose_state(struct zf_salvage *salvage, const struct zf_salvage_options *options)
{
	uint64_t generation = options->generation;
	unsigned int stepped_over = 0;
	int r = options->super ? take_super(salvage, options->super, &generation, &stepped_over)
			       : read_super(salvage, generation, &stepped_over);

	if (r == -ENOENT) {
		r = choose_without_super(salvage, generation);
	} else if (r == 0) {
		/*
		 * If no record was left, the one that a repair writes first (zf_repair_pin()) has
		 * 0.
		 */
		salvage->has_seed = salvage->super.dir_hash_seed != 0;
		salvage->record_generation = salvage->super.generation;
		salvage->shape.node_size = salvage->super.node_size;
		salvage->shape.copies = salvage->super.metadata_copies;
		memcpy(salvage->shape.fsid, salvage->super.fsid, sizeof(salvage->shape.fsid));
		r = choose_by_super(salvage, generation, stepped_over);
	}
	if (r == -EPROTONOSUPPORT)
		zf_report(salvage->report, ZF_REPORT_ERROR,
			  "%s: its format is not known to this version; use a newer one",
			  zf_dev_path(salvage->dev));
	if (r == -ENOENT)
		zf_report(salvage->report, ZF_REPORT_ERROR,
			  "%s: there is no generation %" PRIu64
			  " any more; 'zfusectl super' lists those that have a superblock",
			  zf_dev_path(salvage->dev), generation);
	return r;
}
