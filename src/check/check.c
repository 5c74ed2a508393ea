/* SPDX-License-Identifier: MIT */
#include "check/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "check/state.h"
#include "txn/health.h"
#include "txn/roots.h"

/* Every violation passes here once, so this is where they are counted. */
static void count_and_forward(void *arg, enum zf_report_level level, const char *message)
{
	struct zf_check *check = arg;

	if (level == ZF_REPORT_ERROR)
		check->counts.errors++;
	zf_report(check->outer, level, "%s", message);
}

struct zf_item_check zf_check_item_limits(struct zf_check *check)
{
	return (struct zf_item_check){
		.report = &check->report,
		.value_max = zf_node_value_max(check->shape.node_size),
		.dir_hash_seed = check->super->dir_hash_seed,
		.generation_max = check->super->generation,
		.device_bytes = check->geometry->zone_size * check->super->zone_count,
	};
}

/* ---- the root tree ---- */

/*
 * Only the presence of health items can be compared, with the superblock's compat bit. Their values
 * are nowhere else on the device.
 */
static void take_health(struct zf_check *check, const struct zf_key *key, const void *value,
			size_t len)
{
	struct zf_health health;

	(void)zf_health_decode(key, value, len, &check->report, &health);
	if (!(check->super->compat & ZF_COMPAT_HEALTH))
		zf_check_corrupt(check, "superblock", check->super->address,
				 "compat has 0x%" PRIx64 ", expected bit 0x%" PRIx64
				 ", because the root tree has item %u",
				 check->super->compat, ZF_COMPAT_HEALTH, key->type);
}

static int take_root(struct zf_check *check, void *arg, const struct zf_key *key, const void *value,
		     size_t len)
{
	struct zf_root root;
	int r;

	(void)arg;
	if (zf_health_has_key(key)) {
		take_health(check, key, value, len);
		return 0;
	}
	if (key->type != ZF_KEY_ROOT || key->offset != 0 || key->objectid <= ZF_TREE_ROOT ||
	    key->objectid >= ZF_TREE_COUNT) {
		zf_check_corrupt(check, "root item", key->objectid,
				 "key has (%" PRIu64 " %u %" PRIu64 "), expected (tree %u 0)",
				 key->objectid, key->type, key->offset, ZF_KEY_ROOT);
		return 0;
	}
	check->trees[key->objectid].named = true;
	r = zf_root_decode(&check->shape, check->super->generation, (enum zf_tree_id)key->objectid,
			   value, len, &check->report, &root);
	if (r < 0)
		return 0;
	check->trees[key->objectid].ptr = root.ptr;
	check->trees[key->objectid].level = root.level;
	check->trees[key->objectid].found = true;
	return 0;
}

static int check_roots(struct zf_check *check)
{
	int r;

	check->trees[ZF_TREE_ROOT].ptr = check->super->root;
	check->trees[ZF_TREE_ROOT].level = check->super->root_level;
	check->trees[ZF_TREE_ROOT].found = check->trees[ZF_TREE_ROOT].named = true;
	r = zf_check_walk_tree(check, ZF_TREE_ROOT, take_root, NULL);
	if (r < 0)
		return r;
	for (unsigned int tree = ZF_TREE_ROOT; tree < ZF_TREE_COUNT; tree++)
		if (!check->trees[tree].named && !check->trees[ZF_TREE_ROOT].lost)
			zf_check_corrupt(check, "root tree", check->super->root.address[0],
					 "tree %u has no root, expected one", tree);
	return 0;
}

/* ---- progress ---- */

void zf_check_progress(const struct zf_check *check)
{
	uint64_t node_bytes = check->counts.nodes * check->shape.node_size * check->shape.copies;
	uint64_t done = node_bytes + check->counts.verified_bytes;

	/*
	 * The live bytes lack the nodes of some trees, and damaged items may say anything, so
	 * `done` may exceed the total.
	 */
	zf_progress(check->options->progress, zf_min_u64(done, check->bytes_total),
		    check->bytes_total);
}

static void add_up_bytes(struct zf_check *check)
{
	for (uint32_t z = 0; z < check->super->zone_count; z++)
		if (check->zones[z].role == ZF_ROLE_META || check->options->data)
			check->bytes_total += check->zones[z].live;
}

/* ---- the whole ---- */

static int check_all(struct zf_check *check)
{
	int r;

	if (zf_check_super(check) != 0)
		return 0;
	r = zf_check_load_zones(check);
	if (r == 0)
		r = zf_check_ring(check);
	if (r == 0)
		r = check_roots(check);
	if (r == 0)
		r = zf_check_zone_tree(check);
	if (r == 0)
		add_up_bytes(check);
	if (r == 0)
		r = zf_check_inodes(check);
	if (r == 0)
		r = zf_check_names(check);
	if (r == 0)
		r = zf_check_space(check);
	if (r == 0)
		r = zf_check_log(check);
	if (r == 0)
		zf_check_zones(check);
	if (r == 0 && check->options->replay && check->counts.errors == 0)
		r = zf_check_replay(check);
	return r;
}

static void deinit(struct zf_check *check)
{
	for (uint32_t z = 0; check->zones && z < check->super->zone_count; z++)
		free(check->zones[z].node_map);
	free(check->zones);
	free(check->data.buf);
	zf_vector_deinit(&check->inodes);
	zf_vector_deinit(&check->refs);
	zf_vector_deinit(&check->entries);
	zf_vector_deinit(&check->orphans);
	zf_vector_deinit(&check->intents);
	zf_vector_deinit(&check->claims);
}

int zf_check_run(struct zf_dev *dev, const struct zf_super *super,
		 const struct zf_check_options *options, const struct zf_report *report,
		 struct zf_check_counts *ret_counts)
{
	struct zf_check check = {
		.dev = dev,
		.geometry = zf_dev_geometry(dev),
		.super = super,
		.options = options,
		.outer = report,
		.shape = {.geometry = zf_dev_geometry(dev),
			  .node_size = super->node_size,
			  .copies = super->metadata_copies},
		.inodes = ZF_VECTOR(struct zf_check_inode),
		.refs = ZF_VECTOR(struct zf_check_name),
		.entries = ZF_VECTOR(struct zf_check_name),
		.orphans = ZF_VECTOR(uint64_t),
		.intents = ZF_VECTOR(struct zf_check_intent),
		.claims = ZF_VECTOR(struct zf_check_claim),
	};
	int r;

	check.report = (struct zf_report){.fn = count_and_forward, .arg = &check};
	memcpy(check.shape.fsid, super->fsid, sizeof(check.shape.fsid));
	r = check_all(&check);
	deinit(&check);
	if (r < 0)
		return r;
	*ret_counts = check.counts;
	return 0;
}
