/* SPDX-License-Identifier: MIT */
/* fallocate, case by case. */
#include <errno.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/data/data.h"
#include "fs/data_rig.h"
#include "fs/core/inode.h"

#define BLOCK 4096u
#define KEEP  FALLOC_FL_KEEP_SIZE
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)
#define ZERO  FALLOC_FL_ZERO_RANGE

static struct zf_attr attr_of(struct data_rig *rig, uint64_t ino)
{
	struct zf_attr attr;

	assert_int_equal(zf_fs_getattr(rig->fs, &rig->ctx, ino, &attr), 0);
	return attr;
}

static uint64_t seek(struct data_rig *rig, uint64_t ino, uint64_t offset, int whence)
{
	uint64_t found;
	int r = zf_fs_seek(rig->fs, &rig->ctx, ino, offset, whence, &found);

	assert_true(r == 0 || r == -ENXIO);
	return r == 0 ? found : UINT64_MAX;
}

static void expect_extent(const struct zf_extent_info *extent, uint8_t type, uint8_t flags,
			  uint64_t first, uint64_t count)
{
	assert_int_equal(extent->type, type);
	assert_int_equal(extent->flags, flags);
	assert_int_equal(extent->offset, first * BLOCK);
	assert_int_equal(extent->len, count * BLOCK);
}

/* Starts the file's dirty blocks on their way and leaves them there. */
static void start_flush(struct data_rig *rig, uint64_t ino)
{
	struct zf_inode *inode;

	assert_int_equal(zf_inode_get(rig->fs, ino, &inode), 0);
	assert_int_equal(zf_data_flush(inode, false), 0);
	zf_inode_put(inode);
}

/* ---- allocation ---- */

static void what_is_allocated_reads_as_zeroes_and_is_a_hole(void **state)
{
	struct data_rig_options options = {.seed = 1};
	struct data_rig_extents extents;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_allocate(&rig, ino, 0, 5 * BLOCK + 1, 3 * BLOCK);
	assert_int_equal(data_rig_size(&rig, ino), 8 * BLOCK + 1);
	assert_int_equal(data_rig_blocks(&rig, ino), 4);
	assert_int_equal(data_rig_kept(&rig), 4);
	data_rig_expect_zeroes(&rig, ino, 0, 8 * BLOCK + 1);
	assert_int_equal(seek(&rig, ino, 0, SEEK_DATA), UINT64_MAX);
	assert_int_equal(seek(&rig, ino, 6 * BLOCK, SEEK_HOLE), 6 * BLOCK);
	data_rig_remount(&rig);
	assert_int_equal(data_rig_size(&rig, ino), 8 * BLOCK + 1);
	assert_int_equal(data_rig_blocks(&rig, ino), 4);
	assert_int_equal(data_rig_kept(&rig), 4);
	/* Written blocks replace allocated ones. */
	data_rig_write_pattern(&rig, ino, 1, 6 * BLOCK, BLOCK);
	assert_int_equal(seek(&rig, ino, 0, SEEK_DATA), 6 * BLOCK);
	assert_int_equal(seek(&rig, ino, 6 * BLOCK, SEEK_HOLE), 7 * BLOCK);
	data_rig_extents(&rig, ino, &extents);
	assert_int_equal(extents.count, 3);
	expect_extent(&extents.at[0], ZF_EXTENT_ZERO, ZF_EXTENT_UNWRITTEN, 5, 1);
	expect_extent(&extents.at[1], ZF_EXTENT_DATA, 0, 6, 1);
	expect_extent(&extents.at[2], ZF_EXTENT_ZERO, ZF_EXTENT_UNWRITTEN, 7, 2);
	assert_int_equal(data_rig_kept(&rig), 3);
	assert_int_equal(data_rig_blocks(&rig, ino), 4);
	data_rig_unlink(&rig, "file", ino);
	assert_int_equal(data_rig_kept(&rig), 0);
	data_rig_deinit(&rig);
}

static void adjacent_allocations_are_one_extent_of_up_to_a_tebibyte(void **state)
{
	const uint64_t tebibyte = UINT64_C(1) << 40;
	struct data_rig_options options = {
		.seed = 1, .zone_count = 8200, .zone_size = UINT64_C(256) << 20};
	struct data_rig_extents extents;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_allocate(&rig, ino, 0, 0, 1 << 30);
	data_rig_allocate(&rig, ino, 0, 2 << 20, tebibyte);
	data_rig_extents(&rig, ino, &extents);
	assert_int_equal(extents.count, 2);
	expect_extent(&extents.at[0], ZF_EXTENT_ZERO, ZF_EXTENT_UNWRITTEN, 0, 1 << 18);
	assert_int_equal(extents.at[0].len + extents.at[1].len, tebibyte + (2 << 20));
	data_rig_truncate(&rig, ino, 0);
	data_rig_allocate(&rig, ino, 0, 0, tebibyte + BLOCK);
	data_rig_extents(&rig, ino, &extents);
	assert_int_equal(extents.count, 2);
	expect_extent(&extents.at[0], ZF_EXTENT_ZERO, ZF_EXTENT_UNWRITTEN, 0, 1 << 28);
	expect_extent(&extents.at[1], ZF_EXTENT_ZERO, ZF_EXTENT_UNWRITTEN, 1 << 28, 1);
	data_rig_deinit(&rig);
}

static void what_was_written_stays_under_an_allocation(void **state)
{
	struct data_rig_options options = {.seed = 2};
	struct data_rig_extents extents;
	struct data_rig rig;
	uint64_t ino, small;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	small = data_rig_make(&rig, "small");
	data_rig_write_pattern(&rig, ino, 1, 2 * BLOCK, 2 * BLOCK);
	data_rig_sync(&rig);
	data_rig_write_pattern(&rig, ino, 1, 5 * BLOCK + 10, 100); /* dirty */
	data_rig_write_pattern(&rig, ino, 1, 7 * BLOCK, BLOCK);
	start_flush(&rig, ino); /* in flight */
	data_rig_write_pattern(&rig, small, 1, 0, 100);
	data_rig_sync(&rig); /* inline */
	data_rig_allocate(&rig, ino, 0, 0, 10 * BLOCK);
	data_rig_allocate(&rig, small, 0, 0, 2 * BLOCK);
	data_rig_remount(&rig);
	data_rig_expect_zeroes(&rig, ino, 0, 2 * BLOCK);
	data_rig_expect(&rig, ino, 1, 2 * BLOCK, 2 * BLOCK);
	data_rig_expect(&rig, ino, 1, 5 * BLOCK + 10, 100);
	data_rig_expect(&rig, ino, 1, 7 * BLOCK, BLOCK);
	data_rig_expect_zeroes(&rig, ino, 8 * BLOCK, 2 * BLOCK);
	data_rig_extents(&rig, ino, &extents);
	assert_int_equal(extents.count, 7);
	assert_int_equal(data_rig_blocks(&rig, ino), 10);
	data_rig_expect(&rig, small, 1, 0, 100);
	data_rig_expect_zeroes(&rig, small, 100, 2 * BLOCK - 100);
	assert_int_equal(data_rig_blocks(&rig, small), 1);
	data_rig_deinit(&rig);
}

static void space_behind_the_end_is_kept_until_the_file_is_truncated(void **state)
{
	struct data_rig_options options = {.seed = 3};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, BLOCK + 100);
	data_rig_sync(&rig);
	data_rig_allocate(&rig, ino, KEEP, BLOCK, 10 * BLOCK);
	assert_int_equal(data_rig_size(&rig, ino), BLOCK + 100);
	assert_int_equal(data_rig_blocks(&rig, ino), 11);
	data_rig_remount(&rig);
	assert_int_equal(data_rig_kept(&rig), 9);
	/* Growing the file keeps the space, however it grows. */
	data_rig_truncate(&rig, ino, 3 * BLOCK);
	assert_int_equal(data_rig_kept(&rig), 9);
	data_rig_expect(&rig, ino, 1, 0, BLOCK + 100);
	data_rig_expect_zeroes(&rig, ino, BLOCK + 100, 2 * BLOCK - 100);
	data_rig_write_pattern(&rig, ino, 1, 4 * BLOCK, 10);
	data_rig_sync(&rig);
	assert_int_equal(data_rig_kept(&rig), 8);
	data_rig_expect_zeroes(&rig, ino, 2 * BLOCK, 2 * BLOCK);
	/* Truncating the file to its present size gives back the space behind the end. */
	data_rig_truncate(&rig, ino, 4 * BLOCK + 10);
	assert_int_equal(data_rig_kept(&rig), 2);
	data_rig_allocate(&rig, ino, KEEP, 10 * BLOCK, 5 * BLOCK);
	data_rig_truncate(&rig, ino, BLOCK);
	assert_int_equal(data_rig_kept(&rig), 0);
	assert_int_equal(data_rig_blocks(&rig, ino), 1);
	data_rig_deinit(&rig);
}

static void a_small_file_can_grow_into_its_space(void **state)
{
	struct data_rig_options options = {.seed = 4};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "log");
	data_rig_allocate(&rig, ino, KEEP, 0, 8 * BLOCK);
	for (uint64_t at = 0; at < 6 * BLOCK; at += 700) {
		data_rig_write_pattern(&rig, ino, 1, at, 700);
		if (at % 3 == 0)
			data_rig_sync(&rig);
	}
	data_rig_sync(&rig);
	assert_int_equal(data_rig_kept(&rig), 1);
	data_rig_remount(&rig);
	data_rig_expect(&rig, ino, 1, 0, data_rig_size(&rig, ino));
	data_rig_deinit(&rig);
}

/* ---- punching and zeroing ---- */

/* Landed, in flight, dirty: one block of each kind, repeated. */
static void prepare(struct data_rig *rig, uint64_t ino, uint64_t seed, unsigned int blocks)
{
	data_rig_write_pattern(rig, ino, seed, 0, blocks * BLOCK);
	data_rig_sync(rig);
	for (unsigned int i = 0; i < blocks; i += 3)
		data_rig_write_pattern(rig, ino, seed, i * BLOCK, BLOCK);
	start_flush(rig, ino);
	for (unsigned int i = 1; i < blocks; i += 3)
		data_rig_write_pattern(rig, ino, seed, i * BLOCK, BLOCK);
}

static void expect_zeroed(struct data_rig *rig, uint64_t ino, uint64_t from, uint64_t to,
			  uint64_t size)
{
	assert_int_equal(data_rig_size(rig, ino), size);
	data_rig_expect(rig, ino, 1, 0, from);
	data_rig_expect_zeroes(rig, ino, from, to - from);
	if (to < size)
		data_rig_expect(rig, ino, 1, to, size - to);
}

static void what_is_punched_or_zeroed_reads_as_zeroes(void **state)
{
	static const int modes[] = {PUNCH, ZERO, ZERO | KEEP};
	static const struct {
		uint64_t from, to;
	} ranges[] = {{0, BLOCK},
		      {3 * BLOCK, 9 * BLOCK},
		      {3 * BLOCK + 1, 9 * BLOCK - 1},
		      {5 * BLOCK + 100, 5 * BLOCK + 200},
		      {5 * BLOCK + 100, 6 * BLOCK + 200},
		      {100, 14 * BLOCK + 50},
		      {14 * BLOCK, 14 * BLOCK + 77},
		      {14 * BLOCK + 3, 14 * BLOCK + 77}};

	(void)state;
	for (unsigned int i = 0; i < 3 * ZF_ARRAY_SIZE(ranges); i++) {
		struct data_rig_options options = {.seed = 10 + i};
		uint64_t from = ranges[i / 3].from, to = ranges[i / 3].to;
		uint64_t size = 14 * BLOCK + 77, kept_now;
		struct data_rig rig;
		uint64_t ino;

		data_rig_init(&rig, &options);
		ino = data_rig_make(&rig, "file");
		prepare(&rig, ino, 1, 14);
		data_rig_write_pattern(&rig, ino, 1, 14 * BLOCK, 77);
		data_rig_allocate(&rig, ino, modes[i % 3], from, to - from);
		expect_zeroed(&rig, ino, from, to, size);
		data_rig_sync(&rig);
		expect_zeroed(&rig, ino, from, to, size);
		data_rig_crash(&rig);
		expect_zeroed(&rig, ino, from, to, size);
		kept_now = to == size ? zf_align_up(to, BLOCK) : zf_align_down(to, BLOCK);
		from = zf_align_up(from, BLOCK);
		kept_now = kept_now > from ? (kept_now - from) / BLOCK : 0;
		assert_int_equal(data_rig_blocks(&rig, ino),
				 15 - (modes[i % 3] == PUNCH ? kept_now : 0));
		assert_int_equal(data_rig_kept(&rig), modes[i % 3] == PUNCH ? 0 : kept_now);
		if (kept_now > 0) {
			assert_int_equal(seek(&rig, ino, from, SEEK_HOLE) == from,
					 modes[i % 3] == PUNCH);
		}
		data_rig_deinit(&rig);
	}
}

/*
 * Bytes that a truncation left in the last block, landed or in flight, are in the block that
 * zeroing makes dirty. They must not come back when the file grows again in any way.
 */
static void what_was_truncated_does_not_come_back_with_zeroed_blocks(void **state)
{
	static const int modes[] = {PUNCH, ZERO, ZERO | KEEP, ZF_FALLOC_WRITE_ZEROES};

	(void)state;
	for (unsigned int i = 0; i < 4 * ZF_ARRAY_SIZE(modes); i++) {
		struct data_rig_options options = {.seed = 60 + i};
		bool in_flight = i / 4 % 2, appends = i / 8;
		struct data_rig rig;
		uint64_t ino, at;

		data_rig_init(&rig, &options);
		ino = data_rig_make(&rig, "file");
		data_rig_write_pattern(&rig, ino, 1, 0, 2 * BLOCK);
		start_flush(&rig, ino);
		if (!in_flight)
			data_rig_sync(&rig);
		data_rig_truncate(&rig, ino, BLOCK + 1000);
		data_rig_allocate(&rig, ino, modes[i % 4], BLOCK, 100);
		at = BLOCK + (appends ? 1000 : 3000);
		data_rig_write_pattern(&rig, ino, 1, at, 500);
		data_rig_truncate(&rig, ino, 3 * BLOCK);
		for (unsigned int n = 0; n < 2; n++) {
			data_rig_expect_zeroes(&rig, ino, BLOCK, 100);
			data_rig_expect(&rig, ino, 1, BLOCK + 100, 900);
			data_rig_expect_zeroes(&rig, ino, BLOCK + 1000, at - BLOCK - 1000);
			data_rig_expect(&rig, ino, 1, at, 500);
			data_rig_expect_zeroes(&rig, ino, at + 500, 3 * BLOCK - at - 500);
			data_rig_remount(&rig);
		}
		data_rig_deinit(&rig);
	}
}

static void small_files_can_be_punched_and_zeroed(void **state)
{
	struct data_rig_options options = {.seed = 5};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "part");
	data_rig_write_pattern(&rig, ino, 1, 0, 1000);
	data_rig_sync(&rig);
	data_rig_allocate(&rig, ino, PUNCH, 100, 50);
	expect_zeroed(&rig, ino, 100, 150, 1000);
	data_rig_remount(&rig);
	expect_zeroed(&rig, ino, 100, 150, 1000);
	data_rig_allocate(&rig, ino, PUNCH, 0, 1000);
	data_rig_expect_zeroes(&rig, ino, 0, 1000);
	assert_int_equal(data_rig_blocks(&rig, ino), 0);
	data_rig_write_pattern(&rig, ino, 1, 0, 1000);
	data_rig_sync(&rig);
	data_rig_allocate(&rig, ino, ZERO, 0, 5000);
	data_rig_remount(&rig);
	data_rig_expect_zeroes(&rig, ino, 0, 5000);
	assert_int_equal(data_rig_kept(&rig), 2);
	data_rig_deinit(&rig);
}

/* Blocks behind the one that was punched landed, and wait for it. */
static void what_waits_for_a_punched_block_lands(void **state)
{
	static const int modes[] = {PUNCH, ZERO};

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		struct data_rig_options options = {.seed = 6, .append_limit = BLOCK};
		struct data_rig rig;
		uint64_t ino;

		data_rig_init(&rig, &options);
		ino = data_rig_make(&rig, "file");
		data_rig_write_pattern(&rig, ino, 1, 10 * BLOCK, 10 * BLOCK);
		start_flush(&rig, ino);
		data_rig_write_pattern(&rig, ino, 1, 0, 10 * BLOCK);
		/* No later block may land before the first ten. */
		for (unsigned int n = 0; n < 40; n++)
			zf_dev_poll(rig.dev, true);
		zf_data_land(rig.fs);
		assert_int_equal(data_rig_blocks(&rig, ino), 20);
		data_rig_allocate(&rig, ino, modes[i], 0, 10 * BLOCK);
		data_rig_sync(&rig);
		data_rig_crash(&rig);
		assert_int_equal(data_rig_size(&rig, ino), 20 * BLOCK);
		data_rig_expect_zeroes(&rig, ino, 0, 10 * BLOCK);
		data_rig_expect(&rig, ino, 1, 10 * BLOCK, 10 * BLOCK);
		data_rig_deinit(&rig);
	}
}

static void zeroing_makes_data_of_holes_and_of_allocated_space(void **state)
{
	struct data_rig_options options = {.seed = 7};
	struct data_rig_extents extents;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_allocate(&rig, ino, 0, 0, 10 * BLOCK);
	data_rig_allocate(&rig, ino, ZERO | KEEP, 5 * BLOCK, 20 * BLOCK);
	assert_int_equal(data_rig_size(&rig, ino), 10 * BLOCK);
	data_rig_allocate(&rig, ino, ZERO, 24 * BLOCK, 10 * BLOCK);
	assert_int_equal(data_rig_size(&rig, ino), 34 * BLOCK);
	data_rig_extents(&rig, ino, &extents);
	assert_int_equal(extents.count, 2);
	expect_extent(&extents.at[0], ZF_EXTENT_ZERO, ZF_EXTENT_UNWRITTEN, 0, 5);
	expect_extent(&extents.at[1], ZF_EXTENT_ZERO, 0, 5, 29);
	assert_int_equal(seek(&rig, ino, 0, SEEK_DATA), 5 * BLOCK);
	assert_int_equal(data_rig_kept(&rig), 34);
	data_rig_allocate(&rig, ino, PUNCH, 2 * BLOCK, 30 * BLOCK);
	assert_int_equal(data_rig_kept(&rig), 4);
	data_rig_deinit(&rig);
}

/* More extents than one transaction fills, replaces or drops. */
static void ranges_of_many_extents_are_done_in_several_transactions(void **state)
{
	static const int modes[] = {0, PUNCH, ZERO};
	static const uint64_t kept_then[] = {198, 0, 396};

	(void)state;
	for (unsigned int i = 0; i < 3; i++) {
		struct data_rig_options options = {.seed = 20 + i, .node_size = 4096};
		struct data_rig rig;
		uint64_t ino;

		data_rig_init(&rig, &options);
		ino = data_rig_make(&rig, "file");
		for (unsigned int n = 0; n < 200; n++)
			data_rig_write_pattern(&rig, ino, 1, 2 * n * BLOCK, BLOCK);
		data_rig_sync(&rig);
		data_rig_allocate(&rig, ino, modes[i], BLOCK, 396 * BLOCK);
		data_rig_remount(&rig);
		assert_int_equal(data_rig_kept(&rig), kept_then[i]);
		data_rig_expect(&rig, ino, 1, 0, BLOCK);
		data_rig_expect(&rig, ino, 1, 398 * BLOCK, BLOCK);
		for (unsigned int n = 1; n < 198; n++) {
			if (n % 2 == 0 && modes[i] == 0)
				data_rig_expect(&rig, ino, 1, n * BLOCK, BLOCK);
			else
				data_rig_expect_zeroes(&rig, ino, n * BLOCK, BLOCK);
		}
		data_rig_deinit(&rig);
	}
}

/* ---- the call ---- */

static void errors_are_those_of_linux(void **state)
{
	struct data_rig_options options = {.seed = 8};
	struct data_rig rig;
	struct zf_attr attr;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
#define RESULT(ino, mode, offset, len) zf_fs_fallocate(rig.fs, &rig.ctx, ino, mode, offset, len)
	assert_int_equal(RESULT(ino, 0, 0, 0), -EINVAL);
	assert_int_equal(RESULT(ino, 0, (uint64_t)-1, 1), -EINVAL);
	assert_int_equal(RESULT(ino, 0, 0, (uint64_t)-5), -EINVAL);
	assert_int_equal(RESULT(ino, 0, INT64_MAX, 1), -EFBIG);
	assert_int_equal(RESULT(ino, 0, 0, INT64_MAX), -ENOSPC);
	assert_int_equal(RESULT(ino, FALLOC_FL_PUNCH_HOLE, 0, 1), -EOPNOTSUPP);
	assert_int_equal(RESULT(ino, PUNCH | ZERO, 0, 1), -EOPNOTSUPP);
	assert_int_equal(RESULT(ino, FALLOC_FL_COLLAPSE_RANGE, 0, BLOCK), -EOPNOTSUPP);
	assert_int_equal(RESULT(ino, ZF_FALLOC_WRITE_ZEROES | KEEP, 0, BLOCK), -EOPNOTSUPP);
	assert_int_equal(RESULT(ino, ZF_FALLOC_WRITE_ZEROES | ZERO, 0, BLOCK), -EOPNOTSUPP);
	assert_int_equal(RESULT(ZF_INO_ROOT, 0, 0, 1), -EISDIR);
	assert_int_equal(RESULT(ino + 100, 0, 0, 1), -ESTALE);
	assert_int_equal(
		zf_fs_make(rig.fs, &rig.ctx, ZF_INO_ROOT, "fifo", S_IFIFO | 0600, 0, NULL, &attr),
		0);
	assert_int_equal(RESULT(attr.ino, 0, 0, 1), -ENODEV);
	zf_fs_forget(rig.fs, attr.ino, 1);
	assert_int_equal(RESULT(ino, PUNCH, INT64_MAX - 10, 10), 0);
	assert_int_equal(data_rig_size(&rig, ino), 0);
#undef RESULT
	data_rig_deinit(&rig);
}

static void times_and_setuid_change_as_by_a_write(void **state)
{
	static const int modes[] = {0, KEEP, PUNCH, ZERO};
	struct data_rig_options options = {.seed = 9};
	struct data_rig rig;
	struct zf_attr before, after;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	for (unsigned int i = 0; i < 4; i++) {
		const struct zf_setattr set = {.valid = ZF_SET_MODE, .mode = 06755};
		char name[] = {'a' + (char)i, 0};

		ino = data_rig_make(&rig, name);
		assert_int_equal(zf_fs_setattr(rig.fs, &rig.ctx, ino, &set, &before), 0);
		data_rig_allocate(&rig, ino, modes[i], 0, BLOCK);
		after = attr_of(&rig, ino);
		assert_int_equal(after.mode & 07777, 06755);
		assert_true(after.mtime.nanoseconds > before.mtime.nanoseconds);
		assert_true(after.ctime.nanoseconds > before.ctime.nanoseconds);
		rig.ctx.uid = 1000;
		data_rig_allocate(&rig, ino, modes[i], 0, BLOCK);
		rig.ctx.uid = 0;
		assert_int_equal(attr_of(&rig, ino).mode & 07777, 0755);
	}
	data_rig_remount(&rig);
	assert_int_equal(attr_of(&rig, ino).mode & 07777, 0755);
	data_rig_deinit(&rig);
}

static void more_than_there_is_changes_nothing(void **state)
{
	struct data_rig_options options = {.seed = 11, .zone_count = 32};
	struct data_rig rig;
	struct zf_statfs statfs, after;
	struct zf_attr attr;
	uint64_t ino, room;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 3 * BLOCK);
	data_rig_sync(&rig);
	attr = attr_of(&rig, ino);
	assert_int_equal(zf_fs_statfs(rig.fs, &statfs), 0);
	room = statfs.blocks_free * BLOCK;
	for (unsigned int i = 0; i < 3; i++) {
		const int mode = (const int[]){0, KEEP, ZERO}[i];
		struct zf_attr now;

		assert_int_equal(zf_fs_fallocate(rig.fs, &rig.ctx, ino, mode, BLOCK, room + BLOCK),
				 -ENOSPC);
		now = attr_of(&rig, ino);
		assert_int_equal(now.size, attr.size);
		assert_int_equal(now.blocks, attr.blocks);
		assert_int_equal(now.mtime.nanoseconds, attr.mtime.nanoseconds);
		assert_int_equal(data_rig_kept(&rig), 0);
	}
	data_rig_expect(&rig, ino, 1, 0, 3 * BLOCK);
	/* Space for its metadata is reserved, too. */
	data_rig_allocate(&rig, ino, 0, 0, room / 8 * 7);
	assert_int_equal(zf_fs_statfs(rig.fs, &after), 0);
	assert_true(after.blocks_available * BLOCK < room / 8);
	data_rig_truncate(&rig, ino, 0);
	data_rig_sync(&rig);
	assert_int_equal(zf_fs_statfs(rig.fs, &after), 0);
	assert_true(after.blocks_available * 100 >= statfs.blocks_available * 99);
	data_rig_deinit(&rig);
}

/* Extents behind the range do not count towards the few that one transaction drops. */
static void a_punch_of_few_extents_waits_for_nothing(void **state)
{
	const struct data_rig_options options = {.seed = 90};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	for (uint64_t i = 0; i <= 16; i++)
		data_rig_write_pattern(&rig, ino, 1, 2 * i * BLOCK, BLOCK);
	data_rig_sync(&rig);
	rig.ctx.may_wait = false;
	data_rig_allocate(&rig, ino, PUNCH, 0, 32 * BLOCK);
	rig.ctx.may_wait = true;
	data_rig_expect_zeroes(&rig, ino, 0, 32 * BLOCK);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_punch_of_few_extents_waits_for_nothing),
		cmocka_unit_test(what_is_allocated_reads_as_zeroes_and_is_a_hole),
		cmocka_unit_test(adjacent_allocations_are_one_extent_of_up_to_a_tebibyte),
		cmocka_unit_test(what_was_written_stays_under_an_allocation),
		cmocka_unit_test(space_behind_the_end_is_kept_until_the_file_is_truncated),
		cmocka_unit_test(a_small_file_can_grow_into_its_space),
		cmocka_unit_test(what_is_punched_or_zeroed_reads_as_zeroes),
		cmocka_unit_test(what_was_truncated_does_not_come_back_with_zeroed_blocks),
		cmocka_unit_test(small_files_can_be_punched_and_zeroed),
		cmocka_unit_test(what_waits_for_a_punched_block_lands),
		cmocka_unit_test(zeroing_makes_data_of_holes_and_of_allocated_space),
		cmocka_unit_test(ranges_of_many_extents_are_done_in_several_transactions),
		cmocka_unit_test(errors_are_those_of_linux),
		cmocka_unit_test(times_and_setuid_change_as_by_a_write),
		cmocka_unit_test(more_than_there_is_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
