/* SPDX-License-Identifier: MIT */
/* Getting zones back into use: dropping their summary, emptying metadata zones, resetting. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/reclaim.h"
#include "alloc/reserve.h"
#include "alloc/zone.h"
#include "alloc/zone_format.h"
#include "base/bits.h"
#include "base/cleanup.h"
#include "base/undumped.h"
#include "txn/txn_internal.h"

/* The most nodes that one step may allocate or free while it drops a zone's summary entries. */
#define DROP_NODES 8u
#define DROP_EDITS 2u
/* How much of a metadata zone is read at once. */
#define SCAN_BYTES (UINT64_C(1) << 20)

static uint64_t zone_start(struct zf_txn *txn, uint32_t zone_no)
{
	return zone_no * zf_dev_geometry(txn->dev)->zone_size;
}

/* ---- resets ---- */

/*
 * Returns whether the device kept the space of the empty zone: see `warm` in struct zf_zone_info.
 */
static bool is_warm(struct zf_txn *txn, uint32_t zone_no)
{
	struct zf_zone_info info;

	return zf_dev_report(txn->dev, zone_no, 1, &info) == 0 && info.warm;
}

int zf_txn_reset_one_locked(struct zf_txn *txn, bool urgent)
{
	uint32_t zone_no;
	int r;

	if (zf_txn_error(txn) || zf_alloc_next_reset(txn->alloc, urgent, &zone_no) < 0)
		return 0;
	r = zf_txn_stand(txn);
	if (r == 0 && zone_no >= zf_dev_geometry(txn->dev)->conventional)
		r = zf_dev_reset(txn->dev, zone_no);
	zf_alloc_set_warm(txn->alloc, zone_no, r == 0 && is_warm(txn, zone_no));
	zf_alloc_reset_done(txn->alloc, zone_no, r);
	if (r < 0)
		zf_report(txn->report, ZF_REPORT_WARNING,
			  "resetting zone %" PRIu32
			  " failed: %s; it is left alone until the next mount",
			  zone_no, strerror(-r));
	return ZF_TIDY_DID;
}

/* ---- what the device has to be asked and told about a zone ---- */

static int finish_one_locked(struct zf_txn *txn)
{
	uint32_t zone_no;

	if (zf_txn_error(txn) || zf_alloc_next_finish(txn->alloc, &zone_no) < 0)
		return 0;
	zf_alloc_finish_done(txn->alloc, zone_no, zf_dev_finish(txn->dev, zone_no));
	return ZF_TIDY_DID;
}

void zf_txn_settle(struct zf_txn *txn)
{
	zf_mutex_lock(&txn->commit_lock);
	zf_alloc_set_nodes_kept(txn->alloc, zf_txn_nodes_kept(txn));
	while (finish_one_locked(txn) > 0)
		;
	zf_mutex_unlock(&txn->commit_lock);
}

static int report_one_locked(struct zf_txn *txn)
{
	struct zf_zone_info info;
	uint32_t zone_no;

	if (zf_alloc_next_unknown(txn->alloc, &zone_no) < 0)
		return 0;
	if (zf_dev_report(txn->dev, zone_no, 1, &info) < 0)
		return 0;
	zf_alloc_pointer_known(txn->alloc, zone_no, &info);
	return ZF_TIDY_DID;
}

/* ---- summary entries of emptied zones ---- */

static int drop_summary(struct zf_txn *txn)
{
	struct zf_key from = {0}, to = ZF_KEY_MAX;
	uint32_t zone_no;
	int r;

	if (zf_alloc_next_unsummarise(txn->alloc, &zone_no) < 0)
		return 0;
	from.objectid = zone_start(txn, zone_no);
	to.objectid = zone_start(txn, zone_no + 1) - 1;
	do {
		struct zf_trans trans;

		r = zf_trans_join(txn, ZF_RESERVE_SYSTEM, DROP_EDITS, true, &trans);
		if (r < 0)
			break;
		r = zf_tree_delete_range(txn->forest, trans.writer, ZF_TREE_SUMMARY, &from, &to,
					 DROP_NODES);
		if (r == 0)
			zf_alloc_summary_dropped(txn->alloc, zone_no, 0);
		zf_trans_leave(&trans);
	} while (r > 0);
	if (r < 0)
		zf_alloc_summary_dropped(txn->alloc, zone_no, r);
	/* A damaged leaf is reported. The zones that it describes are not reset; all others are. */
	return r < 0 && r != -EUCLEAN && r != -EIO ? r : ZF_TIDY_DID;
}

/* ---- metadata zones ---- */

int zf_txn_move_node(struct zf_txn *txn, enum zf_tree_id tree, uint8_t level,
		     const struct zf_key *first_key, uint64_t address)
{
	struct zf_trans trans;
	int r = zf_trans_join(txn, ZF_RESERVE_SYSTEM, 1, true, &trans);

	if (r < 0)
		return r;
	/* Every commit writes the root tree, and the leaves of the zone tree that were touched. */
	if (tree == ZF_TREE_ZONE)
		zf_alloc_touch_zone(txn->alloc, (uint32_t)first_key->objectid);
	if (tree == ZF_TREE_ZONE || tree == ZF_TREE_ROOT)
		atomic_store_explicit(&txn->dirty, true, memory_order_relaxed);
	else
		r = zf_tree_relocate(txn->forest, trans.writer, tree, level, first_key, address);
	zf_trans_leave(&trans);
	return r < 0 ? r : 0;
}

static int move_node(struct zf_txn *txn, const struct zf_disk_node_header *header, uint64_t address)
{
	struct zf_key key = {0};

	if (zf_node_count(header) > 0)
		key = zf_node_key(header, 0);
	return zf_txn_move_node(txn, (enum zf_tree_id)zf_le64_get(header->owner), header->level,
				&key, address);
}

static bool has_copy_in(struct zf_txn *txn, const struct zf_disk_node_header *header,
			uint32_t zone_no)
{
	bool r = false;

	for (unsigned int c = 0; c < zf_forest_shape(txn->forest)->copies; c++)
		r |= zf_zone_of(zf_dev_geometry(txn->dev), zf_le64_get(header->address[c])) ==
		     zone_no;
	return r;
}

/* Moves every node of [at, at+len) that is still live, and has a copy in zone `of`. */
static int scan_chunk(struct zf_txn *txn, const uint8_t *buf, uint64_t at, uint64_t len,
		      uint32_t of)
{
	const struct zf_node_shape *shape = zf_forest_shape(txn->forest);

	for (uint64_t o = 0; o + shape->node_size <= len;) {
		const struct zf_disk_node_header *header = (const void *)(buf + o);
		bool found = false;
		int r = 0;

		for (unsigned int c = 0; c < shape->copies && !found; c++)
			found = zf_node_is_valid_at(shape, buf + o, at + o, c);
		if (!found) {
			o += ZF_BLOCK_SIZE;
			continue;
		}
		if (has_copy_in(txn, header, of))
			r = move_node(txn, header, zf_le64_get(header->address[0]));
		if (r < 0)
			return r;
		o += shape->node_size;
	}
	return 0;
}

/*
 * With zone_no != of, the call reads the other copies of nodes whose copy in zone `of` cannot be
 * read.
 */
int zf_txn_move_nodes_of(struct zf_txn *txn, uint32_t zone_no, uint64_t end, uint32_t of)
{
	_zf_free_ uint8_t *buf = NULL;
	uint32_t node_size = zf_forest_shape(txn->forest)->node_size;
	uint64_t start = zone_start(txn, zone_no);
	int r = 0;

	buf = zf_undumped_alloc(SCAN_BYTES + node_size);
	if (!buf)
		return -ENOMEM;
	end += start;
	/* Chunks overlap by a node, so that each node lies wholly in one chunk. */
	for (uint64_t at = start; at < end && r == 0; at += SCAN_BYTES) {
		uint64_t len = zf_min_u64(SCAN_BYTES + node_size - ZF_BLOCK_SIZE, end - at);

		r = zf_dev_read_buf(txn->dev, at, buf, len);
		if (r == 0)
			r = scan_chunk(txn, buf, at, len, of);
	}
	return r;
}

/* Moves every node that is live and can be read out of the zone. */
static int move_nodes(struct zf_txn *txn, uint32_t zone_no)
{
	struct zf_zone zone;

	zf_alloc_get_zone(txn->alloc, zone_no, &zone);
	return zf_txn_move_nodes_of(txn, zone_no, (uint64_t)zone.pointer << ZF_BLOCK_SHIFT,
				    zone_no);
}

/*
 * Excludes a zone that cannot be read from the next choices, so that other zones can still be
 * emptied.
 */
static bool leave_damaged(struct zf_txn *txn, uint32_t zone_no, const struct zf_zone *zone,
			  int result)
{
	if (result != -EIO && result != -EUCLEAN && result != -ENXIO)
		return false;
	zf_alloc_suspect(txn->alloc, zone_no);
	zf_alloc_meta_stuck(txn->alloc, zone_no, zone->reset_count);
	return true;
}

static int empty_meta_zone(struct zf_txn *txn, bool urgent)
{
	struct zf_zone zone, after;
	uint32_t zone_no;
	int r = zf_alloc_meta_victim(txn->alloc, urgent, &zone_no);

	if (r == ZF_META_CLOSED) {
		r = zf_txn_commit(txn, true);
		if (r == 0)
			r = zf_alloc_meta_victim(txn->alloc, urgent, &zone_no);
	}
	if (r != 0)
		return r == -ENOENT || r == ZF_META_CLOSED ? 0 : r;
	zf_alloc_get_zone(txn->alloc, zone_no, &zone);
	r = move_nodes(txn, zone_no);
	zf_alloc_read_end(txn->alloc, zone_start(txn, zone_no));
	leave_damaged(txn, zone_no, &zone, r);
	if (r < 0)
		return r;
	/* The commits that follow make the old copies of the moved nodes free. */
	r = zf_txn_commit(txn, true);
	zf_alloc_get_zone(txn->alloc, zone_no, &after);
	if (r == 0 && after.live + after.system_live >= zone.live + zone.system_live)
		zf_alloc_meta_stuck(txn->alloc, zone_no, zone.reset_count);
	return r < 0 ? r : ZF_TIDY_EMPTIED;
}

int zf_txn_move_nodes(struct zf_txn *txn, uint64_t *ret_gain)
{
	struct zf_zone zone, after;
	uint32_t zone_no;
	int r = zf_txn_keep_bound(txn, true);

	if (r < 0 || zf_alloc_meta_victim_begin(txn->alloc, &zone_no) < 0)
		return r;
	zf_alloc_get_zone(txn->alloc, zone_no, &zone);
	r = move_nodes(txn, zone_no);
	zf_alloc_meta_victim_end(txn->alloc, zone_no);
	if (leave_damaged(txn, zone_no, &zone, r))
		return 0;
	zf_alloc_get_zone(txn->alloc, zone_no, &after);
	*ret_gain = after.live == 0 ? zone.capacity - zone.live : 0;
	return r < 0 ? r : 1;
}

bool zf_txn_ease_limits(struct zf_txn *txn)
{
	int r;

	zf_txn_lock_commit(txn);
	r = report_one_locked(txn);
	if (r == 0)
		r = finish_one_locked(txn);
	zf_mutex_unlock(&txn->commit_lock);
	return r > 0;
}

int zf_txn_tidy(struct zf_txn *txn, bool urgent)
{
	int r;

	/*
	 * The commit lock is held so that no zone is reset during a check (zf_txn_pause()), and so
	 * that no two threads ask the device for the same zone.
	 */
	zf_txn_lock_commit(txn);
	r = report_one_locked(txn);
	if (r == 0)
		r = zf_txn_reset_one_locked(txn, urgent);
	if (r == 0)
		r = finish_one_locked(txn);
	zf_mutex_unlock(&txn->commit_lock);
	if (r == 0)
		r = drop_summary(txn);
	/* Not while room is short, because moving nodes takes room. */
	if (r == 0 && !urgent)
		r = zf_txn_scrub_one(txn);
	if (r == 0)
		r = empty_meta_zone(txn, urgent);
	return r;
}

int zf_txn_commit_emptied(struct zf_txn *txn)
{
	while (drop_summary(txn) > 0)
		;
	return zf_txn_commit(txn, true);
}

int zf_txn_reset_emptied(struct zf_txn *txn)
{
	int r;

	zf_txn_lock_commit(txn);
	r = zf_txn_reset_one_locked(txn, true);
	zf_mutex_unlock(&txn->commit_lock);
	return r;
}
