/* SPDX-License-Identifier: MIT */
/*
 * The allocator's part in reclaim: which zone is the next victim, the room to move data to, and how
 * much space could come back. The tests move "data" themselves, by counting it live elsewhere.
 *
 *      test_reclaim [SEED [ROUNDS]]
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "alloc/alloc.h"
#include "alloc/log_zone.h"
#include "alloc/reclaim.h"
#include "alloc/reserve.h"
#include "alloc/stream.h"
#include "alloc/vain.h"
#include "alloc/zone.h"
#include "base/bits.h"
#include "io/memory.h"
#include "sim/rng.h"

#define BLOCK	     ZF_BLOCK_SIZE
#define NODE_BLOCKS  4u
#define NODES_MAX    4096u
#define NODES_KEPT   16u
#define APPEND_LIMIT 4u /* blocks */

static uint64_t seed = 1;
static unsigned int rounds = 20;

struct shape {
	uint32_t zones, blocks, capacity; /* of a zone */
	uint32_t max_active;
	uint8_t copies;
	uint32_t conventional;
};

static const struct shape plain = {.zones = 32, .blocks = 64, .capacity = 64, .copies = 1};

struct world {
	struct shape shape;
	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_alloc *alloc;
	struct zf_rng rng;
	uint64_t nodes[NODES_MAX][ZF_COPIES_MAX];
	unsigned int node_count;
};

static void open_world(struct world *w, const struct shape *shape)
{
	struct zf_geometry geometry = {
		.zone_size = (uint64_t)shape->blocks * BLOCK,
		.zone_capacity = (uint64_t)shape->capacity * BLOCK,
		.zone_count = shape->zones,
		.conventional = shape->conventional,
		.max_active = shape->max_active,
		.max_open = shape->max_active,
		.append_limit = APPEND_LIMIT * BLOCK,
	};
	struct zf_super super = {
		.zone_count = shape->zones,
		.node_size = NODE_BLOCKS * BLOCK,
		.metadata_copies = shape->copies,
	};

	*w = (struct world){.shape = *shape};
	assert_int_equal(zf_memory_new(&geometry, &w->memory), 0);
	assert_int_equal(zf_memory_open(w->memory, NULL, NULL, &w->dev), 0);
	assert_int_equal(zf_alloc_new(w->dev, &super, NULL, &w->alloc), 0);
	zf_alloc_start(w->alloc, 0, 1);
	zf_alloc_set_tail_max(w->alloc, 2);
	zf_alloc_set_nodes_kept(w->alloc, NODES_KEPT);
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

static struct zf_space space(struct world *w)
{
	struct zf_space s;

	zf_alloc_get_space(w->alloc, &s);
	return s;
}

static struct zf_reclaim_room room(struct world *w)
{
	struct zf_reclaim_room r;

	zf_alloc_reclaim_room(w->alloc, &r);
	return r;
}

/* ---- commits, and what comes back ---- */

static void commit(struct world *w)
{
	struct zf_alloc_frozen *frozen;
	struct zf_log_zones zones;

	zf_alloc_log_choose(w->alloc, &zones);
	assert_int_equal(zf_alloc_freeze(w->alloc, 1, &frozen), 0);
	zf_alloc_committed(w->alloc, frozen);
	zf_alloc_log_named(w->alloc, &zones);
	zf_alloc_frozen_free(frozen);
}

/* Moves all nodes out of a zone, as the transaction's housekeeping does. */
static void move_nodes(struct world *w)
{
	uint32_t z;
	int r = zf_alloc_meta_victim(w->alloc, true, &z);

	if (r == ZF_META_CLOSED) {
		commit(w);
		r = zf_alloc_meta_victim(w->alloc, true, &z);
	}
	/* There is only this thread, so the zone is not reset meanwhile. */
	if (r == 0)
		zf_alloc_read_end(w->alloc, z * (uint64_t)w->shape.blocks * BLOCK);
	for (unsigned int i = 0; r == 0 && i < w->node_count; i++) {
		uint64_t old[ZF_COPIES_MAX], zone_size = (uint64_t)w->shape.blocks * BLOCK;

		memcpy(old, w->nodes[i], sizeof(old));
		if (old[0] / zone_size != z && old[1] / zone_size != z)
			continue;
		if (zf_alloc_promise_nodes(w->alloc, ZF_RESERVE_NORMAL, 1, 0) < 0)
			return;
		zf_alloc_promise_over(w->alloc, 1);
		assert_int_equal(zf_alloc_node(w->alloc, false, w->nodes[i]), 0);
		zf_alloc_node_free(w->alloc, old, false);
	}
	commit(w);
}

/* Gets back all zones that need no moving of data. */
static void collect(struct world *w)
{
	uint32_t z;

	move_nodes(w);
	while (zf_alloc_next_unsummarise(w->alloc, &z) == 0)
		zf_alloc_summary_dropped(w->alloc, z, 0);
	commit(w);
	while (zf_alloc_next_reset(w->alloc, true, &z) == 0)
		zf_alloc_reset_done(w->alloc, z, 0);
}

static void finish_what_is_in_the_way(struct world *w)
{
	uint32_t z;

	while (zf_alloc_next_finish(w->alloc, &z) == 0)
		zf_alloc_finish_done(w->alloc, z, 0);
}

/* ---- data ---- */

static int begin_append(struct world *w, enum zf_role role, uint64_t blocks,
			struct zf_append_grant *ret_grant)
{
	int r = zf_alloc_append_begin(w->alloc, role, blocks * BLOCK, ret_grant);

	if (r != -EAGAIN)
		return r;
	finish_what_is_in_the_way(w);
	return zf_alloc_append_begin(w->alloc, role, blocks * BLOCK, ret_grant);
}

/* Writes reserved blocks in the stream of the role, and counts them live. */
static uint32_t append(struct world *w, enum zf_role role, uint64_t blocks)
{
	struct zf_append_grant grant = {0};

	while (blocks > 0) {
		uint64_t len, at;

		assert_int_equal(begin_append(w, role, blocks, &grant), 0);
		len = grant.len / BLOCK;
		at = zone(w, grant.zone_no).pointer - len;
		zf_alloc_live_add(w->alloc, grant.zone_start + at * BLOCK, grant.len);
		zf_alloc_append_end(w->alloc, &grant, 0);
		blocks -= len;
	}
	return grant.zone_no;
}

static uint32_t write_data(struct world *w, uint64_t blocks)
{
	assert_int_equal(zf_alloc_reserve(w->alloc, ZF_RESERVE_NORMAL, blocks, 0, 0), 0);
	return append(w, ZF_ROLE_HOT, blocks);
}

/* A full zone. */
static uint32_t write_zone(struct world *w)
{
	return write_data(w, w->shape.capacity);
}

static void drop(struct world *w, uint32_t zone_no, uint64_t blocks)
{
	zf_alloc_live_sub(w->alloc, (uint64_t)zone_no * w->shape.blocks * BLOCK, blocks * BLOCK);
}

/* ---- moving ---- */

static int move_out(struct world *w, uint32_t zone_no)
{
	while (zone(w, zone_no).live > 0) {
		uint64_t blocks = zf_min_u64(zone(w, zone_no).live, APPEND_LIMIT);

		if (zf_alloc_reserve_cold(w->alloc, blocks) < 0)
			return -ENOSPC;
		append(w, ZF_ROLE_COLD, blocks);
		drop(w, zone_no, blocks);
	}
	return 0;
}

static int reclaim_one(struct world *w)
{
	uint32_t z;
	int r = zf_alloc_reclaim_begin(w->alloc, ZF_RECLAIM_URGENT, &z);

	if (r < 0)
		return r;
	r = move_out(w, z);
	zf_alloc_reclaim_end(w->alloc, z, false);
	collect(w);
	return r;
}

static uint32_t next_victim(struct world *w, enum zf_reclaim_need need)
{
	uint32_t z = 0;

	if (zf_alloc_reclaim_begin(w->alloc, need, &z) < 0)
		return 0;
	assert_true(zone(w, z).reclaimed);
	assert_int_equal(zone(w, z).readers, 1);
	zf_alloc_reclaim_end(w->alloc, z, false);
	assert_int_equal(zone(w, z).readers, 0);
	commit(w); /* passed over until then */
	return z;
}

/* ---- victims ---- */

static void a_thread_that_waits_gets_the_zone_with_the_most_garbage_however_little(void **state)
{
	struct world w;
	uint32_t a, b;

	open_world(&w, &plain);
	a = write_zone(&w);
	b = write_zone(&w);
	assert_int_equal(next_victim(&w, ZF_RECLAIM_URGENT), 0);
	drop(&w, b, 1);
	assert_int_equal(next_victim(&w, ZF_RECLAIM_URGENT), b);
	assert_int_equal(next_victim(&w, ZF_RECLAIM_IN_PEACE), 0);
	drop(&w, a, 2);
	assert_int_equal(next_victim(&w, ZF_RECLAIM_URGENT), a);
	drop(&w, b, 20);
	assert_int_equal(next_victim(&w, ZF_RECLAIM_URGENT), b);
	assert_int_equal(next_victim(&w, ZF_RECLAIM_IN_PEACE), b);
	close_world(&w);
}

static void in_peace_old_garbage_is_worth_more_than_young(void **state)
{
	struct world w;
	uint32_t old, young;

	open_world(&w, &plain);
	old = write_zone(&w);
	for (unsigned int i = 0; i < 30; i++)
		collect(&w);
	young = write_zone(&w);
	drop(&w, old, 16);
	drop(&w, young, 40);
	assert_int_equal(next_victim(&w, ZF_RECLAIM_URGENT), young);
	assert_int_equal(next_victim(&w, ZF_RECLAIM_IN_PEACE), old);
	/* When both zones have been unchanged for long, the amount of garbage decides again. */
	for (unsigned int i = 0; i < 1000; i++)
		collect(&w);
	assert_int_equal(next_victim(&w, ZF_RECLAIM_IN_PEACE), young);
	close_world(&w);
}

static void a_zone_is_no_victim_while_something_is_about_it(void **state)
{
	struct zf_append_grant grant;
	struct world w;
	uint32_t a, z;

	open_world(&w, &plain);
	a = write_zone(&w);
	drop(&w, a, 30);
	assert_int_equal(zf_alloc_reclaim_begin(w.alloc, ZF_RECLAIM_URGENT, &z), 0);
	assert_int_equal(z, a);
	/* The zone is already being reclaimed. */
	assert_int_equal(zf_alloc_reclaim_begin(w.alloc, ZF_RECLAIM_URGENT, &z), -ENOENT);
	assert_int_equal(zf_alloc_reclaim_begin_zone(w.alloc, a), -EBUSY);
	zf_alloc_reclaim_end(w.alloc, a, false);
	/* Some data was left in the zone. */
	assert_int_equal(zf_alloc_reclaim_begin(w.alloc, ZF_RECLAIM_URGENT, &z), -ENOENT);
	commit(&w);
	assert_int_equal(zf_alloc_reclaim_begin_zone(w.alloc, a), 0);
	assert_int_equal(room(&w).reclaimable, 30 * BLOCK);
	/* The zone cannot be read, and counts as stuck until its reset. */
	zf_alloc_reclaim_end(w.alloc, a, true);
	commit(&w);
	assert_int_equal(zf_alloc_reclaim_begin(w.alloc, ZF_RECLAIM_URGENT, &z), -ENOENT);
	assert_int_equal(room(&w).reclaimable, 0);
	assert_int_equal(space(&w).reclaimable, 0);
	drop(&w, a, 34);
	collect(&w);
	assert_false(zone(&w, a).stuck);
	/* An append to the zone is in flight, and then fails. */
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 64, 0, 0), 0);
	a = append(&w, ZF_ROLE_HOT, 60);
	assert_int_equal(begin_append(&w, ZF_ROLE_HOT, 4, &grant), 0);
	drop(&w, a, 30);
	assert_int_equal(zf_alloc_reclaim_begin(w.alloc, ZF_RECLAIM_URGENT, &z), -ENOENT);
	zf_alloc_append_end(w.alloc, &grant, -EIO);
	assert_int_equal(zf_alloc_reclaim_begin(w.alloc, ZF_RECLAIM_URGENT, &z), -ENOENT);
	close_world(&w);
}

static void the_logs_zones_are_no_victims_until_it_has_left_them(void **state)
{
	struct zf_append_grant grant, piece;
	struct zf_log_zones log;
	uint64_t resets;
	struct world w;
	bool switched;
	uint32_t z;

	open_world(&w, &plain);
	commit(&w);
	zf_alloc_log_get(w.alloc, &log);
	for (unsigned int i = 0; i < plain.capacity / APPEND_LIMIT; i++) {
		assert_int_equal(zf_alloc_log_begin(w.alloc, APPEND_LIMIT * BLOCK, 0, &grant,
						    &resets, &switched),
				 0);
		assert_int_equal(grant.zone_no, log.zone[0]);
		zf_alloc_live_add(w.alloc, grant.zone_start + i * grant.len, BLOCK);
		piece = grant;
		zf_alloc_append_end(w.alloc, &piece, 0);
	}
	assert_int_equal(zf_alloc_reclaim_begin(w.alloc, ZF_RECLAIM_URGENT, &z), -ENOENT);
	commit(&w);
	assert_int_equal(zf_alloc_reclaim_begin(w.alloc, ZF_RECLAIM_URGENT, &z), 0);
	assert_int_equal(z, log.zone[0]);
	close_world(&w);
}

/* The only garbage left is what was written last and removed again. */
static void a_stream_is_closed_when_nothing_else_gives_anything(void **state)
{
	struct world w;
	uint32_t full, open, z;

	open_world(&w, &plain);
	full = write_zone(&w);
	open = write_data(&w, 20);
	drop(&w, open, 5);
	assert_int_equal(zf_alloc_reclaim_begin(w.alloc, ZF_RECLAIM_IN_PEACE, &z), -ENOENT);
	drop(&w, full, 5);
	assert_int_equal(next_victim(&w, ZF_RECLAIM_URGENT), full);
	drop(&w, open, 1);
	drop(&w, full, 59);
	assert_int_equal(next_victim(&w, ZF_RECLAIM_URGENT), open);
	/* The stream fills the zone up all the same if reclaim did not succeed, but not during
	 * reclaim. */
	assert_int_equal(zf_alloc_reclaim_begin_zone(w.alloc, open), 0);
	assert_int_not_equal(write_data(&w, 1), open);
	zf_alloc_reclaim_end(w.alloc, open, false);
	close_world(&w);
}

static void a_stream_of_garbage_only_comes_back(void **state)
{
	struct world w;
	uint32_t open, z;

	open_world(&w, &plain);
	open = write_data(&w, 20);
	drop(&w, open, 20);
	collect(&w);
	assert_int_equal(zone(&w, open).role, ZF_ROLE_HOT);
	assert_int_equal(zf_alloc_reclaim_begin(w.alloc, ZF_RECLAIM_URGENT, &z), -ENOENT);
	collect(&w);
	assert_int_equal(zone(&w, open).role, ZF_ROLE_NONE);
	close_world(&w);
}

/* The zone cannot be reclaimed before its last pending append ends; until then no effort helps. */
static void the_end_of_an_append_that_leaves_garbage_is_worth_a_new_effort(void **state)
{
	struct zf_append_grant grant = {0};
	struct zf_vain_trial trial;
	struct zf_vain vain = {0};
	struct world w;

	(void)state;
	open_world(&w, &plain);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 2 * APPEND_LIMIT, 0, 0), 0);
	for (unsigned int lives = 2; lives-- > 0;) {
		assert_int_equal(begin_append(&w, ZF_ROLE_HOT, APPEND_LIMIT, &grant), 0);
		zf_vain_begin(&trial, w.alloc);
		zf_vain_end(&vain, w.alloc, &trial);
		assert_true(zf_vain_is_known(&vain, w.alloc));
		if (lives)
			zf_alloc_live_add(w.alloc, grant.zone_start, grant.len);
		zf_alloc_append_end(w.alloc, &grant, 0);
		assert_int_equal(zf_vain_is_known(&vain, w.alloc), lives);
	}
	close_world(&w);
}

/* ---- the reserve ---- */

static bool put_node(struct world *w)
{
	uint64_t address[ZF_COPIES_MAX];

	/* Other callers leave NODES_KEPT nodes to operations that free space. */
	if (w->node_count == NODES_MAX ||
	    zf_alloc_promise_nodes(w->alloc, ZF_RESERVE_NORMAL, 1, NODES_KEPT) < 0)
		return false;
	assert_int_equal(zf_alloc_node(w->alloc, false, address), 0);
	zf_alloc_promise_over(w->alloc, 1);
	memcpy(w->nodes[w->node_count++], address, sizeof(address));
	return true;
}

static const struct shape shapes[] = {
	{.zones = 16, .blocks = 64, .capacity = 64, .copies = 1, .max_active = 6},
	{.zones = 16, .blocks = 64, .capacity = 44, .copies = 1, .max_active = 6},
	{.zones = 24, .blocks = 64, .capacity = 64, .copies = 2, .max_active = 7},
	{.zones = 40, .blocks = 64, .capacity = 50, .copies = 2},
	{.zones = 48, .blocks = 32, .capacity = 32, .copies = 1, .max_active = 8},
	{.zones = 32, .blocks = 64, .capacity = 64, .copies = 1, .conventional = 5},
};

/* Data and then nodes take all that they can get, and yet zone after zone can be moved. */
static void reclaim_always_has_room_to_move_to(void **state)
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(shapes); i++) {
		uint32_t victims[3];
		struct world w;

		open_world(&w, &shapes[i]);
		commit(&w);
		for (unsigned int v = 0; v < ZF_ARRAY_SIZE(victims); v++)
			victims[v] = write_zone(&w);
		while (zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 1, 0, 0) == 0)
			;
		while (put_node(&w))
			;
		for (unsigned int v = 0; v < ZF_ARRAY_SIZE(victims); v++) {
			drop(&w, victims[v], 1);
			assert_int_equal(reclaim_one(&w), 0);
			assert_int_equal(zone(&w, victims[v]).live, 0);
			/* A zone that comes back first fills up reclaim's reserve. */
			while (put_node(&w))
				;
		}
		close_world(&w);
	}
}

static void what_metadata_was_promised_is_there_when_reclaim_has_its_zone(void **state)
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(shapes); i++) {
		uint64_t address[ZF_COPIES_MAX], promised = 0;
		struct world w;
		uint32_t victim;

		open_world(&w, &shapes[i]);
		victim = write_zone(&w);
		drop(&w, victim, 1);
		while (zf_alloc_promise_nodes(w.alloc, ZF_RESERVE_NORMAL, 1, 0) == 0)
			promised++;
		assert_int_equal(zf_alloc_reclaim_begin_zone(w.alloc, victim), 0);
		assert_int_equal(move_out(&w, victim), 0);
		/* Reclaim gets no second zone. */
		assert_int_equal(zf_alloc_reserve_cold(w.alloc, shapes[i].capacity), -ENOSPC);
		for (uint64_t n = 0; n < promised; n++)
			assert_int_equal(zf_alloc_node(w.alloc, false, address), 0);
		assert_true(zf_alloc_can_freeze(w.alloc));
		zf_alloc_promise_over(w.alloc, promised);
		zf_alloc_reclaim_end(w.alloc, victim, false);
		close_world(&w);
	}
}

/* The three zones of reclaim's reserve count in blocks. */
static void moving_changes_what_is_available_by_nothing_but_the_garbage(void **state)
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(shapes); i++) {
		struct world w;
		uint32_t a, b;
		uint64_t before;

		if (shapes[i].zones < 30)
			continue; /* nodes are what is short there */
		open_world(&w, &shapes[i]);
		commit(&w);
		a = write_zone(&w);
		b = write_zone(&w);
		before = space(&w).available;
		drop(&w, a, 7);
		assert_int_equal(space(&w).available, before + 7 * BLOCK);
		drop(&w, b, 9);
		assert_int_equal(space(&w).available, before + 16 * BLOCK);
		assert_int_equal(reclaim_one(&w), 0);
		assert_int_equal(space(&w).available, before + 16 * BLOCK);
		write_data(&w, 16);
		assert_int_equal(space(&w).available, before);
		close_world(&w);
	}
}

/* ---- active zones ---- */

static void cold_data_has_an_active_zone_of_its_own(void **state)
{
	for (uint32_t max = 6; max < 9; max++) {
		struct shape shape = plain;
		struct zf_append_grant grant;
		struct world w;
		int r = 0;

		shape.max_active = max;
		open_world(&w, &shape);
		commit(&w);
		/* None of the appends completes: every zone is still active when its room is used
		 * up. */
		assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 20 * 64, 0, 0), 0);
		for (unsigned int i = 0; i < 20 * 64 / APPEND_LIMIT && r == 0; i++)
			r = zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, APPEND_LIMIT * BLOCK,
						  &grant);
		assert_int_equal(r, -EAGAIN);
		assert_int_equal(zf_alloc_reserve_cold(w.alloc, 4), 0);
		assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_COLD, 4 * BLOCK, &grant),
				 0);
		close_world(&w);
	}
}

static void fewer_active_zones_than_that_are_refused(void **state)
{
	for (uint8_t copies = 1; copies <= 2; copies++) {
		struct zf_super super = {.zone_count = plain.zones,
					 .node_size = NODE_BLOCKS * BLOCK,
					 .metadata_copies = copies};
		struct zf_geometry geometry = {
			.zone_size = 64 * BLOCK,
			.zone_capacity = 64 * BLOCK,
			.zone_count = plain.zones,
			.max_active = 4u + copies,
			.append_limit = BLOCK,
		};
		struct zf_memory *memory;
		struct zf_alloc *alloc;
		struct zf_dev *dev;

		assert_int_equal(zf_memory_new(&geometry, &memory), 0);
		assert_int_equal(zf_memory_open(memory, NULL, NULL, &dev), 0);
		assert_int_equal(zf_alloc_new(dev, &super, NULL, &alloc), -EINVAL);
		zf_dev_close(dev);
		zf_memory_free(memory);
	}
}

/* ---- at random ---- */

static void expect_sums(struct world *w)
{
	struct zf_space s = space(w);
	struct zf_reclaim_room counted = room(w), anew;

	assert_int_equal(s.total, s.live + s.in_place + s.unusable + s.reclaimable + s.free);
	assert_int_equal(s.free + s.reclaimable, s.reserved + s.available);
	/* Nothing is held, so this call only recounts. */
	zf_alloc_let_go(w->alloc);
	anew = room(w);
	assert_int_equal(counted.zones, anew.zones);
	assert_int_equal(counted.coming, anew.coming);
	assert_int_equal(counted.reclaimable, anew.reclaimable);
}

static void expect_limits(struct world *w)
{
	uint32_t active = 1u + w->shape.copies;

	if (!w->shape.max_active)
		return;
	for (uint32_t z = 2; z < w->shape.zones; z++) {
		struct zf_zone q = zone(w, z);

		active += q.role != ZF_ROLE_META && z >= w->shape.conventional &&
			  ((q.pointer > 0 && q.pointer < q.capacity) || q.flight > 0);
	}
	assert_true(active <= w->shape.max_active);
}

static uint32_t draw_live_zone(struct world *w)
{
	for (unsigned int i = 0; i < 100; i++) {
		uint32_t z = 2 + (uint32_t)zf_rng_below(&w->rng, w->shape.zones - 2);
		struct zf_zone q = zone(w, z);

		if (q.role != ZF_ROLE_META && q.live > 0)
			return z;
	}
	return 0;
}

static void write_log(struct world *w)
{
	struct zf_append_grant grant;
	uint64_t resets, blocks = 1 + zf_rng_below(&w->rng, APPEND_LIMIT);
	bool switched;

	if (zf_alloc_log_begin(w->alloc, blocks * BLOCK, 0, &grant, &resets, &switched) < 0)
		return;
	zf_alloc_live_add(w->alloc,
			  grant.zone_start + (zone(w, grant.zone_no).pointer - blocks) * BLOCK,
			  BLOCK);
	zf_alloc_append_end(w->alloc, &grant, 0);
}

static void free_node(struct world *w)
{
	unsigned int i;

	if (w->node_count == 0)
		return;
	i = (unsigned int)zf_rng_below(&w->rng, w->node_count);
	zf_alloc_node_free(w->alloc, w->nodes[i], false);
	memcpy(w->nodes[i], w->nodes[--w->node_count], sizeof(w->nodes[0]));
}

static void do_something(struct world *w, bool metadata)
{
	uint64_t dice = zf_rng_below(&w->rng, 100), blocks = 1 + zf_rng_below(&w->rng, 90);
	uint32_t z;

	if (dice < 45) {
		if (zf_alloc_reserve(w->alloc, ZF_RESERVE_NORMAL, blocks, 0, NODES_KEPT) == 0)
			append(w, ZF_ROLE_HOT, blocks);
	} else if (dice < 75) {
		z = draw_live_zone(w);
		if (z)
			drop(w, z, 1 + zf_rng_below(&w->rng, zone(w, z).live));
	} else if (dice < 80) {
		write_log(w);
	} else if (dice < 85 && metadata) {
		if (w->node_count < 12)
			put_node(w);
	} else if (dice < 90) {
		free_node(w);
	} else if (dice < 94) {
		if (zf_alloc_can_freeze(w->alloc))
			collect(w);
	} else if (zf_alloc_can_freeze(w->alloc)) {
		reclaim_one(w);
	}
}

/* Reserves as zf_txn_reserve() does: before it refuses, all zones that need no moving come back. */
static bool reserve(struct world *w, uint64_t blocks, uint64_t items)
{
	for (unsigned int i = 0;; i++) {
		if (zf_alloc_reserve(w->alloc, ZF_RESERVE_NORMAL, blocks, items, NODES_KEPT) == 0)
			return true;
		if (i == 3)
			return false;
		collect(w);
	}
}

/*
 * A reservation was refused. Moving all data that can be moved shows whether the refusal is final;
 * this function does that and compares the forecast. The forecast only estimates what moving costs
 * metadata, and may be wrong by a zone either way. With these small zones the garbage that stays in
 * the open zone of each copy is another zone (here moving costs no parents and no tail).
 */
static void expect_prophecy(struct world *w, uint64_t blocks, uint64_t items)
{
	uint64_t foreseen, slack = (uint64_t)w->shape.copies * w->shape.capacity;
	bool could, can, wrong;

	if (reserve(w, blocks, items)) {
		zf_alloc_unreserve(w->alloc, blocks, items);
		return;
	}
	could = zf_alloc_could_reserve(w->alloc, ZF_RESERVE_NORMAL, blocks, items);
	foreseen = space(w).available / BLOCK;
	can = false;
	for (unsigned int i = 0; i < 4 * w->shape.zones && !can; i++) {
		int r = reclaim_one(w);

		collect(w);
		can = reserve(w, blocks, items);
		if (r == -ENOENT &&
		    !zf_alloc_could_reserve(w->alloc, ZF_RESERVE_NORMAL, blocks, items))
			break;
	}
	if (can)
		zf_alloc_unreserve(w->alloc, blocks, items);
	if (could)
		wrong = !can && blocks + slack < foreseen;
	else
		wrong = can && blocks > foreseen + 2 * slack;
	/* Now there is nothing left to move. */
	wrong |= !can && zf_alloc_could_reserve(w->alloc, ZF_RESERVE_NORMAL, blocks, items);
	if (wrong)
		fail_msg("seed %" PRIu64 ": %" PRIu64 " blocks and %" PRIu64
			 " items were said to be %s, with %" PRIu64 " available, and could%s be",
			 seed, blocks, items, could ? "possible" : "impossible", foreseen,
			 can ? "" : " not");
}

static void at_random(const struct shape *shape, uint64_t number)
{
	struct world *w = malloc(sizeof(*w));

	assert_non_null(w);
	open_world(w, shape);
	zf_rng_seed(&w->rng, number);
	commit(w);
	for (unsigned int i = 0; i < 600; i++) {
		do_something(w, true);
		expect_sums(w);
		expect_limits(w);
		if (i % 10 == 0 && zf_alloc_can_freeze(w->alloc))
			expect_prophecy(w, 1 + zf_rng_below(&w->rng, 200),
					zf_rng_below(&w->rng, 40));
	}
	close_world(w);
	free(w);
}

static void the_request_that_reclaim_would_help_gets_the_space_and_no_other(void **state)
{
	uint64_t first = seed;

	for (unsigned int i = 0; i < rounds; i++, seed++)
		for (size_t s = 0; s < ZF_ARRAY_SIZE(shapes); s++)
			at_random(&shapes[s], seed);
	seed = first;
}

/* Freeing gives back exactly what it frees, and a reservation takes exactly what it reserves. */
static void what_is_available_follows_what_is_done(void **state)
{
	struct world *w = malloc(sizeof(*w));

	assert_non_null(w);
	open_world(w, &plain);
	zf_rng_seed(&w->rng, seed);
	commit(w);
	for (unsigned int i = 0; i < 2000; i++) {
		uint64_t before = space(w).available, blocks = 1 + zf_rng_below(&w->rng, 50);
		uint32_t z = draw_live_zone(w);

		if (zf_rng_chance(&w->rng, 50) || !z) {
			if (zf_alloc_reserve(w->alloc, ZF_RESERVE_NORMAL, blocks, 0, 0) < 0) {
				if (reclaim_one(w) < 0)
					drop(w, z, zone(w, z).live);
				continue;
			}
			assert_int_equal(space(w).available, before - blocks * BLOCK);
			append(w, ZF_ROLE_HOT, blocks);
			assert_int_equal(space(w).available, before - blocks * BLOCK);
		} else {
			blocks = 1 + zf_rng_below(&w->rng, zone(w, z).live);
			drop(w, z, blocks);
			assert_int_equal(space(w).available, before + blocks * BLOCK);
		}
	}
	close_world(w);
	free(w);
}

/* ---- how much is ready ---- */

static void the_target_is_counted_in_zones_beyond_what_others_need(void **state)
{
	struct world w;
	struct zf_reclaim_room r;
	uint32_t a;

	open_world(&w, &plain);
	r = room(&w);
	/* One zone is metadata's, and two are the log's. */
	assert_int_equal(r.empty, plain.zones - 2 - 3);
	assert_int_equal(r.zones, plain.zones - 2);
	assert_true(r.low >= 3 && r.target > r.low);
	zf_alloc_set_reclaim_target(w.alloc, 9);
	assert_int_equal(room(&w).target, r.low + 9);
	a = write_zone(&w);
	assert_int_equal(room(&w).empty, r.empty - 1);
	assert_int_equal(zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 65, 0, 0), 0);
	assert_int_equal(room(&w).empty, r.empty - 3);
	zf_alloc_unreserve(w.alloc, 65, 0);
	drop(&w, a, 64);
	assert_int_equal(room(&w).coming, 1);
	/* The zone that reclaim has opened counts as part of its reserve while the zone has room.
	 */
	assert_int_equal(zf_alloc_reserve_cold(w.alloc, 64), 0);
	append(&w, ZF_ROLE_COLD, 63);
	assert_int_equal(room(&w).empty, r.empty - 1);
	append(&w, ZF_ROLE_COLD, 1);
	assert_int_equal(room(&w).empty, r.empty - 2);
	close_world(&w);
}

/* Commits so many nodes, which are garbage at once. */
static void commit_nodes(struct world *w, unsigned int nodes)
{
	uint64_t address[ZF_COPIES_MAX];

	assert_int_equal(zf_alloc_promise_nodes(w->alloc, ZF_RESERVE_NORMAL, nodes, 0), 0);
	zf_alloc_promise_over(w->alloc, nodes);
	for (unsigned int i = 0; i < nodes; i++) {
		assert_int_equal(zf_alloc_node(w->alloc, false, address), 0);
		zf_alloc_node_free(w->alloc, address, false);
	}
	collect(w);
}

static uint32_t above_low(struct world *w)
{
	struct zf_reclaim_room r = room(w);

	return r.target - r.low;
}

static void the_target_is_what_is_worth_a_commit(void **state)
{
	static const struct shape many = {.zones = 256, .blocks = 64, .capacity = 64, .copies = 1};
	uint32_t victim, half, small;
	uint64_t square;
	struct world w;

	open_world(&w, &many);
	zf_alloc_set_reclaim_target(w.alloc, 0);
	victim = write_zone(&w);
	for (unsigned int i = 0; i < 20; i++)
		commit_nodes(&w, 1);
	/* Only victims that were taken count, not zones that could be taken. */
	drop(&w, victim, 32);
	assert_int_equal(above_low(&w), 0);
	assert_int_equal(next_victim(&w, ZF_RECLAIM_URGENT), victim);
	small = above_low(&w);
	assert_true(small > 0);
	/* Larger commits raise the target: the target grows with about the square root of their
	 * size. */
	for (unsigned int i = 0; i < 20; i++)
		commit_nodes(&w, 32);
	half = above_low(&w);
	assert_in_range(half, 2 * small, 5 * small + 5);
	/* The square root of: blocks of a commit zones of data / blocks of a zone / 4, the last
	 * because half of the victims is garbage. */
	square = room(&w).commit_bytes / BLOCK * room(&w).zones / many.blocks / 4;
	assert_true(half * half <= square && square < (half + 1) * (half + 1));
	/* Data that is moved out of a victim does not count as garbage of the victim. */
	assert_int_equal(zf_alloc_reclaim_begin_zone(w.alloc, victim), 0);
	drop(&w, victim, 20);
	assert_int_equal(above_low(&w), half);
	zf_alloc_reclaim_end(w.alloc, victim, false);
	commit(&w);
	/* The more garbage the victims have, the higher is the target; one victim does not change
	 * it fully. */
	drop(&w, victim, 11);
	assert_int_equal(next_victim(&w, ZF_RECLAIM_URGENT), victim);
	for (unsigned int i = 0; i < 20; i++)
		commit_nodes(&w, 32);
	assert_in_range(above_low(&w), half + 1, 2 * half);
	for (unsigned int i = 0; i < 20; i++)
		assert_int_equal(next_victim(&w, ZF_RECLAIM_URGENT), victim);
	for (unsigned int i = 0; i < 20; i++)
		commit_nodes(&w, 128);
	assert_int_equal(above_low(&w), many.zones / 8);
	/* The mount's target is a lower bound. */
	zf_alloc_set_reclaim_target(w.alloc, 100);
	assert_int_equal(above_low(&w), 100);
	close_world(&w);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_thread_that_waits_gets_the_zone_with_the_most_garbage_however_little),
		cmocka_unit_test(in_peace_old_garbage_is_worth_more_than_young),
		cmocka_unit_test(a_zone_is_no_victim_while_something_is_about_it),
		cmocka_unit_test(the_logs_zones_are_no_victims_until_it_has_left_them),
		cmocka_unit_test(a_stream_is_closed_when_nothing_else_gives_anything),
		cmocka_unit_test(a_stream_of_garbage_only_comes_back),
		cmocka_unit_test(the_end_of_an_append_that_leaves_garbage_is_worth_a_new_effort),
		cmocka_unit_test(reclaim_always_has_room_to_move_to),
		cmocka_unit_test(what_metadata_was_promised_is_there_when_reclaim_has_its_zone),
		cmocka_unit_test(moving_changes_what_is_available_by_nothing_but_the_garbage),
		cmocka_unit_test(cold_data_has_an_active_zone_of_its_own),
		cmocka_unit_test(fewer_active_zones_than_that_are_refused),
		cmocka_unit_test(what_is_available_follows_what_is_done),
		cmocka_unit_test(the_target_is_counted_in_zones_beyond_what_others_need),
		cmocka_unit_test(the_target_is_what_is_worth_a_commit),
		cmocka_unit_test(the_request_that_reclaim_would_help_gets_the_space_and_no_other),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		rounds = (unsigned int)strtoul(argv[2], NULL, 0);
	print_message("seed %" PRIu64 "\n", seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
