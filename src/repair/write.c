/* SPDX-License-Identifier: MIT */
/*
 * Writes the new trees by the allocator, forest and transaction of a mount, which start with empty
 * trees.
 *
 * The zones of the old trees count as written garbage, so the allocator takes only empty zones. No
 * function here resets a zone. When many nodes are dirty, the transaction is committed, but the
 * ring withholds its superblock record. This bounds the memory, and the last commit is the only
 * commit point.
 */
#include <errno.h>
#include <string.h>

#include "alloc/alloc.h"
#include "alloc/log_zone.h"
#include "alloc/reserve.h"
#include "alloc/stream.h"
#include "repair/state.h"
#include "txn/system_nodes.h"
#include "txn/txn.h"

#define CACHE_BYTES (UINT64_C(64) << 20)
#define DIRTY_BYTES (UINT64_C(32) << 20)

struct system_writer {
	struct zf_writer writer;
	struct zf_alloc *alloc;
};

/* ---- where nodes go ---- */

static int alloc_node(struct zf_writer *writer, uint64_t ret_address[ZF_COPIES_MAX])
{
	struct zf_repair *repair = ZF_CONTAINER_OF(writer, struct zf_repair, writer);

	return zf_alloc_node(repair->alloc, false, ret_address);
}

static void free_node(struct zf_writer *writer, const uint64_t address[ZF_COPIES_MAX],
		      uint64_t node_generation, enum zf_tree_id owner)
{
	struct zf_repair *repair = ZF_CONTAINER_OF(writer, struct zf_repair, writer);

	zf_alloc_node_free(repair->alloc, address, false);
}

static int alloc_system_node(struct zf_writer *writer, uint64_t ret_address[ZF_COPIES_MAX])
{
	struct system_writer *system = ZF_CONTAINER_OF(writer, struct system_writer, writer);

	return zf_alloc_node(system->alloc, true, ret_address);
}

static void free_system_node(struct zf_writer *writer, const uint64_t address[ZF_COPIES_MAX],
			     uint64_t node_generation, enum zf_tree_id owner)
{
	struct system_writer *system = ZF_CONTAINER_OF(writer, struct system_writer, writer);

	zf_alloc_node_free(system->alloc, address, true);
}

/* ---- beginning ---- */

/* Reports an -ENOSPC: too few zones are empty. Passes r on. */
static int tell_no_room(struct zf_repair *repair, int r)
{
	if (r == -ENOSPC)
		zf_report(repair->report, ZF_REPORT_ERROR,
			  "%s: there is no room for the repair: it writes all metadata anew, into "
			  "empty zones, and too few are empty. Nothing was changed. Copy the image "
			  "to a device with more zones and repair that, or copy the files out with "
			  "'zfusectl restore'",
			  zf_dev_path(repair->dev));
	return r;
}

static int load_zones(struct zf_repair *repair)
{
	int r = zf_alloc_new(repair->dev, &repair->super, repair->report, &repair->alloc);

	for (uint32_t z = 0; z < repair->super.zone_count && r == 0; z++) {
		struct zf_disk_zone item;

		zf_repair_zone_item(repair, z, &item);
		r = zf_alloc_load(repair->alloc, z, &item, sizeof(item));
	}
	return r < 0 ? r : zf_alloc_log_load(repair->alloc, &repair->super);
}

static int make_zone_tree(struct zf_repair *repair, struct zf_writer *writer)
{
	int r = zf_tree_create(repair->forest, writer, ZF_TREE_ZONE);

	for (uint32_t z = 0; z < repair->super.zone_count && r == 0; z++) {
		const struct zf_key key = ZF_KEY(z, ZF_KEY_ZONE, 0);
		struct zf_disk_zone item;

		zf_repair_zone_item(repair, z, &item);
		r = zf_tree_insert(repair->forest, writer, ZF_TREE_ZONE, &key, &item, sizeof(item));
	}
	return r;
}

static int make_trees(struct zf_repair *repair)
{
	struct system_writer system = {
		.writer = {.generation = repair->writer.generation,
			   .alloc = alloc_system_node,
			   .free = free_system_node},
		.alloc = repair->alloc,
	};
	int r = zf_tree_create(repair->forest, &system.writer, ZF_TREE_ROOT);

	if (r == 0)
		r = make_zone_tree(repair, &system.writer);
	if (r == 0)
		r = zf_system_nodes_count(repair->forest, repair->alloc, false);
	for (enum zf_tree_id tree = ZF_TREE_FS; tree <= ZF_TREE_SHARE && r == 0; tree++)
		r = zf_tree_create(repair->forest, &repair->writer, tree);
	return r;
}

static int make_forest(struct zf_repair *repair)
{
	struct zf_forest_options options = {
		.shape = {.node_size = repair->super.node_size,
			  .copies = repair->super.metadata_copies},
		.cache_bytes = CACHE_BYTES,
	};

	memcpy(options.shape.fsid, repair->super.fsid, sizeof(repair->super.fsid));
	return zf_forest_new(repair->dev, &options, repair->report, &repair->forest);
}

static void collect_health(void *arg, struct zf_health *ret_health)
{
	const struct zf_repair *repair = arg;

	*ret_health = *zf_salvage_get_health(repair->salvage);
}

/* Keeps the counters of faults. The new root tree does not have them yet, hence `none`. */
static void keep_health(struct zf_repair *repair)
{
	const struct zf_txn_health source = {.arg = repair, .collect = collect_health};
	const struct zf_health none = {0};

	zf_txn_set_health(repair->txn, &source, &none);
}

int zf_repair_begin(struct zf_repair *repair)
{
	const struct zf_txn_options options = {.dirty_bytes_max = UINT64_MAX};
	uint64_t highest =
		zf_max_u64(zf_ring_highest_generation(repair->ring), repair->super.generation);
	int r = load_zones(repair);

	zf_ring_hold(repair->ring);
	repair->writer = (struct zf_writer){
		.generation = highest + 1, .alloc = alloc_node, .free = free_node};
	if (r == 0) {
		zf_alloc_start(repair->alloc, repair->super.generation, highest + 1);
		r = zf_alloc_tell_device(repair->alloc);
	}
	if (r == 0)
		r = make_forest(repair);
	if (r == 0)
		r = make_trees(repair);
	if (r == 0)
		r = zf_txn_new(repair->dev, repair->ring, repair->alloc, repair->forest,
			       &repair->super, &options, repair->report, &repair->txn);
	if (r == 0) {
		keep_health(repair);
		zf_txn_settle(repair->txn);
	}
	return tell_no_room(repair, r);
}

/* ---- items ---- */

/* Runs the phases of a commit, because zf_txn_commit() resets zones if it finds no space. */
static int commit(struct zf_repair *repair)
{
	int r = zf_txn_freeze(repair->txn);

	if (r == 0)
		r = zf_txn_write(repair->txn);
	if (r == 0)
		r = zf_txn_finish(repair->txn);
	repair->writer.generation = zf_txn_running(repair->txn);
	return r;
}

static int commit_much(struct zf_repair *repair)
{
	uint64_t max = repair->options->dirty_bytes ? repair->options->dirty_bytes : DIRTY_BYTES;

	return zf_forest_dirty_bytes(repair->forest) > max ? commit(repair) : 0;
}

int zf_repair_put(struct zf_repair *repair, enum zf_tree_id tree, const struct zf_key *key,
		  const void *value, size_t len)
{
	int r = zf_tree_insert(repair->forest, &repair->writer, tree, key, value, len);

	return tell_no_room(repair, r < 0 ? r : commit_much(repair));
}

static void tell_full(struct zf_repair *repair, enum zf_tree_id tree, const struct zf_key *key)
{
	if (tree == ZF_TREE_FS)
		zf_repair_tell_of(repair, key->objectid,
				  "a name or attribute was dropped: its item is full");
	else
		zf_repair_tell(repair,
			       "address %" PRIu64
			       ": an owner of these shared bytes was dropped: their item is full",
			       key->objectid);
}

int zf_repair_put_entry(struct zf_repair *repair, enum zf_tree_id tree, const struct zf_key *key,
			const void *entry, size_t len)
{
	uint8_t chain[ZF_NODE_SIZE_MAX / 4];
	size_t before, max = zf_node_value_max(repair->super.node_size);
	int r = zf_repair_put(repair, tree, key, entry, len);

	if (r != -EEXIST)
		return r;
	r = zf_tree_lookup(repair->forest, tree, key, chain, sizeof(chain), &before);
	if (r < 0)
		return r;
	if (before + len > max) {
		tell_full(repair, tree, key);
		return 0;
	}
	memcpy(chain + before, entry, len);
	r = zf_tree_update(repair->forest, &repair->writer, tree, key, chain, before + len);
	return tell_no_room(repair, r);
}

/* ---- the end ---- */

int zf_repair_finish(struct zf_repair *repair)
{
	const struct zf_kept_change kept = {
		.added = {.kept = repair->kept_blocks,
			  .guaranteed = repair->guaranteed_blocks,
			  .both = repair->kept_guaranteed_blocks},
	};
	int r;

	(void)zf_alloc_kept_change(repair->alloc, &kept);
	zf_txn_set_clean(repair->txn, repair->super.log_zone[0] == ZF_SUPER_NO_ZONE);
	zf_ring_publish(repair->ring);
	r = commit(repair); /* *** the commit point *** */
	if (r == 0)
		repair->counts.generation = zf_txn_durable(repair->txn);
	return tell_no_room(repair, r);
}

void zf_repair_end(struct zf_repair *repair)
{
	zf_txn_free(repair->txn);
	zf_forest_free(repair->forest);
	zf_alloc_free(repair->alloc);
	repair->txn = NULL;
	repair->forest = NULL;
	repair->alloc = NULL;
}
