/* SPDX-License-Identifier: MIT */
/* fallocate(WRITE_ZEROES): what docs/write-zeroes.md says of sequential zones. */
#include <errno.h>
#include <linux/falloc.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "fs/data/data.h"
#include "fs/data_rig.h"
#include "fs/core/inode.h"
#include "fs/mount/upgrade.h"

#define BLOCK 4096u
#define KEEP  FALLOC_FL_KEEP_SIZE
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define ZERO  FALLOC_FL_ZERO_RANGE
#define WRITE ZF_FALLOC_WRITE_ZEROES

/* -1: there is none. */
static int64_t seek(struct data_rig *rig, uint64_t ino, uint64_t offset, int whence)
{
	uint64_t found;
	int r = zf_fs_seek(rig->fs, &rig->ctx, ino, offset, whence, &found);

	assert_true(r == 0 || r == -ENXIO);
	return r == 0 ? (int64_t)found : -1;
}

struct expected {
	uint8_t type, flags;
	uint64_t first, count; /* blocks */
};

static void expect_extents(struct data_rig *rig, uint64_t ino, const struct expected *expected,
			   int count)
{
	struct data_rig_extents extents;

	data_rig_extents(rig, ino, &extents);
	assert_int_equal(extents.count, count);
	for (int i = 0; i < count; i++) {
		assert_int_equal(extents.at[i].type, expected[i].type);
		assert_int_equal(extents.at[i].flags, expected[i].flags);
		assert_int_equal(extents.at[i].offset, expected[i].first * BLOCK);
		assert_int_equal(extents.at[i].len, expected[i].count * BLOCK);
	}
}

#define EXPECT_EXTENTS(rig, ino, ...)                                                              \
	do {                                                                                       \
		static const struct expected expected_[] = {__VA_ARGS__};                          \
		expect_extents(rig, ino, expected_, ZF_ARRAY_SIZE(expected_));                     \
	} while (0)

/* ---- what it makes ---- */

static void it_counts_as_written_and_keeps_its_space(void **state)
{
	struct data_rig_options options = {.seed = 1};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_allocate(&rig, ino, WRITE, 0, 10 * BLOCK);
	data_rig_remount(&rig);
	assert_int_equal(data_rig_size(&rig, ino), 10 * BLOCK);
	assert_int_equal(data_rig_blocks(&rig, ino), 10);
	assert_int_equal(data_rig_kept(&rig), 10);
	assert_int_equal(data_rig_guaranteed(&rig), 10);
	assert_int_equal(seek(&rig, ino, 0, SEEK_DATA), 0);
	assert_int_equal(seek(&rig, ino, 0, SEEK_HOLE), 10 * BLOCK);
	data_rig_expect_zeroes(&rig, ino, 0, 10 * BLOCK);
	EXPECT_EXTENTS(&rig, ino, {ZF_EXTENT_ZERO, ZF_EXTENT_GUARANTEED, 0, 10});
	/* A second call changes nothing. */
	data_rig_allocate(&rig, ino, WRITE, 2 * BLOCK, 5 * BLOCK);
	assert_int_equal(data_rig_kept(&rig), 10);
	assert_int_equal(data_rig_guaranteed(&rig), 10);
	data_rig_deinit(&rig);
}

/* Landed, in flight, dirty: a block of each, again and again. */
static void prepare(struct data_rig *rig, uint64_t ino, unsigned int blocks)
{
	struct zf_inode *inode;

	data_rig_write_pattern(rig, ino, 1, 0, blocks * BLOCK);
	data_rig_sync(rig);
	for (unsigned int i = 0; i < blocks; i += 3)
		data_rig_write_pattern(rig, ino, 1, i * BLOCK, BLOCK);
	assert_int_equal(zf_inode_get(rig->fs, ino, &inode), 0);
	assert_int_equal(zf_data_flush(inode, false), 0);
	zf_inode_put(inode);
	for (unsigned int i = 1; i < blocks; i += 3)
		data_rig_write_pattern(rig, ino, 1, i * BLOCK, BLOCK);
}

static void whatever_was_there_reads_as_zeroes(void **state)
{
	static const struct {
		uint64_t from, to;
	} ranges[] = {{0, BLOCK},
		      {3 * BLOCK, 9 * BLOCK},
		      {3 * BLOCK + 1, 9 * BLOCK - 1},
		      {5 * BLOCK + 100, 5 * BLOCK + 200},
		      {100, 14 * BLOCK},
		      {12 * BLOCK + 5, 20 * BLOCK + 5}};

	(void)state;
	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(ranges); i++) {
		struct data_rig_options options = {.seed = 10 + i};
		uint64_t from = ranges[i].from, to = ranges[i].to;
		uint64_t size = zf_max_u64(to, 14 * BLOCK);
		struct data_rig rig;
		uint64_t ino;

		data_rig_init(&rig, &options);
		ino = data_rig_make(&rig, "file");
		prepare(&rig, ino, 14);
		data_rig_allocate(&rig, ino, WRITE, from, to - from);
		for (unsigned int look = 0; look < 3; look++) {
			assert_int_equal(data_rig_size(&rig, ino), size);
			data_rig_expect(&rig, ino, 1, 0, from);
			data_rig_expect_zeroes(&rig, ino, from, to - from);
			if (to < size)
				data_rig_expect(&rig, ino, 1, to, size - to);
			if (look == 0)
				data_rig_sync(&rig);
			else if (look == 1)
				data_rig_crash(&rig);
		}
		data_rig_deinit(&rig);
	}
}

static void allocated_space_and_holes_become_written(void **state)
{
	struct data_rig_options options = {.seed = 2};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_allocate(&rig, ino, 0, 0, 4 * BLOCK);
	data_rig_allocate(&rig, ino, ZERO, 6 * BLOCK, 4 * BLOCK);
	assert_int_equal(data_rig_kept(&rig), 8);
	/* A block of which only a part is zeroed becomes guaranteed, too, because it holds no
	 * data. */
	data_rig_allocate(&rig, ino, WRITE, 2 * BLOCK + 10, 6 * BLOCK);
	EXPECT_EXTENTS(&rig, ino, {ZF_EXTENT_ZERO, ZF_EXTENT_UNWRITTEN, 0, 2},
		       {ZF_EXTENT_ZERO, ZF_EXTENT_GUARANTEED, 2, 7}, {ZF_EXTENT_ZERO, 0, 9, 1});
	assert_int_equal(data_rig_kept(&rig), 2 + 7 + 1);
	assert_int_equal(data_rig_guaranteed(&rig), 7);
	data_rig_deinit(&rig);
}

static void its_size_does_not_matter(void **state)
{
	struct data_rig_options options = {
		.seed = 3, .zone_count = 64, .zone_size = UINT64_C(256) << 20};
	const uint64_t len = UINT64_C(10) << 30;
	struct zf_dev_stats before, after;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_sync(&rig);
	zf_dev_get_stats(rig.dev, &before);
	data_rig_allocate(&rig, ino, WRITE, 0, len);
	data_rig_sync(&rig);
	zf_dev_get_stats(rig.dev, &after);
	assert_true(after.write_bytes - before.write_bytes < 1 << 20);
	assert_int_equal(after.append_bytes, before.append_bytes);
	EXPECT_EXTENTS(&rig, ino,
		       {ZF_EXTENT_ZERO, ZF_EXTENT_GUARANTEED, 0, (UINT64_C(10) << 30) / BLOCK});
	data_rig_deinit(&rig);
}

/* ---- what becomes of it ---- */

static void what_overwrites_it_is_guaranteed(void **state)
{
	struct data_rig_options options = {.seed = 4};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_allocate(&rig, ino, WRITE, 0, 8 * BLOCK);
	for (unsigned int i = 0; i < 2; i++) {
		data_rig_write_pattern(&rig, ino, i, 2 * BLOCK, 2 * BLOCK);
		data_rig_remount(&rig);
		EXPECT_EXTENTS(&rig, ino, {ZF_EXTENT_ZERO, ZF_EXTENT_GUARANTEED, 0, 2},
			       {ZF_EXTENT_DATA, ZF_EXTENT_GUARANTEED, 2, 2},
			       {ZF_EXTENT_ZERO, ZF_EXTENT_GUARANTEED, 4, 4});
		assert_int_equal(data_rig_kept(&rig), 6);
		assert_int_equal(data_rig_guaranteed(&rig), 8);
	}
	/* One append writes these blocks, but only some of them were zeroed with WRITE. */
	data_rig_write_pattern(&rig, ino, 1, 6 * BLOCK, 4 * BLOCK);
	data_rig_remount(&rig);
	EXPECT_EXTENTS(&rig, ino, {ZF_EXTENT_ZERO, ZF_EXTENT_GUARANTEED, 0, 2},
		       {ZF_EXTENT_DATA, ZF_EXTENT_GUARANTEED, 2, 2},
		       {ZF_EXTENT_ZERO, ZF_EXTENT_GUARANTEED, 4, 2},
		       {ZF_EXTENT_DATA, ZF_EXTENT_GUARANTEED, 6, 2}, {ZF_EXTENT_DATA, 0, 8, 2});
	assert_int_equal(data_rig_kept(&rig), 4);
	assert_int_equal(data_rig_guaranteed(&rig), 8);
	data_rig_expect(&rig, ino, 1, 6 * BLOCK, 4 * BLOCK);
	data_rig_deinit(&rig);
}

static void the_guarantee_ends_with_what_has_it(void **state)
{
	struct data_rig_options options = {.seed = 5};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_allocate(&rig, ino, WRITE, 0, 8 * BLOCK);
	data_rig_write_pattern(&rig, ino, 1, 0, 4 * BLOCK);
	data_rig_sync(&rig);
	assert_int_equal(data_rig_kept(&rig), 4);
	assert_int_equal(data_rig_guaranteed(&rig), 8);
	/* ZERO_RANGE keeps the guarantee. */
	data_rig_allocate(&rig, ino, ZERO, 2 * BLOCK, BLOCK);
	assert_int_equal(data_rig_kept(&rig), 4 + 1);
	assert_int_equal(data_rig_guaranteed(&rig), 8);
	data_rig_allocate(&rig, ino, PUNCH, 0, 2 * BLOCK);
	assert_int_equal(data_rig_kept(&rig), 4 + 1);
	assert_int_equal(data_rig_guaranteed(&rig), 6);
	data_rig_truncate(&rig, ino, 4 * BLOCK);
	assert_int_equal(data_rig_kept(&rig), 1);
	assert_int_equal(data_rig_guaranteed(&rig), 2);
	EXPECT_EXTENTS(&rig, ino, {ZF_EXTENT_ZERO, ZF_EXTENT_GUARANTEED, 2, 1},
		       {ZF_EXTENT_DATA, ZF_EXTENT_GUARANTEED, 3, 1});
	data_rig_unlink(&rig, "file", ino);
	data_rig_sync(&rig);
	assert_int_equal(data_rig_kept(&rig), 0);
	assert_int_equal(data_rig_guaranteed(&rig), 0);
	data_rig_deinit(&rig);
}

/* Without its inline block the file would need room for an extent item. */
static void a_small_file_stays_in_its_block(void **state)
{
	struct data_rig_options options = {.seed = 6};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_allocate(&rig, ino, WRITE, 0, 1000);
	for (unsigned int i = 0; i < 2; i++) {
		data_rig_write_pattern(&rig, ino, i, 0, 1000);
		data_rig_remount(&rig);
		data_rig_expect(&rig, ino, i, 0, 1000);
		EXPECT_EXTENTS(&rig, ino, {ZF_EXTENT_DATA, ZF_EXTENT_GUARANTEED, 0, 1});
		assert_int_equal(data_rig_kept(&rig), 0);
		assert_int_equal(data_rig_guaranteed(&rig), 1);
	}
	data_rig_deinit(&rig);
}

static void begin_copy(struct data_rig *rig, uint64_t *ret_ino, uint64_t *ret_copy)
{
	struct data_rig_options options = {.seed = 7};

	data_rig_init(rig, &options);
	*ret_ino = data_rig_make(rig, "file");
	*ret_copy = data_rig_make(rig, "copy");
}

static void a_copy_is_of_bytes_and_not_guaranteed(void **state)
{
	struct data_rig rig;
	uint64_t ino, copy;

	(void)state;
	begin_copy(&rig, &ino, &copy);
	data_rig_allocate(&rig, ino, WRITE, 0, 16 * BLOCK);
	data_rig_write_pattern(&rig, ino, 1, 0, 16 * BLOCK);
	data_rig_sync(&rig);
	assert_int_equal(zf_fs_copy_range(rig.fs, &rig.ctx, ino, 0, copy, 0, 16 * BLOCK),
			 16 * BLOCK);
	data_rig_remount(&rig);
	EXPECT_EXTENTS(&rig, ino, {ZF_EXTENT_DATA, ZF_EXTENT_GUARANTEED, 0, 16});
	EXPECT_EXTENTS(&rig, copy, {ZF_EXTENT_DATA, 0, 0, 16});
	data_rig_expect(&rig, copy, 1, 0, 16 * BLOCK);
	data_rig_deinit(&rig);
}

/* The source has shared blocks and a hole. Guaranteed blocks of the target stay guaranteed. */
static void what_is_copied_over_it_is_guaranteed(void **state)
{
	struct data_rig rig;
	uint64_t ino, copy;

	(void)state;
	begin_copy(&rig, &ino, &copy);
	data_rig_write_pattern(&rig, ino, 1, 0, 12 * BLOCK);
	data_rig_write_pattern(&rig, ino, 1, 14 * BLOCK, 2 * BLOCK);
	data_rig_sync(&rig);
	data_rig_allocate(&rig, copy, WRITE, 4 * BLOCK, 4 * BLOCK);
	data_rig_allocate(&rig, copy, WRITE, 13 * BLOCK, BLOCK);
	for (uint64_t at = 0; at < 16 * BLOCK;) {
		ssize_t n = zf_fs_copy_range(rig.fs, &rig.ctx, ino, at, copy, at, 16 * BLOCK - at);

		assert_true(n > 0);
		at += (uint64_t)n;
	}
	data_rig_remount(&rig);
	EXPECT_EXTENTS(&rig, copy, {ZF_EXTENT_DATA, ZF_EXTENT_SHARED, 0, 4},
		       {ZF_EXTENT_DATA, ZF_EXTENT_GUARANTEED, 4, 4},
		       {ZF_EXTENT_DATA, ZF_EXTENT_SHARED, 8, 4},
		       {ZF_EXTENT_DATA, ZF_EXTENT_GUARANTEED, 13, 1},
		       {ZF_EXTENT_DATA, ZF_EXTENT_SHARED, 14, 2});
	assert_int_equal(data_rig_guaranteed(&rig), 5);
	data_rig_expect(&rig, copy, 1, 0, 12 * BLOCK);
	data_rig_expect_zeroes(&rig, copy, 12 * BLOCK, 2 * BLOCK);
	data_rig_expect(&rig, copy, 1, 14 * BLOCK, 2 * BLOCK);
	data_rig_deinit(&rig);
}

/* ---- room ---- */

static void without_room_for_all_of_it_nothing_changes(void **state)
{
	struct data_rig_options options = {.seed = 8, .zone_count = 32};
	struct data_rig rig;
	struct zf_statfs statfs;
	uint64_t ino, room;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 3 * BLOCK);
	data_rig_sync(&rig);
	assert_int_equal(zf_fs_statfs(rig.fs, &statfs), 0);
	room = statfs.blocks_available * BLOCK;
	assert_int_equal(zf_fs_fallocate(rig.fs, &rig.ctx, ino, WRITE, BLOCK, room), -ENOSPC);
	assert_int_equal(data_rig_size(&rig, ino), 3 * BLOCK);
	assert_int_equal(data_rig_kept(&rig), 0);
	assert_int_equal(data_rig_guaranteed(&rig), 0);
	data_rig_expect(&rig, ino, 1, 0, 3 * BLOCK);
	/* The call needs room for the blocks, for their items, and for one zone more. */
	room -= room / 8 + options.zone_size;
	data_rig_allocate(&rig, ino, WRITE, BLOCK, zf_align_down(room, BLOCK));
	data_rig_deinit(&rig);
}

/* ---- images of older versions ---- */

/* Older versions counted guaranteed space as kept space, and did not set the feature bit. */
static void what_older_versions_counted_is_counted_again(void **state)
{
	struct data_rig_options options = {.seed = 10};
	struct data_rig rig;
	struct zf_super *super;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_allocate(&rig, ino, WRITE, 0, 8 * BLOCK);
	data_rig_allocate(&rig, ino, 0, 8 * BLOCK, 3 * BLOCK);
	data_rig_write_pattern(&rig, ino, 1, 0, 2 * BLOCK);
	data_rig_sync(&rig);
	super = &rig.fs->super;
	super->incompat = 0;
	super->kept_bytes = (6 + 3 + 8) * BLOCK;
	super->guaranteed_bytes = BLOCK; /* what it called spent */
	super->kept_guaranteed_bytes = 0;
	assert_int_equal(zf_upgrade_kept(rig.fs), 0);
	assert_int_equal(super->incompat, ZF_INCOMPAT_GUARANTEE);
	assert_int_equal(super->kept_bytes, (6 + 3) * BLOCK);
	assert_int_equal(super->guaranteed_bytes, 8 * BLOCK);
	assert_int_equal(super->kept_guaranteed_bytes, 6 * BLOCK);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_counts_as_written_and_keeps_its_space),
		cmocka_unit_test(whatever_was_there_reads_as_zeroes),
		cmocka_unit_test(allocated_space_and_holes_become_written),
		cmocka_unit_test(its_size_does_not_matter),
		cmocka_unit_test(what_overwrites_it_is_guaranteed),
		cmocka_unit_test(the_guarantee_ends_with_what_has_it),
		cmocka_unit_test(a_small_file_stays_in_its_block),
		cmocka_unit_test(a_copy_is_of_bytes_and_not_guaranteed),
		cmocka_unit_test(what_is_copied_over_it_is_guaranteed),
		cmocka_unit_test(without_room_for_all_of_it_nothing_changes),
		cmocka_unit_test(what_older_versions_counted_is_counted_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
