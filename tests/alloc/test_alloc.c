/* SPDX-License-Identifier: MIT */
/* The allocator on a memory device: streams, freezes, releases, limits, reservations. */
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
#define ZONE_SIZE (64u * 1024)
#define CAPACITY                                                                                   \
	(56u * 1024) /* 14 blocks, below the size: a node of 4 blocks leaves 2 at the end */
#define NODE_SIZE 16384u

struct world {
	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_alloc *alloc;
};

static void open_world_kept(struct world *world, uint32_t max_active, uint8_t copies,
			    uint64_t kept_blocks)
{
	struct zf_geometry geometry = {
		.zone_size = ZONE_SIZE,
		.zone_capacity = CAPACITY,
		.zone_count = ZONES,
		.max_active = max_active,
		.max_open = max_active,
		.append_limit = 16 * 1024,
	};
	struct zf_memory_options options = {0};
	struct zf_super super = {
		.zone_count = ZONES,
		.node_size = NODE_SIZE,
		.metadata_copies = copies,
		.kept_bytes = kept_blocks << ZF_BLOCK_SHIFT,
	};

	assert_int_equal(zf_memory_new(&geometry, &world->memory), 0);
	assert_int_equal(zf_memory_open(world->memory, &options, NULL, &world->dev), 0);
	assert_int_equal(zf_alloc_new(world->dev, &super, NULL, &world->alloc), 0);
	zf_alloc_start(world->alloc, 0, 1);
	zf_alloc_set_tail_max(world->alloc, 2);
}

static void open_world(struct world *world, uint32_t max_active, uint8_t copies)
{
	open_world_kept(world, max_active, copies, 0);
}

static void close_world(struct world *world)
{
	zf_alloc_free(world->alloc);
	zf_dev_close(world->dev);
	zf_memory_free(world->memory);
}

static struct zf_zone zone(struct world *world, uint32_t zone_no)
{
	struct zf_zone z;

	zf_alloc_get_zone(world->alloc, zone_no, &z);
	return z;
}

static void commit(struct world *world)
{
	struct zf_alloc_frozen *frozen;

	assert_int_equal(zf_alloc_freeze(world->alloc, 1, &frozen), 0);
	zf_alloc_committed(world->alloc, frozen);
	zf_alloc_frozen_free(frozen);
}

/* Appends one block, in its own grant, and counts it live. */
static uint64_t append_block(struct world *world)
{
	struct zf_append_grant grant;
	uint64_t address;

	assert_int_equal(zf_alloc_reserve(world->alloc, ZF_RESERVE_NORMAL, 1, 0, 0), 0);
	assert_int_equal(zf_alloc_append_begin(world->alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &grant),
			 0);
	address = grant.zone_start +
		  ((uint64_t)(zone(world, grant.zone_no).pointer - 1) << ZF_BLOCK_SHIFT);
	zf_alloc_live_add(world->alloc, address, ZF_BLOCK_SIZE);
	zf_alloc_append_end(world->alloc, &grant, 0);
	return address;
}

static void nodes_follow_each_other_and_the_end_of_a_zone_is_filled(void **state)
{
	struct world w;
	uint64_t address[ZF_COPIES_MAX], first;
	struct zf_alloc_frozen *frozen;

	open_world(&w, 0, 1);
	assert_int_equal(zf_alloc_node(w.alloc, false, address), 0);
	first = address[0];
	assert_int_equal(first % ZONE_SIZE, 0);
	for (unsigned int i = 1; i < 3; i++) {
		assert_int_equal(zf_alloc_node(w.alloc, false, address), 0);
		assert_int_equal(address[0], first + i * NODE_SIZE);
	}
	assert_int_equal(zf_alloc_node(w.alloc, false, address), 0);
	assert_int_not_equal(address[0] / ZONE_SIZE, first / ZONE_SIZE);

	assert_int_equal(zf_alloc_freeze(w.alloc, 1, &frozen), 0);
	assert_int_equal(frozen->run_count[0], 2);
	assert_int_equal(frozen->runs[0][0].from, first);
	assert_int_equal(frozen->runs[0][0].to, first + CAPACITY);
	assert_int_equal(frozen->runs[0][1].from, address[0]);
	assert_int_equal(frozen->runs[0][1].to, address[0] + (1 + frozen->tail_count) * NODE_SIZE);
	zf_alloc_committed(w.alloc, frozen);
	zf_alloc_frozen_free(frozen);
	close_world(&w);
}

static void the_next_transaction_begins_where_the_tail_ends(void **state)
{
	struct world w;
	uint64_t address[ZF_COPIES_MAX];
	struct zf_alloc_frozen *frozen, *next;

	open_world(&w, 0, 1);
	assert_int_equal(zf_alloc_node(w.alloc, false, address), 0);
	assert_int_equal(zf_alloc_freeze(w.alloc, 1, &frozen), 0);
	assert_true(frozen->tail_count >= 1);
	assert_int_equal(zf_alloc_freeze(w.alloc, 1, &next), 0);
	/* One node and a tail of two fill the zone but for two blocks, which are zero-filled by the
	 * next. */
	assert_int_equal(frozen->run_count[0], 1);
	assert_int_equal(frozen->runs[0][0].to, address[0] + (1 + frozen->tail_count) * NODE_SIZE);
	assert_int_equal(next->runs[0][0].from, frozen->runs[0][0].to);
	assert_int_equal(next->generation, frozen->generation + 1);
	zf_alloc_frozen_free(frozen);
	zf_alloc_frozen_free(next);
	close_world(&w);
}

static void two_copies_take_a_slot_each_in_zones_of_their_own(void **state)
{
	struct world w;
	uint64_t address[ZF_COPIES_MAX];

	open_world(&w, 0, 2);
	for (unsigned int i = 0; i < 7; i++) {
		assert_int_equal(zf_alloc_node(w.alloc, false, address), 0);
		assert_int_not_equal(address[0] / ZONE_SIZE, address[1] / ZONE_SIZE);
		assert_int_equal(zone(&w, (uint32_t)(address[1] / ZONE_SIZE)).role, ZF_ROLE_META);
	}
	close_world(&w);
}

static void a_zone_is_reset_only_when_the_commit_after_the_emptying_one_is_durable(void **state)
{
	struct world w;
	uint64_t addresses[14];
	uint32_t zone_no, found;

	open_world(&w, 0, 1);
	for (unsigned int i = 0; i < 14; i++)
		addresses[i] = append_block(&w);
	zone_no = (uint32_t)(addresses[0] / ZONE_SIZE);
	commit(&w); /* 1: all live */
	for (unsigned int i = 0; i < 14; i++)
		zf_alloc_live_sub(w.alloc, addresses[i], ZF_BLOCK_SIZE);
	assert_int_equal(zf_alloc_next_unsummarise(w.alloc, &found), 0);
	assert_int_equal(found, zone_no);
	assert_int_equal(zf_alloc_next_reset(w.alloc, true, &found), -ENOENT);
	zf_alloc_summary_dropped(w.alloc, zone_no, 0);
	assert_int_equal(zf_alloc_next_reset(w.alloc, true, &found), -ENOENT);
	commit(&w); /* 2: emptied it */
	assert_int_equal(zf_alloc_next_reset(w.alloc, false, &found), -ENOENT);
	commit(&w); /* 3 */
	assert_int_equal(zf_alloc_next_reset(w.alloc, false, &found), 0);
	assert_int_equal(found, zone_no);
	zf_alloc_reset_done(w.alloc, zone_no, 0);
	assert_int_equal(zone(&w, zone_no).role, ZF_ROLE_NONE);
	close_world(&w);
}

static void when_space_is_short_the_emptying_commit_is_enough(void **state)
{
	struct world w;
	uint64_t addresses[14];
	uint32_t found;

	open_world(&w, 0, 1);
	for (unsigned int i = 0; i < 14; i++)
		addresses[i] = append_block(&w);
	commit(&w);
	for (unsigned int i = 0; i < 14; i++)
		zf_alloc_live_sub(w.alloc, addresses[i], ZF_BLOCK_SIZE);
	assert_int_equal(zf_alloc_next_unsummarise(w.alloc, &found), 0);
	zf_alloc_summary_dropped(w.alloc, found, 0);
	assert_int_equal(zf_alloc_next_reset(w.alloc, true, &found), -ENOENT);
	commit(&w);
	assert_int_equal(zf_alloc_next_reset(w.alloc, true, &found), 0);
	close_world(&w);
}

static void a_reader_keeps_its_zone_from_being_reset(void **state)
{
	struct world w;
	uint64_t addresses[14];
	uint32_t found;

	open_world(&w, 0, 1);
	for (unsigned int i = 0; i < 14; i++)
		addresses[i] = append_block(&w);
	zf_alloc_read_begin(w.alloc, addresses[3]);
	for (unsigned int i = 0; i < 14; i++)
		zf_alloc_live_sub(w.alloc, addresses[i], ZF_BLOCK_SIZE);
	assert_int_equal(zf_alloc_next_unsummarise(w.alloc, &found), -ENOENT);
	zf_alloc_read_end(w.alloc, addresses[3]);
	assert_int_equal(zf_alloc_next_unsummarise(w.alloc, &found), 0);
	/* A reader of the whole zone, such as a scrub of metadata, may begin after the zone is
	 * empty. */
	zf_alloc_read_begin(w.alloc, addresses[3]);
	zf_alloc_summary_dropped(w.alloc, found, 0);
	commit(&w);
	commit(&w);
	assert_int_equal(zf_alloc_next_reset(w.alloc, true, &found), -ENOENT);
	zf_alloc_read_end(w.alloc, addresses[3]);
	assert_int_equal(zf_alloc_next_reset(w.alloc, true, &found), 0);
	close_world(&w);
}

static void a_zone_with_an_append_under_way_is_not_reset(void **state)
{
	struct world w;
	struct zf_append_grant grant;
	uint32_t found;

	open_world(&w, 0, 1);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 14, 0, 0), 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, 16384, &grant), 0);
	assert_int_equal(grant.len, 2 * ZF_BLOCK_SIZE); /* what was left of the capacity */
	commit(&w);
	commit(&w);
	assert_int_equal(zf_alloc_next_unsummarise(w.alloc, &found), -ENOENT);
	close_world(&w);
}

static void an_append_is_cut_at_the_append_limit_and_at_the_capacity(void **state)
{
	struct world w;
	struct zf_append_grant grant;

	open_world(&w, 0, 1);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 14, 0, 0), 0);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, 1 << 20, &grant), 0);
	assert_int_equal(grant.len, 16384);
	close_world(&w);
}

/* Each additional zone that is written at the same time costs seeks back and forth. */
static void data_of_a_rotational_device_is_one_stream(void **state)
{
	const struct zf_geometry geometry = {
		.zone_size = ZONE_SIZE,
		.zone_capacity = ZONE_SIZE,
		.zone_count = ZONES,
		.append_limit = 16 * 1024,
		.rotational = true,
	};
	const struct zf_super super = {
		.zone_count = ZONES, .node_size = NODE_SIZE, .metadata_copies = 1};
	struct zf_append_grant grants[12];
	struct world w;

	assert_int_equal(zf_memory_new(&geometry, &w.memory), 0);
	assert_int_equal(zf_memory_open(w.memory, NULL, NULL, &w.dev), 0);
	assert_int_equal(zf_alloc_new(w.dev, &super, NULL, &w.alloc), 0);
	zf_alloc_start(w.alloc, 0, 1);
	zf_alloc_set_tail_max(w.alloc, 2);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 12 * 4, 0, 0), 0);
	/* None of them ends before the last one begins: a zone is full before the next is opened.
	 */
	for (unsigned int i = 0; i < 12; i++) {
		assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, 16 * 1024, &grants[i]),
				 0);
		assert_int_equal(grants[i].len, 16 * 1024);
		assert_int_equal(grants[i].zone_no, grants[i / 4 * 4].zone_no);
	}
	assert_int_not_equal(grants[4].zone_no, grants[0].zone_no);
	assert_int_not_equal(grants[8].zone_no, grants[4].zone_no);
	for (unsigned int i = 0; i < 12; i++)
		zf_alloc_append_end(w.alloc, &grants[i], 0);
	close_world(&w);
}

static void data_never_takes_the_zones_that_metadata_log_and_reclaim_need(void **state)
{
	struct world w;
	struct zf_append_grant grant;
	uint64_t blocks = 0;
	uint32_t empty = 0;

	open_world(&w, 0, 1);
	while (zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 1, 0, 0) == 0) {
		assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &grant),
				 0);
		zf_alloc_append_end(w.alloc, &grant, 0);
		blocks++;
	}
	for (uint32_t z = 2; z < ZONES; z++)
		empty += zone(&w, z).role == ZF_ROLE_NONE;
	assert_int_equal(empty, 1 + 2 + 3);
	assert_int_equal(blocks, (ZONES - 2 - empty) * 14);
	close_world(&w);
}

static void what_was_reserved_can_be_written_though_metadata_grows_meanwhile(void **state)
{
	struct world w;
	uint64_t address[ZF_COPIES_MAX];
	struct zf_append_grant grant;
	uint64_t reserved = 0;

	open_world(&w, 0, 1);
	while (zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 1, 0, 0) == 0)
		reserved++;
	while (zf_alloc_node(w.alloc, false, address) == 0)
		;
	for (uint64_t i = 0; i < reserved; i++) {
		assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &grant),
				 0);
		zf_alloc_append_end(w.alloc, &grant, 0);
	}
	close_world(&w);
}

static uint64_t reserve_all(struct world *world)
{
	uint64_t reserved = 0;

	while (zf_alloc_reserve(world->alloc, ZF_RESERVE_NORMAL, 1, 0, 0) == 0)
		reserved++;
	return reserved;
}

static uint64_t keep(struct world *world, uint64_t blocks, uint64_t reserved)
{
	const struct zf_kept_change change = {.added = {.kept = blocks}, .reserved = reserved};

	return zf_alloc_kept_change(world->alloc, &change);
}

static void keep_no_more(struct world *world, uint64_t blocks, uint64_t lent)
{
	const struct zf_kept_change change = {.removed = {.kept = blocks}, .lent = lent};

	zf_alloc_kept_change(world->alloc, &change);
}

static void what_is_kept_is_left_alone_and_can_be_lent_when_nothing_is_left(void **state)
{
	const uint64_t all = (ZONES - 2 - 6) * 14, items = 6; /* 100 blocks' extents and entries */
	struct world w;
	uint64_t address[ZF_COPIES_MAX];
	struct zf_append_grant grant;
	struct zf_space space;

	open_world(&w, 0, 1);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 100, 0, 0), 0);
	assert_int_equal(keep(&w, 100, 120), 20);
	assert_int_equal(reserve_all(&w), all - 100 - items);
	zf_alloc_get_space(w.alloc, &space);
	assert_int_equal(space.kept, 100 * ZF_BLOCK_SIZE);
	assert_int_equal(space.available, 0);
	while (zf_alloc_node(w.alloc, false, address) == 0)
		;
	/* No more can be lent than is kept, and all that is kept can be lent. */
	assert_int_equal(zf_alloc_lend(w.alloc, 101, 0), -ENOSPC);
	for (unsigned int i = 0; i < 100; i++) {
		assert_int_equal(zf_alloc_lend(w.alloc, 1, 0), 0);
		assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 1, 0, 0), -ENOSPC);
		assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &grant),
				 0);
		keep_no_more(&w, 1, 1);
		zf_alloc_append_end(w.alloc, &grant, 0);
	}
	assert_int_equal(zf_alloc_lend(w.alloc, 1, 0), -ENOSPC);
	assert_false(zf_alloc_keeps_any(w.alloc));
	close_world(&w);
}

static void what_was_lent_and_not_used_is_kept_again(void **state)
{
	struct world w;
	uint64_t left;

	open_world(&w, 0, 1);
	keep(&w, 10, 0);
	left = reserve_all(&w);
	assert_int_equal(zf_alloc_lend(w.alloc, 10, 30), 0);
	assert_int_equal(zf_alloc_lend(w.alloc, 1, 0), -ENOSPC);
	zf_alloc_unreserve(w.alloc, 10, 30);
	zf_alloc_take_back(w.alloc, 10);
	assert_int_equal(reserve_all(&w), 0);
	zf_alloc_unreserve(w.alloc, left, 0);
	assert_int_equal(reserve_all(&w), left);
	keep_no_more(&w, 10, 0);
	assert_int_equal(reserve_all(&w), 10 + 1); /* and the block for its items */
	close_world(&w);
}

/* Garbage takes the place of this space until a zone comes back or there is room for others, too.
 */
static void what_was_lent_and_used_but_is_still_kept_is_short(void **state)
{
	const struct zf_kept_change landed = {.lent = 10};
	struct zf_append_grant grant;
	struct world w;
	uint64_t left;

	open_world(&w, 0, 1);
	keep(&w, 15, 0);
	left = reserve_all(&w);
	assert_int_equal(zf_alloc_lend(w.alloc, 10, 0), 0);
	for (unsigned int i = 0; i < 10; i++) {
		assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &grant),
				 0);
		zf_alloc_append_end(w.alloc, &grant, 0);
	}
	assert_int_equal(zf_alloc_kept_change(w.alloc, &landed), 0);
	assert_int_equal(zf_alloc_lend(w.alloc, 6, 0), -ENOSPC);
	/* Room for items does not mean that the space for blocks is there again. */
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 0, 0, 0), 0);
	assert_int_equal(zf_alloc_lend(w.alloc, 6, 0), -ENOSPC);
	/* The shortage is never more than what is kept. */
	keep_no_more(&w, 12, 0);
	assert_int_equal(zf_alloc_lend(w.alloc, 1, 0), -ENOSPC);
	keep(&w, 4, 0);
	assert_int_equal(zf_alloc_lend(w.alloc, 4, 0), 0);
	zf_alloc_unreserve(w.alloc, left, 0);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 1, 0, 0), 0);
	assert_int_equal(zf_alloc_lend(w.alloc, 3, 0), 0);
	close_world(&w);
}

/* The slack is two zones and room for the items of each block: only overwriters may use it. */
static void normal_reservations_leave_the_slack_alone(void **state)
{
	const struct zf_kept_change added = {.added = {.guaranteed = 100}};
	const struct zf_kept_change removed = {.removed = {.guaranteed = 100}};
	const uint64_t items = 6; /* of 100 blocks */
	uint64_t all, left, slack = 0;
	struct zf_alloc_frozen *frozen;
	struct world w;

	open_world(&w, 0, 1);
	all = reserve_all(&w);
	zf_alloc_unreserve(w.alloc, all, 0);
	assert_int_equal(zf_alloc_slack_missing(w.alloc), 28);
	zf_alloc_kept_change(w.alloc, &added);
	assert_int_equal(zf_alloc_slack_missing(w.alloc), 0);
	assert_true(zf_alloc_keeps_any(w.alloc));
	left = reserve_all(&w);
	assert_int_equal(left, all - 28 - items);
	assert_false(zf_alloc_could_reserve(w.alloc, ZF_RESERVE_NORMAL, 1, 0));
	assert_true(zf_alloc_could_reserve(w.alloc, ZF_RESERVE_OVERWRITE, 28 + items, 0));
	assert_false(zf_alloc_could_reserve(w.alloc, ZF_RESERVE_OVERWRITE, 28 + items + 1, 0));
	while (zf_alloc_reserve(w.alloc, ZF_RESERVE_OVERWRITE, 1, 0, 0) == 0)
		slack++;
	assert_int_equal(slack, 28 + items);
	zf_alloc_unreserve(w.alloc, slack, 0);
	zf_alloc_unreserve(w.alloc, left, 0);
	zf_alloc_kept_change(w.alloc, &removed);
	assert_int_equal(reserve_all(&w), all);
	zf_alloc_kept_change(w.alloc, &added);
	assert_int_equal(zf_alloc_freeze(w.alloc, 1, &frozen), 0);
	assert_int_equal(frozen->guaranteed_bytes, 100 * ZF_BLOCK_SIZE);
	zf_alloc_committed(w.alloc, frozen);
	zf_alloc_frozen_free(frozen);
	close_world(&w);
}

static void kept_space_is_in_the_snapshot_of_a_freeze(void **state)
{
	struct zf_alloc_frozen *frozen;
	struct world w;

	open_world_kept(&w, 0, 1, 7);
	keep(&w, 3, 0);
	assert_int_equal(zf_alloc_freeze(w.alloc, 1, &frozen), 0);
	keep_no_more(&w, 2, 0);
	assert_int_equal(frozen->kept_bytes, 10 * ZF_BLOCK_SIZE);
	zf_alloc_committed(w.alloc, frozen);
	zf_alloc_frozen_free(frozen);
	close_world(&w);
}

/* The state is as after a crash that has taken some of the kept space. */
static void kept_space_that_is_not_there_leaves_room_to_free(void **state)
{
	struct world w;
	uint64_t address[ZF_COPIES_MAX];

	open_world_kept(&w, 0, 1, ZONES * 14);
	assert_int_equal(reserve_all(&w), 0);
	assert_int_equal(zf_alloc_node(w.alloc, false, address), 0);
	assert_true(zf_alloc_can_freeze(w.alloc));
	/* A part of the kept space is there, a part is not. */
	assert_int_equal(zf_alloc_lend(w.alloc, 14, 0), 0);
	assert_int_equal(zf_alloc_lend(w.alloc, (ZONES - 3) * 14, 0), -ENOSPC);
	/* All of the kept space gives way, zone by zone, before a freeing operation fails. */
	while (zf_alloc_kept_give_way(w.alloc))
		;
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_FREEING, 0, 1, 0), 0);
	assert_int_equal(zf_alloc_promise_nodes(w.alloc, ZF_RESERVE_NORMAL, 20 * 3, 0), 0);
	assert_int_equal(reserve_all(&w), 0);
	close_world(&w);
}

static void no_more_zones_are_active_than_the_device_allows(void **state)
{
	struct world w;
	uint64_t address[ZF_COPIES_MAX];
	struct zf_append_grant grant;

	/* The ring's, metadata's, the log's two, and one for each kind of data. */
	open_world(&w, 6, 1);
	assert_int_equal(zf_alloc_node(w.alloc, false, address), 0);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 15, 0, 0), 0);
	for (unsigned int i = 0; i < 14; i++)
		assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &grant),
				 0);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &grant),
			 -EAGAIN);
	close_world(&w);
}

static void a_failed_append_moves_the_stream_to_another_zone(void **state)
{
	struct world w;
	struct zf_append_grant first, second;
	struct zf_zone_info info;
	uint32_t unknown;

	open_world(&w, 0, 1);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 2, 0, 0), 0);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &first), 0);
	assert_int_equal(zf_alloc_next_unknown(w.alloc, &unknown), -ENOENT);
	zf_alloc_append_end(w.alloc, &first, -EIO);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &second), 0);
	assert_int_not_equal(second.zone_no, first.zone_no);
	assert_int_equal(zf_alloc_next_unknown(w.alloc, &unknown), 0);
	assert_int_equal(unknown, first.zone_no);
	assert_int_equal(zf_dev_report(w.dev, unknown, 1, &info), 0);
	zf_alloc_pointer_known(w.alloc, unknown, &info);
	assert_int_equal(zone(&w, unknown).pointer, 0);
	assert_int_equal(zone(&w, unknown).role, ZF_ROLE_NONE); /* to be opened again */
	close_world(&w);
}

/* Its summary entries stay while the device is asked: the zone may be written again by then. */
static void a_zone_with_an_unknown_pointer_keeps_its_summary(void **state)
{
	static _Alignas(ZF_BLOCK_SIZE) const uint8_t block[ZF_BLOCK_SIZE];
	struct world w;
	struct zf_append_grant failed, landed;
	struct zf_zone_info info;
	uint32_t found;

	open_world(&w, 0, 1);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 2, 0, 0), 0);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &failed), 0);
	zf_alloc_append_end(w.alloc, &failed, -EIO);
	assert_int_equal(zf_alloc_next_unsummarise(w.alloc, &found), -ENOENT);
	assert_int_equal(zf_alloc_next_unknown(w.alloc, &found), 0);
	assert_int_equal(zf_dev_report(w.dev, found, 1, &info), 0);
	zf_alloc_pointer_known(w.alloc, found, &info);
	assert_int_equal(zone(&w, found).summary, ZF_SUMMARY_NONE);
	/* If the pointer has moved, the summary entries are dropped as soon as that is known. */
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &landed), 0);
	assert_int_equal(zf_dev_write_sync(w.dev, landed.zone_start, block, ZF_BLOCK_SIZE, false),
			 0);
	zf_alloc_append_end(w.alloc, &landed, -EIO);
	assert_int_equal(zf_alloc_next_unsummarise(w.alloc, &found), -ENOENT);
	assert_int_equal(zf_alloc_next_unknown(w.alloc, &found), 0);
	assert_int_equal(zf_dev_report(w.dev, found, 1, &info), 0);
	zf_alloc_pointer_known(w.alloc, found, &info);
	assert_int_equal(zf_alloc_next_unsummarise(w.alloc, &found), 0);
	assert_int_equal(found, landed.zone_no);
	close_world(&w);
}

static void a_snapshot_tells_live_bytes_and_pointer_as_of_the_freeze(void **state)
{
	struct world w;
	struct zf_alloc_frozen *frozen;
	uint64_t address;
	bool seen = false;

	open_world(&w, 0, 1);
	address = append_block(&w);
	append_block(&w);
	assert_int_equal(zf_alloc_freeze(w.alloc, 1, &frozen), 0);
	zf_alloc_live_sub(w.alloc, address, ZF_BLOCK_SIZE); /* the next transaction's */
	for (uint32_t i = 0; i < frozen->zone_count; i++) {
		const struct zf_zone_snapshot *shot = &frozen->zones[i];

		if (shot->zone_no != address / ZONE_SIZE)
			continue;
		seen = true;
		assert_int_equal(zf_le64_get(shot->item.live), 2 * ZF_BLOCK_SIZE);
		assert_int_equal(zf_le64_get(shot->item.pointer), 2 * ZF_BLOCK_SIZE);
		assert_int_equal(shot->item.role, ZF_ROLE_HOT);
	}
	assert_true(seen);
	zf_alloc_frozen_free(frozen);
	close_world(&w);
}

static void a_damaged_zone_item_is_refused(void **state)
{
	struct world w;
	struct zf_disk_zone item = {.role = ZF_ROLE_HOT};

	open_world(&w, 0, 1);
	assert_int_equal(zf_alloc_load(w.alloc, 5, &item, sizeof(item) - 1), -EUCLEAN);
	item.role = ZF_ROLE_COUNT;
	assert_int_equal(zf_alloc_load(w.alloc, 5, &item, sizeof(item)), -EUCLEAN);
	item.role = ZF_ROLE_SUPER;
	assert_int_equal(zf_alloc_load(w.alloc, 5, &item, sizeof(item)), -EUCLEAN);
	item.role = ZF_ROLE_HOT;
	item.pointer = zf_le64_from(CAPACITY + ZF_BLOCK_SIZE);
	assert_int_equal(zf_alloc_load(w.alloc, 5, &item, sizeof(item)), -EUCLEAN);
	item.pointer = zf_le64_from(ZF_BLOCK_SIZE);
	item.live = zf_le64_from(2 * ZF_BLOCK_SIZE);
	assert_int_equal(zf_alloc_load(w.alloc, 5, &item, sizeof(item)), -EUCLEAN);
	item.live = zf_le64_from(ZF_BLOCK_SIZE);
	/* The device's pointer lies before the live bytes: these bytes are gone. */
	assert_int_equal(zf_alloc_load(w.alloc, 5, &item, sizeof(item)), -EUCLEAN);
	item.live = zf_le64_from(0);
	item.reserved_b[7] = 1;
	assert_int_equal(zf_alloc_load(w.alloc, 5, &item, sizeof(item)), -EUCLEAN);
	item.reserved_b[7] = 0;
	assert_int_equal(zf_alloc_load(w.alloc, 5, &item, sizeof(item)), 0);
	close_world(&w);
}

static void free_node(struct world *world, uint64_t address, bool system)
{
	uint64_t addresses[ZF_COPIES_MAX] = {address};

	zf_alloc_node_free(world->alloc, addresses, system);
}

static void a_zone_is_not_reset_while_the_durable_state_names_a_node_freed_since(void **state)
{
	uint64_t address[ZF_COPIES_MAX], filler[ZF_COPIES_MAX];
	struct zf_alloc_frozen *frozen;
	struct world w;
	uint32_t found;

	open_world(&w, 0, 1);
	/* A zone of three slots: a node and the two of the tail, none of which the commit needs. */
	assert_int_equal(zf_alloc_node(w.alloc, false, address), 0);
	assert_int_equal(zf_alloc_freeze(w.alloc, 1, &frozen), 0);
	assert_int_equal(frozen->tail_count, 2);
	assert_int_equal(zf_alloc_node(w.alloc, false, filler), 0);
	assert_int_not_equal(filler[0] / ZONE_SIZE, address[0] / ZONE_SIZE);
	free_node(&w, address[0], false); /* by the transaction after the frozen one */
	zf_alloc_committed(w.alloc, frozen);
	zf_alloc_frozen_free(frozen);
	assert_int_equal(zf_alloc_next_reset(w.alloc, true, &found), -ENOENT);
	commit(&w);
	assert_int_equal(zf_alloc_next_reset(w.alloc, false, &found), -ENOENT);
	assert_int_equal(zf_alloc_next_reset(w.alloc, true, &found), 0);
	assert_int_equal(found, address[0] / ZONE_SIZE);
	close_world(&w);
}

static void nodes_at_impossible_places_are_not_freed(void **state)
{
	struct world w;
	uint64_t address[ZF_COPIES_MAX], data;

	open_world(&w, 0, 1);
	assert_int_equal(zf_alloc_node(w.alloc, false, address), 0);
	data = append_block(&w);
	free_node(&w, 0, false);
	free_node(&w, UINT64_MAX - 4095, false);
	free_node(&w, (uint64_t)ZONES * ZONE_SIZE, true);
	free_node(&w, address[0] + NODE_SIZE, false);
	free_node(&w, data, false);
	assert_int_equal(zone(&w, (uint32_t)(data / ZONE_SIZE)).live, 1);
	assert_int_equal(zf_alloc_count_nodes(w.alloc).live, 1);
	free_node(&w, address[0], false);
	free_node(&w, address[0], false);
	assert_int_equal(zf_alloc_count_nodes(w.alloc).live, 0);
	close_world(&w);
}

static void a_zone_is_active_until_its_last_append_has_ended(void **state)
{
	struct world w;
	struct zf_append_grant grants[4], next;

	open_world(&w, 6, 1);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 15, 0, 0), 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, 16384, &grants[i]), 0);
	/* The whole zone is granted, but the device has not written its end. */
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &next),
				 -EAGAIN);
		zf_alloc_append_end(w.alloc, &grants[i], 0);
	}
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &next), 0);
	close_world(&w);
}

/* Otherwise two files could wait for each other: one for a zone, the other to land behind the
 * first. */
static void a_zone_whose_extents_have_to_wait_is_not_active(void **state)
{
	struct world w;
	struct zf_append_grant grants[4], next;

	open_world(&w, 6, 1);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 15, 0, 0), 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, 16384, &grants[i]), 0);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &next),
				 -EAGAIN);
		zf_alloc_append_written(w.alloc, &grants[i]);
	}
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &next), 0);
	for (unsigned int i = 0; i < 4; i++)
		zf_alloc_append_end(w.alloc, &grants[i], 0);
	close_world(&w);
}

static void data_leaves_metadata_its_active_zone(void **state)
{
	struct world w;
	uint64_t address[ZF_COPIES_MAX];
	struct zf_append_grant grant;

	open_world(&w, 7, 2);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 15, 0, 0), 0);
	for (unsigned int i = 0; i < 14; i++)
		assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &grant),
				 0);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &grant),
			 -EAGAIN);
	for (unsigned int i = 0; i < 10; i++)
		assert_int_equal(zf_alloc_node(w.alloc, false, address), 0);
	close_world(&w);
}

static void a_device_with_too_few_active_zones_is_refused(void **state)
{
	struct zf_super super = {.zone_count = ZONES, .node_size = NODE_SIZE, .metadata_copies = 2};
	struct zf_alloc *alloc;
	struct world w;

	open_world(&w, 6, 1);
	assert_int_equal(zf_alloc_new(w.dev, &super, NULL, &alloc), -EINVAL);
	close_world(&w);
}

static void write_blocks(struct world *world, uint32_t zone_no, uint64_t from, uint64_t blocks)
{
	static const uint8_t bytes[CAPACITY] __attribute__((aligned(ZF_BLOCK_SIZE)));

	assert_int_equal(zf_dev_write_sync(world->dev,
					   (uint64_t)zone_no * ZONE_SIZE + from * ZF_BLOCK_SIZE,
					   bytes, blocks * ZF_BLOCK_SIZE, false),
			 0);
}

/* Makes a new allocator, as a mount does; the test then loads items for some zones. */
static void reload(struct world *world)
{
	struct zf_super super = {.zone_count = ZONES, .node_size = NODE_SIZE, .metadata_copies = 1};

	zf_alloc_free(world->alloc);
	assert_int_equal(zf_alloc_new(world->dev, &super, NULL, &world->alloc), 0);
}

static struct zf_disk_zone item_of(enum zf_role role, uint64_t blocks, uint64_t live)
{
	return (struct zf_disk_zone){
		.role = (uint8_t)role,
		.pointer = zf_le64_from(blocks * ZF_BLOCK_SIZE),
		.live = zf_le64_from(live * ZF_BLOCK_SIZE),
	};
}

static void zones_that_a_crash_left_partly_written_are_finished_when_in_the_way(void **state)
{
	struct zf_disk_zone live = item_of(ZF_ROLE_HOT, 3, 3), log = item_of(ZF_ROLE_LOG, 2, 2);
	struct zf_append_grant grant;
	struct world w;
	uint32_t found;

	open_world(&w, 8, 1);
	assert_int_equal(zf_alloc_next_finish(w.alloc, &found), -ENOENT);
	write_blocks(&w, 4, 0, 3);
	write_blocks(&w, 5, 0, 2);
	write_blocks(&w, 7, 0, 1); /* garbage */
	write_blocks(&w, 9, 0, 2);
	reload(&w);
	assert_int_equal(zf_alloc_load(w.alloc, 4, &live, sizeof(live)), 0);
	assert_int_equal(zf_alloc_load(w.alloc, 5, &log, sizeof(log)), 0);
	zf_alloc_start(w.alloc, 1, 2);
	assert_int_equal(zf_alloc_next_finish(w.alloc, &found), 0);
	assert_int_equal(found, 9);
	assert_int_equal(zf_dev_finish(w.dev, found), 0);
	zf_alloc_finish_done(w.alloc, found, 0);
	/* One active zone is free now, for data that moves. The other kind of data needs one more.
	 */
	assert_int_equal(zf_alloc_next_finish(w.alloc, &found), 0);
	assert_int_equal(found, 7);
	zf_alloc_finish_done(w.alloc, found, 0);
	/* No more is needed, because the stream of zone 4 goes on. */
	assert_int_equal(zf_alloc_next_finish(w.alloc, &found), -ENOENT);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 2, 0, 0), 0);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &grant), 0);
	assert_int_equal(grant.zone_no, 4);
	assert_int_equal(zf_alloc_reserve_cold(w.alloc, 1), 0);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_COLD, ZF_BLOCK_SIZE, &grant), 0);
	assert_int_equal(zf_alloc_next_finish(w.alloc, &found), -ENOENT);
	close_world(&w);
}

static void a_mount_goes_on_in_the_metadata_zone_that_is_partly_written(void **state)
{
	struct zf_disk_zone item = item_of(ZF_ROLE_META, 4, 4);
	uint64_t address[ZF_COPIES_MAX];
	struct world w;

	open_world(&w, 0, 1);
	write_blocks(&w, 5, 0, 4);
	reload(&w);
	assert_int_equal(zf_alloc_load(w.alloc, 5, &item, sizeof(item)), 0);
	zf_alloc_start(w.alloc, 1, 2);
	assert_int_equal(zf_alloc_node(w.alloc, false, address), 0);
	assert_int_equal(address[0], 5 * ZONE_SIZE + 4 * ZF_BLOCK_SIZE);
	close_world(&w);
}

/* Finishing takes a while, without a lock; a write of a stream to the zone would fail meanwhile. */
static void a_zone_that_is_being_finished_is_no_streams(void **state)
{
	struct zf_disk_zone item = item_of(ZF_ROLE_HOT, 3, 3);
	struct zf_append_grant grant = {0};
	uint32_t finished;
	struct world w;

	open_world(&w, 8, 1);
	for (uint32_t z = 4; z < 10; z++)
		write_blocks(&w, z, 0, 3);
	reload(&w);
	for (uint32_t z = 4; z < 10; z++)
		assert_int_equal(zf_alloc_load(w.alloc, z, &item, sizeof(item)), 0);
	zf_alloc_start(w.alloc, 1, 2);
	assert_int_equal(zf_alloc_next_finish(w.alloc, &finished), 0);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 100, 0, 0), 0);
	while (zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &grant) == 0)
		assert_int_not_equal(grant.zone_no, finished);
	assert_int_not_equal(grant.zone_no, 0);
	zf_alloc_finish_done(w.alloc, finished, 0);
	assert_int_equal(zone(&w, finished).pointer, CAPACITY / ZF_BLOCK_SIZE);
	close_world(&w);
}

static void a_read_only_zone_is_loaded_for_reading(void **state)
{
	struct zf_disk_zone item = item_of(ZF_ROLE_HOT, 3, 3);
	struct zf_geometry geometry = {
		.zone_size = ZONE_SIZE,
		.zone_capacity = CAPACITY,
		.zone_count = ZONES,
		.append_limit = 16 * 1024,
	};
	struct zf_super super = {.zone_count = ZONES, .node_size = NODE_SIZE, .metadata_copies = 1};
	struct zf_sim *sim = zf_sim_new(&geometry, 1);
	struct world w = {0};

	zf_sim_set_zone_cond(sim, 5, ZF_ZONE_READONLY);
	assert_int_equal(zf_sim_open(sim, NULL, &w.dev), 0);
	assert_int_equal(zf_alloc_new(w.dev, &super, NULL, &w.alloc), 0);
	assert_int_equal(zf_alloc_load(w.alloc, 5, &item, sizeof(item)), 0);
	zf_alloc_start(w.alloc, 1, 2);
	assert_int_equal(zf_alloc_check_extent(w.alloc, 5 * ZONE_SIZE, 3 * ZF_BLOCK_SIZE, false),
			 0);
	close_world(&w);
	zf_sim_free(sim);
}

static void pointers_that_are_lower_bounds_are_raised_to_the_items(void **state)
{
	struct zf_disk_zone item = item_of(ZF_ROLE_META, 12, 0);
	const uint64_t inside[ZF_COPIES_MAX] = {5 * ZONE_SIZE + 2 * NODE_SIZE};
	const uint64_t outside[ZF_COPIES_MAX] = {5 * ZONE_SIZE + 3 * NODE_SIZE};
	struct zf_geometry geometry = {
		.zone_size = ZONE_SIZE,
		.zone_capacity = CAPACITY,
		.zone_count = ZONES,
		.append_limit = 16 * 1024,
		.pointers_are_lower_bounds = true,
	};
	struct zf_super super = {.zone_count = ZONES, .node_size = NODE_SIZE, .metadata_copies = 1};
	struct zf_memory_options options = {0};
	struct zf_zone_info info;
	struct world w;

	assert_int_equal(zf_memory_new(&geometry, &w.memory), 0);
	assert_int_equal(zf_memory_open(w.memory, &options, NULL, &w.dev), 0);
	assert_int_equal(zf_alloc_new(w.dev, &super, NULL, &w.alloc), 0);
	/* The item counts no live byte, because the zone holds only nodes of the zone tree. */
	assert_int_equal(zf_alloc_load(w.alloc, 5, &item, sizeof(item)), 0);
	assert_int_equal(zf_alloc_load_system_node(w.alloc, outside), -EUCLEAN);
	assert_int_equal(zf_alloc_load_system_node(w.alloc, inside), 0);
	zf_alloc_start(w.alloc, 1, 2);
	assert_int_equal(zf_alloc_tell_device(w.alloc), 0);
	assert_int_equal(zf_dev_report(w.dev, 5, 1, &info), 0);
	assert_int_equal(info.wp - info.start, 12 * ZF_BLOCK_SIZE);
	close_world(&w);
}

static void a_failed_reset_is_not_offered_again(void **state)
{
	struct world w;
	uint64_t addresses[14];
	struct zf_zone_info info;
	uint32_t found;

	open_world(&w, 0, 1);
	for (unsigned int i = 0; i < 14; i++)
		addresses[i] = append_block(&w);
	for (unsigned int i = 0; i < 14; i++)
		zf_alloc_live_sub(w.alloc, addresses[i], ZF_BLOCK_SIZE);
	assert_int_equal(zf_alloc_next_unsummarise(w.alloc, &found), 0);
	zf_alloc_summary_dropped(w.alloc, found, 0);
	commit(&w);
	assert_int_equal(zf_alloc_next_reset(w.alloc, true, &found), 0);
	zf_alloc_reset_done(w.alloc, found, -EIO);
	assert_int_equal(zf_alloc_next_reset(w.alloc, true, &found), -ENOENT);
	/* The device is asked about the zone. The zone does not come back even if the report is
	 * normal. */
	assert_int_equal(zf_alloc_next_unknown(w.alloc, &found), 0);
	assert_int_equal(zf_dev_report(w.dev, found, 1, &info), 0);
	zf_alloc_pointer_known(w.alloc, found, &info);
	assert_int_equal(zf_alloc_next_unknown(w.alloc, &found), -ENOENT);
	assert_int_equal(zf_alloc_next_reset(w.alloc, true, &found), -ENOENT);
	assert_int_equal(zf_alloc_emptied_zones(w.alloc), 0);
	close_world(&w);
}

static void an_empty_zone_that_failed_is_no_longer_room(void **state)
{
	static const enum zf_zone_cond conds[] = {ZF_ZONE_READONLY, ZF_ZONE_OFFLINE};
	struct zf_space before, after;
	struct zf_zone_info info;
	struct world w;
	uint32_t found;

	open_world(&w, 0, 1);
	zf_alloc_get_space(w.alloc, &before);
	for (uint32_t i = 0; i < 2; i++) {
		zf_alloc_suspect(w.alloc, 6 + i);
		assert_int_equal(zf_alloc_next_unknown(w.alloc, &found), 0);
		assert_int_equal(found, 6 + i);
		assert_int_equal(zf_dev_report(w.dev, found, 1, &info), 0);
		info.cond = conds[i];
		zf_alloc_pointer_known(w.alloc, found, &info);
	}
	assert_int_equal(zf_alloc_next_unknown(w.alloc, &found), -ENOENT);
	zf_alloc_get_space(w.alloc, &after);
	assert_int_equal(after.total, before.total - 2 * CAPACITY);
	assert_int_equal(after.free, before.free - 2 * CAPACITY);
	assert_int_equal(after.retired, 2 * CAPACITY);
	assert_int_equal(zone(&w, 7).offline, true);
	/* None of these zones is ever opened. */
	while (append_block(&w) / ZONE_SIZE != 8) {
		zf_alloc_get_space(w.alloc, &after);
		assert_true(after.free > 0);
		assert_int_equal(zone(&w, 6).role, ZF_ROLE_NONE);
		assert_int_equal(zone(&w, 7).role, ZF_ROLE_NONE);
	}
	close_world(&w);
}

/* The zone is reported because a read failed; meanwhile the appends in flight to it end. */
static void a_report_from_before_the_last_write_does_not_tell_the_pointer(void **state)
{
	struct zf_append_grant good, bad;
	struct zf_zone_info info;
	struct world w;
	uint32_t found;

	open_world(&w, 0, 1);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 2, 0, 0), 0);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &good), 0);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &bad), 0);
	zf_alloc_suspect(w.alloc, good.zone_no);
	assert_int_equal(zf_alloc_next_unknown(w.alloc, &found), 0);
	assert_int_equal(zf_dev_report(w.dev, found, 1, &info), 0);
	zf_alloc_append_end(w.alloc, &bad, -EIO);
	zf_alloc_append_written(w.alloc, &good);
	zf_alloc_pointer_known(w.alloc, found, &info);
	/* So the append still lands in a zone that holds data. */
	zf_alloc_live_add(w.alloc, good.zone_start, ZF_BLOCK_SIZE);
	zf_alloc_append_end(w.alloc, &good, 0);
	assert_int_equal(zf_alloc_next_unknown(w.alloc, &found), 0);
	info.wp = info.start + ZF_BLOCK_SIZE;
	zf_alloc_pointer_known(w.alloc, found, &info);
	assert_int_equal(zone(&w, found).pointer, 1);
	assert_int_equal(zf_alloc_next_unknown(w.alloc, &found), -ENOENT);
	close_world(&w);
}

static uint32_t count_empty(struct world *w)
{
	uint32_t empty = 0;

	for (uint32_t z = 2; z < ZONES; z++)
		empty += zone_is_empty(&w->alloc->zones[z]);
	return empty;
}

static void a_reset_tells_the_pointer_as_well_as_a_report(void **state)
{
	struct zf_append_grant bad;
	struct zf_zone_info info;
	uint64_t address;
	struct world w;
	uint32_t found;

	open_world(&w, 0, 1);
	address = append_block(&w);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 1, 0, 0), 0);
	assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, ZF_BLOCK_SIZE, &bad), 0);
	zf_alloc_append_end(w.alloc, &bad, -EIO);
	zf_alloc_live_sub(w.alloc, address, ZF_BLOCK_SIZE);
	assert_int_equal(zf_alloc_next_unsummarise(w.alloc, &found), 0);
	zf_alloc_summary_dropped(w.alloc, found, 0);
	commit(&w);
	assert_int_equal(zf_alloc_next_reset(w.alloc, true, &found), 0);
	assert_int_equal(found, bad.zone_no);
	zf_alloc_reset_done(w.alloc, found, 0);
	assert_int_equal(w.alloc->empty_count, count_empty(&w));
	if (zf_alloc_next_unknown(w.alloc, &found) == 0) {
		assert_int_equal(zf_dev_report(w.dev, found, 1, &info), 0);
		info.wp = info.start;
		zf_alloc_pointer_known(w.alloc, found, &info);
	}
	assert_int_equal(w.alloc->empty_count, count_empty(&w));
	close_world(&w);
}

/* Its nodes can only be read from the other copy: a zone that lacks them here counts as stuck. */
static void metadata_that_lacks_nodes_is_no_victim_before_it_is_scrubbed(void **state)
{
	uint64_t first[ZF_COPIES_MAX], last[ZF_COPIES_MAX], next[ZF_COPIES_MAX];
	struct world w;
	uint32_t found, zone_no;

	open_world(&w, 0, 2);
	assert_int_equal(zf_alloc_node(w.alloc, false, first), 0);
	do {
		assert_int_equal(zf_alloc_node(w.alloc, false, next), 0);
		if (next[1] / ZONE_SIZE == first[1] / ZONE_SIZE)
			memcpy(last, next, sizeof(last));
	} while (next[1] / ZONE_SIZE == first[1] / ZONE_SIZE);
	zone_no = (uint32_t)(first[1] / ZONE_SIZE);
	zf_alloc_node_free(w.alloc, first, false);
	zf_alloc_node_free(w.alloc, last, false);
	zf_alloc_stream_failed(w.alloc, zone_no);
	commit(&w);
	assert_int_equal(zf_alloc_meta_victim_begin(w.alloc, &found), 0);
	assert_int_equal(found, first[0] / ZONE_SIZE);
	zf_alloc_meta_victim_end(w.alloc, found);
	assert_int_equal(zf_alloc_meta_victim_begin(w.alloc, &found), -ENOENT);
	assert_int_equal(zf_alloc_scrub_begin(w.alloc, &found), 0);
	assert_int_equal(found, zone_no);
	zf_alloc_scrub_end(w.alloc, found, false);
	close_world(&w);
}

/* Moving a zone's nodes writes four more nodes and the tail, which all become garbage, too: a zone
 * with no more garbage than that is no gain. */
static void a_move_costs_four_nodes_and_the_tail(void **state)
{
	struct world w;

	open_world(&w, 0, 1);
	zf_alloc_set_tail_max(w.alloc, 2);
	assert_int_equal(zf_alloc_count_nodes(w.alloc).garbage_min, 4 + 2);
	close_world(&w);
}

static void one_caller_at_a_time_drops_a_summary(void **state)
{
	struct world w;
	uint64_t addresses[14];
	uint32_t found;

	open_world(&w, 0, 1);
	for (unsigned int i = 0; i < 14; i++)
		addresses[i] = append_block(&w);
	for (unsigned int i = 0; i < 14; i++)
		zf_alloc_live_sub(w.alloc, addresses[i], ZF_BLOCK_SIZE);
	assert_int_equal(zf_alloc_next_unsummarise(w.alloc, &found), 0);
	assert_int_equal(zf_alloc_next_unsummarise(w.alloc, &found), -ENOENT);
	zf_alloc_summary_dropped(w.alloc, found, -ENOSPC);
	assert_int_equal(zf_alloc_next_unsummarise(w.alloc, &found), 0);
	close_world(&w);
}

static void data_does_not_take_what_a_join_was_promised(void **state)
{
	struct world w;
	uint64_t address[ZF_COPIES_MAX], promised = (ZONES - 2) * 3 - 20;

	open_world(&w, 0, 1);
	assert_int_equal(zf_alloc_promise_nodes(w.alloc, ZF_RESERVE_NORMAL, promised, 0), 0);
	assert_int_equal(zf_alloc_promise_nodes(w.alloc, ZF_RESERVE_NORMAL, 20, 0), -EBUSY);
	while (zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 1, 0, 0) == 0)
		;
	for (uint64_t i = 0; i < promised; i++)
		assert_int_equal(zf_alloc_node(w.alloc, false, address), 0);
	assert_true(zf_alloc_can_freeze(w.alloc));
	zf_alloc_promise_over(w.alloc, promised);
	commit(&w);
	close_world(&w);
}

static void what_is_emptied_counts_as_free_for_users(void **state)
{
	struct world w;
	struct zf_space full, emptied;
	uint64_t addresses[28];

	open_world(&w, 0, 1);
	for (unsigned int i = 0; i < 28; i++)
		addresses[i] = append_block(&w);
	zf_alloc_get_space(w.alloc, &full);
	for (unsigned int i = 0; i < 28; i++)
		zf_alloc_live_sub(w.alloc, addresses[i], ZF_BLOCK_SIZE);
	zf_alloc_get_space(w.alloc, &emptied);
	assert_int_equal(emptied.available - full.available, 2 * CAPACITY);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_follow_each_other_and_the_end_of_a_zone_is_filled),
		cmocka_unit_test(the_next_transaction_begins_where_the_tail_ends),
		cmocka_unit_test(two_copies_take_a_slot_each_in_zones_of_their_own),
		cmocka_unit_test(
			a_zone_is_reset_only_when_the_commit_after_the_emptying_one_is_durable),
		cmocka_unit_test(when_space_is_short_the_emptying_commit_is_enough),
		cmocka_unit_test(a_reader_keeps_its_zone_from_being_reset),
		cmocka_unit_test(a_zone_with_an_append_under_way_is_not_reset),
		cmocka_unit_test(an_append_is_cut_at_the_append_limit_and_at_the_capacity),
		cmocka_unit_test(data_of_a_rotational_device_is_one_stream),
		cmocka_unit_test(data_never_takes_the_zones_that_metadata_log_and_reclaim_need),
		cmocka_unit_test(what_was_reserved_can_be_written_though_metadata_grows_meanwhile),
		cmocka_unit_test(what_is_kept_is_left_alone_and_can_be_lent_when_nothing_is_left),
		cmocka_unit_test(what_was_lent_and_not_used_is_kept_again),
		cmocka_unit_test(what_was_lent_and_used_but_is_still_kept_is_short),
		cmocka_unit_test(normal_reservations_leave_the_slack_alone),
		cmocka_unit_test(kept_space_is_in_the_snapshot_of_a_freeze),
		cmocka_unit_test(kept_space_that_is_not_there_leaves_room_to_free),
		cmocka_unit_test(no_more_zones_are_active_than_the_device_allows),
		cmocka_unit_test(a_failed_append_moves_the_stream_to_another_zone),
		cmocka_unit_test(a_zone_with_an_unknown_pointer_keeps_its_summary),
		cmocka_unit_test(a_snapshot_tells_live_bytes_and_pointer_as_of_the_freeze),
		cmocka_unit_test(a_damaged_zone_item_is_refused),
		cmocka_unit_test(
			a_zone_is_not_reset_while_the_durable_state_names_a_node_freed_since),
		cmocka_unit_test(nodes_at_impossible_places_are_not_freed),
		cmocka_unit_test(a_zone_is_active_until_its_last_append_has_ended),
		cmocka_unit_test(a_zone_whose_extents_have_to_wait_is_not_active),
		cmocka_unit_test(data_leaves_metadata_its_active_zone),
		cmocka_unit_test(a_device_with_too_few_active_zones_is_refused),
		cmocka_unit_test(
			zones_that_a_crash_left_partly_written_are_finished_when_in_the_way),
		cmocka_unit_test(a_mount_goes_on_in_the_metadata_zone_that_is_partly_written),
		cmocka_unit_test(a_zone_that_is_being_finished_is_no_streams),
		cmocka_unit_test(a_read_only_zone_is_loaded_for_reading),
		cmocka_unit_test(pointers_that_are_lower_bounds_are_raised_to_the_items),
		cmocka_unit_test(a_failed_reset_is_not_offered_again),
		cmocka_unit_test(an_empty_zone_that_failed_is_no_longer_room),
		cmocka_unit_test(a_report_from_before_the_last_write_does_not_tell_the_pointer),
		cmocka_unit_test(a_reset_tells_the_pointer_as_well_as_a_report),
		cmocka_unit_test(metadata_that_lacks_nodes_is_no_victim_before_it_is_scrubbed),
		cmocka_unit_test(a_move_costs_four_nodes_and_the_tail),
		cmocka_unit_test(one_caller_at_a_time_drops_a_summary),
		cmocka_unit_test(data_does_not_take_what_a_join_was_promised),
		cmocka_unit_test(what_is_emptied_counts_as_free_for_users),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
