/* SPDX-License-Identifier: MIT */
/* The record that a repair begins with, and the state that it names. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/cleanup.h"
#include "btree/node.h"
#include "repair/state.h"

/* ---- what no commit changes ---- */

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
	_zf_free_ void *node = aligned_alloc(ZF_BLOCK_SIZE, super->node_size);

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

/* Two records before it agree, and it does not. */
static void outvote(struct zf_super *super, const struct zf_super *a, const struct zf_super *b)
{
	if (a->dir_hash_seed == b->dir_hash_seed)
		super->dir_hash_seed = a->dir_hash_seed;
	if (memcmp(a->log_secret, b->log_secret, sizeof(a->log_secret)) == 0)
		memcpy(super->log_secret, a->log_secret, sizeof(a->log_secret));
	if (a->mkfs_time == b->mkfs_time)
		super->mkfs_time = a->mkfs_time;
}

/* A filesystem grows, and does not shrink. */
static void correct_geometry(const struct zf_repair *repair, struct zf_super *super,
			     const struct zf_super *older)
{
	const struct zf_geometry *geometry = zf_dev_geometry(repair->dev);

	super->zone_size = geometry->zone_size;
	super->zone_capacity = geometry->zone_capacity;
	super->conventional = geometry->conventional;
	if (super->zone_count < older->zone_count || super->zone_count > geometry->zone_count)
		super->zone_count = older->zone_count;
}

/*
 * The newest record against those before it. What the device tells is right, if an older record
 * agrees with it: else the filesystem is another device's.
 */
static void correct(struct zf_repair *repair, struct zf_super *super)
{
	const struct zf_super as_read = *super;
	struct zf_super a, b;

	if (super->generation > ZF_REPAIR_NUMBER_MAX && super->root.generation != 0)
		super->generation = super->root.generation;
	if (zf_ring_older(repair->ring, as_read.generation, &a) == 0) {
		if (zf_super_check_geometry(&a, zf_dev_geometry(repair->dev), NULL) == 0)
			correct_geometry(repair, super, &a);
		if (!has_root(repair, super)) {
			take_shape(super, &a);
			if (!has_root(repair, super))
				take_shape(super, &as_read);
		}
		if (zf_ring_older(repair->ring, a.generation, &b) == 0)
			outvote(super, &a, &b);
	}
	if (memcmp(super, &as_read, sizeof(as_read)) != 0)
		zf_repair_tell(repair,
			       "superblock: what contradicts the device, or the records before "
			       "it, is corrected");
}

/* ---- what is missing ---- */

/* There is no record, so there is no log, and names get another hash. */
static int make_up(struct zf_repair *repair)
{
	struct zf_super *super = &repair->super;

	super->conventional = zf_dev_geometry(repair->dev)->conventional;
	super->log_epoch = 1;
	super->next_intent = 1;
	super->next_ino = ZF_INO_FIRST;
	if (getrandom(super->log_secret, sizeof(super->log_secret), 0) < 0)
		return -errno;
	repair->keep_log = false;
	for (unsigned int i = 0; i < 2; i++)
		super->log_zone[i] = ZF_SUPER_NO_ZONE;
	zf_repair_tell(repair, "no superblock can be read: label and log are lost");
	return 0;
}

static int fit(struct zf_repair *repair)
{
	struct zf_super *super = &repair->super;

	super->incompat |= ZF_INCOMPAT_GUARANTEE;
	super->kept_bytes = super->guaranteed_bytes = super->kept_guaranteed_bytes = 0;
	if (super->next_intent > ZF_REPAIR_NUMBER_MAX)
		super->next_intent = 1;
	for (unsigned int c = 0; c < ZF_COPIES_MAX; c++) {
		super->meta_zone[c] = UINT32_MAX;
		super->meta_pointer[c] = 0;
	}
	if (super->dir_hash_seed == 0 &&
	    getrandom(&super->dir_hash_seed, sizeof(super->dir_hash_seed), 0) < 0)
		return -errno;
	if (!(super->compat_ro & ~(uint64_t)ZF_COMPAT_RO_KNOWN))
		return 0;
	zf_report(repair->report, ZF_REPORT_ERROR,
		  "%s: it has features (0x%" PRIx64
		  ") that this version can only read: use a newer "
		  "one to repair it",
		  zf_dev_path(repair->dev), super->compat_ro);
	return -EPROTONOSUPPORT;
}

/* ---- opening ---- */

/* 0: there is a newest record, and none that is newer and damaged. */
static int newest(struct zf_repair *repair, struct zf_super *ret_super)
{
	const struct zf_super *super;
	unsigned int stepped_over;
	int r = repair->ring ? zf_ring_newest(repair->ring, &super, &stepped_over) : -ENOENT;

	if (r < 0)
		return r;
	*ret_super = *super;
	return stepped_over ? -ENOENT : 0;
}

static int open_salvage(struct zf_repair *repair)
{
	struct zf_salvage_options options = {
		.generation = repair->options->generation,
		.progress = repair->options->progress,
	};
	struct zf_super super;

	if (options.generation == 0 && newest(repair, &super) == 0) {
		correct(repair, &super);
		options.super = &super;
	}
	return zf_salvage_open(repair->dev, &options, repair->report, &repair->salvage);
}

int zf_repair_open(struct zf_repair *repair)
{
	struct zf_salvage_state state;
	bool has_record;
	int r = zf_ring_open(repair->dev, NULL, &repair->ring);

	if (r < 0 && r != -ENODEV)
		return r;
	r = open_salvage(repair);
	if (r < 0)
		return r;
	zf_salvage_get_state(repair->salvage, &state);
	repair->super = *zf_salvage_get_super(repair->salvage);
	has_record = repair->super.log_epoch > 0;
	repair->state = repair->super;
	repair->must_pin = !state.has_super && repair->super.root.address[0] != 0;
	/* Of another commit the record tells another place of the log. */
	repair->keep_log = repair->keep_log && state.has_super && repair->options->generation == 0;
	if (!has_record)
		r = make_up(repair);
	return r < 0 ? r : fit(repair);
}

/* ---- the record that names it ---- */

static int write_pin(struct zf_repair *repair)
{
	struct zf_super super = repair->state;

	for (unsigned int i = 0; i < 2; i++) {
		super.log_zone[i] = ZF_SUPER_NO_ZONE;
		super.log_zone_resets[i] = super.log_pointer[i] = 0;
	}
	for (unsigned int c = 0; c < ZF_COPIES_MAX; c++) {
		super.meta_zone[c] = UINT32_MAX;
		super.meta_pointer[c] = 0;
	}
	super.conventional = repair->super.conventional;
	super.next_ino = repair->super.next_ino;
	super.next_intent = repair->super.next_intent;
	super.clean = false;
	if (zf_ring_highest_generation(repair->ring) >= ZF_REPAIR_NUMBER_MAX) {
		if (zf_super_check(&super, NULL) < 0)
			return 0;
		return zf_ring_supersede(repair->ring, &super);
	}
	super.generation = zf_ring_highest_generation(repair->ring) + 1;
	super.generation = zf_max_u64(super.generation, repair->super.generation + 1);
	return zf_super_check(&super, NULL) < 0 ? 0 : zf_ring_write(repair->ring, &super);
}

int zf_repair_pin(struct zf_repair *repair)
{
	int r = 0;

	if (!repair->ring)
		r = zf_ring_format(repair->dev, repair->report, &repair->ring);
	if (r == 0 &&
	    (repair->must_pin || zf_ring_highest_generation(repair->ring) >= ZF_REPAIR_NUMBER_MAX))
		r = write_pin(repair);
	return r;
}
