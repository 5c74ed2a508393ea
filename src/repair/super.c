/* SPDX-License-Identifier: MIT */
/* Chooses the superblock record that a repair begins with, and opens the state that it names. */
#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "repair/state.h"

/* ---- values that the record lacks ---- */

/* Without any record the log cannot be found, and names get a new hash seed. */
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

void zf_repair_shape(const struct zf_repair *repair, struct zf_node_shape *ret_shape)
{
	*ret_shape = (struct zf_node_shape){
		.geometry = zf_dev_geometry(repair->dev),
		.node_size = repair->super.node_size,
		.copies = repair->super.metadata_copies,
	};
	memcpy(ret_shape->fsid, repair->super.fsid, sizeof(ret_shape->fsid));
}

/* ---- opening ---- */

static int open_salvage(struct zf_repair *repair)
{
	struct zf_salvage_options options = {
		.generation = repair->options->generation,
		.progress = &repair->meter->search.progress,
		.walk_progress = &repair->meter->current.progress,
	};
	struct zf_super super;
	int r;

	if (options.generation == 0 && repair->ring) {
		r = zf_repair_newest(repair, &super);
		if (r < 0)
			return r;
		options.super = r > 0 ? &super : NULL;
	}
	return zf_salvage_open(repair->dev, &options, repair->report, &repair->salvage);
}

int zf_repair_open(struct zf_repair *repair)
{
	struct zf_salvage_state state;
	int r = zf_ring_open(repair->dev, NULL, &repair->ring);

	if (r < 0 && r != -ENODEV)
		return r;
	r = open_salvage(repair);
	if (r < 0)
		return r;
	zf_salvage_get_state(repair->salvage, &state);
	repair->super = *zf_salvage_get_super(repair->salvage);
	repair->state = repair->super;
	repair->must_pin = !state.has_super;
	/* Only the newest record has the right position in the log. */
	repair->keep_log = repair->keep_log && state.has_super && repair->options->generation == 0;
	if (repair->super.log_epoch == 0) /* made without a record */
		r = make_up(repair);
	return r < 0 ? r : fit(repair);
}

/* ---- the record that names the state ---- */

/*
 * If no root was found, the record names a root that does not exist. Only its generation matters:
 * newer nodes were written by an interrupted repair.
 */
static void name_no_root(const struct zf_repair *repair, struct zf_super *super)
{
	const uint64_t zone_size = zf_dev_geometry(repair->dev)->zone_size;

	super->root = (struct zf_node_ptr){.generation = super->generation, .csum = 1};
	for (unsigned int c = 0; c < super->metadata_copies; c++)
		super->root.address[c] = (ZF_SUPER_ZONES + c) * zone_size;
	super->root_level = 0;
}

static int write_pin(struct zf_repair *repair)
{
	struct zf_super super = repair->state;

	if (super.root.address[0] == 0)
		name_no_root(repair, &super);
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
