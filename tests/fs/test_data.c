/* SPDX-License-Identifier: MIT */
/* File data, case by case. */
#include <errno.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fs/data/data.h"
#include "fs/data_rig.h"
#include "fs/core/inode.h"

#define BLOCK 4096u

static uint8_t buf[8 << 20];

static struct zf_inode *get(struct data_rig *rig, uint64_t ino)
{
	struct zf_inode *inode;

	assert_int_equal(zf_inode_get(rig->fs, ino, &inode), 0);
	return inode;
}

/* Starts the file's dirty blocks on their way and leaves them there. */
static void start_flush(struct data_rig *rig, uint64_t ino)
{
	struct zf_inode *inode = get(rig, ino);

	assert_int_equal(zf_data_flush(inode, false), 0);
	zf_inode_put(inode);
}

static uint8_t only_extent_type(struct data_rig *rig, uint64_t ino)
{
	struct data_rig_extents extents;

	data_rig_extents(rig, ino, &extents);
	assert_int_equal(extents.count, 1);
	return extents.at[0].type;
}

/* ---- small files ---- */

static void small_files_live_in_their_item(void **state)
{
	struct data_rig_options options = {.seed = 1};
	struct zf_dev_stats before, after;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "small");
	zf_dev_get_stats(rig.dev, &before);
	data_rig_write_pattern(&rig, ino, 1, 0, 100);
	assert_int_equal(only_extent_type(&rig, ino), ZF_EXTENT_INLINE);
	zf_dev_get_stats(rig.dev, &after);
	assert_int_equal(after.appends, before.appends);
	data_rig_remount(&rig);
	data_rig_expect(&rig, ino, 1, 0, 100);
	data_rig_write_pattern(&rig, ino, 1, 100, ZF_INLINE_MAX - 100);
	assert_int_equal(only_extent_type(&rig, ino), ZF_EXTENT_INLINE);
	data_rig_write_pattern(&rig, ino, 1, ZF_INLINE_MAX, 1);
	assert_int_equal(only_extent_type(&rig, ino), ZF_EXTENT_DATA);
	data_rig_remount(&rig);
	data_rig_expect(&rig, ino, 1, 0, ZF_INLINE_MAX + 1);
	data_rig_truncate(&rig, ino, 0);
	data_rig_write_pattern(&rig, ino, 2, 0, 10);
	assert_int_equal(only_extent_type(&rig, ino), ZF_EXTENT_INLINE);
	data_rig_deinit(&rig);
}

static void a_small_file_shrinks_and_grows(void **state)
{
	struct data_rig_options options = {.seed = 2};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "small");
	data_rig_write_pattern(&rig, ino, 1, 0, 1000);
	data_rig_sync(&rig);
	data_rig_truncate(&rig, ino, 300);
	data_rig_remount(&rig);
	assert_int_equal(data_rig_size(&rig, ino), 300);
	data_rig_truncate(&rig, ino, 3000000);
	data_rig_expect(&rig, ino, 1, 0, 300);
	data_rig_expect_zeroes(&rig, ino, 300, 3000000 - 300);
	/* The item goes on standing for block 0. */
	data_rig_write_pattern(&rig, ino, 3, 2000000, 5000);
	data_rig_remount(&rig);
	data_rig_expect(&rig, ino, 1, 0, 300);
	data_rig_expect_zeroes(&rig, ino, 300, 2000000 - 300);
	data_rig_expect(&rig, ino, 3, 2000000, 5000);
	data_rig_write_pattern(&rig, ino, 1, 300, 10000);
	data_rig_remount(&rig);
	data_rig_expect(&rig, ino, 1, 0, 10300);
	data_rig_deinit(&rig);
}

/* ---- in flight ---- */

static void a_rewrite_waits_for_the_block_in_flight(void **state)
{
	struct data_rig_options options = {.seed = 3};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 20 * BLOCK);
	start_flush(&rig, ino);
	data_rig_write_pattern(&rig, ino, 2, 5 * BLOCK + 100, 3 * BLOCK);
	data_rig_expect(&rig, ino, 1, 0, 5 * BLOCK + 100);
	data_rig_expect(&rig, ino, 2, 5 * BLOCK + 100, 3 * BLOCK);
	start_flush(&rig, ino);
	data_rig_expect(&rig, ino, 2, 5 * BLOCK + 100, 3 * BLOCK);
	data_rig_remount(&rig);
	data_rig_expect(&rig, ino, 1, 0, 5 * BLOCK + 100);
	data_rig_expect(&rig, ino, 2, 5 * BLOCK + 100, 3 * BLOCK);
	data_rig_expect(&rig, ino, 1, 8 * BLOCK + 100, 12 * BLOCK - 100);
	data_rig_deinit(&rig);
}

static void truncation_revokes_what_is_in_flight(void **state)
{
	struct data_rig_options options = {.seed = 4};
	struct data_rig_extents extents;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 20 * BLOCK);
	start_flush(&rig, ino);
	data_rig_truncate(&rig, ino, 3 * BLOCK + 7);
	data_rig_truncate(&rig, ino, 20 * BLOCK);
	data_rig_expect(&rig, ino, 1, 0, 3 * BLOCK + 7);
	data_rig_expect_zeroes(&rig, ino, 3 * BLOCK + 7, 17 * BLOCK - 7);
	data_rig_remount(&rig);
	data_rig_expect(&rig, ino, 1, 0, 3 * BLOCK + 7);
	data_rig_expect_zeroes(&rig, ino, 3 * BLOCK + 7, 17 * BLOCK - 7);
	data_rig_extents(&rig, ino, &extents);
	assert_true(extents.count <= 2);
	data_rig_deinit(&rig);
}

static void deletion_drops_what_is_dirty(void **state)
{
	struct data_rig_options options = {.seed = 5};
	struct zf_dev_stats before, after;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_sync(&rig);
	zf_dev_get_stats(rig.dev, &before);
	data_rig_write_pattern(&rig, ino, 1, 0, 100 * BLOCK);
	data_rig_unlink(&rig, "file", ino);
	data_rig_sync(&rig);
	zf_dev_get_stats(rig.dev, &after);
	assert_true(after.append_bytes - before.append_bytes < 10 * BLOCK);
	assert_int_equal(rig.fs->flush.used_bytes, 0);
	data_rig_deinit(&rig);
}

/* ---- extents ---- */

static void sequential_writes_make_few_extents(void **state)
{
	struct data_rig_options options = {.seed = 6, .zone_size = 4 << 20};
	struct data_rig_extents extents;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	for (unsigned int i = 0; i < 64; i++) {
		data_rig_write_pattern(&rig, ino, 1, i * 65536, 65536);
		if (i % 3 == 0)
			data_rig_sync(&rig);
	}
	data_rig_extents(&rig, ino, &extents);
	/* 4 MiB in zones of 4 MiB. Appends of one flush may land out of order, and are put together
	 * again. */
	assert_true(extents.count <= 6);
	data_rig_remount(&rig);
	data_rig_expect(&rig, ino, 1, 0, 4 << 20);
	data_rig_deinit(&rig);
}

static void scattered_overwrites_split_extents(void **state)
{
	struct data_rig_options options = {.seed = 7};
	struct data_rig_extents extents;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 64 * BLOCK);
	data_rig_sync(&rig);
	for (unsigned int i = 0; i < 64; i += 4)
		data_rig_write_pattern(&rig, ino, 2, i * BLOCK, BLOCK);
	data_rig_extents(&rig, ino, &extents);
	assert_true(extents.count >= 31);
	data_rig_remount(&rig);
	for (unsigned int i = 0; i < 64; i++)
		data_rig_expect(&rig, ino, i % 4 == 0 ? 2 : 1, i * BLOCK, BLOCK);
	/* One large write makes it one extent again. */
	data_rig_write_pattern(&rig, ino, 3, 0, 64 * BLOCK);
	data_rig_extents(&rig, ino, &extents);
	assert_true(extents.count <= 4);
	data_rig_expect(&rig, ino, 3, 0, 64 * BLOCK);
	data_rig_deinit(&rig);
}

static void an_extent_tells_when_its_bytes_came_to_their_place(void **state)
{
	struct data_rig_options options = {.seed = 8};
	struct data_rig_extents extents;
	uint64_t ino, clone, first;
	struct data_rig rig;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 8 * BLOCK);
	data_rig_sync(&rig);
	data_rig_extents(&rig, ino, &extents);
	first = extents.at[0].generation;
	data_rig_write_pattern(&rig, ino, 2, 4 * BLOCK, BLOCK);
	data_rig_sync(&rig);
	/* The rest of an extent keeps its generation; the extent that replaced a part has another.
	 */
	data_rig_extents(&rig, ino, &extents);
	assert_int_equal(extents.count, 3);
	assert_int_equal(extents.at[0].generation, first);
	assert_true(extents.at[1].generation > first);
	assert_int_equal(extents.at[2].generation, first);
	/* A clone's extents get the generation in which the clone is made; the source's extents
	 * keep theirs. */
	clone = data_rig_make(&rig, "clone");
	data_rig_sync(&rig);
	assert_int_equal(zf_fs_copy_range(rig.fs, &rig.ctx, ino, 0, clone, 0, 4 * BLOCK),
			 4 * BLOCK);
	data_rig_extents(&rig, ino, &extents);
	assert_int_equal(extents.at[0].generation, first);
	data_rig_extents(&rig, clone, &extents);
	assert_true(extents.at[0].generation > first);
	data_rig_deinit(&rig);
}

static void two_extents_that_become_one_have_the_newer_generation(void **state)
{
	struct data_rig_options options = {.seed = 9};
	struct data_rig_extents extents;
	struct data_rig rig;
	uint64_t ino, first;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 4 * BLOCK);
	data_rig_sync(&rig);
	data_rig_extents(&rig, ino, &extents);
	first = extents.at[0].generation;
	for (unsigned int i = 1; i < 4; i++) {
		data_rig_write_pattern(&rig, ino, 1, 4 * i * BLOCK, 4 * BLOCK);
		data_rig_sync(&rig);
		data_rig_extents(&rig, ino, &extents);
		assert_int_equal(extents.count, 1);
		assert_true(extents.at[0].generation > first);
		first = extents.at[0].generation;
	}
	data_rig_deinit(&rig);
}

static void a_trimmed_inline_extent_has_the_generation_of_its_zeroes(void **state)
{
	struct data_rig_options options = {.seed = 10};
	struct data_rig_extents extents;
	struct data_rig rig;
	uint64_t ino, first;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "small");
	data_rig_write_pattern(&rig, ino, 1, 0, 1000);
	data_rig_sync(&rig);
	data_rig_extents(&rig, ino, &extents);
	assert_int_equal(extents.at[0].type, ZF_EXTENT_INLINE);
	first = extents.at[0].generation;
	data_rig_truncate(&rig, ino, 300);
	data_rig_extents(&rig, ino, &extents);
	assert_true(extents.at[0].generation > first);
	data_rig_deinit(&rig);
}

static void truncating_thousands_of_extents_leaves_none(void **state)
{
	struct data_rig_options options = {.seed = 8};
	struct data_rig_extents extents;
	struct data_rig rig;
	struct zf_attr attr;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	for (uint64_t i = 0; i < 2000; i++)
		data_rig_write_pattern(&rig, ino, 1, i * 3 * BLOCK, BLOCK);
	data_rig_remount(&rig);
	data_rig_truncate(&rig, ino, 5 * BLOCK + 1);
	assert_int_equal(zf_fs_getattr(rig.fs, &rig.ctx, ino, &attr), 0);
	data_rig_extents(&rig, ino, &extents);
	assert_int_equal(extents.count, 2);
	assert_int_equal(attr.blocks, 16);
	data_rig_remount(&rig);
	data_rig_expect(&rig, ino, 1, 3 * BLOCK, BLOCK);
	data_rig_truncate(&rig, ino, 0);
	data_rig_extents(&rig, ino, &extents);
	assert_int_equal(extents.count, 0);
	data_rig_deinit(&rig);
}

/* ---- holes ---- */

static void seeking_finds_data_and_holes(void **state)
{
	struct data_rig_options options = {.seed = 9};
	struct data_rig rig;
	uint64_t ino, at;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_truncate(&rig, ino, 100 * BLOCK);
	assert_int_equal(zf_fs_seek(rig.fs, &rig.ctx, ino, 0, SEEK_DATA, &at), -ENXIO);
	assert_int_equal(zf_fs_seek(rig.fs, &rig.ctx, ino, 5, SEEK_HOLE, &at), 0);
	assert_int_equal(at, 5);
	for (unsigned int landed = 0; landed < 2; landed++) {
		data_rig_write_pattern(&rig, ino, 1, 10 * BLOCK, 2 * BLOCK);
		data_rig_write_pattern(&rig, ino, 1, 12 * BLOCK + 5, 1);
		if (landed)
			data_rig_sync(&rig);
		assert_int_equal(zf_fs_seek(rig.fs, &rig.ctx, ino, 1, SEEK_DATA, &at), 0);
		assert_int_equal(at, 10 * BLOCK);
		assert_int_equal(zf_fs_seek(rig.fs, &rig.ctx, ino, 10 * BLOCK, SEEK_HOLE, &at), 0);
		assert_int_equal(at, 13 * BLOCK);
		assert_int_equal(zf_fs_seek(rig.fs, &rig.ctx, ino, 13 * BLOCK, SEEK_DATA, &at),
				 -ENXIO);
		assert_int_equal(zf_fs_seek(rig.fs, &rig.ctx, ino, 100 * BLOCK, SEEK_HOLE, &at),
				 -ENXIO);
	}
	assert_int_equal(zf_fs_seek(rig.fs, &rig.ctx, ino, 0, SEEK_SET, &at), -EINVAL);
	data_rig_deinit(&rig);
}

static void the_largest_file_is_the_largest(void **state)
{
	struct data_rig_options options = {.seed = 10};
	const struct zf_setattr too_large = {.valid = ZF_SET_SIZE,
					     .size = (uint64_t)ZF_FILE_SIZE_MAX + 1};
	struct data_rig rig;
	struct zf_attr attr;
	uint64_t ino, max = ZF_FILE_SIZE_MAX;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	assert_int_equal(zf_fs_write(rig.fs, &rig.ctx, ino, max, "x", 1, 0), -EFBIG);
	assert_int_equal(zf_fs_write(rig.fs, &rig.ctx, ino, max - 3, "abcdef", 6, 0), 3);
	assert_int_equal(data_rig_size(&rig, ino), max);
	assert_int_equal(zf_fs_write(rig.fs, &rig.ctx, ino, 0, "x", 1, ZF_WRITE_APPEND), -EFBIG);
	assert_true(zf_fs_setattr(rig.fs, &rig.ctx, ino, &too_large, &attr) < 0);
	data_rig_remount(&rig);
	assert_int_equal(zf_fs_read(rig.fs, &rig.ctx, ino, max - 4, buf, 100), 4);
	assert_memory_equal(buf, "\0abc", 4);
	data_rig_truncate(&rig, ino, 1);
	data_rig_deinit(&rig);
}

/* ---- attributes ---- */

static void writing_changes_times_and_privileges(void **state)
{
	struct data_rig_options options = {.seed = 11};
	const struct zf_setattr set = {.valid = ZF_SET_MODE, .mode = 06755};
	struct zf_attr before, after;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	assert_int_equal(zf_fs_setattr(rig.fs, &rig.ctx, ino, &set, &before), 0);
	rig.now_ns += 5000000000;
	assert_int_equal(zf_fs_write(rig.fs, &rig.ctx, ino, 0, "x", 1, ZF_WRITE_CACHE), 1);
	assert_int_equal(zf_fs_getattr(rig.fs, &rig.ctx, ino, &after), 0);
	assert_int_equal(after.mtime.seconds, before.mtime.seconds);
	assert_int_equal(after.mode & 07777, 06755);
	assert_int_equal(zf_fs_write(rig.fs, &rig.ctx, ino, 0, "x", 1, ZF_WRITE_KILL_SUIDGID), 1);
	data_rig_remount(&rig);
	assert_int_equal(zf_fs_getattr(rig.fs, &rig.ctx, ino, &after), 0);
	assert_true(after.mtime.seconds >= before.mtime.seconds + 5);
	assert_true(after.ctime.seconds >= before.ctime.seconds + 5);
	assert_int_equal(after.mode & 07777, 0755);
	data_rig_deinit(&rig);
}

/* ---- waiting ---- */

static const struct zf_ctx hurried = {.may_wait = false};

static void a_write_that_may_not_wait_gets_eagain_and_changes_nothing(void **state)
{
	struct data_rig_options options = {.seed = 12, .dirty_bytes = 16 * BLOCK};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 4 * BLOCK);
	data_rig_remount(&rig);
	/* A write to a part of a block has to read the block from the device. */
	assert_int_equal(zf_fs_write(rig.fs, &hurried, ino, 10, "x", 1, 0), -EAGAIN);
	assert_int_equal(zf_fs_write(rig.fs, &hurried, ino, 0, "x", 1, ZF_WRITE_DSYNC), -EAGAIN);
	data_rig_expect(&rig, ino, 1, 0, 4 * BLOCK);
	assert_int_equal(rig.fs->flush.used_bytes, 0);
	/* Writes of whole blocks need no read, and succeed up to the bound of dirty data. */
	data_rig_fill(2, 0, buf, 16 * BLOCK);
	assert_int_equal(zf_fs_write(rig.fs, &hurried, ino, 0, buf, 16 * BLOCK, 0), 16 * BLOCK);
	assert_int_equal(zf_fs_write(rig.fs, &hurried, ino, 16 * BLOCK, buf, BLOCK, 0), -EAGAIN);
	assert_int_equal(data_rig_size(&rig, ino), 16 * BLOCK);
	data_rig_expect(&rig, ino, 2, 0, 16 * BLOCK);
	/* A writer that may wait writes beyond the bound, also more than the bound at once. */
	data_rig_write_pattern(&rig, ino, 2, 16 * BLOCK, 100 * BLOCK);
	data_rig_remount(&rig);
	data_rig_expect(&rig, ino, 2, 0, 116 * BLOCK);
	data_rig_deinit(&rig);
}

/* All space is taken, or is garbage until the next commit. */
static void leave_no_room_before_a_commit(struct data_rig *rig)
{
	uint64_t fill = data_rig_make(rig, "fill"), at = 0;
	ssize_t n;

	while ((n = zf_fs_write(rig->fs, &rig->ctx, fill, at, buf, 64 * BLOCK, 0)) > 0)
		at += (uint64_t)n;
	assert_int_equal(n, -ENOSPC);
	data_rig_sync(rig);
	data_rig_unlink(rig, "fill", fill);
}

/*
 * The first block of the write has kept space, or is dirty, and the second block has to wait for
 * space. A short answer would reach the program as a short write.
 */
static void a_write_that_may_not_wait_writes_all_or_nothing(void **state)
{
	struct data_rig_options options = {.seed = 13};
	struct data_rig rig;
	uint64_t kept;

	(void)state;
	data_rig_init(&rig, &options);
	kept = data_rig_make(&rig, "kept");
	data_rig_allocate(&rig, kept, FALLOC_FL_KEEP_SIZE, 0, BLOCK);
	data_rig_fill(3, 0, buf, 64 * BLOCK);
	leave_no_room_before_a_commit(&rig);
	assert_int_equal(zf_fs_write(rig.fs, &hurried, kept, 0, buf, 2 * BLOCK, 0), -EAGAIN);
	assert_int_equal(data_rig_size(&rig, kept), 0);
	assert_int_equal(zf_fs_write(rig.fs, &hurried, kept, 0, buf, BLOCK, 0), BLOCK);
	/* The first block is dirty now. */
	assert_int_equal(zf_fs_write(rig.fs, &hurried, kept, 0, buf, 2 * BLOCK, 0), -EAGAIN);
	assert_int_equal(data_rig_size(&rig, kept), BLOCK);
	assert_int_equal(zf_fs_write(rig.fs, &rig.ctx, kept, 0, buf, 2 * BLOCK, 0), 2 * BLOCK);
	data_rig_expect(&rig, kept, 3, 0, 2 * BLOCK);
	data_rig_deinit(&rig);
}

static void more_than_a_round_has_to_wait(void **state)
{
	struct data_rig_options options = {.seed = 14};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	assert_int_equal(zf_fs_write(rig.fs, &hurried, ino, 0, buf, (1 << 20) + 1, 0), -EAGAIN);
	assert_int_equal(data_rig_size(&rig, ino), 0);
	assert_int_equal(zf_fs_write(rig.fs, &hurried, ino, 1, buf, 1 << 20, 0), 1 << 20);
	data_rig_deinit(&rig);
}

static void a_dsync_write_is_durable(void **state)
{
	struct data_rig_options options = {.seed = 13};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_fill(1, 0, buf, 10 * BLOCK);
	assert_int_equal(zf_fs_write(rig.fs, &rig.ctx, ino, 0, buf, 10 * BLOCK, ZF_WRITE_DSYNC),
			 10 * BLOCK);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 1, 0, 10 * BLOCK);
	assert_int_equal(data_rig_size(&rig, ino), 10 * BLOCK);
	data_rig_deinit(&rig);
}

/* ---- damage ---- */

static void damaged_data_is_never_returned(void **state)
{
	struct data_rig_options options = {.seed = 14};
	struct data_rig_extents extents;
	uint8_t block[BLOCK], zeroes[BLOCK] = {0};
	char wanted[64];
	struct data_rig rig;
	uint64_t ino, address;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 10 * BLOCK);
	data_rig_extents(&rig, ino, &extents);
	assert_int_equal(extents.count, 1);
	address = extents.at[0].address + 3 * BLOCK;
	zf_sim_peek(rig.sim, address, block);
	for (unsigned int bit = 0; bit < 3; bit++) {
		memcpy(zeroes, block, BLOCK);
		if (bit < 2)
			zeroes[bit * 4095] ^= 1;
		else
			zf_sim_peek(rig.sim, address + BLOCK, zeroes); /* misdirected */
		zf_sim_poke(rig.sim, address, zeroes);
		rig.errors_expected = true;
		rig.errors = 0;
		assert_int_equal(zf_fs_read(rig.fs, &rig.ctx, ino, 0, buf, 10 * BLOCK), -EIO);
		assert_int_equal(rig.errors, 1);
		snprintf(wanted, sizeof(wanted), "at %lu: inode %lu at offset %u", address,
			 (unsigned long)ino, 3 * BLOCK);
		assert_non_null(strstr(rig.message, wanted));
		/* A write to a part of the block fails, too. */
		assert_int_equal(zf_fs_write(rig.fs, &rig.ctx, ino, 3 * BLOCK + 5, "x", 1, 0),
				 -EIO);
		data_rig_expect(&rig, ino, 1, 0, 3 * BLOCK);
		data_rig_expect(&rig, ino, 1, 4 * BLOCK, 6 * BLOCK);
	}
	zf_sim_poke(rig.sim, address, block);
	rig.errors_expected = false;
	rig.errors = 0;
	data_rig_expect(&rig, ino, 1, 0, 10 * BLOCK);
	data_rig_deinit(&rig);
}

/* ---- alignment ---- */

static void reads_of_any_alignment_agree(void **state)
{
	struct data_rig_options options = {.seed = 15};
	uint8_t *raw = aligned_alloc(BLOCK, 64 * BLOCK), wanted[20 * BLOCK];
	const size_t shifts[] = {0, 1, 8, 511, 4095};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 30 * BLOCK);
	data_rig_sync(&rig);
	for (size_t s = 0; s < sizeof(shifts) / sizeof(shifts[0]); s++)
		for (size_t o = 0; o < sizeof(shifts) / sizeof(shifts[0]); o++) {
			uint64_t offset = 2 * BLOCK + shifts[o];
			size_t len = 17 * BLOCK + 3 * s;

			memset(raw, 0xee, 64 * BLOCK);
			data_rig_fill(1, offset, wanted, len);
			assert_int_equal(zf_fs_read(rig.fs, &rig.ctx, ino, offset,
						    raw + BLOCK + shifts[s], len),
					 len);
			assert_memory_equal(raw + BLOCK + shifts[s], wanted, len);
			assert_int_equal(raw[BLOCK + shifts[s] - 1], 0xee);
			assert_int_equal(raw[BLOCK + shifts[s] + len], 0xee);
		}
	free(raw);
	data_rig_deinit(&rig);
}

static void a_large_aligned_read_is_one_device_read(void **state)
{
	struct data_rig_options options = {
		.seed = 16, .zone_size = 4 << 20, .append_limit = 1 << 20};
	uint8_t *aligned = aligned_alloc(BLOCK, 1 << 20);
	struct zf_dev_stats before, after;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 1 << 20);
	data_rig_sync(&rig);
	assert_int_equal(zf_fs_read(rig.fs, &rig.ctx, ino, 0, aligned, 1 << 20), 1 << 20);
	zf_dev_get_stats(rig.dev, &before);
	assert_int_equal(zf_fs_read(rig.fs, &rig.ctx, ino, 0, aligned, 1 << 20), 1 << 20);
	zf_dev_get_stats(rig.dev, &after);
	assert_int_equal(after.reads - before.reads, 1);
	data_rig_fill(1, 0, buf, 1 << 20);
	assert_memory_equal(aligned, buf, 1 << 20);
	free(aligned);
	data_rig_deinit(&rig);
}

/* The kernel keeps the attributes of a file that is being written, if it may. */
static void blocks_of_a_new_file_are_final_before_it_has_landed(void **state)
{
	static const uint64_t sizes[] = {1, 2048, 2049, 4096, 5000, 300000};
	struct data_rig_options options = {.seed = 9};
	struct data_rig rig;

	(void)state;
	data_rig_init(&rig, &options);
	for (unsigned int i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct zf_attr before, after;
		char name[8];
		uint64_t ino;

		snprintf(name, sizeof(name), "%u", i);
		ino = data_rig_make(&rig, name);
		data_rig_write_pattern(&rig, ino, 1, 0, sizes[i]);
		assert_int_equal(zf_fs_getattr(rig.fs, &rig.ctx, ino, &before), 0);
		assert_false(before.settling);
		data_rig_sync(&rig);
		assert_int_equal(zf_fs_getattr(rig.fs, &rig.ctx, ino, &after), 0);
		assert_false(after.settling);
		assert_int_equal(before.blocks, after.blocks);
		/* Now some of the writes replace blocks that have a place on the device. */
		data_rig_write_pattern(&rig, ino, 2, 0, sizes[i]);
		assert_int_equal(zf_fs_getattr(rig.fs, &rig.ctx, ino, &before), 0);
		assert_int_equal(before.settling, sizes[i] > 2048);
	}
	data_rig_deinit(&rig);
}

static uint64_t reads(struct data_rig *rig)
{
	struct zf_dev_stats stats;

	zf_dev_get_stats(rig->dev, &stats);
	return stats.reads;
}

/* If a file grows step by step, its last block is read only once. */
static void a_tail_that_is_zero_is_not_read_again(void **state)
{
	const struct data_rig_options options = {.seed = 40};
	struct data_rig rig;
	uint64_t ino, before;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 5000);
	data_rig_remount(&rig);
	before = reads(&rig);
	data_rig_truncate(&rig, ino, 6000);
	assert_true(reads(&rig) > before);
	before = reads(&rig);
	data_rig_truncate(&rig, ino, 7000);
	assert_int_equal(reads(&rig), before);
	data_rig_deinit(&rig);
}

/* Appends records, each of which begins in the block where the record before it ends. */
static void append_records(struct data_rig *rig, uint64_t ino, uint64_t seed, uint64_t from,
			   uint64_t to)
{
	const size_t len = 1000;

	for (uint64_t at = from; at < to; at += len) {
		data_rig_fill(seed, at, buf, len);
		assert_int_equal(zf_fs_write(rig->fs, &hurried, ino, at, buf, len, 0),
				 (ssize_t)len);
		assert_int_equal(zf_fs_fsync(rig->fs, &rig->ctx, ino, true), 0);
	}
}

/* The block that a record was written to in part is not read for the next record (recent.h). */
static void write_log(uint64_t seed)
{
	const struct data_rig_options options = {.seed = 41};
	struct data_rig rig;
	uint64_t ino, before;

	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, seed, 0, 5000);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, true), 0);
	before = reads(&rig);
	append_records(&rig, ino, seed, 5000, 60000);
	/* The file is longer now: records are written over older ones. */
	append_records(&rig, ino, seed, 5000, 40000);
	assert_int_equal(reads(&rig), before);
	data_rig_expect(&rig, ino, seed, 0, 60000);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, seed, 0, 60000);
	data_rig_deinit(&rig);
}

static void a_log_is_written_without_reads(void **state)
{
	(void)state;
	write_log(1);
}

/* The records of the log carry packed blocks: the device has other bytes there than the copy. */
static void a_log_that_packs_is_written_without_reads(void **state)
{
	(void)state;
	write_log(DATA_RIG_PACKS | 1);
}

/*
 * A file with a block written in part goes, its zone is reset, and blocks that are written whole
 * come to its addresses. Reads of single blocks give the new bytes.
 */
static void copies_of_old_blocks_are_not_read(void **state)
{
	const struct data_rig_options options = {.seed = 42, .zone_count = 16};
	struct zf_dev_stats stats;
	struct data_rig rig;

	(void)state;
	data_rig_init(&rig, &options);
	for (unsigned int turn = 0; turn < 100; turn++) {
		uint64_t ino = data_rig_make(&rig, "file");

		data_rig_write_pattern(&rig, ino, turn, 0, (150 + turn) * BLOCK + 16);
		data_rig_sync(&rig);
		for (unsigned int i = 0; i <= 150 + turn; i++)
			data_rig_expect(&rig, ino, turn, i * BLOCK, 16);
		data_rig_unlink(&rig, "file", ino);
	}
	zf_dev_get_stats(rig.dev, &stats);
	assert_true(stats.resets > 16);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tail_that_is_zero_is_not_read_again),
		cmocka_unit_test(a_log_is_written_without_reads),
		cmocka_unit_test(a_log_that_packs_is_written_without_reads),
		cmocka_unit_test(copies_of_old_blocks_are_not_read),
		cmocka_unit_test(small_files_live_in_their_item),
		cmocka_unit_test(a_small_file_shrinks_and_grows),
		cmocka_unit_test(a_rewrite_waits_for_the_block_in_flight),
		cmocka_unit_test(truncation_revokes_what_is_in_flight),
		cmocka_unit_test(deletion_drops_what_is_dirty),
		cmocka_unit_test(blocks_of_a_new_file_are_final_before_it_has_landed),
		cmocka_unit_test(sequential_writes_make_few_extents),
		cmocka_unit_test(scattered_overwrites_split_extents),
		cmocka_unit_test(an_extent_tells_when_its_bytes_came_to_their_place),
		cmocka_unit_test(two_extents_that_become_one_have_the_newer_generation),
		cmocka_unit_test(a_trimmed_inline_extent_has_the_generation_of_its_zeroes),
		cmocka_unit_test(truncating_thousands_of_extents_leaves_none),
		cmocka_unit_test(seeking_finds_data_and_holes),
		cmocka_unit_test(the_largest_file_is_the_largest),
		cmocka_unit_test(writing_changes_times_and_privileges),
		cmocka_unit_test(a_write_that_may_not_wait_gets_eagain_and_changes_nothing),
		cmocka_unit_test(a_write_that_may_not_wait_writes_all_or_nothing),
		cmocka_unit_test(more_than_a_round_has_to_wait),
		cmocka_unit_test(a_dsync_write_is_durable),
		cmocka_unit_test(damaged_data_is_never_returned),
		cmocka_unit_test(reads_of_any_alignment_agree),
		cmocka_unit_test(a_large_aligned_read_is_one_device_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
