/* SPDX-License-Identifier: MIT */
/*
 * Reads the newest superblock record, even if some of its values are damaged. A value that is
 * impossible, or that the device or the record before contradicts, is corrected from these.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "btree/node.h"
#include "repair/state.h"
#include "salvage/found.h"

struct search {
	struct zf_repair *repair;
	struct zf_super *super;
	struct zf_disk_super *block;
	bool torn; /* a slot newer than the record found has no record */
};

/* ---- the record ---- */

/* Called newest record first. 1: found. */
static int visit(void *arg, const struct zf_ring_record *record)
{
	struct search *search = arg;

	if (record->status == -EPROTONOSUPPORT)
		return record->status;
	if (record->status == 0) {
		*search->super = record->super;
		return 1;
	}
	if (zf_dev_read_buf(search->repair->dev, record->address, search->block,
			    sizeof(*search->block)) == 0 &&
	    zf_super_decode_sealed(search->block, search->super) == 0)
		return 1;
	search->torn = true;
	return 0;
}

/* 1: found, and no newer slot is damaged; 0: no such record. */
static int find(struct zf_repair *repair, struct zf_super *ret_super)
{
	struct search search = {
		.repair = repair,
		.super = ret_super,
		.block = aligned_alloc(ZF_BLOCK_SIZE, sizeof(*search.block)),
	};
	int r = search.block ? zf_ring_walk(repair->ring, visit, &search) : -ENOMEM;

	free(search.block);
	return r > 0 ? !search.torn : r;
}

/* ---- the nodes' shape ---- */

static bool shape_can_be(const struct zf_super *super)
{
	uint32_t size = super->node_size;

	return size >= ZF_NODE_SIZE_MIN && size <= ZF_NODE_SIZE_MAX && (size & (size - 1)) == 0 &&
	       super->metadata_copies >= 1 && super->metadata_copies <= ZF_COPIES_MAX;
}

static bool root_can_be(const struct zf_repair *repair, const struct zf_super *super)
{
	const struct zf_node_shape shape = {
		.geometry = zf_dev_geometry(repair->dev),
		.node_size = super->node_size,
		.copies = super->metadata_copies,
	};
	char fault[ZF_NODE_PTR_FAULT_SIZE];
	struct zf_node_ptr_limits limits;

	zf_node_shape_limits(&shape, ZF_SUPER_COUNTER_MAX, &limits);
	return super->root_level < ZF_TREE_LEVEL_MAX &&
	       !zf_node_ptr_is_wrong(&super->root, &limits, fault);
}

/* Can the root be read as the record says? */
static bool has_root(const struct zf_repair *repair, const struct zf_super *super)
{
	struct zf_node_shape shape = {
		.geometry = zf_dev_geometry(repair->dev),
		.node_size = super->node_size,
		.copies = super->metadata_copies,
	};
	const struct zf_node_expect expect = {
		.ptr = super->root, .owner = ZF_TREE_ROOT, .level = super->root_level};
	_zf_free_ void *node = NULL;

	if (!shape_can_be(super) || !root_can_be(repair, super))
		return false;
	node = aligned_alloc(ZF_BLOCK_SIZE, super->node_size);
	memcpy(shape.fsid, super->fsid, sizeof(shape.fsid));
	for (unsigned int c = 0; node && c < super->metadata_copies; c++)
		if (zf_dev_read_buf(repair->dev, super->root.address[c], node, super->node_size) ==
			    0 &&
		    zf_node_check(&shape, node, &expect, true, NULL) == 0)
			return true;
	return false;
}

static void take_shape(struct zf_super *super, const struct zf_super *from)
{
	memcpy(super->fsid, from->fsid, sizeof(super->fsid));
	super->node_size = from->node_size;
	super->metadata_copies = from->metadata_copies;
}

/* If there is no older record, takes the shape from the first valid node. */
static bool identify(struct zf_repair *repair, struct zf_super *ret_shape)
{
	struct zf_node_shape shape;

	if (zf_found_identify(repair->dev, &shape) < 0)
		return false;
	memcpy(ret_shape->fsid, shape.fsid, sizeof(shape.fsid));
	ret_shape->node_size = shape.node_size;
	ret_shape->metadata_copies = shape.copies;
	return true;
}

static bool same_shape(const struct zf_super *a, const struct zf_super *b)
{
	return memcmp(a->fsid, b->fsid, sizeof(a->fsid)) == 0 && a->node_size == b->node_size &&
	       a->metadata_copies == b->metadata_copies;
}

/* For the case that neither shape leads to a readable root: does a node have the other shape? */
static bool node_agrees(struct zf_repair *repair, const struct zf_super *other)
{
	struct zf_super node;

	return identify(repair, &node) && same_shape(&node, other);
}

static void correct_shape(struct zf_repair *repair, struct zf_super *super,
			  const struct zf_super *before)
{
	const struct zf_super as_read = *super;
	struct zf_super other;

	if (has_root(repair, super))
		return;
	if (before)
		other = *before;
	else if (!identify(repair, &other))
		return;
	take_shape(super, &other);
	if (!has_root(repair, super) && shape_can_be(&as_read) && !node_agrees(repair, &other))
		take_shape(super, &as_read);
}

/* ---- geometry ---- */

/*
 * The device's geometry is right if the record before agrees with it. Otherwise the filesystem is
 * another device's, and nothing is corrected.
 */
static void correct_geometry(const struct zf_repair *repair, struct zf_super *super,
			     const struct zf_super *before)
{
	const struct zf_geometry *geometry = zf_dev_geometry(repair->dev);

	if (!before || zf_super_check_geometry(before, geometry, NULL) < 0)
		return;
	super->zone_size = geometry->zone_size;
	super->zone_capacity = geometry->zone_capacity;
	super->conventional = before->conventional;
	/* A filesystem grows, and does not shrink. */
	if (super->zone_count < before->zone_count || super->zone_count > geometry->zone_count)
		super->zone_count = before->zone_count;
}

/* ---- the rest ---- */

static void correct_numbers(struct zf_repair *repair, struct zf_super *super)
{
	uint64_t root = super->root.generation;

	if (has_root(repair, super) &&
	    (super->generation > ZF_REPAIR_NUMBER_MAX || super->generation < root))
		super->generation = root;
	if (super->generation > ZF_REPAIR_NUMBER_MAX)
		super->generation = zf_ring_highest_generation(repair->ring);
	if (!root_can_be(repair, super)) {
		super->root = (struct zf_node_ptr){0};
		super->root_level = 0;
	}
	if (super->mkfs_time > INT64_MAX)
		super->mkfs_time = 0;
	if (!zf_super_label_is_valid(super->label))
		memset(super->label, 0, sizeof(super->label));
}

static bool log_can_be(const struct zf_super *super)
{
	for (unsigned int i = 0; i < 2; i++)
		if (super->log_zone[i] != ZF_SUPER_NO_ZONE &&
		    (super->log_zone[i] < ZF_SUPER_ZONES ||
		     super->log_zone[i] >= super->zone_count))
			return false;
	return super->log_zone[0] != super->log_zone[1] || super->log_zone[0] == ZF_SUPER_NO_ZONE;
}

/*
 * The log rarely changes its zones between two commits, so those of the record before are mostly
 * right. Its log_pointer is lower, and only makes the read of the log begin earlier.
 */
static void correct_log(struct zf_repair *repair, struct zf_super *super,
			const struct zf_super *before)
{
	if (!log_can_be(super) && before) {
		for (unsigned int i = 0; i < 2; i++) {
			super->log_zone[i] = before->log_zone[i];
			super->log_zone_resets[i] = before->log_zone_resets[i];
			super->log_pointer[i] = before->log_pointer[i];
		}
	}
	if (!log_can_be(super) || super->log_sequence > ZF_REPAIR_NUMBER_MAX ||
	    super->op_number > ZF_REPAIR_NUMBER_MAX || super->log_epoch > ZF_REPAIR_NUMBER_MAX ||
	    super->log_epoch == 0)
		repair->keep_log = false;
	if (super->log_sequence > ZF_REPAIR_NUMBER_MAX)
		super->log_sequence = 0;
	if (super->op_number > ZF_REPAIR_NUMBER_MAX)
		super->op_number = 0;
	if (super->log_epoch > ZF_REPAIR_NUMBER_MAX || super->log_epoch == 0)
		super->log_epoch = before && before->log_epoch <= ZF_REPAIR_NUMBER_MAX
					   ? before->log_epoch + 1
					   : 1;
}

/* If the two records before have the same value, that value is taken. */
static void outvote(struct zf_super *super, const struct zf_super *a, const struct zf_super *b)
{
	if (a->dir_hash_seed == b->dir_hash_seed)
		super->dir_hash_seed = a->dir_hash_seed;
	if (memcmp(a->log_secret, b->log_secret, sizeof(a->log_secret)) == 0)
		memcpy(super->log_secret, a->log_secret, sizeof(a->log_secret));
}

/*
 * The newest record older than `than`. If the generation of `than` is damaged, skips `than` itself.
 */
static bool find_before(struct zf_repair *repair, const struct zf_super *than,
			struct zf_super *ret_super)
{
	uint64_t generation = than->generation;

	do {
		if (zf_ring_older(repair->ring, generation, ret_super) < 0)
			return false;
		generation = ret_super->generation;
	} while (ret_super->address == than->address);
	return true;
}

static void correct(struct zf_repair *repair, struct zf_super *super)
{
	const struct zf_super as_read = *super;
	struct zf_super a, b;
	bool has_a = find_before(repair, &as_read, &a);

	correct_geometry(repair, super, has_a ? &a : NULL);
	correct_shape(repair, super, has_a ? &a : NULL);
	correct_numbers(repair, super);
	correct_log(repair, super, has_a ? &a : NULL);
	if (has_a && find_before(repair, &a, &b))
		outvote(super, &a, &b);
	if (memcmp(super, &as_read, sizeof(as_read)) != 0)
		zf_repair_tell(repair, "superblock: corrected values that were impossible or "
				       "contradicted the device or the record before");
}

int zf_repair_newest(struct zf_repair *repair, struct zf_super *ret_super)
{
	struct zf_super super;
	int r = find(repair, &super);

	if (r == -EPROTONOSUPPORT)
		zf_report(repair->report, ZF_REPORT_ERROR,
			  "%s: its format is not known to this version; use a newer one",
			  zf_dev_path(repair->dev));
	if (r <= 0)
		return r;
	correct(repair, &super);
	*ret_super = super;
	return shape_can_be(&super);
}
