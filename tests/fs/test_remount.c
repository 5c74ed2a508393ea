/* SPDX-License-Identifier: MIT */
/* A mounted filesystem becomes read-only, and writable again: zf_fs_remount(). */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/data_rig.h"
#include "fs/mount/background.h"
#include "fs/mount/change.h"

#define BYTES (300u << 10)

/* The number of commands that may have changed the device. */
static uint64_t changes(struct data_rig *rig)
{
	struct zf_dev_stats stats;

	zf_dev_get_stats(rig->dev, &stats);
	return stats.appends + stats.writes + stats.flushes + stats.resets + stats.finishes;
}

static void init(struct data_rig *rig, bool threads)
{
	data_rig_init(rig,
		      &(struct data_rig_options){.threads = threads, .commit_ms = 20, .seed = 5});
}

/* Operations that a read-only filesystem allows, and some that would write on a writable one. */
static void use(struct data_rig *rig, uint64_t ino)
{
	static const struct timespec pause = {.tv_nsec = 30000000};

	data_rig_expect(rig, ino, 1, 0, BYTES);
	assert_int_equal(zf_fs_write(rig->fs, &rig->ctx, ino, 0, "x", 1, 0), -EROFS);
	assert_int_equal(zf_fs_fallocate(rig->fs, &rig->ctx, ino, 0, 0, 2 * BYTES), -EROFS);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ZF_INO_ROOT, "f"), -EROFS);
	assert_int_equal(zf_fs_fsync(rig->fs, &rig->ctx, ino, false), 0);
	assert_int_equal(zf_fs_syncfs(rig->fs, &rig->ctx), 0);
	assert_int_equal(zf_fs_grow(rig->fs, 0), -EROFS);
	assert_int_equal(zf_change_begin(rig->fs), -EROFS);
	zf_wake_commit(rig->fs);
	zf_wake_reclaim(rig->fs);
	if (rig->options.threads)
		nanosleep(&pause, NULL);
	else
		assert_int_equal(zf_fs_step(rig->fs), 0);
}

/* Dirty data, a file without a name, zones to get back: there is much that could be written. */
static uint64_t prepare(struct data_rig *rig)
{
	uint64_t ino = data_rig_make(rig, "f"), gone = data_rig_make(rig, "gone");

	data_rig_write_pattern(rig, gone, 9, 0, 3 << 20);
	data_rig_sync(rig);
	data_rig_unlink(rig, "gone", gone);
	data_rig_write_pattern(rig, ino, 1, 0, BYTES);
	return ino;
}

static void writes_nothing_until_it_is_writable(bool threads)
{
	struct data_rig rig;
	uint64_t ino, before;

	init(&rig, threads);
	ino = prepare(&rig);
	assert_int_equal(zf_fs_remount(rig.fs, true), 0);
	assert_true(zf_fs_is_read_only(rig.fs));
	before = changes(&rig);
	use(&rig, ino);
	assert_int_equal(zf_fs_remount(rig.fs, true), 0);
	assert_int_equal(changes(&rig), before);

	assert_int_equal(zf_fs_remount(rig.fs, false), 0);
	assert_false(zf_fs_is_read_only(rig.fs));
	data_rig_write_pattern(&rig, ino, 2, 0, BYTES);
	data_rig_sync(&rig);
	assert_true(changes(&rig) > before);
	data_rig_remount(&rig);
	data_rig_expect(&rig, ino, 2, 0, BYTES);
	data_rig_deinit(&rig);
}

static void nothing_is_written_without_threads(void **state)
{
	writes_nothing_until_it_is_writable(false);
}

static void nothing_is_written_by_threads(void **state)
{
	writes_nothing_until_it_is_writable(true);
}

/* The remount makes everything durable, so the unmount writes nothing. */
static void an_unmount_finds_it_stored(void **state)
{
	struct data_rig rig;
	uint64_t ino, before;

	for (unsigned int threads = 0; threads < 2; threads++) {
		init(&rig, threads);
		ino = prepare(&rig);
		assert_int_equal(zf_fs_remount(rig.fs, true), 0);
		before = changes(&rig);
		use(&rig, ino);
		assert_int_equal(zf_fs_unmount(rig.fs), 0);
		assert_int_equal(changes(&rig), before);
		assert_int_equal(data_rig_mount_opened(&rig), 0);
		data_rig_expect(&rig, ino, 1, 0, BYTES);
		data_rig_deinit(&rig);
	}
}

static void all_is_durable_then(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	init(&rig, false);
	ino = prepare(&rig);
	assert_int_equal(zf_fs_remount(rig.fs, true), 0);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 1, 0, BYTES);
	data_rig_deinit(&rig);
}

static bool is_marked_clean(struct data_rig *rig)
{
	const struct zf_super *super;
	struct zf_ring *ring;
	unsigned int stepped_over;
	bool clean;

	assert_int_equal(zf_ring_open(rig->dev, &rig->report, &ring), 0);
	assert_int_equal(zf_ring_newest(ring, &super, &stepped_over), 0);
	clean = super->clean;
	zf_ring_close(ring);
	return clean;
}

/* The state on the disk is marked as cleanly unmounted only until something is written behind it.
 */
static void commits_behind_it_are_not_marked_as_its_end(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	init(&rig, false);
	ino = prepare(&rig);
	assert_int_equal(zf_fs_remount(rig.fs, true), 0);
	assert_true(is_marked_clean(&rig));
	assert_int_equal(zf_fs_remount(rig.fs, false), 0);
	data_rig_write_pattern(&rig, ino, 2, 0, BYTES);
	data_rig_sync(&rig);
	assert_false(is_marked_clean(&rig));
	data_rig_deinit(&rig);
}

/* The last reference to a file without a name goes while nothing may be written. */
static void a_file_that_goes_meanwhile_is_deleted_by_the_next_mount(void **state)
{
	struct data_rig rig;
	uint64_t ino, before;
	struct zf_inode *inode;

	init(&rig, true);
	ino = prepare(&rig);
	assert_int_equal(zf_inode_get(rig.fs, ino, &inode), 0);
	data_rig_unlink(&rig, "f", ino);
	assert_int_equal(zf_fs_remount(rig.fs, true), 0);
	before = changes(&rig);
	zf_inode_put(inode);
	assert_int_equal(zf_fs_unmount(rig.fs), 0);
	assert_int_equal(changes(&rig), before);
	assert_int_equal(data_rig_mount_opened(&rig), 0);
	assert_int_equal(zf_inode_get(rig.fs, ino, &inode), -ESTALE);
	data_rig_deinit(&rig);
}

static void what_was_mounted_read_only_stays_so(void **state)
{
	const struct zf_mount_options options = {.read_only = true};
	struct data_rig rig;

	init(&rig, false);
	assert_int_equal(zf_fs_unmount(rig.fs), 0);
	assert_int_equal(zf_fs_mount(rig.dev, &options, &rig.report, &rig.fs), 0);
	assert_int_equal(zf_fs_remount(rig.fs, false), -EROFS);
	assert_int_equal(zf_fs_remount(rig.fs, true), 0);
	data_rig_deinit(&rig);
}

/* Data that cannot be written is lost, although the remount works. An fsync of the open file
 * reports the loss. */
static void lost_data_is_told_by_fsync(void **state)
{
	struct zf_error_cursor file, all = {0};
	struct zf_ctx ctx;
	struct data_rig rig;
	uint64_t ino;

	init(&rig, false);
	ino = prepare(&rig);
	zf_fs_begin_errors(rig.fs, ino, &file);
	rig.errors_expected = true;
	for (uint64_t nth = 1; nth <= 8; nth++)
		zf_sim_add_fault(rig.sim, &(struct zf_sim_fault){
						  .op = ZF_IO_APPEND, .nth = nth, .error = -EIO});
	assert_int_equal(zf_fs_remount(rig.fs, true), 0);
	assert_int_equal(data_rig_fsync(&rig, ino, &file), -EIO);
	assert_int_equal(data_rig_fsync(&rig, ino, &file), 0);
	ctx = rig.ctx;
	ctx.told = zf_fs_told(&all);
	assert_int_equal(zf_fs_syncfs(rig.fs, &ctx), -EIO);
	ctx.told = zf_fs_told(&all);
	assert_int_equal(zf_fs_syncfs(rig.fs, &ctx), 0);
	data_rig_drop(&rig);
}

/* No superblock can be written, so the mount becomes read-only because of the error, not because of
 * the request. */
static void a_commit_that_fails_is_an_error(void **state)
{
	struct data_rig rig;

	init(&rig, false);
	prepare(&rig);
	rig.errors_expected = true;
	for (uint64_t nth = 1; nth <= 50; nth++)
		zf_sim_add_fault(rig.sim, &(struct zf_sim_fault){
						  .op = ZF_IO_WRITE, .nth = nth, .error = -EIO});
	assert_int_equal(zf_fs_remount(rig.fs, true), -EIO);
	assert_int_equal(zf_fs_remount(rig.fs, false), -EROFS);
	data_rig_drop(&rig);
}

/* ---- beside others ---- */

static void *turn(void *arg)
{
	struct data_rig *rig = arg;

	for (unsigned int i = 0; i < 200; i++) {
		assert_int_equal(zf_fs_remount(rig->fs, i % 2 == 0), 0);
		zf_fs_set_commit_ms(rig->fs, 1 + i % 7);
		assert_int_equal(zf_fs_set_reclaim_target(rig->fs, 1 + i % 20, 0), 0);
	}
	return NULL;
}

/* Two threads change the mount back and forth, one thread asks for room, and readers read. */
static void it_turns_beside_readers(void **state)
{
	pthread_t turners[2];
	struct data_rig rig;
	uint64_t ino;

	init(&rig, true);
	ino = prepare(&rig);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&turners[i], NULL, turn, &rig), 0);
	for (unsigned int i = 0; i < 100; i++) {
		data_rig_expect(&rig, ino, 1, 0, BYTES);
		zf_wake_reclaim(rig.fs);
		zf_wake_commit(rig.fs);
	}
	for (unsigned int i = 0; i < 2; i++)
		pthread_join(turners[i], NULL);
	assert_int_equal(zf_fs_remount(rig.fs, false), 0);
	data_rig_deinit(&rig);
}

static void a_target_above_half_is_refused(void **state)
{
	struct data_rig rig;

	init(&rig, false);
	rig.errors_expected = true;
	assert_int_equal(zf_fs_set_reclaim_target(rig.fs, 60, 0), -EINVAL);
	assert_int_equal(rig.errors, 1);
	assert_int_equal(zf_fs_set_reclaim_target(rig.fs, 30, 0), 0);
	assert_int_equal(zf_fs_set_reclaim_target(rig.fs, 0, 50), 0);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_written_without_threads),
		cmocka_unit_test(nothing_is_written_by_threads),
		cmocka_unit_test(an_unmount_finds_it_stored),
		cmocka_unit_test(all_is_durable_then),
		cmocka_unit_test(commits_behind_it_are_not_marked_as_its_end),
		cmocka_unit_test(a_file_that_goes_meanwhile_is_deleted_by_the_next_mount),
		cmocka_unit_test(what_was_mounted_read_only_stays_so),
		cmocka_unit_test(lost_data_is_told_by_fsync),
		cmocka_unit_test(a_commit_that_fails_is_an_error),
		cmocka_unit_test(it_turns_beside_readers),
		cmocka_unit_test(a_target_above_half_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
