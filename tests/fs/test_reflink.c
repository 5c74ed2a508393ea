/* SPDX-License-Identifier: MIT */
/* Copies that share extents, case by case. Every test ends with a run of the checker. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/data_rig.h"
#include "fs/core/inode.h"

#define BLOCK 4096u
#define MIB   (1u << 20)

static uint8_t buf[8 * MIB], wanted[8 * MIB];

/* A file of `len` bytes that have landed. */
static uint64_t make_file(struct data_rig *rig, const char *name, uint64_t seed, size_t len)
{
	uint64_t ino = data_rig_make(rig, name);

	data_rig_write_pattern(rig, ino, seed, 0, len);
	data_rig_sync(rig);
	return ino;
}

static ssize_t copy(struct data_rig *rig, uint64_t in, uint64_t offset_in, uint64_t out,
		    uint64_t offset_out, uint64_t len)
{
	return zf_fs_copy_range(rig->fs, &rig->ctx, in, offset_in, out, offset_out, len);
}

/* `len` bytes at `offset` are what the pattern has at `from`. */
static void expect(struct data_rig *rig, uint64_t ino, uint64_t offset, uint64_t seed,
		   uint64_t from, size_t len)
{
	assert_int_equal(zf_fs_read(rig->fs, &rig->ctx, ino, offset, buf, len), len);
	data_rig_fill(seed, from, wanted, len);
	for (size_t i = 0; i < len; i++)
		if (buf[i] != wanted[i])
			fail_msg("inode %lu at offset %lu: read %02x, expected %02x",
				 (unsigned long)ino, (unsigned long)(offset + i), buf[i],
				 wanted[i]);
}

static unsigned int shared_extents(struct data_rig *rig, uint64_t ino)
{
	struct data_rig_extents extents;
	unsigned int shared = 0;

	data_rig_extents(rig, ino, &extents);
	for (int i = 0; i < extents.count; i++)
		shared += extents.at[i].flags & ZF_EXTENT_SHARED;
	return shared;
}

static void get_attr(struct data_rig *rig, uint64_t ino, struct zf_attr *ret_attr)
{
	assert_int_equal(zf_fs_getattr(rig->fs, &rig->ctx, ino, ret_attr), 0);
}

/* ---- what is shared ---- */

static void a_copy_takes_no_space_and_reads_the_same(void **state)
{
	struct data_rig_options options = {.seed = 1};
	struct zf_dev_stats before, after;
	struct data_rig rig;
	struct zf_attr attr;
	uint64_t in, out;

	(void)state;
	data_rig_init(&rig, &options);
	in = make_file(&rig, "in", 1, 4 * MIB);
	out = data_rig_make(&rig, "out");
	assert_int_equal(data_rig_live_blocks(&rig), 4 * MIB / BLOCK);
	zf_dev_get_stats(rig.dev, &before);
	assert_int_equal(copy(&rig, in, 0, out, 0, 10 * MIB), 4 * MIB);
	zf_dev_get_stats(rig.dev, &after);
	assert_int_equal(after.appends, before.appends);
	assert_int_equal(data_rig_live_blocks(&rig), 4 * MIB / BLOCK);
	get_attr(&rig, out, &attr);
	assert_int_equal(attr.size, 4 * MIB);
	assert_int_equal(attr.blocks, 4 * MIB / 512);
	assert_true(shared_extents(&rig, in) > 0);
	assert_int_equal(shared_extents(&rig, in), shared_extents(&rig, out));
	expect(&rig, out, 0, 1, 0, 4 * MIB);
	data_rig_remount(&rig);
	expect(&rig, out, 0, 1, 0, 4 * MIB);
	expect(&rig, in, 0, 1, 0, 4 * MIB);
	data_rig_deinit(&rig);
}

static void dirty_data_of_the_source_is_copied(void **state)
{
	struct data_rig_options options = {.seed = 2};
	struct data_rig rig;
	uint64_t in, out;

	(void)state;
	data_rig_init(&rig, &options);
	in = data_rig_make(&rig, "in");
	out = data_rig_make(&rig, "out");
	data_rig_write_pattern(&rig, in, 1, 0, 100 * BLOCK);
	assert_int_equal(copy(&rig, in, 0, out, 0, 100 * BLOCK), 100 * BLOCK);
	assert_true(shared_extents(&rig, out) > 0);
	data_rig_write_pattern(&rig, in, 2, 10 * BLOCK, BLOCK);
	assert_int_equal(copy(&rig, in, 0, out, 0, 100 * BLOCK), 100 * BLOCK);
	expect(&rig, out, 10 * BLOCK, 2, 10 * BLOCK, BLOCK);
	expect(&rig, out, 11 * BLOCK, 1, 11 * BLOCK, 89 * BLOCK);
	assert_int_equal(data_rig_live_blocks(&rig), 100);
	data_rig_deinit(&rig);
}

static void what_the_target_had_in_memory_is_void(void **state)
{
	struct data_rig_options options = {.seed = 3};
	struct data_rig rig;
	uint64_t in, out;

	(void)state;
	data_rig_init(&rig, &options);
	in = make_file(&rig, "in", 1, 20 * BLOCK);
	out = data_rig_make(&rig, "out");
	/* Data before the range, in it, and behind it is dirty. */
	data_rig_write_pattern(&rig, out, 2, 0, 40 * BLOCK);
	assert_int_equal(copy(&rig, in, 0, out, 10 * BLOCK, 20 * BLOCK), 20 * BLOCK);
	expect(&rig, out, 0, 2, 0, 10 * BLOCK);
	expect(&rig, out, 10 * BLOCK, 1, 0, 20 * BLOCK);
	expect(&rig, out, 30 * BLOCK, 2, 30 * BLOCK, 10 * BLOCK);
	data_rig_remount(&rig);
	expect(&rig, out, 0, 2, 0, 10 * BLOCK);
	expect(&rig, out, 10 * BLOCK, 1, 0, 20 * BLOCK);
	expect(&rig, out, 30 * BLOCK, 2, 30 * BLOCK, 10 * BLOCK);
	/* Nothing lies before the range, so the dirty data in the range need not land, and must
	 * not. */
	data_rig_write_pattern(&rig, out, 3, 0, 25 * BLOCK);
	assert_int_equal(copy(&rig, in, 0, out, 0, 20 * BLOCK), 20 * BLOCK);
	data_rig_sync(&rig);
	expect(&rig, out, 0, 1, 0, 20 * BLOCK);
	expect(&rig, out, 20 * BLOCK, 3, 20 * BLOCK, 5 * BLOCK);
	data_rig_deinit(&rig);
}

static void a_file_is_copied_within_itself(void **state)
{
	struct data_rig_options options = {.seed = 4};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = make_file(&rig, "file", 1, 16 * BLOCK);
	assert_int_equal(copy(&rig, ino, 0, ino, 8 * BLOCK, 4 * BLOCK), 4 * BLOCK);
	assert_int_equal(copy(&rig, ino, 4 * BLOCK, ino, 16 * BLOCK, 12 * BLOCK), 12 * BLOCK);
	assert_int_equal(data_rig_size(&rig, ino), 28 * BLOCK);
	for (unsigned int round = 0; round < 2; round++) {
		expect(&rig, ino, 0, 1, 0, 8 * BLOCK);
		expect(&rig, ino, 8 * BLOCK, 1, 0, 4 * BLOCK);
		expect(&rig, ino, 12 * BLOCK, 1, 12 * BLOCK, 4 * BLOCK);
		expect(&rig, ino, 16 * BLOCK, 1, 4 * BLOCK, 4 * BLOCK);
		expect(&rig, ino, 20 * BLOCK, 1, 0, 4 * BLOCK);
		expect(&rig, ino, 24 * BLOCK, 1, 12 * BLOCK, 4 * BLOCK);
		assert_int_equal(data_rig_live_blocks(&rig), 12);
		data_rig_remount(&rig);
	}
	data_rig_truncate(&rig, ino, 0);
	assert_int_equal(data_rig_live_blocks(&rig), 0);
	data_rig_deinit(&rig);
}

static void holes_stay_holes(void **state)
{
	struct data_rig_options options = {.seed = 5};
	struct data_rig rig;
	struct zf_attr attr;
	uint64_t in, out;

	(void)state;
	data_rig_init(&rig, &options);
	in = data_rig_make(&rig, "in");
	data_rig_write_pattern(&rig, in, 1, 10 * BLOCK, 5 * BLOCK);
	data_rig_truncate(&rig, in, 30 * BLOCK + 77);
	out = make_file(&rig, "out", 2, 30 * BLOCK);
	assert_int_equal(copy(&rig, in, 0, out, 0, MIB), 30 * BLOCK + 77);
	get_attr(&rig, out, &attr);
	assert_int_equal(attr.blocks, 5 * BLOCK / 512);
	assert_int_equal(attr.size, 30 * BLOCK + 77);
	data_rig_expect_zeroes(&rig, out, 0, 10 * BLOCK);
	expect(&rig, out, 10 * BLOCK, 1, 10 * BLOCK, 5 * BLOCK);
	data_rig_expect_zeroes(&rig, out, 15 * BLOCK, 15 * BLOCK + 77);
	assert_int_equal(data_rig_live_blocks(&rig), 5);
	data_rig_deinit(&rig);
}

static void allocate(struct data_rig *rig, uint64_t ino, uint64_t offset, uint64_t len)
{
	assert_int_equal(zf_fs_fallocate(rig->fs, &rig->ctx, ino, 0, offset, len), 0);
}

/* Space that is kept for the source is not kept for the copy; what was kept for the target is free.
 */
static void allocated_space_becomes_a_hole(void **state)
{
	struct data_rig_options options = {.seed = 18};
	struct zf_statfs before, after;
	struct data_rig rig;
	struct zf_attr attr;
	uint64_t in, out;

	(void)state;
	data_rig_init(&rig, &options);
	in = make_file(&rig, "in", 1, 8 * BLOCK);
	out = data_rig_make(&rig, "out");
	assert_int_equal(zf_fs_statfs(rig.fs, &before), 0);
	allocate(&rig, out, 0, 4 * MIB);
	/* Some of the kept space is lent to data that is in memory when the copy comes. */
	data_rig_write_pattern(&rig, out, 2, 0, 4 * BLOCK);
	allocate(&rig, in, 8 * BLOCK, 4 * MIB - 8 * BLOCK);
	assert_int_equal(copy(&rig, in, 0, out, 0, 4 * MIB), 4 * MIB);
	get_attr(&rig, out, &attr);
	assert_int_equal(attr.blocks, 8 * BLOCK / 512);
	expect(&rig, out, 0, 1, 0, 8 * BLOCK);
	data_rig_expect_zeroes(&rig, out, 8 * BLOCK, 4 * MIB - 8 * BLOCK);
	data_rig_truncate(&rig, in, 8 * BLOCK);
	assert_int_equal(zf_fs_statfs(rig.fs, &after), 0);
	assert_true(before.blocks_available - after.blocks_available < 64);
	data_rig_deinit(&rig);
}

static void a_hole_replaces_thousands_of_extents(void **state)
{
	struct data_rig_options options = {.seed = 6};
	struct data_rig rig;
	uint64_t in, out, copied;

	(void)state;
	data_rig_init(&rig, &options);
	in = data_rig_make(&rig, "in");
	data_rig_truncate(&rig, in, 8 * MIB);
	out = data_rig_make(&rig, "out");
	for (unsigned int i = 0; i < 1000; i++)
		data_rig_write_pattern(&rig, out, 2, (uint64_t)i * 2 * BLOCK, BLOCK);
	data_rig_sync(&rig);
	copied = data_rig_make(&rig, "copied");
	assert_int_equal(copy(&rig, out, 0, copied, 0, 8 * MIB), 1999 * BLOCK);
	assert_int_equal(copy(&rig, in, BLOCK, out, BLOCK, 1997 * BLOCK), 1997 * BLOCK);
	assert_int_equal(data_rig_live_blocks(&rig), 1000);
	expect(&rig, out, 0, 2, 0, BLOCK);
	data_rig_expect_zeroes(&rig, out, BLOCK, 1997 * BLOCK);
	expect(&rig, out, 1998 * BLOCK, 2, 1998 * BLOCK, BLOCK);
	data_rig_unlink(&rig, "copied", copied);
	assert_int_equal(data_rig_live_blocks(&rig), 2);
	data_rig_deinit(&rig);
}

/* ---- bytes ---- */

static void ranges_of_any_alignment_are_copied(void **state)
{
	static const struct {
		uint64_t in, out, len;
	} cases[] = {
		{0, 1, 100},
		{1, 1, 3 * BLOCK},
		{5, 5, BLOCK - 5},
		{100, BLOCK + 100, 20 * BLOCK},
		{BLOCK, 2 * BLOCK + 1, BLOCK},
		{0, 0, BLOCK - 1},
		{3, 0, 30 * BLOCK},
		{BLOCK, 30 * BLOCK, 10 * BLOCK + 9},
		{BLOCK, 2 * BLOCK, 10 * BLOCK + 9},
	};
	struct data_rig_options options = {.seed = 7};
	struct data_rig rig;
	uint64_t in, out;

	(void)state;
	data_rig_init(&rig, &options);
	in = make_file(&rig, "in", 1, 40 * BLOCK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t end = cases[i].out + cases[i].len;

		out = make_file(&rig, "out", 2, 20 * BLOCK);
		assert_int_equal(copy(&rig, in, cases[i].in, out, cases[i].out, cases[i].len),
				 cases[i].len);
		expect(&rig, out, 0, 2, 0, cases[i].out < 20 * BLOCK ? cases[i].out : 20 * BLOCK);
		expect(&rig, out, cases[i].out, 1, cases[i].in, cases[i].len);
		if (end < 20 * BLOCK)
			expect(&rig, out, end, 2, end, 20 * BLOCK - end);
		assert_int_equal(data_rig_size(&rig, out), end > 20 * BLOCK ? end : 20 * BLOCK);
		data_rig_remount(&rig);
		expect(&rig, out, cases[i].out, 1, cases[i].in, cases[i].len);
		data_rig_unlink(&rig, "out", out);
	}
	data_rig_deinit(&rig);
}

static void small_files_are_copied(void **state)
{
	struct data_rig_options options = {.seed = 8};
	struct data_rig rig;
	uint64_t in, out;

	(void)state;
	data_rig_init(&rig, &options);
	in = make_file(&rig, "in", 1, 1000);
	out = data_rig_make(&rig, "out");
	assert_int_equal(copy(&rig, in, 0, out, 0, MIB), 1000);
	expect(&rig, out, 0, 1, 0, 1000);
	/* In a file that has grown, the inline item still is the first block. */
	data_rig_write_pattern(&rig, in, 1, 5 * BLOCK, 3 * BLOCK);
	assert_int_equal(copy(&rig, in, 0, out, 0, MIB), 8 * BLOCK);
	expect(&rig, out, 0, 1, 0, 1000);
	data_rig_expect_zeroes(&rig, out, 1000, 5 * BLOCK - 1000);
	expect(&rig, out, 5 * BLOCK, 1, 5 * BLOCK, 3 * BLOCK);
	assert_int_equal(shared_extents(&rig, out), 1);
	data_rig_deinit(&rig);
}

static void the_bytes_behind_the_end_are_never_seen(void **state)
{
	struct data_rig_options options = {.seed = 9};
	struct data_rig rig;
	uint64_t in, out;

	(void)state;
	data_rig_init(&rig, &options);
	in = make_file(&rig, "in", 1, 10 * BLOCK);
	out = data_rig_make(&rig, "out");
	/* The copy ends in the middle of a block of the source. The whole block is shared. */
	assert_int_equal(copy(&rig, in, 0, out, 0, 4 * BLOCK + 10), 4 * BLOCK + 10);
	assert_int_equal(data_rig_live_blocks(&rig), 10);
	data_rig_truncate(&rig, out, 6 * BLOCK);
	expect(&rig, out, 0, 1, 0, 4 * BLOCK + 10);
	data_rig_expect_zeroes(&rig, out, 4 * BLOCK + 10, 2 * BLOCK - 10);
	/* The copy ends at the end of a source that was truncated there. */
	data_rig_truncate(&rig, in, 9 * BLOCK + 20);
	data_rig_truncate(&rig, out, 0);
	data_rig_write_pattern(&rig, out, 3, 0, 100);
	assert_int_equal(copy(&rig, in, 0, out, 0, MIB), 9 * BLOCK + 20);
	data_rig_write_pattern(&rig, out, 3, 11 * BLOCK, BLOCK);
	data_rig_expect_zeroes(&rig, out, 9 * BLOCK + 20, 2 * BLOCK - 20);
	expect(&rig, out, 0, 1, 0, 9 * BLOCK + 20);
	/* The target ends in the middle of a block, and the copy lies far behind that end. */
	data_rig_truncate(&rig, out, 9 * BLOCK + 5);
	assert_int_equal(copy(&rig, in, 0, out, 12 * BLOCK, BLOCK), BLOCK);
	data_rig_expect_zeroes(&rig, out, 9 * BLOCK + 5, 3 * BLOCK - 5);
	data_rig_remount(&rig);
	data_rig_expect_zeroes(&rig, out, 9 * BLOCK + 5, 3 * BLOCK - 5);
	expect(&rig, out, 12 * BLOCK, 1, 0, BLOCK);
	data_rig_deinit(&rig);
}

/* ---- what becomes of shared extents ---- */

static void overwriting_a_copy_leaves_the_others(void **state)
{
	struct data_rig_options options = {.seed = 10};
	struct data_rig rig;
	uint64_t in, out;

	(void)state;
	data_rig_init(&rig, &options);
	in = make_file(&rig, "in", 1, 100 * BLOCK);
	out = data_rig_make(&rig, "out");
	assert_int_equal(copy(&rig, in, 0, out, 0, MIB), 100 * BLOCK);
	data_rig_write_pattern(&rig, out, 2, 50 * BLOCK, BLOCK);
	data_rig_write_pattern(&rig, out, 2, 0, 100);
	data_rig_write_pattern(&rig, in, 3, 99 * BLOCK, BLOCK);
	data_rig_sync(&rig);
	assert_int_equal(data_rig_live_blocks(&rig), 103);
	expect(&rig, in, 0, 1, 0, 99 * BLOCK);
	expect(&rig, in, 99 * BLOCK, 3, 99 * BLOCK, BLOCK);
	expect(&rig, out, 0, 2, 0, 100);
	expect(&rig, out, 100, 1, 100, 50 * BLOCK - 100);
	expect(&rig, out, 50 * BLOCK, 2, 50 * BLOCK, BLOCK);
	expect(&rig, out, 51 * BLOCK, 1, 51 * BLOCK, 49 * BLOCK);
	/* The other file overwrites the same block, so no file has the old one. */
	data_rig_write_pattern(&rig, in, 4, 50 * BLOCK, BLOCK);
	data_rig_sync(&rig);
	assert_int_equal(data_rig_live_blocks(&rig), 103);
	data_rig_deinit(&rig);
}

static void the_last_name_frees_the_bytes(void **state)
{
	static const char *const names[] = {"in", "a", "b"};
	struct data_rig_options options = {.seed = 11};
	struct data_rig rig;
	uint64_t in, a, b;

	(void)state;
	for (unsigned int first = 0; first < 3; first++) {
		data_rig_init(&rig, &options);
		in = make_file(&rig, "in", 1, 3 * MIB);
		a = data_rig_make(&rig, "a");
		b = data_rig_make(&rig, "b");
		assert_int_equal(copy(&rig, in, 0, a, 0, 3 * MIB), 3 * MIB);
		/* This copy begins at another offset than the others. */
		assert_int_equal(copy(&rig, a, 7 * BLOCK, b, BLOCK, 2 * MIB), 2 * MIB);
		data_rig_unlink(&rig, names[first], 0);
		assert_int_equal(data_rig_live_blocks(&rig), 3 * MIB / BLOCK);
		data_rig_remount(&rig);
		if (first != 2)
			expect(&rig, b, BLOCK, 1, 7 * BLOCK, 2 * MIB);
		data_rig_unlink(&rig, names[(first + 1) % 3], 0);
		assert_int_equal(data_rig_live_blocks(&rig), (first == 1   ? 3
							      : first == 2 ? 3
									   : 2) *
								     MIB / BLOCK);
		data_rig_remount(&rig);
		data_rig_unlink(&rig, names[(first + 2) % 3], 0);
		assert_int_equal(data_rig_live_blocks(&rig), 0);
		data_rig_deinit(&rig);
	}
}

static void a_block_is_named_a_thousand_times(void **state)
{
	struct data_rig_options options = {.seed = 12, .node_size = 4096};
	struct data_rig rig;
	uint64_t in, out;

	(void)state;
	data_rig_init(&rig, &options);
	in = make_file(&rig, "in", 1, 2 * BLOCK);
	out = data_rig_make(&rig, "out");
	for (unsigned int i = 0; i < 1000; i++)
		assert_int_equal(
			copy(&rig, in, i % 2 * BLOCK, out, (uint64_t)i * 3 * BLOCK, 2 * BLOCK),
			i % 2 ? BLOCK : 2 * BLOCK);
	assert_int_equal(data_rig_live_blocks(&rig), 2);
	data_rig_remount(&rig);
	for (unsigned int i = 0; i < 1000; i++)
		expect(&rig, out, (uint64_t)i * 3 * BLOCK, 1, i % 2 * BLOCK, BLOCK);
	data_rig_write_pattern(&rig, in, 2, 0, 2 * BLOCK);
	data_rig_truncate(&rig, out, 3 * BLOCK);
	data_rig_sync(&rig);
	assert_int_equal(data_rig_live_blocks(&rig), 4);
	data_rig_truncate(&rig, out, BLOCK);
	assert_int_equal(data_rig_live_blocks(&rig), 3);
	data_rig_deinit(&rig);
}

/* One write over more shared extents than one transaction may replace. */
static void a_write_replaces_many_shared_extents(void **state)
{
	struct data_rig_options options = {.seed = 13};
	struct data_rig rig;
	uint64_t in, out;

	(void)state;
	data_rig_init(&rig, &options);
	in = make_file(&rig, "in", 1, 64 * BLOCK);
	out = make_file(&rig, "out", 2, 64 * BLOCK);
	for (uint64_t i = 0; i < 32; i++)
		assert_int_equal(copy(&rig, in, i * BLOCK, out, (62 - 2 * i) * BLOCK, BLOCK),
				 BLOCK);
	assert_int_equal(shared_extents(&rig, out), 32);
	assert_int_equal(data_rig_live_blocks(&rig), 64 + 32);
	data_rig_write_pattern(&rig, out, 3, BLOCK / 2, 60 * BLOCK);
	data_rig_sync(&rig);
	expect(&rig, out, BLOCK / 2, 3, BLOCK / 2, 60 * BLOCK);
	assert_int_equal(data_rig_live_blocks(&rig), 64 + 63);
	expect(&rig, in, 0, 1, 0, 64 * BLOCK);
	data_rig_deinit(&rig);
}

/* ---- what is answered ---- */

static void impossible_copies_are_refused(void **state)
{
	struct data_rig_options options = {.seed = 14};
	struct zf_ctx hurried = {0};
	struct data_rig rig;
	uint64_t in, out;

	(void)state;
	data_rig_init(&rig, &options);
	in = make_file(&rig, "in", 1, 10 * BLOCK);
	out = data_rig_make(&rig, "out");
	assert_int_equal(copy(&rig, in, 10 * BLOCK, out, 0, BLOCK), 0);
	assert_int_equal(copy(&rig, in, UINT64_MAX - 5, out, 0, BLOCK), 0);
	assert_int_equal(copy(&rig, in, 0, out, 0, 0), 0);
	assert_int_equal(data_rig_size(&rig, out), 0);
	assert_int_equal(copy(&rig, in, 0, in, BLOCK, 2 * BLOCK), -EINVAL);
	assert_int_equal(copy(&rig, in, BLOCK, in, 0, BLOCK + 1), -EINVAL);
	assert_int_equal(copy(&rig, in, BLOCK, in, BLOCK, BLOCK), -EINVAL);
	/* A copy is cut at the end of the source and at the largest size of a file. */
	assert_int_equal(copy(&rig, in, 9 * BLOCK, in, 10 * BLOCK, MIB), BLOCK);
	assert_int_equal(copy(&rig, in, 0, out, INT64_MAX, 1), -EFBIG);
	assert_int_equal(copy(&rig, in, 0, out, INT64_MAX - 3, 10), 3);
	assert_int_equal(copy(&rig, ZF_INO_ROOT, 0, out, 0, 1), -EISDIR);
	assert_int_equal(copy(&rig, in, 0, ZF_INO_ROOT, 0, 1), -EISDIR);
	assert_int_equal(copy(&rig, 99999, 0, out, 0, 1), -ESTALE);
	assert_int_equal(zf_fs_copy_range(rig.fs, &hurried, in, 0, out, 0, 1), -EAGAIN);
	data_rig_deinit(&rig);
}

static void copying_changes_times_and_privileges(void **state)
{
	const struct zf_setattr set = {.valid = ZF_SET_MODE, .mode = 06755};
	struct data_rig_options options = {.seed = 15};
	struct zf_attr before, after;
	struct data_rig rig;
	uint64_t in, out;

	(void)state;
	data_rig_init(&rig, &options);
	in = make_file(&rig, "in", 1, 10 * BLOCK);
	out = make_file(&rig, "out", 2, 10 * BLOCK);
	assert_int_equal(zf_fs_setattr(rig.fs, &rig.ctx, out, &set, &before), 0);
	/* A copy by root keeps the setuid and setgid bits. */
	assert_int_equal(copy(&rig, in, 0, out, 0, BLOCK), BLOCK);
	get_attr(&rig, out, &after);
	assert_int_equal(after.mode & 07777, 06755);
	assert_true(after.mtime.nanoseconds > before.mtime.nanoseconds);
	assert_true(after.ctime.nanoseconds > before.ctime.nanoseconds);
	rig.ctx.uid = 1000;
	for (uint64_t within = 0; within < 2; within++) {
		rig.ctx.uid = 0;
		assert_int_equal(zf_fs_setattr(rig.fs, &rig.ctx, out, &set, &before), 0);
		rig.ctx.uid = 1000;
		assert_int_equal(copy(&rig, in, 0, out, within, BLOCK), BLOCK);
		get_attr(&rig, out, &after);
		assert_int_equal(after.mode & 07777, 0755);
	}
	rig.ctx.uid = 0;
	data_rig_deinit(&rig);
}

static void set_flags(struct data_rig *rig, uint64_t ino, uint32_t flags)
{
	const struct zf_set_flags set = {.mask = UINT32_MAX, .flags = flags};

	assert_int_equal(zf_fs_set_flags(rig->fs, &rig->ctx, ino, &set), 0);
}

static void the_flags_of_the_target_are_heeded(void **state)
{
	struct data_rig_options options = {.seed = 17};
	struct data_rig rig;
	uint64_t in, out;

	(void)state;
	data_rig_init(&rig, &options);
	in = make_file(&rig, "in", 1, 10 * BLOCK);
	out = make_file(&rig, "out", 2, 10 * BLOCK);
	set_flags(&rig, out, ZF_INODE_IMMUTABLE);
	assert_int_equal(copy(&rig, in, 0, out, 10 * BLOCK, BLOCK), -EPERM);
	set_flags(&rig, out, ZF_INODE_APPEND);
	assert_int_equal(copy(&rig, in, 0, out, 9 * BLOCK, BLOCK), -EPERM);
	assert_int_equal(copy(&rig, in, 0, out, 10 * BLOCK, 2 * BLOCK), 2 * BLOCK);
	set_flags(&rig, out, ZF_INODE_SYNC);
	assert_int_equal(copy(&rig, in, 0, out, 0, 5 * BLOCK), 5 * BLOCK);
	data_rig_crash(&rig);
	expect(&rig, out, 0, 1, 0, 5 * BLOCK);
	expect(&rig, out, 5 * BLOCK, 2, 5 * BLOCK, 5 * BLOCK);
	expect(&rig, out, 10 * BLOCK, 1, 0, 2 * BLOCK);
	data_rig_deinit(&rig);
}

static void a_copy_survives_a_crash_once_synced(void **state)
{
	struct data_rig_options options = {.seed = 16};
	struct data_rig rig;
	uint64_t in, out;

	(void)state;
	data_rig_init(&rig, &options);
	in = make_file(&rig, "in", 1, 3 * MIB);
	out = data_rig_make(&rig, "out");
	assert_int_equal(copy(&rig, in, 0, out, BLOCK, 3 * MIB), 3 * MIB);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, out, true), 0);
	data_rig_write_pattern(&rig, in, 2, 0, MIB);
	data_rig_unlink(&rig, "in", in);
	data_rig_crash(&rig);
	expect(&rig, out, BLOCK, 1, 0, 3 * MIB);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_copy_takes_no_space_and_reads_the_same),
		cmocka_unit_test(dirty_data_of_the_source_is_copied),
		cmocka_unit_test(what_the_target_had_in_memory_is_void),
		cmocka_unit_test(a_file_is_copied_within_itself),
		cmocka_unit_test(holes_stay_holes),
		cmocka_unit_test(allocated_space_becomes_a_hole),
		cmocka_unit_test(a_hole_replaces_thousands_of_extents),
		cmocka_unit_test(ranges_of_any_alignment_are_copied),
		cmocka_unit_test(small_files_are_copied),
		cmocka_unit_test(the_bytes_behind_the_end_are_never_seen),
		cmocka_unit_test(overwriting_a_copy_leaves_the_others),
		cmocka_unit_test(the_last_name_frees_the_bytes),
		cmocka_unit_test(a_block_is_named_a_thousand_times),
		cmocka_unit_test(a_write_replaces_many_shared_extents),
		cmocka_unit_test(impossible_copies_are_refused),
		cmocka_unit_test(copying_changes_times_and_privileges),
		cmocka_unit_test(the_flags_of_the_target_are_heeded),
		cmocka_unit_test(a_copy_survives_a_crash_once_synced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
