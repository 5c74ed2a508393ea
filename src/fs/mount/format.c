/* SPDX-License-Identifier: MIT */
#include "fs/mount/format.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "alloc/alloc.h"
#include "alloc/stream.h"
#include "base/bits.h"
#include "btree/tree.h"
#include "fs/core/inode.h"
#include "superblock/ring.h"
#include "txn/system_nodes.h"
#include "txn/txn.h"

/* A lost zone only seems to be empty. A reset renews its entry in the device's zone table. */
static int reset_zone(struct zf_dev *dev, uint32_t zone_no, const struct zf_zone_info *info,
		      const struct zf_report *report)
{
	enum zf_zone_cond cond = info->cond;
	int r;

	if ((cond == ZF_ZONE_EMPTY && !info->lost) || cond == ZF_ZONE_OFFLINE ||
	    cond == ZF_ZONE_READONLY)
		return 0;
	r = zf_dev_reset(dev, zone_no);
	if (r < 0)
		zf_report(report, ZF_REPORT_ERROR, "resetting zone %u failed: %s", zone_no,
			  strerror(-r));
	return r;
}

/*
 * Reads many zones with one report: a large disk has tens of thousands, and each report is a
 * command.
 */
static int reset_zones(struct zf_dev *dev, const struct zf_report *report)
{
	const struct zf_geometry *geometry = zf_dev_geometry(dev);
	uint32_t first = geometry->conventional > 2 ? geometry->conventional : 2;
	struct zf_zone_info info[256];

	while (first < geometry->zone_count) {
		uint32_t n = (uint32_t)zf_min_u64(geometry->zone_count - first, 256);
		int r = zf_dev_report(dev, first, n, info);

		if (r < 0)
			zf_report(report, ZF_REPORT_ERROR, "zones from %u on cannot be read: %s",
				  first, strerror(-r));
		for (uint32_t i = 0; i < n && r == 0; i++)
			r = reset_zone(dev, first + i, &info[i], report);
		if (r < 0)
			return r;
		first += n;
	}
	return 0;
}

static void fill_super(struct zf_dev *dev, const struct zf_format_options *options,
		       const struct zf_format_plan *plan, struct zf_super *super)
{
	const struct zf_geometry *geometry = zf_dev_geometry(dev);

	*super = (struct zf_super){
		.incompat = ZF_INCOMPAT_GUARANTEE,
		.zone_size = geometry->zone_size,
		.zone_capacity = geometry->zone_capacity,
		.zone_count = geometry->zone_count,
		.conventional = geometry->conventional,
		.node_size = plan->node_size,
		.metadata_copies = plan->metadata_copies,
		.dir_hash_seed = options->dir_hash_seed,
		.mkfs_time = (uint64_t)(options->now_ns / 1000000000),
		.next_ino = ZF_INO_FIRST,
		.inode_count = 1,
		.next_intent = 1,
		.log_epoch = 1,
		.log_zone = {ZF_SUPER_NO_ZONE, ZF_SUPER_NO_ZONE},
		.meta_zone = {UINT32_MAX, UINT32_MAX},
	};
	memcpy(super->fsid, options->fsid, sizeof(super->fsid));
	memcpy(super->label, options->label, sizeof(super->label));
	memcpy(super->log_secret, options->log_secret, sizeof(super->log_secret));
}

/*
 * Writes the nodes of the first transaction. `system`: the nodes are of the root tree or the zone
 * tree, and zone items do not count them.
 */
struct format_writer {
	struct zf_writer writer;
	struct zf_alloc *alloc;
	bool system;
};

static int format_alloc(struct zf_writer *writer, uint64_t ret_address[ZF_COPIES_MAX])
{
	struct format_writer *w = ZF_CONTAINER_OF(writer, struct format_writer, writer);

	return zf_alloc_node(w->alloc, w->system, ret_address);
}

static void format_free(struct zf_writer *writer, const uint64_t address[ZF_COPIES_MAX],
			uint64_t node_generation, enum zf_tree_id owner)
{
	struct format_writer *w = ZF_CONTAINER_OF(writer, struct format_writer, writer);

	zf_alloc_node_free(w->alloc, address, w->system);
}

static int make_zone_items(struct zf_forest *forest, struct zf_writer *writer, uint32_t zone_count)
{
	int r = 0;

	for (uint32_t z = 0; z < zone_count && r == 0; z++) {
		struct zf_key key = ZF_KEY(z, ZF_KEY_ZONE, 0);
		struct zf_disk_zone item = {.role = z < 2 ? ZF_ROLE_SUPER : ZF_ROLE_NONE};

		r = zf_tree_insert(forest, writer, ZF_TREE_ZONE, &key, &item, sizeof(item));
	}
	return r;
}

static int make_trees(struct zf_alloc *alloc, struct zf_forest *forest,
		      const struct zf_super *super, const struct zf_format_options *options)
{
	static const enum zf_tree_id user_trees[] = {ZF_TREE_FS, ZF_TREE_SUMMARY, ZF_TREE_SHARE};
	struct format_writer system = {
		.writer = {.generation = 1, .alloc = format_alloc, .free = format_free},
		.alloc = alloc,
		.system = true,
	};
	struct format_writer user = system;
	struct zf_time now = {
		.seconds = options->now_ns / 1000000000,
		.nanoseconds = (uint32_t)(options->now_ns % 1000000000),
	};
	int r = zf_tree_create(forest, &system.writer, ZF_TREE_ROOT);

	user.system = false;
	if (r == 0)
		r = zf_tree_create(forest, &system.writer, ZF_TREE_ZONE);
	if (r == 0)
		r = make_zone_items(forest, &system.writer, super->zone_count);
	for (size_t i = 0; i < ZF_ARRAY_SIZE(user_trees) && r == 0; i++)
		r = zf_tree_create(forest, &user.writer, user_trees[i]);
	if (r == 0)
		r = zf_fs_make_root(forest, &user.writer, super->dir_hash_seed, now,
				    options->root_uid, options->root_gid);
	return r;
}

static int first_commit(struct zf_dev *dev, struct zf_ring *ring, struct zf_alloc *alloc,
			struct zf_forest *forest, const struct zf_super *super,
			const struct zf_report *report)
{
	struct zf_txn_options options = {.dirty_bytes_max = UINT64_MAX};
	struct zf_txn *txn;
	int r = zf_system_nodes_count(forest, alloc, false);

	if (r == 0)
		r = zf_txn_new(dev, ring, alloc, forest, super, &options, report, &txn);
	if (r < 0)
		return r;
	zf_txn_set_clean(txn, true);
	r = zf_txn_commit(txn, true);
	zf_txn_free(txn);
	return r;
}

int zf_fs_format(struct zf_dev *dev, const struct zf_format_options *options,
		 const struct zf_report *report)
{
	struct zf_forest_options forest_options = {.cache_bytes = UINT64_C(16) << 20};
	struct zf_ring *ring = NULL;
	struct zf_alloc *alloc = NULL;
	struct zf_forest *forest = NULL;
	struct zf_format_plan plan;
	struct zf_super super;
	int r = zf_format_check(zf_dev_geometry(dev), options, report, &plan);

	if (r < 0)
		return r;
	fill_super(dev, options, &plan, &super);
	forest_options.shape = (struct zf_node_shape){.node_size = super.node_size,
						      .copies = super.metadata_copies};
	memcpy(forest_options.shape.fsid, super.fsid, sizeof(super.fsid));

	/*
	 * The old superblocks go first: a device formatted in part must not look like the old
	 * filesystem.
	 */
	r = zf_ring_format(dev, report, &ring);
	if (r == 0)
		r = reset_zones(dev, report);
	if (r == 0)
		r = zf_alloc_new(dev, &super, report, &alloc);
	if (r == 0) {
		zf_alloc_start(alloc, 0, 1);
		r = zf_forest_new(dev, &forest_options, report, &forest);
	}
	if (r == 0)
		r = make_trees(alloc, forest, &super, options);
	if (r == 0)
		r = first_commit(dev, ring, alloc, forest, &super, report);
	zf_forest_free(forest);
	zf_alloc_free(alloc);
	zf_ring_close(ring);
	return r;
}
