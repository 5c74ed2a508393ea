/* SPDX-License-Identifier: MIT */
/* The intent log's zones on a memory device: how they are chosen, named in the superblock, filled,
 * left, and found again. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "alloc/alloc_internal.h"
#include "base/bits.h"
#include "io/memory.h"
#include "sim/sim.h"

#define ZONES	  32u
#define BLOCKS	  16u /* of a zone */
#define ZONE_SIZE ((uint64_t)BLOCKS * ZF_BLOCK_SIZE)
#define NODE_SIZE 16384u
#define NONE	  ZF_SUPER_NO_ZONE

struct world {
	struct zf_geometry geometry;
	struct zf_super super;
	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_alloc *alloc;
};

static void open_device(struct world *w, struct zf_geometry geometry)
{
	*w = (struct world){
		.geometry = geometry,
		.super = {.zone_count = ZONES,
			  .node_size = NODE_SIZE,
			  .metadata_copies = 1,
			  .log_zone = {NONE, NONE}},
	};
	w->geometry.zone_size = w->geometry.zone_capacity = ZONE_SIZE;
	w->geometry.zone_count = ZONES;
	w->geometry.append_limit = (uint32_t)ZONE_SIZE;
	assert_int_equal(zf_memory_new(&w->geometry, &w->memory), 0);
	assert_int_equal(zf_memory_open(w->memory, NULL, NULL, &w->dev), 0);
	assert_int_equal(zf_alloc_new(w->dev, &w->super, NULL, &w->alloc), 0);
}

static void open_world(struct world *w, struct zf_geometry geometry)
{
	open_device(w, geometry);
	zf_alloc_start(w->alloc, 0, 1);
	zf_alloc_set_tail_max(w->alloc, 2);
}

static void close_world(struct world *w)
{
	zf_alloc_free(w->alloc);
	zf_dev_close(w->dev);
	zf_memory_free(w->memory);
}

static struct zf_zone zone(struct world *w, uint32_t zone_no)
{
	struct zf_zone z;

	zf_alloc_get_zone(w->alloc, zone_no, &z);
	return z;
}

/* ---- commits ---- */

static struct zf_alloc_frozen *freeze(struct world *w, struct zf_log_zones *ret_zones)
{
	struct zf_alloc_frozen *frozen;

	zf_alloc_log_choose(w->alloc, ret_zones);
	assert_int_equal(zf_alloc_freeze(w->alloc, 1, &frozen), 0);
	return frozen;
}

static void durable(struct world *w, struct zf_alloc_frozen *frozen,
		    const struct zf_log_zones *zones)
{
	zf_alloc_committed(w->alloc, frozen);
	zf_alloc_log_named(w->alloc, zones);
	zf_alloc_frozen_free(frozen);
}

static struct zf_log_zones commit(struct world *w)
{
	struct zf_log_zones zones;
	struct zf_alloc_frozen *frozen = freeze(w, &zones);

	durable(w, frozen, &zones);
	return zones;
}

static const struct zf_disk_zone *item_in(const struct zf_alloc_frozen *frozen, uint32_t zone_no)
{
	for (uint32_t i = 0; i < frozen->zone_count; i++)
		if (frozen->zones[i].zone_no == zone_no)
			return &frozen->zones[i].item;
	return NULL;
}

/* ---- records ---- */

/* One record of `blocks`, whose first `live` blocks are named by extents. */
static int put(struct world *w, uint64_t blocks, uint64_t live, int result, uint32_t *ret_zone_no,
	       bool *ret_switched)
{
	struct zf_append_grant grant, piece;
	uint64_t resets, at;
	int r = zf_alloc_log_begin(w->alloc, blocks * ZF_BLOCK_SIZE, 0, &grant, &resets,
				   ret_switched);

	if (r < 0)
		return r;
	assert_int_equal(grant.len, blocks * ZF_BLOCK_SIZE);
	assert_int_equal(resets, zone(w, grant.zone_no).reset_count);
	at = zone(w, grant.zone_no).pointer - blocks;
	if (live)
		zf_alloc_live_add(w->alloc, grant.zone_start + at * ZF_BLOCK_SIZE,
				  live * ZF_BLOCK_SIZE);
	piece = grant;
	piece.len = ZF_BLOCK_SIZE;
	for (uint64_t i = 0; i < blocks; i++)
		zf_alloc_append_end(w->alloc, &piece, result);
	*ret_zone_no = grant.zone_no;
	return 0;
}

/* The zone that a record went to, or NONE. */
static uint32_t put_in(struct world *w, uint64_t blocks, uint64_t live)
{
	uint32_t zone_no;
	bool switched;

	return put(w, blocks, live, 0, &zone_no, &switched) < 0 ? NONE : zone_no;
}

static uint32_t resets_until_none(struct world *w, bool urgent, uint32_t wanted)
{
	uint32_t found, seen = 0;

	while (zf_alloc_next_reset(w->alloc, urgent, &found) == 0) {
		seen += found == wanted;
		zf_alloc_reset_done(w->alloc, found, 0);
	}
	return seen;
}

static void drop_summaries(struct world *w)
{
	uint32_t found;

	while (zf_alloc_next_unsummarise(w->alloc, &found) == 0)
		zf_alloc_summary_dropped(w->alloc, found, 0);
}

/* ---- choosing and naming ---- */

static void the_first_commit_chooses_two_and_records_wait_for_it(void **state)
{
	struct zf_alloc_frozen *frozen;
	struct zf_log_zones zones, got;
	struct world w;

	open_world(&w, (struct zf_geometry){0});
	assert_int_equal(put_in(&w, 1, 0), NONE);
	frozen = freeze(&w, &zones);
	assert_int_not_equal(zones.zone[0], NONE);
	assert_int_not_equal(zones.zone[1], NONE);
	assert_int_not_equal(zones.zone[0], zones.zone[1]);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(zone(&w, zones.zone[i]).role, ZF_ROLE_LOG);
		assert_int_equal(zones.pointer[i], 0);
		assert_non_null(item_in(frozen, zones.zone[i]));
		assert_int_equal(item_in(frozen, zones.zone[i])->role, ZF_ROLE_LOG);
	}
	/* No durable superblock names them yet. */
	assert_int_equal(put_in(&w, 1, 0), NONE);
	durable(&w, frozen, &zones);
	assert_int_equal(put_in(&w, 1, 0), zones.zone[0]);
	zf_alloc_log_get(w.alloc, &got);
	assert_memory_equal(got.zone, zones.zone, sizeof(got.zone));
	assert_int_equal(got.pointer[0], ZF_BLOCK_SIZE);
	close_world(&w);
}

static void a_zone_that_is_not_full_stays_and_its_pointer_is_told(void **state)
{
	struct zf_log_zones first, second;
	struct zf_alloc_frozen *frozen;
	struct world w;

	open_world(&w, (struct zf_geometry){0});
	first = commit(&w);
	assert_int_equal(put_in(&w, 3, 1), first.zone[0]);
	frozen = freeze(&w, &second);
	assert_memory_equal(first.zone, second.zone, sizeof(first.zone));
	assert_int_equal(second.pointer[0], 3 * ZF_BLOCK_SIZE);
	assert_int_equal(second.pointer[1], 0);
	/* The headers count as written though no extent names them. */
	assert_int_equal(zf_le64_get(item_in(frozen, first.zone[0])->pointer), 3 * ZF_BLOCK_SIZE);
	assert_int_equal(zf_le64_get(item_in(frozen, first.zone[0])->live), ZF_BLOCK_SIZE);
	/* Between the freeze and the superblock, records still go to that zone. */
	assert_int_equal(put_in(&w, 1, 0), first.zone[0]);
	durable(&w, frozen, &second);
	close_world(&w);
}

static void a_record_that_does_not_fit_switches_for_good(void **state)
{
	struct zf_log_zones first, second;
	uint32_t zone_no;
	struct world w;
	bool switched;

	open_world(&w, (struct zf_geometry){0});
	first = commit(&w);
	assert_int_equal(put(&w, BLOCKS - 2, 1, 0, &zone_no, &switched), 0);
	assert_int_equal(zone_no, first.zone[0]);
	assert_false(switched);
	assert_int_equal(put(&w, 3, 1, 0, &zone_no, &switched), 0);
	assert_int_equal(zone_no, first.zone[1]);
	assert_true(switched);
	assert_int_equal(put(&w, 1, 1, 0, &zone_no, &switched), 0);
	assert_int_equal(zone_no, first.zone[1]);
	assert_false(switched);
	/* Both zones are too full: nothing changes. */
	assert_int_equal(put_in(&w, BLOCKS, 0), NONE);
	assert_int_equal(put_in(&w, 1, 1), first.zone[1]);
	second = commit(&w);
	assert_int_equal(second.zone[0], first.zone[1]);
	assert_int_not_equal(second.zone[1], NONE);
	assert_int_not_equal(second.zone[1], first.zone[0]);
	assert_int_equal(second.pointer[0], 5 * ZF_BLOCK_SIZE);
	close_world(&w);
}

static void a_record_too_large_for_both_does_not_close_the_current_zone(void **state)
{
	struct zf_log_zones zones;
	struct world w;

	open_world(&w, (struct zf_geometry){0});
	zones = commit(&w);
	assert_int_equal(put_in(&w, 1, 0), zones.zone[0]);
	assert_int_equal(put_in(&w, BLOCKS + 1, 0), NONE);
	assert_int_equal(put_in(&w, 1, 0), zones.zone[0]);
	close_world(&w);
}

static void until_it_is_durable_records_keep_to_what_both_superblocks_name(void **state)
{
	struct zf_log_zones first, second;
	struct zf_alloc_frozen *frozen;
	struct world w;

	open_world(&w, (struct zf_geometry){0});
	first = commit(&w);
	assert_int_equal(put_in(&w, BLOCKS, 1), first.zone[0]);
	assert_int_equal(put_in(&w, 1, 1), first.zone[1]);
	frozen = freeze(&w, &second);
	assert_int_equal(second.zone[0], first.zone[1]);
	assert_int_equal(put_in(&w, BLOCKS - 1, 1), second.zone[0]);
	/* The new next zone gets no record yet: recovery from the old superblock would not look
	 * there. */
	assert_int_equal(put_in(&w, 1, 1), NONE);
	durable(&w, frozen, &second);
	assert_int_equal(put_in(&w, 1, 1), second.zone[1]);
	close_world(&w);
}

static void reserved_blocks_of_a_record_are_used_up(void **state)
{
	struct zf_append_grant grant;
	struct zf_space before, after;
	uint64_t resets;
	struct world w;
	bool switched;

	open_world(&w, (struct zf_geometry){0});
	commit(&w);
	zf_alloc_get_space(w.alloc, &before);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 2, 0, 0), 0);
	assert_int_equal(
		zf_alloc_log_begin(w.alloc, 3 * ZF_BLOCK_SIZE, 2, &grant, &resets, &switched), 0);
	zf_alloc_get_space(w.alloc, &after);
	assert_int_equal(after.available, before.available);
	assert_int_equal(after.reserved, before.reserved - 3 * ZF_BLOCK_SIZE);
	assert_int_equal(after.unusable, before.unusable + 3 * ZF_BLOCK_SIZE);
	close_world(&w);
}

static void on_conventional_zones_a_record_is_told_its_address(void **state)
{
	struct zf_append_grant grant;
	struct zf_log_zones zones;
	uint64_t resets;
	struct world w;
	bool switched;

	open_world(&w, (struct zf_geometry){.conventional = ZONES});
	zones = commit(&w);
	assert_int_equal(zones.zone[0], 2);
	assert_int_equal(put_in(&w, 1, 0), zones.zone[0]);
	assert_int_equal(zf_alloc_log_begin(w.alloc, ZF_BLOCK_SIZE, 0, &grant, &resets, &switched),
			 0);
	assert_int_equal(grant.address, grant.zone_start + ZF_BLOCK_SIZE);
	close_world(&w);
}

static void warm_zones_are_the_logs_and_conventional_ones_are_left(void **state)
{
	struct zf_append_grant grant;
	struct zf_log_zones zones;
	struct world w;

	open_world(&w, (struct zf_geometry){.conventional = 4});
	zf_alloc_set_warm(w.alloc, 4, true);
	zf_alloc_set_warm(w.alloc, 20, true);
	zf_alloc_set_warm(w.alloc, 3, true);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 1, 0, 0), 0);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &grant), 0);
	assert_int_equal(grant.zone_no, 5);
	zones = commit(&w);
	assert_int_equal(zf_min_u64(zones.zone[0], zones.zone[1]), 4);
	assert_int_equal(zf_max_u64(zones.zone[0], zones.zone[1]), 20);
	close_world(&w);
}

/* ---- the log's zones are used for nothing else ---- */

static void a_named_zone_is_neither_emptied_nor_reset_nor_finished(void **state)
{
	struct zf_log_zones zones;
	uint32_t found;
	struct world w;

	open_world(&w, (struct zf_geometry){.max_active = 6, .max_open = 6});
	zones = commit(&w);
	assert_int_equal(put_in(&w, 2, 1), zones.zone[0]);
	zf_alloc_live_sub(w.alloc, zones.zone[0] * ZONE_SIZE, ZF_BLOCK_SIZE);
	assert_int_equal(zone(&w, zones.zone[0]).emptied_generation, 0);
	assert_int_equal(zf_alloc_emptied_zones(w.alloc), 0);
	assert_int_equal(zf_alloc_next_unsummarise(w.alloc, &found), -ENOENT);
	assert_int_equal(zf_alloc_next_finish(w.alloc, &found), -ENOENT);
	for (unsigned int i = 0; i < 3; i++)
		commit(&w);
	assert_int_equal(resets_until_none(&w, true, zones.zone[0]), 0);
	close_world(&w);
}

static void a_left_zone_with_nothing_live_is_reset_by_the_usual_rule(void **state)
{
	struct zf_log_zones first, second;
	struct zf_alloc_frozen *frozen;
	struct world w;
	uint32_t left;

	open_world(&w, (struct zf_geometry){0});
	first = commit(&w);
	left = first.zone[0];
	assert_int_equal(put_in(&w, BLOCKS, 0), left);
	frozen = freeze(&w, &second);
	assert_int_equal(zone(&w, left).role, ZF_ROLE_HOT);
	assert_int_equal(item_in(frozen, left)->role, ZF_ROLE_HOT);
	assert_int_equal(zf_le64_get(item_in(frozen, left)->emptied_generation),
			 frozen->generation);
	/* The durable superblock's recovery reads it. */
	drop_summaries(&w);
	assert_int_equal(zone(&w, left).summary, ZF_SUMMARY_PRESENT);
	durable(&w, frozen, &second);
	drop_summaries(&w);
	assert_int_equal(resets_until_none(&w, false, left), 0);
	commit(&w);
	assert_int_equal(resets_until_none(&w, false, left), 1);
	close_world(&w);
}

static void a_left_zone_that_is_emptied_before_it_is_let_out_comes_back_too(void **state)
{
	struct zf_log_zones first, second;
	struct zf_alloc_frozen *frozen;
	struct world w;
	uint32_t left;

	open_world(&w, (struct zf_geometry){0});
	first = commit(&w);
	left = first.zone[0];
	assert_int_equal(put_in(&w, BLOCKS, 1), left);
	frozen = freeze(&w, &second);
	zf_alloc_live_sub(w.alloc, left * ZONE_SIZE, ZF_BLOCK_SIZE);
	assert_int_equal(zone(&w, left).emptied_generation, 0);
	durable(&w, frozen, &second);
	assert_int_equal(zone(&w, left).emptied_generation, 3);
	drop_summaries(&w);
	commit(&w);
	commit(&w);
	assert_int_equal(resets_until_none(&w, false, left), 1);
	close_world(&w);
}

/* Fills up the zone of the HOT stream, which begins its next zone. */
static void next_hot_zone(struct world *w)
{
	struct zf_append_grant grant;

	assert_int_equal(zf_alloc_reserve(w->alloc, ZF_RESERVE_NORMAL, BLOCKS, 0, 0), 0);
	for (uint64_t left = BLOCKS; left > 0; left -= grant.len >> ZF_BLOCK_SHIFT) {
		assert_int_equal(zf_alloc_append_begin(w->alloc, ZF_ROLE_HOT,
						       left << ZF_BLOCK_SHIFT, &grant),
				 0);
		zf_alloc_append_end(w->alloc, &grant, 0);
	}
}

static void data_resumes_a_left_zone_once_no_superblock_names_it(void **state)
{
	struct zf_log_zones first, second;
	struct zf_alloc_frozen *frozen;
	struct world w;
	uint32_t left;

	open_world(&w, (struct zf_geometry){0});
	first = commit(&w);
	left = first.zone[0];
	assert_int_equal(put_in(&w, BLOCKS - 4, 2), left);
	assert_int_equal(put_in(&w, 5, 2), first.zone[1]); /* switches */
	frozen = freeze(&w, &second);
	assert_int_equal(zone(&w, left).role, ZF_ROLE_HOT);
	for (unsigned int i = 0; i < 4; i++)
		next_hot_zone(&w);
	assert_int_equal(zone(&w, left).pointer, BLOCKS - 4);
	durable(&w, frozen, &second);
	next_hot_zone(&w); /* four blocks there, the rest elsewhere */
	assert_int_equal(zone(&w, left).pointer, BLOCKS);
	close_world(&w);
}

static void a_failed_zone_takes_no_more_records_and_is_replaced(void **state)
{
	struct zf_log_zones first, second;
	struct zf_zone_info info;
	uint32_t zone_no, unknown;
	struct world w;
	bool switched;

	open_world(&w, (struct zf_geometry){0});
	first = commit(&w);
	assert_int_equal(put(&w, 2, 0, -EIO, &zone_no, &switched), 0);
	assert_int_equal(zone_no, first.zone[0]);
	assert_int_equal(put_in(&w, 1, 0), first.zone[1]);
	/* Its pointer is known again and the zone is empty: it still belongs to the log, but gets
	 * no records. */
	assert_int_equal(zf_alloc_next_unknown(w.alloc, &unknown), 0);
	assert_int_equal(unknown, first.zone[0]);
	assert_int_equal(zf_dev_report(w.dev, unknown, 1, &info), 0);
	zf_alloc_pointer_known(w.alloc, unknown, &info);
	assert_int_equal(zone(&w, unknown).role, ZF_ROLE_LOG);
	assert_int_equal(put_in(&w, 1, 0), first.zone[1]);
	second = commit(&w);
	assert_int_equal(second.zone[0], first.zone[1]);
	assert_int_not_equal(second.zone[1], first.zone[0]);
	assert_int_not_equal(second.zone[1], NONE);
	/* Nothing was written to the zone: it is empty as before. */
	assert_int_equal(zone(&w, unknown).role, ZF_ROLE_NONE);
	assert_false(zone(&w, unknown).log_closed); /* and may be the log's again */
	close_world(&w);
}

static void a_failed_zone_whose_pointer_is_not_known_yet_is_no_empty_one(void **state)
{
	struct zf_log_zones first;
	uint32_t zone_no;
	struct world w;
	bool switched;

	open_world(&w, (struct zf_geometry){0});
	first = commit(&w);
	assert_int_equal(put(&w, 2, 0, -EIO, &zone_no, &switched), 0);
	commit(&w);
	assert_int_equal(zone(&w, first.zone[0]).role, ZF_ROLE_HOT);
	assert_true(zone(&w, first.zone[0]).pointer_unknown);
	close_world(&w);
}

static void know_pointer(struct world *w, uint32_t zone_no)
{
	struct zf_zone_info info;
	uint32_t unknown;

	assert_int_equal(zf_alloc_next_unknown(w->alloc, &unknown), 0);
	assert_int_equal(unknown, zone_no);
	assert_int_equal(zf_dev_report(w->dev, unknown, 1, &info), 0);
	zf_alloc_pointer_known(w->alloc, unknown, &info);
}

/* The data of a failed record waits for room elsewhere. The record's zone comes back once. */
static void a_failed_zone_is_no_empty_one_while_an_append_to_it_has_not_ended(void **state)
{
	struct zf_append_grant header, data;
	struct zf_log_zones first;
	uint32_t empty = 0;
	uint64_t resets;
	struct world w;
	bool switched;

	open_world(&w, (struct zf_geometry){0});
	first = commit(&w);
	assert_int_equal(
		zf_alloc_log_begin(w.alloc, 2 * ZF_BLOCK_SIZE, 0, &header, &resets, &switched), 0);
	header.len = ZF_BLOCK_SIZE;
	data = header;
	zf_alloc_append_end(w.alloc, &header, -EIO);
	zf_alloc_append_written(w.alloc, &data);
	know_pointer(&w, first.zone[0]);
	commit(&w);
	zf_alloc_append_end(w.alloc, &data, -EIO);
	know_pointer(&w, first.zone[0]);
	assert_int_equal(zone(&w, first.zone[0]).role, ZF_ROLE_NONE);
	for (uint32_t z = 2; z < ZONES; z++)
		empty += zone_is_empty(&w.alloc->zones[z]);
	assert_int_equal(w.alloc->empty_count, empty);
	close_world(&w);
}

/* ---- limits ---- */

static uint64_t reserve_all(struct world *w)
{
	uint64_t reserved = 0;

	while (zf_alloc_reserve(w->alloc, ZF_RESERVE_NORMAL, 1, 0, 0) == 0)
		reserved++;
	return reserved;
}

static void what_data_may_use_is_the_same_with_and_without_log_zones(void **state)
{
	struct zf_space before, after;
	struct world w;

	open_world(&w, (struct zf_geometry){0});
	zf_alloc_get_space(w.alloc, &before);
	assert_int_equal(before.available, (ZONES - 2 - 6) * ZONE_SIZE);
	commit(&w);
	zf_alloc_get_space(w.alloc, &after);
	/* The difference is the zone that the commit's own nodes opened. */
	assert_int_equal(after.available, before.available - ZONE_SIZE);
	assert_int_equal(after.total, before.total);
	/* That zone has room for more nodes. */
	assert_int_equal(after.reserved, before.reserved + ZONE_SIZE - 2 * NODE_SIZE);
	close_world(&w);
}

static void a_full_log_zone_is_made_up_for_from_what_data_leaves(void **state)
{
	struct zf_log_zones first, second;
	struct world w;

	open_world(&w, (struct zf_geometry){0});
	first = commit(&w);
	reserve_all(&w);
	assert_int_equal(put_in(&w, BLOCKS, 1), first.zone[0]);
	/* Metadata and reclaim hold all that data did not reserve, so the log has only one zone. */
	second = commit(&w);
	assert_int_equal(second.zone[0], first.zone[1]);
	assert_int_equal(second.zone[1], NONE);
	assert_int_equal(put_in(&w, BLOCKS, 1), first.zone[1]);
	assert_int_equal(put_in(&w, 1, 1), NONE);
	second = commit(&w);
	assert_int_equal(second.zone[0], NONE);
	assert_int_equal(second.pointer[0], 0);
	close_world(&w);
}

static void data_leaves_what_the_log_lacks(void **state)
{
	struct zf_log_zones first, second;
	struct world w;

	open_world(&w, (struct zf_geometry){0});
	first = commit(&w);
	assert_int_equal(put_in(&w, BLOCKS, 1), first.zone[0]);
	reserve_all(&w);
	second = commit(&w);
	assert_int_not_equal(second.zone[1], NONE);
	close_world(&w);
}

static void a_zone_not_written_to_gives_way_to_metadata(void **state)
{
	uint64_t address[ZF_COPIES_MAX];
	struct zf_log_zones zones, after;
	struct zf_alloc_frozen *frozen;
	unsigned int nodes = 0;
	struct world w;

	open_world(&w, (struct zf_geometry){0});
	zones = commit(&w);
	assert_int_equal(put_in(&w, 1, 1), zones.zone[0]);
	zf_alloc_set_nodes_kept(w.alloc, 5);
	while (zf_alloc_promise_nodes(w.alloc, ZF_RESERVE_NORMAL, 1, 4) == 0) {
		zf_alloc_promise_over(w.alloc, 1);
		assert_int_equal(zf_alloc_node(w.alloc, false, address), 0);
	}
	frozen = freeze(&w, &after);
	assert_int_equal(after.zone[0], zones.zone[0]);
	assert_int_equal(after.zone[1], NONE);
	/* The superblock that is being written leaves it out: no record there. */
	assert_int_equal(put_in(&w, BLOCKS, 1), NONE);
	durable(&w, frozen, &after);
	assert_int_equal(zone(&w, zones.zone[1]).role, ZF_ROLE_NONE);
	while (zf_alloc_node(w.alloc, false, address) == 0)
		nodes++;
	assert_true(nodes >= ZONE_SIZE / NODE_SIZE);
	close_world(&w);
}

static void the_log_takes_no_zone_of_the_nodes_that_are_kept(void **state)
{
	const uint64_t per_zone = ZONE_SIZE / NODE_SIZE;
	struct zf_log_zones zones;
	struct world w;

	open_world(&w, (struct zf_geometry){0});
	zf_alloc_set_nodes_kept(w.alloc, (ZONES - 2) * per_zone - 2);
	zones = commit(&w);
	assert_int_equal(zones.zone[0], NONE);
	/* Now nodes keep the rest of the zone that the tail has opened, and all empty zones but
	 * reclaim's and one. */
	zf_alloc_set_nodes_kept(w.alloc, (ZONES - 2) * per_zone - 2 - 2 * per_zone - 2);
	zones = commit(&w);
	assert_int_not_equal(zones.zone[0], NONE);
	assert_int_equal(zones.zone[1], NONE);
	close_world(&w);
}

static void two_active_zones_are_the_logs(void **state)
{
	struct zf_append_grant hot, more;
	struct zf_log_zones zones;
	struct world w;

	/* The ring's, metadata's, the log's two, and one for each kind of data. */
	open_world(&w, (struct zf_geometry){.max_active = 6, .max_open = 6});
	zones = commit(&w);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, BLOCKS + 1, 0, 0), 0);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, BLOCKS * ZF_BLOCK_SIZE, &hot),
			 0);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &more),
			 -EAGAIN);
	assert_int_equal(put_in(&w, BLOCKS - 1, 1), zones.zone[0]);
	assert_int_equal(put_in(&w, 2, 1), zones.zone[1]);
	/* The log's zones do not count among the others either. */
	zf_alloc_append_end(w.alloc, &hot, 0);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &hot), 0);
	close_world(&w);
}

static void the_log_waits_while_the_zone_it_left_is_active(void **state)
{
	struct zf_append_grant hot, cold;
	struct zf_log_zones first, second;
	struct world w;
	uint32_t found;

	open_world(&w, (struct zf_geometry){.max_active = 6, .max_open = 6});
	first = commit(&w);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 1, 0, 0), 0);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &hot), 0);
	assert_int_equal(put_in(&w, BLOCKS - 1, 1), first.zone[0]);
	assert_int_equal(put_in(&w, 2, 1), first.zone[1]);
	second = commit(&w);
	assert_int_equal(put_in(&w, BLOCKS - 3, 1), second.zone[0]);
	/* Active: a zone of the ring, one of metadata, one that moved data may want, three partly
	 * written ones. */
	assert_int_equal(put_in(&w, 2, 1), NONE);
	assert_int_equal(zf_alloc_next_finish(w.alloc, &found), 0);
	assert_int_equal(found, first.zone[0]);
	zf_alloc_finish_done(w.alloc, found, 0);
	assert_int_equal(put_in(&w, 2, 1), second.zone[1]);
	assert_int_equal(zf_alloc_reserve_cold(w.alloc, 1), 0);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_COLD, ZF_BLOCK_SIZE, &cold), 0);
	close_world(&w);
}

/* ---- mount ---- */

static void write_blocks(struct world *w, uint32_t zone_no, uint64_t blocks)
{
	static const uint8_t bytes[BLOCKS * ZF_BLOCK_SIZE] __attribute__((aligned(ZF_BLOCK_SIZE)));

	assert_int_equal(zf_dev_write_sync(w->dev, zone_no * ZONE_SIZE, bytes,
					   blocks * ZF_BLOCK_SIZE, false),
			 0);
}

static int load(struct world *w, uint32_t zone_no, enum zf_role role, uint64_t blocks,
		uint64_t live)
{
	const struct zf_disk_zone item = {
		.role = (uint8_t)role,
		.pointer = zf_le64_from(blocks * ZF_BLOCK_SIZE),
		.live = zf_le64_from(live * ZF_BLOCK_SIZE),
	};

	return zf_alloc_load(w->alloc, zone_no, &item, sizeof(item));
}

/* A mount: zone 4 is the current log zone, written for 3 of its 5 blocks at the freeze, 7 is next.
 */
static void open_logged(struct world *w, struct zf_geometry geometry)
{
	open_device(w, geometry);
	write_blocks(w, 4, 5);
	zf_alloc_free(w->alloc);
	w->super.log_zone[0] = 4;
	w->super.log_zone[1] = 7;
	w->super.log_pointer[0] = 3 * ZF_BLOCK_SIZE;
	assert_int_equal(zf_alloc_new(w->dev, &w->super, NULL, &w->alloc), 0);
	assert_int_equal(load(w, 4, ZF_ROLE_LOG, 3, 0), 0);
	assert_int_equal(load(w, 7, ZF_ROLE_LOG, 0, 0), 0);
}

static void a_mount_goes_on_in_the_named_zones(void **state)
{
	struct zf_log_zones zones;
	struct world w;
	uint32_t found;

	open_logged(&w, (struct zf_geometry){0});
	assert_int_equal(zf_alloc_log_load(w.alloc, &w.super), 0);
	zf_alloc_start(w.alloc, 5, 6);
	zf_alloc_set_tail_max(w.alloc, 2);
	/* Nothing in them is live, and they are neither garbage nor empty zones. */
	assert_int_equal(zone(&w, 4).role, ZF_ROLE_LOG);
	assert_int_equal(zone(&w, 7).role, ZF_ROLE_LOG);
	assert_int_equal(zf_alloc_next_reset(w.alloc, true, &found), -ENOENT);
	zones = commit(&w);
	assert_int_equal(zones.zone[0], 4);
	assert_int_equal(zones.zone[1], 7);
	assert_int_equal(zones.pointer[0], 5 * ZF_BLOCK_SIZE);
	assert_int_equal(put_in(&w, BLOCKS - 5, 1), 4);
	assert_int_equal(put_in(&w, 1, 1), 7);
	close_world(&w);
}

/* No commit writes such a superblock, but it is a valid one. */
static void a_mount_goes_on_where_only_the_second_zone_is_named(void **state)
{
	struct zf_log_zones zones;
	struct world w;

	open_logged(&w, (struct zf_geometry){0});
	w.super.log_zone[1] = w.super.log_zone[0];
	w.super.log_pointer[1] = w.super.log_pointer[0];
	w.super.log_zone[0] = ZF_SUPER_NO_ZONE;
	assert_int_equal(zf_alloc_log_load(w.alloc, &w.super), 0);
	zf_alloc_start(w.alloc, 5, 6);
	zf_alloc_set_tail_max(w.alloc, 2);
	zones = commit(&w);
	assert_int_equal(zones.zone[0], 4);
	assert_int_equal(zones.pointer[0], 5 * ZF_BLOCK_SIZE);
	close_world(&w);
}

static void a_superblock_that_lies_about_its_log_zones_is_refused(void **state)
{
	struct zf_super super;
	struct world w;

	open_logged(&w, (struct zf_geometry){0});
	super = w.super;
	super.log_zone[1] = 8;
	assert_int_equal(zf_alloc_log_load(w.alloc, &super), -EUCLEAN);
	super = w.super;
	super.log_zone_resets[0] = 1;
	assert_int_equal(zf_alloc_log_load(w.alloc, &super), -EUCLEAN);
	super = w.super;
	super.log_pointer[0] = 6 * ZF_BLOCK_SIZE;
	assert_int_equal(zf_alloc_log_load(w.alloc, &super), -EUCLEAN);
	super.log_pointer[0] = (BLOCKS + 1) * ZF_BLOCK_SIZE;
	assert_int_equal(zf_alloc_log_load(w.alloc, &super), -EUCLEAN);
	assert_int_equal(zf_alloc_log_load(w.alloc, &w.super), 0);
	close_world(&w);
}

static void a_log_zone_that_no_superblock_names_is_one_of_data(void **state)
{
	struct world w;

	open_logged(&w, (struct zf_geometry){0});
	assert_int_equal(load(&w, 4, ZF_ROLE_LOG, 3, 2), 0);
	zf_alloc_start(w.alloc, 5, 6);
	assert_int_equal(zone(&w, 4).role, ZF_ROLE_HOT);
	assert_int_equal(zone(&w, 7).role, ZF_ROLE_NONE);
	close_world(&w);
}

static void
pointers_that_are_lower_bounds_are_raised_to_the_last_record_and_the_held_bytes(void **state)
{
	struct zf_zone_info info;
	struct world w;

	open_logged(&w, (struct zf_geometry){.pointers_are_lower_bounds = true});
	w.super.log_pointer[0] = (BLOCKS + 1) * ZF_BLOCK_SIZE;
	assert_int_equal(zf_alloc_log_load(w.alloc, &w.super), -EUCLEAN);
	w.super.log_pointer[0] = 6 * ZF_BLOCK_SIZE;
	assert_int_equal(zf_alloc_log_load(w.alloc, &w.super), 0);
	zf_alloc_raise_log(w.alloc, 0, 9 * ZF_BLOCK_SIZE);
	zf_alloc_raise_log(w.alloc, 0, 8 * ZF_BLOCK_SIZE);
	zf_alloc_raise_log(w.alloc, 1, 1 * ZF_BLOCK_SIZE);
	assert_int_equal(
		zf_alloc_hold(w.alloc, 9 * ZONE_SIZE + 2 * ZF_BLOCK_SIZE, 2 * ZF_BLOCK_SIZE), 0);
	zf_alloc_start(w.alloc, 5, 6);
	assert_int_equal(zf_alloc_tell_device(w.alloc), 0);
	assert_int_equal(zf_dev_report(w.dev, 4, 1, &info), 0);
	assert_int_equal(info.wp - info.start, 9 * ZF_BLOCK_SIZE);
	assert_int_equal(zf_dev_report(w.dev, 7, 1, &info), 0);
	assert_int_equal(info.wp - info.start, 1 * ZF_BLOCK_SIZE);
	assert_int_equal(zf_dev_report(w.dev, 9, 1, &info), 0);
	assert_int_equal(info.wp - info.start, 4 * ZF_BLOCK_SIZE);
	close_world(&w);
}

static void a_log_zone_that_cannot_be_written_any_more_is_replaced(void **state)
{
	struct zf_geometry geometry = {
		.zone_size = ZONE_SIZE,
		.zone_capacity = ZONE_SIZE,
		.zone_count = ZONES,
		.append_limit = ZONE_SIZE,
	};
	struct zf_super super = {.zone_count = ZONES,
				 .node_size = NODE_SIZE,
				 .metadata_copies = 1,
				 .log_zone = {4, NONE}};
	struct zf_sim *sim = zf_sim_new(&geometry, 1);
	struct zf_log_zones zones;
	struct world w = {0};

	zf_sim_set_zone_cond(sim, 4, ZF_ZONE_READONLY);
	assert_int_equal(zf_sim_open(sim, NULL, &w.dev), 0);
	assert_int_equal(zf_alloc_new(w.dev, &super, NULL, &w.alloc), 0);
	assert_int_equal(load(&w, 4, ZF_ROLE_LOG, 0, 0), 0);
	assert_int_equal(zf_alloc_log_load(w.alloc, &super), 0);
	zf_alloc_start(w.alloc, 5, 6);
	zf_alloc_set_tail_max(w.alloc, 2);
	assert_int_equal(put_in(&w, 1, 0), NONE);
	zones = commit(&w);
	assert_int_not_equal(zones.zone[0], 4);
	assert_int_not_equal(zones.zone[1], 4);
	assert_int_not_equal(zones.zone[1], NONE);
	assert_int_not_equal(zone(&w, 4).role, ZF_ROLE_NONE); /* no empty zone for anybody */
	close_world(&w);
	zf_sim_free(sim);
}

static void the_log_goes_on_behind_its_records_on_conventional_zones(void **state)
{
	struct zf_append_grant grant;
	uint64_t resets;
	struct world w;
	bool switched;

	open_logged(&w, (struct zf_geometry){.conventional = ZONES});
	w.super.log_pointer[0] = 4 * ZF_BLOCK_SIZE;
	assert_int_equal(zf_alloc_log_load(w.alloc, &w.super), 0);
	zf_alloc_raise_log(w.alloc, 0, 5 * ZF_BLOCK_SIZE);
	zf_alloc_start(w.alloc, 5, 6);
	assert_int_equal(zf_alloc_log_begin(w.alloc, ZF_BLOCK_SIZE, 0, &grant, &resets, &switched),
			 0);
	assert_int_equal(grant.address, 4 * ZONE_SIZE + 5 * ZF_BLOCK_SIZE);
	close_world(&w);
}

/* The device counts only resets of sequential zones; the filesystem counts those of this zone. */
static void a_conventional_zone_was_reset_as_often_as_its_item_says(void **state)
{
	const struct zf_disk_zone item = {.role = ZF_ROLE_LOG, .reset_count = zf_le64_from(3)};
	struct world w;

	open_device(&w, (struct zf_geometry){.conventional = 8});
	assert_int_equal(zf_dev_reset(w.dev, 20), 0);
	zf_alloc_free(w.alloc);
	assert_int_equal(zf_alloc_new(w.dev, &w.super, NULL, &w.alloc), 0);
	assert_int_equal(zf_alloc_load(w.alloc, 4, &item, sizeof(item)), 0);
	w.super.log_zone[0] = 4;
	w.super.log_zone_resets[0] = 3;
	assert_int_equal(zf_alloc_log_load(w.alloc, &w.super), 0);
	assert_int_equal(zone(&w, 4).reset_count, 3);
	close_world(&w);
}

static void held_bytes_are_an_extents_and_stay_until_let_go(void **state)
{
	const uint64_t held = 9 * ZONE_SIZE + ZF_BLOCK_SIZE;
	struct world w;

	open_device(&w, (struct zf_geometry){0});
	write_blocks(&w, 9, 4);
	write_blocks(&w, 10, 4);
	zf_alloc_free(w.alloc);
	assert_int_equal(zf_alloc_new(w.dev, &w.super, NULL, &w.alloc), 0);
	/* A zone that the committed state does not know, and a zone whose former nodes are dead. */
	assert_int_equal(load(&w, 9, ZF_ROLE_NONE, 0, 0), 0);
	assert_int_equal(load(&w, 10, ZF_ROLE_META, 0, 0), 0);
	assert_int_equal(zf_alloc_hold(w.alloc, held, 2 * ZF_BLOCK_SIZE), 0);
	assert_int_equal(zf_alloc_hold(w.alloc, 10 * ZONE_SIZE, ZF_BLOCK_SIZE), 0);
	zf_alloc_start(w.alloc, 5, 6);
	zf_alloc_set_tail_max(w.alloc, 2);
	assert_int_equal(zone(&w, 9).role, ZF_ROLE_HOT);
	assert_int_equal(zone(&w, 9).summary, ZF_SUMMARY_PRESENT);
	assert_int_equal(zone(&w, 10).role, ZF_ROLE_HOT);
	assert_int_equal(zf_alloc_check_extent(w.alloc, held, 2 * ZF_BLOCK_SIZE, false), 0);
	for (unsigned int i = 0; i < 3; i++) {
		drop_summaries(&w);
		commit(&w);
		assert_int_equal(resets_until_none(&w, true, 9), 0);
		/* Replay may drop data again that it has put there. */
		zf_alloc_live_add(w.alloc, held, ZF_BLOCK_SIZE);
		zf_alloc_live_sub(w.alloc, held, ZF_BLOCK_SIZE);
	}
	/* An extent comes to name one of the two held blocks, but not the other. */
	zf_alloc_live_add(w.alloc, held, ZF_BLOCK_SIZE);
	zf_alloc_let_go(w.alloc);
	drop_summaries(&w);
	commit(&w);
	assert_int_equal(resets_until_none(&w, false, 10), 0);
	commit(&w);
	assert_int_equal(resets_until_none(&w, false, 10), 1);
	assert_int_equal(zone(&w, 9).live, 1);
	assert_int_equal(zone(&w, 9).role, ZF_ROLE_HOT);
	close_world(&w);
}

static void bytes_that_cannot_be_data_are_not_held(void **state)
{
	const uint64_t node[ZF_COPIES_MAX] = {11 * ZONE_SIZE};
	struct world w;

	open_device(&w, (struct zf_geometry){0});
	write_blocks(&w, 9, 4);
	write_blocks(&w, 10, 4);
	write_blocks(&w, 11, 4);
	zf_alloc_free(w.alloc);
	assert_int_equal(zf_alloc_new(w.dev, &w.super, NULL, &w.alloc), 0);
	assert_int_equal(load(&w, 10, ZF_ROLE_META, 4, 4), 0);
	assert_int_equal(load(&w, 11, ZF_ROLE_META, 4, 0), 0);
	assert_int_equal(zf_alloc_load_system_node(w.alloc, node), 0);
	assert_int_equal(zf_alloc_hold(w.alloc, 0, ZF_BLOCK_SIZE), -EUCLEAN);
	assert_int_equal(zf_alloc_hold(w.alloc, ZONES * ZONE_SIZE, ZF_BLOCK_SIZE), -EUCLEAN);
	assert_int_equal(zf_alloc_hold(w.alloc, 9 * ZONE_SIZE, 0), -EUCLEAN);
	assert_int_equal(zf_alloc_hold(w.alloc, 9 * ZONE_SIZE + 1, ZF_BLOCK_SIZE), -EUCLEAN);
	assert_int_equal(zf_alloc_hold(w.alloc, 9 * ZONE_SIZE, UINT64_MAX - 4095), -EUCLEAN);
	assert_int_equal(zf_alloc_hold(w.alloc, 9 * ZONE_SIZE, 5 * ZF_BLOCK_SIZE), -EUCLEAN);
	assert_int_equal(zf_alloc_hold(w.alloc, 10 * ZONE_SIZE, ZF_BLOCK_SIZE), -EUCLEAN);
	assert_int_equal(zf_alloc_hold(w.alloc, 11 * ZONE_SIZE, ZF_BLOCK_SIZE), -EUCLEAN);
	assert_int_equal(zf_alloc_hold(w.alloc, 9 * ZONE_SIZE, 4 * ZF_BLOCK_SIZE), 0);
	close_world(&w);
}

#define TEST(name) cmocka_unit_test(name)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_commit_chooses_two_and_records_wait_for_it),
		TEST(a_zone_that_is_not_full_stays_and_its_pointer_is_told),
		TEST(a_record_that_does_not_fit_switches_for_good),
		TEST(a_record_too_large_for_both_does_not_close_the_current_zone),
		TEST(until_it_is_durable_records_keep_to_what_both_superblocks_name),
		TEST(reserved_blocks_of_a_record_are_used_up),
		TEST(on_conventional_zones_a_record_is_told_its_address),
		TEST(warm_zones_are_the_logs_and_conventional_ones_are_left),
		TEST(a_named_zone_is_neither_emptied_nor_reset_nor_finished),
		TEST(a_left_zone_with_nothing_live_is_reset_by_the_usual_rule),
		TEST(a_left_zone_that_is_emptied_before_it_is_let_out_comes_back_too),
		TEST(data_resumes_a_left_zone_once_no_superblock_names_it),
		TEST(a_failed_zone_takes_no_more_records_and_is_replaced),
		TEST(a_failed_zone_whose_pointer_is_not_known_yet_is_no_empty_one),
		TEST(a_failed_zone_is_no_empty_one_while_an_append_to_it_has_not_ended),
		TEST(what_data_may_use_is_the_same_with_and_without_log_zones),
		TEST(a_full_log_zone_is_made_up_for_from_what_data_leaves),
		TEST(data_leaves_what_the_log_lacks),
		TEST(a_zone_not_written_to_gives_way_to_metadata),
		TEST(the_log_takes_no_zone_of_the_nodes_that_are_kept),
		TEST(two_active_zones_are_the_logs),
		TEST(the_log_waits_while_the_zone_it_left_is_active),
		TEST(a_mount_goes_on_in_the_named_zones),
		TEST(a_mount_goes_on_where_only_the_second_zone_is_named),
		TEST(a_superblock_that_lies_about_its_log_zones_is_refused),
		TEST(a_log_zone_that_no_superblock_names_is_one_of_data),
		TEST(pointers_that_are_lower_bounds_are_raised_to_the_last_record_and_the_held_bytes),
		TEST(a_log_zone_that_cannot_be_written_any_more_is_replaced),
		TEST(the_log_goes_on_behind_its_records_on_conventional_zones),
		TEST(a_conventional_zone_was_reset_as_often_as_its_item_says),
		TEST(held_bytes_are_an_extents_and_stay_until_let_go),
		TEST(bytes_that_cannot_be_data_are_not_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
