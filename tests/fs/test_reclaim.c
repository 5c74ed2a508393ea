/* SPDX-License-Identifier: MIT */
/* Zones whose live data is moved out, case by case. Every test ends with a run of the checker. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/reclaim.h"
#include "alloc/zone.h"
#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/data/data.h"
#include "fs/data_rig.h"
#include "fs/space/reclaim.h"
#include "fs/space/reclaim_internal.h"

#define BLOCK 4096u
#define MIB   (1u << 20)

static uint8_t buf[8 * MIB], wanted[8 * MIB];

/* ---- zones ---- */

static struct zf_zone get_zone(struct data_rig *rig, uint32_t zone_no)
{
	struct zf_zone zone;

	zf_alloc_get_zone(rig->fs->alloc, zone_no, &zone);
	return zone;
}

static uint64_t address_of(struct data_rig *rig, uint64_t ino, unsigned int extent)
{
	struct data_rig_extents extents;

	data_rig_extents(rig, ino, &extents);
	assert_true(extents.count > (int)extent);
	return extents.at[extent].address;
}

/* The zone of the file's first byte. */
static uint32_t zone_of(struct data_rig *rig, uint64_t ino)
{
	return zf_zone_of(zf_dev_geometry(rig->dev), address_of(rig, ino, 0));
}

/* Fills up the zone that data is written to, so that no stream owns it. */
static void close_stream(struct data_rig *rig)
{
	uint64_t ino = data_rig_make(rig, "filler");
	uint64_t len = zf_dev_geometry(rig->dev)->zone_capacity;

	data_rig_write_pattern(rig, ino, 99, 0, len);
	data_rig_sync(rig);
	data_rig_unlink(rig, "filler", ino);
	data_rig_sync(rig);
}

static void sync_and_tidy(struct data_rig *rig)
{
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(zf_txn_commit(rig->fs->txn, true), 0);
		while (zf_txn_tidy(rig->fs->txn, false) == ZF_TIDY_DID)
			;
	}
}

static uint64_t make_file(struct data_rig *rig, const char *name, uint64_t seed, size_t len)
{
	uint64_t ino = data_rig_make(rig, name);

	data_rig_write_pattern(rig, ino, seed, 0, len);
	data_rig_sync(rig);
	return ino;
}

/* The file's zone is emptied, and nothing of it is left there. */
static void reclaim(struct data_rig *rig, uint32_t zone_no)
{
	assert_true(get_zone(rig, zone_no).live > 0);
	assert_int_equal(zf_reclaim_zone(rig->fs, zone_no), 1);
	assert_int_equal(get_zone(rig, zone_no).live, 0);
}

/* `len` bytes at `offset` are what the pattern has at `from`. */
static void expect(struct data_rig *rig, uint64_t ino, uint64_t offset, uint64_t seed,
		   uint64_t from, size_t len)
{
	assert_int_equal(zf_fs_read(rig->fs, &rig->ctx, ino, offset, buf, len), len);
	data_rig_fill(seed, from, wanted, len);
	assert_memory_equal(buf, wanted, len);
}

/* ---- what reclaim waits for ---- */

void __real_zf_rwlock_rdlock(struct zf_rwlock *rwlock);
void __wrap_zf_rwlock_rdlock(struct zf_rwlock *rwlock);

static struct zf_rwlock *watched;
static unsigned int locked; /* so many times, for reading */

void __wrap_zf_rwlock_rdlock(struct zf_rwlock *rwlock)
{
	locked += rwlock == watched;
	__real_zf_rwlock_rdlock(rwlock);
}

/* Makes blocks of which no two are neighbours, so that each has a summary entry of its own. */
static uint64_t make_scattered(struct data_rig *rig, unsigned int blocks)
{
	uint64_t ino = data_rig_make(rig, "file");

	for (unsigned int i = 0; i < blocks; i++) {
		data_rig_write_pattern(rig, ino, 1, (uint64_t)i * 2 * BLOCK, BLOCK);
		assert_int_equal(zf_data_flush_all(rig->fs, true), 0);
	}
	data_rig_sync(rig);
	return ino;
}

/* A writer to a file of many pieces does not wait until reclaim has looked at all pieces. */
static void a_file_of_many_pieces_is_unlocked_now_and_then(void **state)
{
	const struct data_rig_options options = {.seed = 35, .zone_size = 4 << 20};
	struct zf_inode *inode;
	struct zf_found found;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = make_scattered(&rig, 500);
	assert_int_equal(zf_inode_get(rig.fs, ino, &inode), 0);
	watched = &inode->lock;
	locked = 0;
	assert_int_equal(zf_reclaim_find(rig.fs, zone_of(&rig, ino), 0, UINT64_MAX, &found), 0);
	assert_int_equal(found.files.count, 500);
	assert_in_range(locked, 5, 50);
	watched = NULL;
	zf_found_free(&found);
	zf_inode_put(inode);
	data_rig_deinit(&rig);
}

/* ---- what moves ---- */

/* Its summary is more than one transaction drops at once. */
static void a_zone_of_many_summary_leaves_comes_back(void **state)
{
	const struct data_rig_options options = {
		.seed = 30, .zone_count = 24, .zone_size = 4 << 20, .node_size = 4096};
	struct data_rig rig;
	uint32_t zone_no;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = make_scattered(&rig, 1200);
	zone_no = zone_of(&rig, ino);
	data_rig_unlink(&rig, "file", ino);
	sync_and_tidy(&rig);
	assert_int_equal(get_zone(&rig, zone_no).pointer, 0);
	data_rig_deinit(&rig);
}

static void live_data_moves_and_the_zone_comes_back(void **state)
{
	struct data_rig_options options = {.seed = 1};
	struct data_rig rig;
	uint64_t a, b, live;
	uint32_t zone_no;

	(void)state;
	data_rig_init(&rig, &options);
	a = make_file(&rig, "a", 1, MIB / 4);
	b = make_file(&rig, "b", 2, MIB / 4);
	close_stream(&rig);
	zone_no = zone_of(&rig, a);
	assert_int_equal(zone_no, zone_of(&rig, b));
	data_rig_unlink(&rig, "b", b);
	data_rig_sync(&rig);
	live = data_rig_live_blocks(&rig);
	reclaim(&rig, zone_no);
	assert_int_equal(data_rig_live_blocks(&rig), live);
	assert_int_equal(get_zone(&rig, zone_of(&rig, a)).role, ZF_ROLE_COLD);
	expect(&rig, a, 0, 1, 0, MIB / 4);
	assert_true(get_zone(&rig, zone_no).pointer > 0);
	sync_and_tidy(&rig);
	assert_int_equal(get_zone(&rig, zone_no).pointer, 0);
	expect(&rig, a, 0, 1, 0, MIB / 4);
	data_rig_remount(&rig);
	expect(&rig, a, 0, 1, 0, MIB / 4);
	data_rig_deinit(&rig);
}

/* Log records that carry data: after a move the data is stored as an ordinary block. */
static void what_records_carry_moves_as_what_it_is(void **state)
{
	const uint64_t seed = DATA_RIG_PACKS + 1;
	struct data_rig_options options = {.seed = 12};
	uint8_t block[BLOCK], stored[BLOCK];
	struct data_rig rig;
	uint32_t zone_no;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "a");
	data_rig_sync(&rig);
	for (unsigned int i = 0; i < 20; i++) {
		data_rig_fill(seed, i * BLOCK, block, BLOCK);
		assert_int_equal(
			zf_fs_write(rig.fs, &rig.ctx, ino, i * BLOCK, block, BLOCK, ZF_WRITE_DSYNC),
			BLOCK);
	}
	zone_no = zone_of(&rig, ino);
	assert_int_equal(get_zone(&rig, zone_no).role, ZF_ROLE_LOG);
	assert_int_equal(get_zone(&rig, zone_no).live, 20);
	/* Writes until the zone is full, and no longer belongs to the log. */
	for (unsigned int i = 0; get_zone(&rig, zone_no).role == ZF_ROLE_LOG; i++) {
		data_rig_write_pattern(&rig, ino, i, 20 * BLOCK, 16 * BLOCK);
		assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, true), 0);
		if (i % 8 == 7)
			data_rig_sync(&rig);
	}
	data_rig_sync(&rig);
	assert_int_equal(zone_of(&rig, ino), zone_no);
	reclaim(&rig, zone_no);
	expect(&rig, ino, 0, seed, 0, 20 * BLOCK);
	data_rig_fill(seed, 0, block, BLOCK);
	assert_int_equal(zf_dev_read_buf(rig.dev, address_of(&rig, ino, 0), stored, BLOCK), 0);
	assert_memory_equal(stored, block, BLOCK);
	sync_and_tidy(&rig);
	data_rig_remount(&rig);
	expect(&rig, ino, 0, seed, 0, 20 * BLOCK);
	data_rig_deinit(&rig);
}

static void a_victim_is_not_reset_before_the_move_is_durable(void **state)
{
	struct data_rig_options options = {.seed = 2};
	struct data_rig rig;
	uint32_t zone_no;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = make_file(&rig, "a", 1, MIB / 4);
	close_stream(&rig);
	zone_no = zone_of(&rig, ino);
	reclaim(&rig, zone_no);
	while (zf_txn_tidy(rig.fs->txn, true) == ZF_TIDY_DID)
		;
	assert_true(get_zone(&rig, zone_no).pointer > 0);
	data_rig_crash(&rig);
	expect(&rig, ino, 0, 1, 0, MIB / 4);
	data_rig_deinit(&rig);
}

/* The newest transaction that any of the extents has. */
static uint64_t newest(const struct data_rig_extents *extents)
{
	uint64_t generation = 0;

	for (int i = 0; i < extents->count; i++)
		generation = zf_max_u64(generation, extents->at[i].generation);
	return generation;
}

static void what_was_scattered_lies_together(void **state)
{
	struct data_rig_options options = {.seed = 3};
	struct data_rig_extents extents;
	struct data_rig rig;
	uint64_t ino, generation;
	uint32_t zone_no;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "a");
	data_rig_truncate(&rig, ino, 64 * BLOCK);
	for (uint64_t i = 0; i < 64; i++) {
		data_rig_write_pattern(&rig, ino, 1, (i * 37 % 64) * BLOCK, BLOCK);
		data_rig_sync(&rig);
	}
	close_stream(&rig);
	data_rig_extents(&rig, ino, &extents);
	assert_int_equal(extents.count, 64);
	generation = newest(&extents);
	zone_no = zone_of(&rig, ino);
	reclaim(&rig, zone_no);
	data_rig_extents(&rig, ino, &extents);
	assert_true(extents.count <= 2);
	assert_int_equal(newest(&extents), generation);
	expect(&rig, ino, 0, 1, 0, 64 * BLOCK);
	data_rig_deinit(&rig);
}

static void all_else_about_the_file_stays(void **state)
{
	struct data_rig_options options = {.seed = 4};
	struct data_rig_extents were, are;
	struct zf_attr before, after;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = make_file(&rig, "a", 1, MIB / 4 + 100);
	close_stream(&rig);
	data_rig_extents(&rig, ino, &were);
	assert_int_equal(zf_fs_getattr(rig.fs, &rig.ctx, ino, &before), 0);
	rig.now_ns += 1000000;
	reclaim(&rig, zone_of(&rig, ino));
	assert_int_equal(zf_fs_getattr(rig.fs, &rig.ctx, ino, &after), 0);
	data_rig_extents(&rig, ino, &are);
	assert_int_not_equal(are.at[0].address, were.at[0].address);
	for (int i = 0; i < are.count; i++)
		assert_int_equal(are.at[i].generation, newest(&were));
	assert_int_equal(after.blocks, before.blocks);
	assert_int_equal(after.size, before.size);
	assert_int_equal(after.generation, before.generation);
	assert_memory_equal(&after.mtime, &before.mtime, sizeof(before.mtime.seconds) + 4);
	assert_memory_equal(&after.ctime, &before.ctime, sizeof(before.ctime.seconds) + 4);
	data_rig_deinit(&rig);
}

static void what_is_dirty_stays_newer(void **state)
{
	struct data_rig_options options = {.seed = 5};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = make_file(&rig, "a", 1, MIB / 4);
	close_stream(&rig);
	data_rig_write_pattern(&rig, ino, 2, 8 * BLOCK, BLOCK);
	reclaim(&rig, zone_of(&rig, ino));
	expect(&rig, ino, 8 * BLOCK, 2, 8 * BLOCK, BLOCK);
	data_rig_sync(&rig);
	expect(&rig, ino, 8 * BLOCK, 2, 8 * BLOCK, BLOCK);
	expect(&rig, ino, 0, 1, 0, 8 * BLOCK);
	expect(&rig, ino, 9 * BLOCK, 1, 9 * BLOCK, 20 * BLOCK);
	data_rig_deinit(&rig);
}

static void space_that_is_kept_stays_kept(void **state)
{
	struct data_rig_options options = {.seed = 6};
	struct data_rig rig;
	uint64_t ino, kept;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "a");
	data_rig_allocate(&rig, ino, 0x80, 0, 64 * BLOCK);
	data_rig_write_pattern(&rig, ino, 1, 0, 32 * BLOCK);
	data_rig_sync(&rig);
	close_stream(&rig);
	kept = data_rig_kept(&rig);
	assert_true(kept > 0);
	reclaim(&rig, zone_of(&rig, ino));
	assert_int_equal(data_rig_kept(&rig), kept);
	expect(&rig, ino, 0, 1, 0, 32 * BLOCK);
	data_rig_expect_zeroes(&rig, ino, 32 * BLOCK, 32 * BLOCK);
	data_rig_deinit(&rig);
}

/* ---- what several name ---- */

static void copy(struct data_rig *rig, uint64_t in, uint64_t from, uint64_t out, uint64_t to,
		 uint64_t len)
{
	assert_int_equal(zf_fs_copy_range(rig->fs, &rig->ctx, in, from, out, to, len), len);
}

static void shared_bytes_move_once(void **state)
{
	struct data_rig_options options = {.seed = 7};
	struct data_rig rig;
	uint64_t a, b, c, live;
	uint32_t zone_no;

	(void)state;
	data_rig_init(&rig, &options);
	a = make_file(&rig, "a", 1, 64 * BLOCK);
	close_stream(&rig);
	b = data_rig_make(&rig, "b");
	c = data_rig_make(&rig, "c");
	copy(&rig, a, 0, b, 0, 64 * BLOCK);
	copy(&rig, a, 16 * BLOCK, c, 3 * BLOCK, 32 * BLOCK);
	copy(&rig, a, 20 * BLOCK, a, 64 * BLOCK, 8 * BLOCK);
	/* Now some data belongs only to the copies, and some to no file. */
	data_rig_write_pattern(&rig, a, 3, 18 * BLOCK, 4 * BLOCK);
	data_rig_truncate(&rig, b, 40 * BLOCK);
	data_rig_sync(&rig);
	zone_no = zf_zone_of(zf_dev_geometry(rig.dev), address_of(&rig, b, 0));
	live = data_rig_live_blocks(&rig);
	reclaim(&rig, zone_no);
	assert_int_equal(data_rig_live_blocks(&rig), live);
	for (unsigned int round = 0; round < 2; round++) {
		expect(&rig, a, 0, 1, 0, 18 * BLOCK);
		expect(&rig, a, 18 * BLOCK, 3, 18 * BLOCK, 4 * BLOCK);
		expect(&rig, a, 22 * BLOCK, 1, 22 * BLOCK, 42 * BLOCK);
		expect(&rig, a, 64 * BLOCK, 1, 20 * BLOCK, 8 * BLOCK);
		expect(&rig, b, 0, 1, 0, 40 * BLOCK);
		expect(&rig, c, 3 * BLOCK, 1, 16 * BLOCK, 32 * BLOCK);
		data_rig_remount(&rig);
	}
	/* The blocks are dead when the last file that shares them is deleted. */
	data_rig_unlink(&rig, "a", a);
	data_rig_unlink(&rig, "b", b);
	data_rig_unlink(&rig, "c", c);
	data_rig_sync(&rig);
	assert_int_equal(data_rig_live_blocks(&rig), 0);
	data_rig_deinit(&rig);
}

static void shared_bytes_without_other_names_move_too(void **state)
{
	struct data_rig_options options = {.seed = 8};
	struct data_rig rig;
	uint64_t a, b;

	(void)state;
	data_rig_init(&rig, &options);
	a = make_file(&rig, "a", 1, 64 * BLOCK);
	close_stream(&rig);
	b = data_rig_make(&rig, "b");
	copy(&rig, a, 0, b, 0, 64 * BLOCK);
	data_rig_unlink(&rig, "a", a);
	data_rig_sync(&rig);
	reclaim(&rig, zone_of(&rig, b));
	expect(&rig, b, 0, 1, 0, 64 * BLOCK);
	assert_int_equal(data_rig_live_blocks(&rig), 64);
	data_rig_deinit(&rig);
}

#define NAMES 100u

/*
 * There is more than one batch of shared names. Names of all lengths lie across the border of two
 * batches, which is in the middle of an append.
 */
static void shared_names_lie_across_batches(void **state)
{
	struct data_rig_options options = {
		.seed = 10, .zone_size = 16 * MIB, .append_limit = 1000 * BLOCK, .memory = true};
	uint64_t a, b, blocks = 2800, from[NAMES], count[NAMES];
	struct data_rig rig;
	struct zf_rng rng;

	(void)state;
	data_rig_init(&rig, &options);
	zf_rng_seed(&rng, 1);
	a = make_file(&rig, "a", 1, blocks * BLOCK);
	close_stream(&rig);
	b = data_rig_make(&rig, "b");
	for (unsigned int i = 0; i < NAMES; i++) {
		from[i] = zf_rng_below(&rng, blocks);
		count[i] = 1 + zf_rng_below(&rng, zf_min_u64(blocks - from[i], 600));
		copy(&rig, a, from[i] * BLOCK, b, i * 600 * BLOCK, count[i] * BLOCK);
	}
	data_rig_sync(&rig);
	reclaim(&rig, zone_of(&rig, a));
	assert_int_equal(data_rig_live_blocks(&rig), blocks);
	data_rig_expect(&rig, a, 1, 0, blocks * BLOCK);
	for (unsigned int i = 0; i < NAMES; i++)
		expect(&rig, b, i * 600 * BLOCK, 1, from[i] * BLOCK, count[i] * BLOCK);
	data_rig_deinit(&rig);
}

/* ---- and durability ---- */

static void fsync_may_name_the_new_place(void **state)
{
	struct data_rig_options options = {.seed = 9};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	for (unsigned int i = 0; i < 32; i++) {
		options.seed = 100 + i;
		data_rig_init(&rig, &options);
		ino = data_rig_make(&rig, "a");
		data_rig_write_pattern(&rig, ino, 1, 0, 64 * BLOCK);
		assert_int_equal(zf_data_flush_all(rig.fs, true), 0);
		close_stream(&rig);
		/* In one transaction the data changes, reclaim moves it, and a log record describes
		 * it. */
		data_rig_write_pattern(&rig, ino, 2, 0, 16 * BLOCK);
		assert_int_equal(zf_data_flush_all(rig.fs, true), 0);
		for (uint32_t z = 2; z < 64; z++)
			(void)zf_reclaim_zone(rig.fs, z);
		assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
		data_rig_crash(&rig);
		expect(&rig, ino, 0, 2, 0, 16 * BLOCK);
		expect(&rig, ino, 16 * BLOCK, 1, 16 * BLOCK, 48 * BLOCK);
		data_rig_deinit(&rig);
	}
}

/* ---- running full ---- */

static unsigned int zones_of_data(struct data_rig *rig)
{
	unsigned int n = 0;

	for (uint32_t z = 2; z < zf_alloc_zone_count(rig->fs->alloc); z++) {
		struct zf_zone zone = get_zone(rig, z);

		n += (zone.role == ZF_ROLE_HOT || zone.role == ZF_ROLE_COLD) && zone.pointer > 0;
	}
	return n;
}

static void room_is_made_by_moving(void **state)
{
	struct data_rig_options options = {.seed = 10, .zone_count = 32};
	struct zf_reclaim_room before, after;
	struct data_rig rig;
	unsigned int zones;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = make_file(&rig, "a", 1, 8 * MIB);
	/* Every zone keeps half of its live data. */
	for (uint64_t i = 0; i < 8 * MIB / BLOCK; i += 2)
		data_rig_write_pattern(&rig, ino, 2, i * BLOCK, BLOCK);
	data_rig_sync(&rig);
	zf_alloc_reclaim_room(rig.fs->alloc, &before);
	assert_true(before.reclaimable > 3 * MIB);
	zones = zones_of_data(&rig);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(zf_reclaim_make_room(rig.fs), 1);
	zf_alloc_reclaim_room(rig.fs->alloc, &after);
	assert_true(after.empty > before.empty);
	/* Metadata may have gone on to another zone meanwhile. */
	assert_true(zones_of_data(&rig) <= zones - 2);
	for (uint64_t i = 0; i < 8 * MIB / BLOCK; i++)
		expect(&rig, ino, i * BLOCK, 2 - i % 2, i * BLOCK, BLOCK);
	while (zf_reclaim_make_room(rig.fs) == 1)
		;
	zf_alloc_reclaim_room(rig.fs->alloc, &after);
	assert_true(after.reclaimable < MIB);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_of_many_pieces_is_unlocked_now_and_then),
		cmocka_unit_test(a_zone_of_many_summary_leaves_comes_back),
		cmocka_unit_test(live_data_moves_and_the_zone_comes_back),
		cmocka_unit_test(what_records_carry_moves_as_what_it_is),
		cmocka_unit_test(a_victim_is_not_reset_before_the_move_is_durable),
		cmocka_unit_test(what_was_scattered_lies_together),
		cmocka_unit_test(all_else_about_the_file_stays),
		cmocka_unit_test(what_is_dirty_stays_newer),
		cmocka_unit_test(space_that_is_kept_stays_kept),
		cmocka_unit_test(shared_bytes_move_once),
		cmocka_unit_test(shared_bytes_without_other_names_move_too),
		cmocka_unit_test(shared_names_lie_across_batches),
		cmocka_unit_test(fsync_may_name_the_new_place),
		cmocka_unit_test(room_is_made_by_moving),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
