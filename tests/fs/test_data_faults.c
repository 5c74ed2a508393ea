/* SPDX-License-Identifier: MIT */
/* File data on a device that fails, and on one that is full. */
#include <errno.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/reserve.h"
#include "alloc/stream.h"
#include "alloc/zone.h"
#include "fs/core/inode.h"
#include "fs/data/data.h"
#include "fs/data_rig.h"

#define BLOCK 4096u

static uint8_t buf[4 << 20];

/* The next `count` appends fail; with or without the zone's pointer having moved. */
static void fail_appends(struct data_rig *rig, unsigned int count, bool moves_pointer)
{
	for (unsigned int i = 1; i <= count; i++) {
		const struct zf_sim_fault fault = {.op = ZF_IO_APPEND,
						   .nth = i,
						   .error = -EIO,
						   .moves_pointer = moves_pointer};

		zf_sim_add_fault(rig->sim, &fault);
	}
}

static void a_failed_append_is_retried_in_another_zone(void **state)
{
	struct data_rig_options options = {.seed = 1};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	for (unsigned int moves = 0; moves < 2; moves++) {
		data_rig_init(&rig, &options);
		ino = data_rig_make(&rig, "file");
		data_rig_write_pattern(&rig, ino, 1, 0, 20 * BLOCK);
		data_rig_sync(&rig);
		data_rig_write_pattern(&rig, ino, 2, 10 * BLOCK, 20 * BLOCK);
		fail_appends(&rig, 1, moves);
		assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
		assert_int_equal(zf_sim_faults_left(rig.sim), 0);
		data_rig_crash(&rig);
		data_rig_expect(&rig, ino, 1, 0, 10 * BLOCK);
		data_rig_expect(&rig, ino, 2, 10 * BLOCK, 20 * BLOCK);
		data_rig_deinit(&rig);
	}
}

/* Both tries of an append to the file fail, in the background. */
static void lose(struct data_rig *rig, uint64_t ino, uint64_t seed, uint64_t offset, size_t len)
{
	data_rig_write_pattern(rig, ino, seed, offset, len);
	rig->errors_expected = true;
	fail_appends(rig, 2, false);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(zf_fs_step(rig->fs), 0);
	assert_int_equal(zf_sim_faults_left(rig->sim), 0);
}

/*
 * A file in many pieces is read by as many reads at once. If any of them fails, the whole read
 * fails, with one message that names the piece. The zones are released, and the next read gets all
 * bytes.
 */
static void one_piece_that_cannot_be_read_fails_the_read(void **state)
{
	enum { PIECES = 8 };
	struct data_rig_options options = {.seed = 1};
	struct data_rig rig;
	uint64_t ino, other;
	char offset[64];

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "pieces");
	other = data_rig_make(&rig, "between");
	/* The blocks of the two files alternate on the device. */
	for (unsigned int i = 0; i < PIECES; i++) {
		data_rig_write_pattern(&rig, ino, 1, i * BLOCK, BLOCK);
		data_rig_sync(&rig);
		data_rig_write_pattern(&rig, other, 2, i * BLOCK, BLOCK);
		data_rig_sync(&rig);
	}
	for (unsigned int i = 0; i < PIECES; i++) {
		const struct zf_sim_fault fault = {.op = ZF_IO_READ, .nth = i + 1, .error = -EIO};
		unsigned int errors;

		data_rig_remount(&rig);
		data_rig_expect(&rig, ino, 1, 0, 1); /* extents and checksums are in memory now */
		errors = rig.errors;
		rig.errors_expected = true;
		zf_sim_add_fault(rig.sim, &fault);
		assert_int_equal(zf_fs_read(rig.fs, &rig.ctx, ino, 0, buf, PIECES * BLOCK), -EIO);
		assert_int_equal(zf_sim_faults_left(rig.sim), 0);
		assert_int_equal(rig.errors, errors + 1);
		snprintf(offset, sizeof(offset), "at offset %u, 1 blocks", i * BLOCK);
		assert_non_null(strstr(rig.message, offset));
		data_rig_expect(&rig, ino, 1, 0, PIECES * BLOCK);
	}
	data_rig_unlink(&rig, "between", other);
	data_rig_deinit(&rig);
}

/* A file that is written from its end to its start lies in reverse order on the device. */
static void a_rotational_device_is_read_in_order_of_address(void **state)
{
	enum { PIECES = 8 };
	struct data_rig_options options = {.seed = 1, .rotational = true};
	struct data_rig rig;
	uint64_t ino;
	char offset[64];

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "pieces");
	for (unsigned int i = PIECES; i-- > 0;) {
		data_rig_write_pattern(&rig, ino, 1, i * BLOCK, BLOCK);
		data_rig_sync(&rig);
	}
	for (unsigned int i = 0; i < PIECES; i++) {
		const struct zf_sim_fault fault = {.op = ZF_IO_READ, .nth = i + 1, .error = -EIO};

		data_rig_remount(&rig);
		data_rig_expect(&rig, ino, 1, 0, 1); /* extents and checksums are in memory now */
		rig.errors_expected = true;
		zf_sim_add_fault(rig.sim, &fault);
		assert_int_equal(zf_fs_read(rig.fs, &rig.ctx, ino, 0, buf, PIECES * BLOCK), -EIO);
		assert_int_equal(zf_sim_faults_left(rig.sim), 0);
		snprintf(offset, sizeof(offset), "at offset %u, 1 blocks",
			 (PIECES - 1 - i) * BLOCK);
		assert_non_null(strstr(rig.message, offset));
		data_rig_expect(&rig, ino, 1, 0, PIECES * BLOCK);
	}
	data_rig_deinit(&rig);
}

static bool is_in_memory(struct data_rig *rig, uint64_t ino)
{
	struct zf_inode key = {.ino = ino, .fs = rig->fs}, *inode;
	struct zf_inode_shard *shard = zf_inode_shard(&key);

	for (inode = RB_ROOT(&shard->inodes); inode && inode->ino != ino;)
		inode = ino < inode->ino ? RB_LEFT(inode, table_link) : RB_RIGHT(inode, table_link);
	return inode != NULL;
}

static int sync_all(struct data_rig *rig, struct zf_error_cursor *errors)
{
	struct zf_ctx ctx = rig->ctx;

	ctx.told = zf_fs_told(errors);
	return zf_fs_syncfs(rig->fs, &ctx);
}

static void data_that_cannot_be_written_is_dropped_and_the_file_reads_what_is_there(void **state)
{
	struct data_rig_options options = {.seed = 2};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 20 * BLOCK);
	data_rig_sync(&rig);
	lose(&rig, ino, 2, 10 * BLOCK, 20 * BLOCK);
	assert_int_equal(rig.errors, 1);
	assert_int_equal(rig.fs->flush.used_bytes, 0);
	assert_int_equal(rig.fs->flush.flight_bytes, 0);
	data_rig_expect(&rig, ino, 1, 0, 20 * BLOCK);
	data_rig_expect_zeroes(&rig, ino, 20 * BLOCK, 10 * BLOCK);
	assert_int_equal(data_rig_size(&rig, ino), 30 * BLOCK);
	/* The file can be written as ever. */
	data_rig_write_pattern(&rig, ino, 3, 5 * BLOCK, 100);
	data_rig_write_pattern(&rig, ino, 3, 6 * BLOCK, 30 * BLOCK);
	data_rig_crash(&rig);
	data_rig_deinit(&rig);
}

enum growth {
	WRITE_BEHIND,	/* the tail is zeroed by itself */
	WRITE_FROM_END, /* ... with the write */
	WRITE_IN_BLOCK, /* ... and the file ends in the same block once more */
	TRUNCATE_UP,
	ALLOCATE_BEHIND, /* with KEEP_SIZE: it does not grow, and its tail is zeroed all the same */
	GROWTHS,
};

static int grow(struct data_rig *rig, uint64_t ino, enum growth growth, uint64_t size)
{
	const struct zf_setattr set = {.valid = ZF_SET_SIZE, .size = 40 * BLOCK};
	struct zf_attr attr;

	switch (growth) {
	case WRITE_BEHIND:
		data_rig_write_pattern(rig, ino, 2, 40 * BLOCK, 2 * BLOCK);
		return 0;
	case WRITE_FROM_END:
		data_rig_write_pattern(rig, ino, 2, size, 40 * BLOCK);
		return 0;
	case WRITE_IN_BLOCK:
		data_rig_write_pattern(rig, ino, 2, size, 100);
		return 0;
	case TRUNCATE_UP:
		return zf_fs_setattr(rig->fs, &rig->ctx, ino, &set, &attr);
	default:
		return zf_fs_fallocate(rig->fs, &rig->ctx, ino, FALLOC_FL_KEEP_SIZE, 40 * BLOCK,
				       BLOCK);
	}
}

/*
 * P3. The write of zeroes over bytes that were cut off is lost. The file does not grow over those
 * bytes, now or later, before zeroes have been written.
 */
static void bytes_that_were_cut_off_stay_away_when_zeroes_are_lost(void **state)
{
	const struct data_rig_options options = {.seed = 3};
	const uint64_t size = 20 * BLOCK + 100;

	(void)state;
	for (enum growth growth = 0; growth < GROWTHS; growth++) {
		struct zf_error_cursor errors;
		struct data_rig rig;
		uint64_t ino;
		int r;

		data_rig_init(&rig, &options);
		ino = data_rig_make(&rig, "file");
		data_rig_write_pattern(&rig, ino, 1, 0, 30 * BLOCK);
		data_rig_sync(&rig);
		data_rig_truncate(&rig, ino, size);
		data_rig_sync(&rig);
		zf_fs_begin_errors(rig.fs, ino, &errors);
		rig.errors_expected = true;
		fail_appends(&rig, 2, false);
		r = grow(&rig, ino, growth, size);
		for (unsigned int i = 0; i < 4; i++)
			assert_int_equal(zf_fs_step(rig.fs), 0);
		assert_int_equal(zf_sim_faults_left(rig.sim), 0);
		assert_int_equal(r, growth == TRUNCATE_UP ? -EIO : 0);
		assert_int_equal(data_rig_fsync(&rig, ino, &errors), -EIO);
		assert_int_equal(rig.fs->flush.used_bytes, 0);
		assert_int_equal(data_rig_size(&rig, ino), size);
		data_rig_expect(&rig, ino, 1, 0, size);

		data_rig_truncate(&rig, ino, 50 * BLOCK);
		data_rig_expect_zeroes(&rig, ino, size, 50 * BLOCK - size);
		assert_int_equal(data_rig_fsync(&rig, ino, &errors), 0);
		data_rig_crash(&rig);
		assert_int_equal(data_rig_size(&rig, ino), 50 * BLOCK);
		data_rig_expect(&rig, ino, 1, 0, size);
		data_rig_expect_zeroes(&rig, ino, size, 50 * BLOCK - size);
		data_rig_deinit(&rig);
	}
}

/*
 * The size that fallocate() gave the file was answered, and is in the trees. The file keeps that
 * size, and data that has landed behind, when the zeroes over a part of its old last block are
 * lost. The order of landing depends on the seed.
 */
static void what_was_allocated_stays_when_zeroes_before_it_are_lost(void **state)
{
	const struct zf_sim_fault first = {.op = ZF_IO_APPEND, .nth = 1, .error = -EIO};
	const struct zf_sim_fault third = {.op = ZF_IO_APPEND, .nth = 3, .error = -EIO};
	const uint64_t size = BLOCK + 904, end = 40 * BLOCK;

	(void)state;
	for (uint64_t seed = 1; seed < 9; seed++) {
		const struct data_rig_options options = {.seed = seed};
		struct zf_error_cursor errors;
		struct zf_inode *inode;
		struct data_rig rig;
		uint64_t ino;

		data_rig_init(&rig, &options);
		ino = data_rig_make(&rig, "file");
		data_rig_write_pattern(&rig, ino, 1, 0, size);
		data_rig_sync(&rig);
		zf_fs_begin_errors(rig.fs, ino, &errors);
		data_rig_allocate(&rig, ino, FALLOC_FL_ZERO_RANGE, BLOCK + 500, end - BLOCK - 500);
		rig.errors_expected = true;
		zf_sim_add_fault(rig.sim, &first);
		zf_sim_add_fault(rig.sim, &third);
		assert_int_equal(zf_inode_get(rig.fs, ino, &inode), 0);
		assert_int_equal(zf_data_flush(inode, false), 0);
		data_rig_write_pattern(&rig, ino, 2, 30 * BLOCK, BLOCK);
		assert_int_equal(zf_data_flush(inode, false), 0);
		zf_inode_put(inode);
		assert_int_equal(data_rig_fsync(&rig, ino, &errors), -EIO);
		assert_int_equal(zf_sim_faults_left(rig.sim), 0);
		assert_int_equal(data_rig_fsync(&rig, ino, &errors), 0);
		data_rig_crash(&rig);
		assert_int_equal(data_rig_size(&rig, ino), end);
		data_rig_expect(&rig, ino, 1, 0, size);
		data_rig_expect_zeroes(&rig, ino, size, 30 * BLOCK - size);
		data_rig_expect(&rig, ino, 2, 30 * BLOCK, BLOCK);
		data_rig_deinit(&rig);
	}
}

static void every_open_file_is_told_of_lost_data_once(void **state)
{
	struct data_rig_options options = {.seed = 2};
	struct zf_error_cursor writer, reader, other_file, later;
	struct data_rig rig;
	uint64_t ino, other;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	other = data_rig_make(&rig, "other");
	zf_fs_begin_errors(rig.fs, ino, &writer);
	zf_fs_begin_errors(rig.fs, ino, &reader);
	zf_fs_begin_errors(rig.fs, other, &other_file);
	for (unsigned int round = 0; round < 3; round++) {
		lose(&rig, ino, 2, 10 * BLOCK, 20 * BLOCK);
		assert_int_equal(data_rig_fsync(&rig, other, &other_file), 0);
		assert_int_equal(data_rig_fsync(&rig, ino, &writer), -EIO);
		assert_int_equal(data_rig_fsync(&rig, ino, &writer), 0);
		zf_fs_begin_errors(rig.fs, ino, &later);
		assert_int_equal(data_rig_fsync(&rig, ino, &later), 0);
		assert_int_equal(data_rig_fsync(&rig, ino, &reader), -EIO);
		assert_int_equal(data_rig_fsync(&rig, ino, &reader), 0);
	}
	data_rig_deinit(&rig);
}

/* syncfs, a query of the extents, a rename over another file, an fsync of a directory and an fsync
 * without a cursor do not take the error. */
static void other_calls_do_not_take_the_error_of_an_open_file(void **state)
{
	struct data_rig_options options = {.seed = 2};
	struct zf_error_cursor writer, syncer = {0};
	struct data_rig_extents extents;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_make(&rig, "target");
	zf_fs_begin_errors(rig.fs, ino, &writer);
	lose(&rig, ino, 1, 0, 20 * BLOCK);
	data_rig_extents(&rig, ino, &extents);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ZF_INO_ROOT, false), 0);
	/* A caller without a cursor gets the error as long as no other caller got it. */
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), -EIO);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), -EIO);
	assert_int_equal(sync_all(&rig, NULL), -EIO);
	assert_int_equal(sync_all(&rig, &syncer), -EIO);
	assert_int_equal(sync_all(&rig, &syncer), 0);
	/* A damaged file does not take another file's name before a caller has got the error (P2).
	 */
	assert_int_equal(
		zf_fs_rename(rig.fs, &rig.ctx, ZF_INO_ROOT, "file", ZF_INO_ROOT, "target", 0, NULL),
		-EIO);
	assert_int_equal(
		zf_fs_rename(rig.fs, &rig.ctx, ZF_INO_ROOT, "file", ZF_INO_ROOT, "target", 0, NULL),
		0);
	assert_int_equal(data_rig_fsync(&rig, ino, &writer), -EIO);
	assert_int_equal(data_rig_fsync(&rig, ino, &writer), 0);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
	assert_int_equal(sync_all(&rig, NULL), 0);
	data_rig_deinit(&rig);
}

static void a_durable_write_says_that_data_is_lost(void **state)
{
	struct data_rig_options options = {.seed = 2};
	struct zf_error_cursor writer;
	struct data_rig rig;
	struct zf_ctx ctx;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	zf_fs_begin_errors(rig.fs, ino, &writer);
	ctx = rig.ctx;
	ctx.told = zf_fs_told(&writer);
	lose(&rig, ino, 1, 0, 20 * BLOCK);
	assert_int_equal(zf_fs_write(rig.fs, &ctx, ino, 0, buf, 1, ZF_WRITE_DSYNC), -EIO);
	ctx.told = zf_fs_told(&writer);
	assert_int_equal(zf_fs_write(rig.fs, &ctx, ino, 0, buf, 1, ZF_WRITE_DSYNC), 1);
	/* The same for the file's own data, without an open file. */
	fail_appends(&rig, 2, false);
	assert_int_equal(zf_fs_write(rig.fs, &rig.ctx, ino, 0, buf, 40 * BLOCK, ZF_WRITE_DSYNC),
			 -EIO);
	assert_int_equal(zf_sim_faults_left(rig.sim), 0);
	data_rig_drop(&rig);
}

static void requests_that_came_before_the_loss_are_all_told_of_it(void **state)
{
	struct data_rig_options options = {.seed = 2};
	struct zf_error_cursor writer;
	struct data_rig rig;
	struct zf_ctx ctx;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	zf_fs_begin_errors(rig.fs, ino, &writer);
	ctx = rig.ctx;
	ctx.told = zf_fs_told(&writer);
	lose(&rig, ino, 1, 0, 20 * BLOCK);
	assert_int_equal(data_rig_fsync(&rig, ino, &writer), -EIO);
	assert_int_equal(data_rig_fsync(&rig, ino, &writer), 0);
	assert_int_equal(zf_fs_fsync(rig.fs, &ctx, ino, true), -EIO);
	assert_int_equal(data_rig_fsync(&rig, ino, &writer), 0);
	data_rig_drop(&rig);
}

struct later {
	struct zf_syncing *syncing;
	bool ended, served;
};

static void note_ended(struct zf_syncing *syncing, bool served, void *arg)
{
	*(struct later *)arg = (struct later){syncing, true, served};
}

/* Neither the log nor a commit can be written. */
static void a_sync_that_fails_serves_no_one(void **state)
{
	struct data_rig_options options = {.seed = 2};
	struct later laters[2] = {0};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	rig.errors_expected = true;
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 4 * BLOCK);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(zf_fs_sync_later(rig.fs, &rig.ctx, ino, note_ended, &laters[i]),
				 -EINPROGRESS);
	assert_true(laters[0].ended && !laters[0].served);
	assert_false(laters[1].ended);
	for (uint64_t nth = 1; nth <= 50; nth++) {
		zf_sim_add_fault(rig.sim, &(struct zf_sim_fault){
						  .op = ZF_IO_WRITE, .nth = nth, .error = -EIO});
		zf_sim_add_fault(rig.sim, &(struct zf_sim_fault){
						  .op = ZF_IO_APPEND, .nth = nth, .error = -EIO});
	}
	assert_true(zf_fs_sync_later_end(laters[0].syncing) < 0);
	assert_true(laters[1].ended && !laters[1].served);
	assert_true(zf_fs_sync_later_end(laters[1].syncing) < 0);
	data_rig_drop(&rig);
}

/* The file is not open, and memory holds as few inodes as possible. */
static void an_unreported_error_is_reported_to_the_next_open_file(void **state)
{
	struct data_rig_options options = {.seed = 2, .cache_bytes = 1};
	struct zf_error_cursor first, second, third;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	lose(&rig, ino, 1, 0, 20 * BLOCK);
	for (unsigned int i = 0; i < 300; i++) {
		char name[16];

		snprintf(name, sizeof(name), "other %u", i);
		data_rig_make(&rig, name);
	}
	zf_fs_begin_errors(rig.fs, ino, &first);
	zf_fs_begin_errors(rig.fs, ino, &second);
	assert_int_equal(data_rig_fsync(&rig, ino, &first), -EIO);
	zf_fs_begin_errors(rig.fs, ino, &third);
	assert_int_equal(data_rig_fsync(&rig, ino, &third), 0);
	assert_int_equal(rig.fs->errors.untold, 0);
	data_rig_deinit(&rig);
}

/* A kernel reference means that the file may be open. Without one the inode may leave memory. */
static void an_error_stays_for_each_open_file(void **state)
{
	struct data_rig_options options = {.seed = 2, .cache_bytes = 1};
	struct zf_error_cursor told, open;
	struct data_rig rig;
	struct zf_attr attr;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	assert_int_equal(zf_fs_lookup(rig.fs, &rig.ctx, ZF_INO_ROOT, "file", &attr), 0);
	zf_fs_begin_errors(rig.fs, ino, &told);
	zf_fs_begin_errors(rig.fs, ino, &open);
	lose(&rig, ino, 1, 0, 20 * BLOCK);
	assert_int_equal(data_rig_fsync(&rig, ino, &told), -EIO);
	for (unsigned int i = 0; i < 300; i++) {
		char name[16];

		snprintf(name, sizeof(name), "other %u", i);
		data_rig_make(&rig, name);
	}
	assert_int_equal(data_rig_fsync(&rig, ino, &open), -EIO);
	zf_fs_forget(rig.fs, ino, 1);
	data_rig_make(&rig, "one more");
	assert_false(is_in_memory(&rig, ino));
	data_rig_deinit(&rig);
}

static void the_last_unmount_says_that_data_was_lost(void **state)
{
	struct data_rig_options options = {.seed = 2};
	struct zf_error_cursor errors;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	for (unsigned int told = 0; told < 2; told++) {
		data_rig_init(&rig, &options);
		ino = data_rig_make(&rig, "file");
		zf_fs_begin_errors(rig.fs, ino, &errors);
		lose(&rig, ino, 1, 0, 20 * BLOCK);
		if (told)
			assert_int_equal(data_rig_fsync(&rig, ino, &errors), -EIO);
		assert_int_equal(zf_fs_unmount(rig.fs), told ? 0 : -EIO);
		rig.fs = NULL;
		data_rig_drop(&rig);
	}
}

/* The lost data is as much as may be dirty. */
static void what_is_lost_leaves_room_for_what_comes(void **state)
{
	struct data_rig_options options = {.seed = 2, .dirty_bytes = 1 << 20};
	struct data_rig rig;
	uint64_t ino, other;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	other = data_rig_make(&rig, "other");
	lose(&rig, ino, 1, 0, 20 * BLOCK);
	assert_int_equal(rig.fs->flush.used_bytes, 0);
	data_rig_write_pattern(&rig, other, 1, 0, 1 << 20);
	data_rig_drop(&rig);
}

/* Data that is too large for one append becomes durable by a flush, and the device has lost it. */
static void after_a_flush_that_failed_nothing_is_acknowledged(void **state)
{
	const struct zf_sim_fault fault = {
		.op = ZF_IO_FLUSH, .nth = 1, .error = -EIO, .loses_cache = true};
	struct data_rig_options options = {.seed = 2};
	struct data_rig rig;
	uint64_t ino, other, kept;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	other = data_rig_make(&rig, "other");
	kept = data_rig_make(&rig, "kept");
	data_rig_write_pattern(&rig, kept, 1, 0, 5 * BLOCK);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, kept, false), 0);
	data_rig_write_pattern(&rig, ino, 1, 0, 100 * BLOCK);
	data_rig_write_pattern(&rig, other, 1, 0, 100 * BLOCK);
	rig.errors_expected = true;
	zf_sim_add_fault(rig.sim, &fault);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), -EIO);
	assert_int_equal(zf_sim_faults_left(rig.sim), 0);
	assert_true(zf_fs_is_read_only(rig.fs));
	assert_non_null(strstr(rig.message, "flushing the device's cache failed"));
	assert_true(zf_fs_fsync(rig.fs, &rig.ctx, other, false) < 0);
	assert_true(zf_fs_fsync(rig.fs, &rig.ctx, ino, false) < 0);
	assert_true(zf_fs_fsync(rig.fs, &rig.ctx, ZF_INO_ROOT, false) < 0);
	assert_true(zf_fs_syncfs(rig.fs, &rig.ctx) < 0);
	assert_int_equal(zf_fs_write(rig.fs, &rig.ctx, ino, 0, buf, 1, 0), -EROFS);
	data_rig_crash(&rig);
	data_rig_expect(&rig, kept, 1, 0, 5 * BLOCK);
	data_rig_deinit(&rig);
}

/* The file was truncated while the blocks were in flight. */
static void what_could_not_be_written_does_not_bring_back_what_was_truncated(void **state)
{
	struct data_rig_options options = {.seed = 4};
	struct zf_inode *inode;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 2 * BLOCK);
	rig.errors_expected = true;
	fail_appends(&rig, 2, false);
	assert_int_equal(zf_inode_get(rig.fs, ino, &inode), 0);
	assert_int_equal(zf_data_flush(inode, false), 0);
	zf_inode_put(inode);
	data_rig_truncate(&rig, ino, BLOCK + 1000);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(zf_fs_step(rig.fs), 0);
	data_rig_write_pattern(&rig, ino, 2, BLOCK + 3000, 500);
	data_rig_expect_zeroes(&rig, ino, 0, BLOCK + 3000);
	data_rig_expect(&rig, ino, 2, BLOCK + 3000, 500);
	data_rig_drop(&rig);
}

/* Syncs through the log, with data that fits into the record and with more, and through commits. */
static int write_and_sync(struct data_rig *rig, uint64_t ino, unsigned int i, uint64_t blocks)
{
	size_t len = (size_t)blocks * BLOCK;

	data_rig_fill(i, 0, buf, len);
	if (zf_fs_write(rig->fs, &rig->ctx, ino, 0, buf, len, 0) != (ssize_t)len)
		return -EIO;
	return i % 3 == 0 ? zf_fs_syncfs(rig->fs, &rig->ctx)
			  : zf_fs_fsync(rig->fs, &rig->ctx, ino, false);
}

/* The nth command fails. False: there was none. */
static bool fail_one(unsigned int n, uint64_t blocks, bool moves_pointer)
{
	struct data_rig_options options = {.seed = 100 + n};
	struct zf_sim_fault fault = {
		.op = ZF_SIM_ANY_OP, .nth = n, .error = -EIO, .moves_pointer = moves_pointer};
	unsigned int synced = 0;
	struct data_rig rig;
	uint64_t ino;
	bool struck;

	data_rig_init(&rig, &options);
	rig.errors_expected = true;
	ino = data_rig_make(&rig, "file");
	data_rig_sync(&rig);
	zf_sim_add_fault(rig.sim, &fault);
	for (unsigned int i = 1; i <= 12 && write_and_sync(&rig, ino, i, blocks) == 0; i++)
		synced = i;
	struck = zf_sim_faults_left(rig.sim) == 0;
	data_rig_crash(&rig);
	if (synced > 0) {
		uint8_t first, expected;

		assert_int_equal(zf_fs_read(rig.fs, &rig.ctx, ino, 0, &first, 1), 1);
		data_rig_fill(synced, 0, &expected, 1);
		/* The file may also have the next version, which reached the device without an
		 * answer. */
		data_rig_expect(&rig, ino, first == expected ? synced : synced + 1, 0,
				blocks * BLOCK);
	}
	data_rig_deinit(&rig);
	return struck;
}

/* Each command of a workload fails once. Nothing that was answered with 0 is lost. */
static void whatever_fails_what_was_synced_stays(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		unsigned int n = 1;

		while (fail_one(n, i % 2 ? 10 : 40, i / 2))
			n++;
		assert_true(n > 20);
	}
}

/* ---- a truncation that cannot go on ---- */

#define PIECES 6000u

static bool is_interrupted(struct data_rig *rig, uint64_t ino)
{
	struct zf_inode *inode;
	bool r;

	assert_int_equal(zf_inode_get(rig->fs, ino, &inode), 0);
	r = inode->data.dropping;
	zf_inode_put(inode);
	return r;
}

/* Each read of a node fails once. Afterwards the file has its old or its new size, and shows zeroes
 * when it grows. */
static void an_interrupted_truncation_leaves_nothing_behind(void **state)
{
	bool struck = true;
	unsigned int n, failed = 0, interrupted = 0;

	(void)state;
	/* The first reads come before anything is changed. */
	for (n = 1; struck; n += n < 12 ? 1 : 3) {
		struct data_rig_options options = {
			.seed = 7, .node_size = 4096, .cache_bytes = 32 << 10};
		const struct zf_sim_fault fault = {.op = ZF_IO_READ, .nth = n, .error = -EIO};
		const struct zf_sim_fault again = {.op = ZF_IO_READ, .nth = n + 1, .error = -EIO};
		const struct zf_setattr shrink = {.valid = ZF_SET_SIZE, .size = 100};
		struct zf_attr attr;
		struct data_rig rig;
		uint64_t ino;
		int r;

		data_rig_init(&rig, &options);
		ino = data_rig_make(&rig, "file");
		for (uint64_t i = 0; i < PIECES; i++)
			data_rig_write_pattern(&rig, ino, 1, i * 2 * BLOCK, BLOCK);
		data_rig_remount(&rig);
		assert_int_equal(data_rig_size(&rig, ino), (PIECES * 2 - 1) * BLOCK);
		/* A node is read twice before it counts as lost. */
		zf_sim_add_fault(rig.sim, &fault);
		zf_sim_add_fault(rig.sim, &again);
		rig.errors_expected = true;
		r = zf_fs_setattr(rig.fs, &rig.ctx, ino, &shrink, &attr);
		struck = zf_sim_faults_left(rig.sim) == 0;
		assert_true(r == 0 || r == -EIO);
		failed += r < 0;
		interrupted += is_interrupted(&rig, ino);
		assert_int_equal(data_rig_size(&rig, ino), r < 0 ? (PIECES * 2 - 1) * BLOCK : 100);
		if (r < 0)
			data_rig_truncate(&rig, ino, 100);
		/* If the fault has not struck yet, it would strike the truncation below. */
		if (n % 2 == 0 || !struck)
			data_rig_crash(&rig);
		else
			data_rig_truncate(&rig, ino, PIECES * 2 * BLOCK);
		data_rig_remount(&rig);
		if (data_rig_size(&rig, ino) == PIECES * 2 * BLOCK)
			data_rig_expect_zeroes(&rig, ino, 100, sizeof(buf));
		data_rig_deinit(&rig);
	}
	assert_true(failed > 0 && interrupted > 3);
}

/* The same for a punch that was answered with 0: it takes effect at once, also for reads and
 * copies. */
static void an_interrupted_punch_counts_at_once(void **state)
{
	const uint64_t from = 4 * BLOCK, to = (PIECES - 4) * 2 * BLOCK;
	bool struck = true;
	unsigned int n, interrupted = 0;

	(void)state;
	for (n = 1; struck; n += n < 12 ? 1 : 7) {
		struct data_rig_options options = {
			.seed = 8, .node_size = 4096, .cache_bytes = 32 << 10};
		const struct zf_sim_fault fault = {.op = ZF_IO_READ, .nth = n, .error = -EIO};
		const struct zf_sim_fault again = {.op = ZF_IO_READ, .nth = n + 1, .error = -EIO};
		struct data_rig rig;
		uint64_t ino, copy;
		int r;

		data_rig_init(&rig, &options);
		ino = data_rig_make(&rig, "file");
		copy = data_rig_make(&rig, "copy");
		for (uint64_t i = 0; i < PIECES; i++)
			data_rig_write_pattern(&rig, ino, 1, i * 2 * BLOCK, BLOCK);
		data_rig_remount(&rig);
		/* A node is read twice before it counts as lost. */
		zf_sim_add_fault(rig.sim, &fault);
		zf_sim_add_fault(rig.sim, &again);
		rig.errors_expected = true;
		r = zf_fs_fallocate(rig.fs, &rig.ctx, ino,
				    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, from, to - from);
		struck = zf_sim_faults_left(rig.sim) == 0;
		assert_true(r == 0 || r == -EIO);
		interrupted += is_interrupted(&rig, ino);
		if (r == 0) {
			for (uint64_t at = from; at < to; at += sizeof(buf))
				data_rig_expect_zeroes(&rig, ino, at,
						       zf_min_u64(sizeof(buf), to - at));
			assert_int_equal(zf_fs_copy_range(rig.fs, &rig.ctx, ino, to - 8 * BLOCK,
							  copy, 0, 8 * BLOCK),
					 8 * BLOCK);
			data_rig_expect_zeroes(&rig, copy, 0, 8 * BLOCK);
		}
		if (!struck) {
			data_rig_drop(&rig);
			break;
		}
		data_rig_expect(&rig, ino, 1, 2 * BLOCK, BLOCK);
		data_rig_deinit(&rig);
	}
	assert_true(interrupted > 3);
}

/* ---- space ---- */

/*
 * Makes and writes one file after the other until there is no room for the one or the other.
 * Returns how many are whole; the next one may be there too.
 */
static unsigned int fill(struct data_rig *rig, uint64_t *inos, unsigned int max, size_t len,
			 uint64_t seed)
{
	unsigned int n = 0;

	for (; n < max; n++) {
		struct zf_attr attr;
		char name[16];
		ssize_t r;

		snprintf(name, sizeof(name), "fill-%u", n);
		r = zf_fs_make(rig->fs, &rig->ctx, ZF_INO_ROOT, name, 0100644, 0, NULL, &attr);
		if (r == -ENOSPC)
			break;
		assert_int_equal(r, 0);
		zf_fs_forget(rig->fs, attr.ino, 1);
		inos[n] = attr.ino;
		data_rig_fill(seed + n, 0, buf, len);
		r = zf_fs_write(rig->fs, &rig->ctx, inos[n], 0, buf, len, 0);
		if (r == (ssize_t)len)
			continue;
		assert_true(r == -ENOSPC || (r > 0 && r < (ssize_t)len));
		break;
	}
	assert_true(n < max);
	return n;
}

/* Deletes what fill() made. */
static void empty(struct data_rig *rig, unsigned int n)
{
	char name[16];
	int r;

	for (unsigned int i = 0; i <= n; i++) {
		snprintf(name, sizeof(name), "fill-%u", i);
		r = zf_fs_unlink(rig->fs, &rig->ctx, ZF_INO_ROOT, name);
		assert_true(r == 0 || (i == n && r == -ENOENT));
	}
	for (unsigned int i = 0; i < 6; i++)
		assert_int_equal(zf_fs_step(rig->fs), 0);
}

static void a_full_device_says_so_and_can_be_emptied(void **state)
{
	struct data_rig_options options = {.seed = 5, .zone_count = 32};
	uint64_t inos[256];
	struct data_rig rig;
	struct zf_statfs statfs;
	uint64_t first_free;

	(void)state;
	data_rig_init(&rig, &options);
	assert_int_equal(zf_fs_statfs(rig.fs, &statfs), 0);
	first_free = statfs.blocks_available;
	for (unsigned int round = 0; round < 4; round++) {
		unsigned int n = fill(&rig, inos, 256, 300000, round * 1000);

		/* All answered data is there, also after a remount. */
		data_rig_sync(&rig);
		for (unsigned int i = 0; i < n; i++)
			data_rig_expect(&rig, inos[i], round * 1000 + i, 0, 300000);
		data_rig_remount(&rig);
		for (unsigned int i = 0; i < n; i++)
			data_rig_expect(&rig, inos[i], round * 1000 + i, 0, 300000);
		assert_true((uint64_t)n * 74 * 100 > first_free * 70);
		/* Truncating and deleting work. */
		data_rig_truncate(&rig, inos[0], 5000);
		empty(&rig, n);
	}
	assert_int_equal(zf_fs_statfs(rig.fs, &statfs), 0);
	assert_true(statfs.blocks_available * 100 > first_free * 80);
	data_rig_deinit(&rig);
}

/* However blocks are dropped, their reservations are dropped, too. */
/*
 * The reserved space, without the room in the zones of the log and of metadata, which shrinks as
 * these zones are written.
 */
static uint64_t promised(struct data_rig *rig)
{
	struct zf_alloc *alloc = zf_fs_alloc(rig->fs);
	struct zf_space space;

	zf_alloc_get_space(alloc, &space);
	for (uint32_t z = 0; z < zf_alloc_zone_count(alloc); z++) {
		struct zf_zone zone;

		zf_alloc_get_zone(alloc, z, &zone);
		if (zone.role == ZF_ROLE_LOG || zone.role == ZF_ROLE_META)
			space.reserved -= (uint64_t)(zone.capacity - zone.pointer)
					  << ZF_BLOCK_SHIFT;
	}
	return space.reserved;
}

static void reservations_are_given_back(void **state)
{
	struct data_rig_options options = {.seed = 8};
	struct zf_error_cursor errors;
	struct data_rig rig;
	uint64_t ino, small, before;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	small = data_rig_make(&rig, "small");
	data_rig_sync(&rig);
	before = promised(&rig);
	data_rig_write_pattern(&rig, ino, 1, 5, 40 * BLOCK); /* to land */
	data_rig_write_pattern(&rig, small, 1, 0, 500);
	data_rig_write_pattern(&rig, ino, 1, 9, 10 * BLOCK); /* on dirty blocks */
	assert_true(promised(&rig) >= before + 42 * BLOCK);
	data_rig_truncate(&rig, ino, 30 * BLOCK + 1); /* dropped */
	assert_int_equal(zf_fs_step(rig.fs), 0);
	data_rig_write_pattern(&rig, ino, 2, 0, 25 * BLOCK); /* perhaps above one in flight */
	data_rig_truncate(&rig, ino, 2 * BLOCK + 1);
	data_rig_truncate(&rig, ino, 9 * BLOCK);
	rig.errors_expected = true;
	fail_appends(&rig, 2, false);
	data_rig_write_pattern(&rig, ino, 3, 4 * BLOCK, 10 * BLOCK);
	zf_fs_begin_errors(rig.fs, ino, &errors);
	assert_int_equal(data_rig_fsync(&rig, ino, &errors), -EIO);
	data_rig_write_pattern(&rig, ino, 3, 4 * BLOCK, 10 * BLOCK);
	data_rig_unlink(&rig, "small", small);
	data_rig_sync(&rig);
	assert_int_equal(promised(&rig), before);
	assert_int_equal(rig.fs->flush.used_bytes, 0);
	assert_int_equal(rig.fs->flush.flight_bytes, 0);
	data_rig_deinit(&rig);
}

/* The same for data that rides with records that carry their first block. */
static void records_use_up_the_reservations_of_what_rides(void **state)
{
	struct data_rig_options options = {.seed = 9};
	uint8_t bytes[5 * BLOCK];
	struct data_rig rig;
	uint64_t ino, before;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	data_rig_sync(&rig);
	before = promised(&rig);
	for (unsigned int i = 0; i < 30; i++) {
		size_t len = i % 3 ? BLOCK : 5 * BLOCK;

		data_rig_fill((i % 2 ? DATA_RIG_PACKS : 0) + i, 0, bytes, len);
		assert_int_equal(zf_fs_write(rig.fs, &rig.ctx, ino, 0, bytes, len, ZF_WRITE_DSYNC),
				 len);
	}
	data_rig_sync(&rig);
	assert_int_equal(promised(&rig), before);
	data_rig_deinit(&rig);
}

/* The smallest device there may be: little room for metadata, and the log's and reclaim's zones
 * kept. */
static void the_smallest_device_is_filled_and_emptied(void **state)
{
	struct data_rig_options options = {
		.seed = 9, .zone_count = 16, .zone_size = 256 << 10, .append_limit = 64 << 10};
	uint64_t inos[256];
	struct data_rig rig;

	(void)state;
	data_rig_init(&rig, &options);
	for (unsigned int round = 0; round < 3; round++) {
		unsigned int n = fill(&rig, inos, 256, 5 * BLOCK, round * 1000);

		assert_true(n >= 10);
		data_rig_remount(&rig);
		for (unsigned int i = 0; i < n; i++)
			data_rig_expect(&rig, inos[i], round * 1000 + i, 0, 5 * BLOCK);
		empty(&rig, n);
	}
	data_rig_deinit(&rig);
}

/* When no file may grow, an empty file can still be truncated to the size that it has. */
static void truncating_an_empty_file_needs_no_room(void **state)
{
	struct data_rig_options options = {
		.seed = 10, .zone_count = 16, .zone_size = 256 << 10, .append_limit = 64 << 10};
	struct zf_setattr set = {.valid = ZF_SET_SIZE};
	uint64_t taken[1024][ZF_COPIES_MAX], ino;
	unsigned int count = 0;
	struct data_rig rig;
	struct zf_attr attr;
	int r = 0;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	while (r == 0) {
		set.size = 1;
		r = zf_fs_setattr(rig.fs, &rig.ctx, ino, &set, &attr);
		data_rig_truncate(&rig, ino, 0);
		data_rig_truncate(&rig, ino, 0);
		/* Takes room for nodes, as if the trees grew. */
		assert_true(count < ZF_ARRAY_SIZE(taken));
		if (r == 0)
			r = zf_alloc_node(zf_fs_alloc(rig.fs), false, taken[count++]);
	}
	assert_int_equal(r, -ENOSPC);
	while (count > 0)
		zf_alloc_node_free(zf_fs_alloc(rig.fs), taken[--count], false);
	data_rig_deinit(&rig);
}

static void overwriting_forever_finds_room(void **state)
{
	struct data_rig_options options = {.seed = 6, .zone_count = 32, .dirty_bytes = 1 << 20};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	ino = data_rig_make(&rig, "file");
	/* Writes 100 MiB to a device of 32 MiB. */
	for (unsigned int i = 0; i < 100; i++)
		data_rig_write_pattern(&rig, ino, i, 0, 1 << 20);
	data_rig_remount(&rig);
	data_rig_expect(&rig, ino, 99, 0, 1 << 20);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_failed_append_is_retried_in_another_zone),
		cmocka_unit_test(one_piece_that_cannot_be_read_fails_the_read),
		cmocka_unit_test(a_rotational_device_is_read_in_order_of_address),
		cmocka_unit_test(
			data_that_cannot_be_written_is_dropped_and_the_file_reads_what_is_there),
		cmocka_unit_test(bytes_that_were_cut_off_stay_away_when_zeroes_are_lost),
		cmocka_unit_test(what_was_allocated_stays_when_zeroes_before_it_are_lost),
		cmocka_unit_test(every_open_file_is_told_of_lost_data_once),
		cmocka_unit_test(other_calls_do_not_take_the_error_of_an_open_file),
		cmocka_unit_test(a_durable_write_says_that_data_is_lost),
		cmocka_unit_test(requests_that_came_before_the_loss_are_all_told_of_it),
		cmocka_unit_test(a_sync_that_fails_serves_no_one),
		cmocka_unit_test(an_unreported_error_is_reported_to_the_next_open_file),
		cmocka_unit_test(an_error_stays_for_each_open_file),
		cmocka_unit_test(the_last_unmount_says_that_data_was_lost),
		cmocka_unit_test(what_is_lost_leaves_room_for_what_comes),
		cmocka_unit_test(after_a_flush_that_failed_nothing_is_acknowledged),
		cmocka_unit_test(what_could_not_be_written_does_not_bring_back_what_was_truncated),
		cmocka_unit_test(whatever_fails_what_was_synced_stays),
		cmocka_unit_test(an_interrupted_truncation_leaves_nothing_behind),
		cmocka_unit_test(an_interrupted_punch_counts_at_once),
		cmocka_unit_test(a_full_device_says_so_and_can_be_emptied),
		cmocka_unit_test(reservations_are_given_back),
		cmocka_unit_test(records_use_up_the_reservations_of_what_rides),
		cmocka_unit_test(the_smallest_device_is_filled_and_emptied),
		cmocka_unit_test(truncating_an_empty_file_needs_no_room),
		cmocka_unit_test(overwriting_forever_finds_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
