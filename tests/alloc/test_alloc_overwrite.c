/* SPDX-License-Identifier: MIT */
/* Zones that are written in place: how and when space in them is given out and taken back. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "alloc/alloc.h"
#include "alloc/log_zone.h"
#include "alloc/overwrite.h"
#include "alloc/reclaim.h"
#include "alloc/reserve.h"
#include "alloc/stream.h"
#include "alloc/zone.h"
#include "base/bits.h"
#include "io/memory.h"

#define ZONES	     24u
#define CONVENTIONAL 4u
#define ZONE_SIZE    (64u * 1024)
#define CAPACITY     (56u * 1024)
#define BLOCK	     ZF_BLOCK_SIZE

struct world {
	struct zf_memory *memory;
	struct zf_dev *dev;
	struct zf_alloc *alloc;
};

static void open_world(struct world *world)
{
	const struct zf_geometry geometry = {
		.zone_size = ZONE_SIZE,
		.zone_capacity = CAPACITY,
		.zone_count = ZONES,
		.conventional = CONVENTIONAL,
		.append_limit = 16 * 1024,
	};
	const struct zf_super super = {
		.zone_count = ZONES, .node_size = 16384, .metadata_copies = 1};
	const struct zf_memory_options options = {0};

	assert_int_equal(zf_memory_new(&geometry, &world->memory), 0);
	assert_int_equal(zf_memory_open(world->memory, &options, NULL, &world->dev), 0);
	assert_int_equal(zf_alloc_new(world->dev, &super, NULL, &world->alloc), 0);
	zf_alloc_start(world->alloc, 0, 1);
	zf_alloc_set_tail_max(world->alloc, 2);
}

static void close_world(struct world *world)
{
	zf_alloc_free(world->alloc);
	zf_dev_close(world->dev);
	zf_memory_free(world->memory);
}

static void commit(struct world *world)
{
	struct zf_alloc_frozen *frozen;

	assert_int_equal(zf_alloc_freeze(world->alloc, 1, &frozen), 0);
	zf_alloc_committed(world->alloc, frozen);
	zf_alloc_frozen_free(frozen);
}

static int open_one(struct world *world)
{
	int r = zf_alloc_reserve(world->alloc, ZF_RESERVE_NORMAL, CAPACITY / BLOCK, 0, 0);

	if (r < 0)
		return r;
	r = zf_alloc_overwrite_open(world->alloc);
	zf_alloc_unreserve(world->alloc, CAPACITY / BLOCK, 0);
	return r;
}

static int take(struct world *world, uint64_t want, bool urgent, uint64_t *ret_address)
{
	uint64_t len;
	int r = zf_alloc_overwrite_take(world->alloc, want, urgent, ret_address, &len);

	if (r == 0)
		assert_int_equal(len, want);
	return r;
}

/* Takes space, which extents of the running transaction then name. */
static uint64_t take_live(struct world *world, uint64_t len)
{
	uint64_t address;

	assert_int_equal(take(world, len, true, &address), 0);
	zf_alloc_live_add(world->alloc, address, len);
	zf_alloc_overwrite_named(world->alloc, address, len);
	return address;
}

static uint8_t role_of(struct world *world, uint64_t address)
{
	struct zf_zone zone;

	zf_alloc_get_zone(world->alloc, (uint32_t)(address / ZONE_SIZE), &zone);
	return zone.role;
}

static void a_taken_block_is_given_to_no_other(void **state)
{
	struct world w;
	uint64_t a, b, c;

	(void)state;
	open_world(&w);
	assert_false(zf_alloc_has_overwrite(w.alloc));
	assert_int_equal(take(&w, BLOCK, false, &a), -ENOSPC);
	assert_int_equal(open_one(&w), 0);
	assert_true(zf_alloc_has_overwrite(w.alloc));
	a = take_live(&w, 4 * BLOCK);
	b = take_live(&w, 10 * BLOCK);
	assert_int_equal(a, 2 * ZONE_SIZE);
	assert_int_equal(b, a + 4 * BLOCK);
	assert_int_equal(role_of(&w, a), ZF_ROLE_OVERWRITE);
	assert_int_equal(take(&w, BLOCK, true, &c), -ENOSPC);
	assert_int_equal(zf_alloc_check_extent(w.alloc, a, 14 * BLOCK, true), 0);
	assert_int_equal(zf_alloc_check_extent(w.alloc, a, 14 * BLOCK, false), -EUCLEAN);
	assert_int_equal(zf_alloc_check_extent(w.alloc, a, 15 * BLOCK, true), -EUCLEAN);
	close_world(&w);
}

static void what_is_given_back_unused_is_free_at_once(void **state)
{
	struct world w;
	uint64_t a, b;

	(void)state;
	open_world(&w);
	assert_int_equal(open_one(&w), 0);
	assert_int_equal(take(&w, 14 * BLOCK, true, &a), 0);
	zf_alloc_overwrite_give(w.alloc, a, 14 * BLOCK);
	assert_int_equal(take(&w, 14 * BLOCK, true, &b), 0);
	assert_int_equal(a, b);
	close_world(&w);
}

static void what_is_freed_waits_for_two_commits_or_for_one_if_need_be(void **state)
{
	struct world w;
	uint64_t a, b;

	(void)state;
	open_world(&w);
	assert_int_equal(open_one(&w), 0);
	a = take_live(&w, 14 * BLOCK);
	commit(&w);
	zf_alloc_live_sub(w.alloc, a + 2 * BLOCK, 3 * BLOCK);
	assert_int_equal(take(&w, 3 * BLOCK, true, &b), -EAGAIN);
	commit(&w);
	assert_int_equal(take(&w, 3 * BLOCK, false, &b), -EAGAIN);
	assert_int_equal(take(&w, 3 * BLOCK, true, &b), 0);
	assert_int_equal(b, a + 2 * BLOCK);
	zf_alloc_overwrite_give(w.alloc, b, 3 * BLOCK);
	zf_alloc_live_sub(w.alloc, a + 8 * BLOCK, 3 * BLOCK);
	commit(&w);
	commit(&w);
	assert_int_equal(take(&w, 3 * BLOCK, false, &b), 0);
	assert_int_equal(take(&w, 3 * BLOCK, false, &b), 0);
	close_world(&w);
}

static void holds_keep_what_was_freed_after_they_were_taken(void **state)
{
	struct world w;
	unsigned int old, young;
	uint64_t a, b;

	(void)state;
	open_world(&w);
	assert_int_equal(open_one(&w), 0);
	a = take_live(&w, 14 * BLOCK);
	commit(&w);
	old = zf_alloc_overwrite_hold(w.alloc);
	zf_alloc_live_sub(w.alloc, a, 14 * BLOCK);
	for (unsigned int i = 0; i < 5; i++)
		commit(&w);
	assert_int_equal(take(&w, BLOCK, true, &b), -EAGAIN);
	young = zf_alloc_overwrite_hold(w.alloc);
	zf_alloc_overwrite_let_go(w.alloc, old);
	/* The young hold began after the bytes were gone: young holds cannot delay their reuse for
	 * ever. */
	for (unsigned int i = 0; i < 3; i++) {
		old = young;
		young = zf_alloc_overwrite_hold(w.alloc);
		zf_alloc_overwrite_let_go(w.alloc, old);
		if (take(&w, BLOCK, true, &b) == 0)
			break;
	}
	assert_int_equal(a, b);
	zf_alloc_overwrite_let_go(w.alloc, young);
	close_world(&w);
}

/* Resets all zones that may be reset. Returns whether `wanted` was among them. */
static bool is_reset(struct world *world, uint32_t wanted)
{
	bool found = false;
	uint32_t zone_no;

	while (zf_alloc_next_reset(world->alloc, true, &zone_no) == 0) {
		found |= zone_no == wanted;
		zf_alloc_reset_done(world->alloc, zone_no, 0);
	}
	return found;
}

static void an_emptied_zone_is_anybodys_again(void **state)
{
	struct world w;
	uint64_t a, b;

	(void)state;
	open_world(&w);
	assert_int_equal(open_one(&w), 0);
	a = take_live(&w, 14 * BLOCK);
	commit(&w);
	zf_alloc_live_sub(w.alloc, a, 14 * BLOCK);
	commit(&w);
	commit(&w);
	/* The zone is not reset while a caller has taken space in it. */
	assert_int_equal(take(&w, BLOCK, true, &b), 0);
	assert_false(is_reset(&w, 2));
	zf_alloc_overwrite_give(w.alloc, b, BLOCK);
	assert_true(is_reset(&w, 2));
	assert_int_equal(take(&w, BLOCK, true, &b), -ENOSPC);
	assert_int_equal(role_of(&w, a), ZF_ROLE_NONE);
	assert_false(zf_alloc_has_overwrite(w.alloc));
	close_world(&w);
}

/* The end of the space that was given out of the zone. */
static uint64_t zone_end(struct world *world, uint32_t zone_no)
{
	struct zf_zone zone;

	zf_alloc_get_zone(world->alloc, zone_no, &zone);
	return zone_no * (uint64_t)ZONE_SIZE + (uint64_t)zone.pointer * BLOCK;
}

static void zones_that_others_were_promised_stay_theirs(void **state)
{
	struct world w;
	struct zf_space space;
	unsigned int n = 0, reserved = 0;

	(void)state;
	open_world(&w);
	while (zf_alloc_reserve(w.alloc, ZF_RESERVE_NORMAL, 1, 0, 0) == 0)
		reserved++;
	zf_alloc_unreserve(w.alloc, CAPACITY / BLOCK, 0);
	while (open_one(&w) == 0)
		n++;
	assert_int_equal(n, 1);
	zf_alloc_get_space(w.alloc, &space);
	assert_int_equal(space.in_place, CAPACITY);
	/* All that was reserved is there. */
	for (reserved -= CAPACITY / BLOCK; reserved > 0;) {
		struct zf_append_grant grant;

		assert_int_equal(zf_alloc_append_begin(w.alloc, ZF_ROLE_HOT, BLOCK, &grant), 0);
		zf_alloc_live_add(w.alloc, zone_end(&w, grant.zone_no) - BLOCK, BLOCK);
		zf_alloc_append_end(w.alloc, &grant, 0);
		reserved--;
	}
	close_world(&w);
}

static void a_replay_claims_what_records_name(void **state)
{
	const uint64_t a = 3 * ZONE_SIZE + 2 * BLOCK;
	struct world w;
	uint64_t b;

	(void)state;
	open_world(&w);
	assert_int_equal(zf_alloc_overwrite_claim(w.alloc, 4 * ZONE_SIZE, BLOCK), -EUCLEAN);
	assert_int_equal(zf_alloc_overwrite_claim(w.alloc, 0, BLOCK), -EUCLEAN);
	assert_int_equal(zf_alloc_overwrite_claim(w.alloc, a, CAPACITY), -EUCLEAN);
	assert_int_equal(zf_alloc_overwrite_claim(w.alloc, a, 6 * BLOCK), 0);
	assert_int_equal(role_of(&w, a), ZF_ROLE_OVERWRITE);
	zf_alloc_live_add(w.alloc, a, 6 * BLOCK);
	zf_alloc_live_sub(w.alloc, a, 6 * BLOCK);
	/* An extent names the middle again. */
	zf_alloc_live_add(w.alloc, a + 2 * BLOCK, 2 * BLOCK);
	zf_alloc_let_go(w.alloc);
	commit(&w);
	commit(&w);
	assert_int_equal(take(&w, 4 * BLOCK, true, &b), 0);
	assert_int_equal(b, 3 * ZONE_SIZE);
	assert_int_equal(take(&w, 8 * BLOCK, true, &b), 0);
	close_world(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_taken_block_is_given_to_no_other),
		cmocka_unit_test(what_is_given_back_unused_is_free_at_once),
		cmocka_unit_test(what_is_freed_waits_for_two_commits_or_for_one_if_need_be),
		cmocka_unit_test(holds_keep_what_was_freed_after_they_were_taken),
		cmocka_unit_test(an_emptied_zone_is_anybodys_again),
		cmocka_unit_test(zones_that_others_were_promised_stay_theirs),
		cmocka_unit_test(a_replay_claims_what_records_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
