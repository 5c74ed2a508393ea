/* SPDX-License-Identifier: MIT */
/* Reclaim in the background, by the threads or by a step, when no caller asks for space. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "alloc/reclaim.h"
#include "alloc/zone.h"
#include "fs/core/inode.h"
#include "fs/data/delete.h"
#include "fs/data_rig.h"
#include "fs/mount/background.h"
#include "fs/space/reclaim.h"

#define FILES	  40u
#define FILE_SIZE (512u << 10)
#define WAIT_MS	  20000u

/* Of 62 zones; fewer zones are empty when the files are made. */
#define TARGET 48u

static void sleep_ms(unsigned int ms)
{
	nanosleep(&(struct timespec){ms / 1000, (long)(ms % 1000) * 1000000}, NULL);
}

static struct zf_reclaim_stats get_stats(struct data_rig *rig)
{
	struct zf_reclaim_stats stats;

	zf_reclaim_get_stats(rig->fs, &stats);
	return stats;
}

static void make(struct data_rig *rig, uint64_t ino[FILES])
{
	char name[16];

	for (unsigned int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		ino[i] = data_rig_make(rig, name);
		data_rig_write_pattern(rig, ino[i], i, 0, FILE_SIZE);
		data_rig_sync(rig);
	}
}

/* Each zone has two files, of which one is deleted. */
static void make_garbage(struct data_rig *rig, uint64_t ino[FILES])
{
	char name[16];

	make(rig, ino);
	for (unsigned int i = 0; i < FILES; i += 2) {
		snprintf(name, sizeof(name), "f%u", i);
		data_rig_unlink(rig, name, ino[i]);
	}
	data_rig_sync(rig);
	zf_alloc_set_reclaim_target(rig->fs->alloc, TARGET);
}

static void expect_the_rest(struct data_rig *rig, const uint64_t ino[FILES])
{
	for (unsigned int i = 1; i < FILES; i += 2)
		data_rig_expect(rig, ino[i], i, 0, FILE_SIZE);
}

static bool empties_within_time(struct data_rig *rig, uint64_t victims)
{
	for (unsigned int ms = 0; ms < WAIT_MS; ms += 10) {
		if (get_stats(rig).emptied >= victims)
			return true;
		sleep_ms(10);
	}
	return false;
}

static void the_thread_gets_room_ready(void **state)
{
	const struct data_rig_options options = {.threads = true, .commit_ms = 50};
	uint64_t ino[FILES];
	struct data_rig rig;

	(void)state;
	data_rig_init(&rig, &options);
	make_garbage(&rig, ino);
	/* A commit wakes reclaim; this change makes that commit happen. */
	data_rig_make(&rig, "more");
	assert_true(empties_within_time(&rig, 5));
	expect_the_rest(&rig, ino);
	data_rig_remount(&rig);
	expect_the_rest(&rig, ino);
	data_rig_deinit(&rig);
}

static void it_leaves_it_while_it_is_paused(void **state)
{
	const struct data_rig_options options = {.threads = true, .commit_ms = 20};
	uint64_t ino[FILES], commits;
	struct zf_txn_stats stats;
	struct data_rig rig;

	(void)state;
	data_rig_init(&rig, &options);
	zf_reclaim_pause(rig.fs, true);
	make_garbage(&rig, ino);
	zf_txn_get_stats(rig.fs->txn, &stats);
	commits = stats.commits;
	for (unsigned int i = 0; i < 10; i++) {
		char name[16];

		snprintf(name, sizeof(name), "more%u", i);
		data_rig_make(&rig, name);
		zf_wake_reclaim(rig.fs);
		sleep_ms(30);
	}
	zf_txn_get_stats(rig.fs->txn, &stats);
	assert_true(stats.commits > commits);
	assert_int_equal(get_stats(&rig).victims, 0);
	zf_reclaim_pause(rig.fs, false);
	zf_wake_reclaim(rig.fs);
	assert_true(empties_within_time(&rig, 5));
	data_rig_deinit(&rig);
}

static void a_step_takes_one_victim_at_most(void **state)
{
	const struct data_rig_options options = {.seed = 3};
	uint64_t ino[FILES], victims = 0;
	struct data_rig rig;

	(void)state;
	data_rig_init(&rig, &options);
	zf_reclaim_pause(rig.fs, true);
	make_garbage(&rig, ino);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(zf_fs_step(rig.fs), 0);
	assert_int_equal(get_stats(&rig).victims, 0);
	zf_reclaim_pause(rig.fs, false);
	for (unsigned int i = 0; i < 30; i++) {
		assert_int_equal(zf_fs_step(rig.fs), 0);
		assert_true(get_stats(&rig).victims <= victims + 1);
		victims = get_stats(&rig).victims;
	}
	assert_true(get_stats(&rig).emptied >= 5);
	expect_the_rest(&rig, ino);
	data_rig_deinit(&rig);
}

/* A zone without live data comes back after two commits, or after one if that commit already knows
 * of the zone. */
static void a_commit_in_time_brings_what_is_coming(void **state)
{
	const struct data_rig_options options = {.seed = 8};
	struct zf_reclaim_room before, after;
	uint64_t ino[FILES];
	struct data_rig rig;
	char name[16];

	(void)state;
	data_rig_init(&rig, &options);
	zf_reclaim_pause(rig.fs, true);
	make(&rig, ino);
	for (unsigned int i = 0; i < 8; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		data_rig_unlink(&rig, name, ino[i]);
	}
	zf_delete_doomed(rig.fs);
	zf_alloc_reclaim_room(rig.fs->alloc, &before);
	assert_true(before.coming >= 3);
	/* There are enough zones: further zones come back without an extra commit. */
	zf_alloc_set_reclaim_target(rig.fs->alloc, 0);
	assert_int_equal(zf_reclaim_commit(rig.fs), 0);
	zf_alloc_reclaim_room(rig.fs->alloc, &after);
	assert_true(after.coming >= before.coming && after.empty <= before.empty);
	/* Nothing has changed since: no commit. */
	zf_alloc_set_reclaim_target(rig.fs->alloc, TARGET);
	assert_int_equal(zf_reclaim_commit(rig.fs), 0);
	zf_alloc_reclaim_room(rig.fs->alloc, &after);
	assert_true(after.coming >= before.coming);
	data_rig_make(&rig, "new");
	assert_int_equal(zf_reclaim_commit(rig.fs), 0);
	zf_alloc_reclaim_room(rig.fs->alloc, &after);
	assert_true(after.empty >= before.empty + 3 && after.coming < before.coming);
	data_rig_deinit(&rig);
}

static void a_read_only_mount_leaves_all_as_it_is(void **state)
{
	const struct data_rig_options options = {.seed = 4};
	const struct zf_mount_options mount = {.read_only = true};
	uint64_t ino[FILES];
	struct data_rig rig;

	(void)state;
	data_rig_init(&rig, &options);
	zf_reclaim_pause(rig.fs, true);
	make_garbage(&rig, ino);
	assert_int_equal(zf_fs_unmount(rig.fs), 0);
	assert_int_equal(zf_fs_mount(rig.dev, &mount, &rig.report, &rig.fs), 0);
	zf_alloc_set_reclaim_target(rig.fs->alloc, TARGET);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(zf_fs_step(rig.fs), 0);
	assert_int_equal(get_stats(&rig).victims, 0);
	expect_the_rest(&rig, ino);
	data_rig_deinit(&rig);
}

static void the_target_is_what_the_mount_says(void **state)
{
	const struct data_rig_options options = {.seed = 5};
	struct zf_mount_options mount = {0};
	struct zf_reclaim_room least, room;
	struct data_rig rig;

	(void)state;
	data_rig_init(&rig, &options);
	zf_alloc_set_reclaim_target(rig.fs->alloc, 0);
	zf_alloc_reclaim_room(rig.fs->alloc, &least);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(zf_fs_unmount(rig.fs), 0);
		mount.reclaim_zones = i ? 0 : 9;
		mount.reclaim_percent = i ? 50 : 0;
		mount.reclaim_paused = i;
		assert_int_equal(zf_fs_mount(rig.dev, &mount, &rig.report, &rig.fs), 0);
		zf_alloc_reclaim_room(rig.fs->alloc, &room);
		assert_int_equal(room.target, least.target + (i ? 31 : 9));
		assert_int_equal(zf_reclaim_is_paused(rig.fs), i);
	}
	assert_int_equal(zf_fs_unmount(rig.fs), 0);
	rig.errors_expected = true;
	mount = (struct zf_mount_options){.reclaim_zones = 32};
	assert_int_equal(zf_fs_mount(rig.dev, &mount, &rig.report, &rig.fs), -EINVAL);
	assert_non_null(strstr(rig.message, "at most 31"));
	mount.reclaim_zones = 31;
	assert_int_equal(zf_fs_mount(rig.dev, &mount, &rig.report, &rig.fs), 0);
	data_rig_deinit(&rig);
}

static void *try_one(void *arg)
{
	struct data_rig *rig = arg;

	return (void *)(intptr_t)zf_reclaim_try_one(rig->fs, ZF_RECLAIM_URGENT);
}

static void a_call_that_may_not_wait_is_told_that_another_thread_reclaims(void **state)
{
	const struct data_rig_options options = {.seed = 6};
	uint64_t ino[FILES];
	struct data_rig rig;
	pthread_t thread;
	void *result;

	(void)state;
	data_rig_init(&rig, &options);
	make_garbage(&rig, ino);
	zf_mutex_lock(&rig.fs->reclaim->lock);
	assert_int_equal(pthread_create(&thread, NULL, try_one, &rig), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_int_equal((intptr_t)result, -EBUSY);
	zf_mutex_unlock(&rig.fs->reclaim->lock);
	assert_int_equal(get_stats(&rig).victims + get_stats(&rig).meta_victims, 0);
	assert_int_equal(zf_reclaim_try_one(rig.fs, ZF_RECLAIM_URGENT), 1);
	assert_int_equal(get_stats(&rig).victims + get_stats(&rig).meta_victims, 1);
	data_rig_deinit(&rig);
}

/* Only data that was copied can have been copied in vain. */
static void what_cannot_be_read_does_not_count_as_changed(void **state)
{
	const struct data_rig_options options = {.seed = 7};
	uint8_t block[ZF_BLOCK_SIZE], damaged[ZF_BLOCK_SIZE] = {1, 2, 3};
	struct data_rig_extents extents;
	struct zf_reclaim_stats stats;
	uint64_t ino[FILES], address;
	struct data_rig rig;
	uint32_t zone_no;

	(void)state;
	data_rig_init(&rig, &options);
	make_garbage(&rig, ino);
	data_rig_extents(&rig, ino[1], &extents);
	address = extents.at[0].address;
	zone_no = zf_zone_of(zf_dev_geometry(rig.dev), address);
	zf_sim_peek(rig.sim, address, block);
	zf_sim_poke(rig.sim, address, damaged);
	rig.errors_expected = true;
	assert_int_equal(zf_reclaim_zone(rig.fs, zone_no), 1);
	rig.errors_expected = false;
	stats = get_stats(&rig);
	assert_int_equal(stats.stuck, 1);
	assert_int_equal(stats.changed, 0);
	assert_int_equal(stats.moved, stats.live - ZF_BLOCK_SIZE);
	zf_sim_poke(rig.sim, address, block);
	rig.errors = 0;
	expect_the_rest(&rig, ino);
	data_rig_deinit(&rig);
}

/* Deletion does not wait for the committer, which here sleeps for an hour. */
static void what_is_deleted_goes_soon(void **state)
{
	const struct data_rig_options options = {.threads = true, .commit_ms = 3600000};
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &options);
	for (unsigned int i = 0; i < 3; i++) {
		unsigned int ms = 0;

		ino = data_rig_make(&rig, "f");
		data_rig_write_pattern(&rig, ino, 1, 0, FILE_SIZE);
		data_rig_sync(&rig);
		/* Now it finds nothing, and goes to sleep. */
		sleep_ms(250);
		data_rig_unlink(&rig, "f", ino);
		data_rig_sync(&rig);
		while (data_rig_live_blocks(&rig) > 0 && ms < WAIT_MS) {
			sleep_ms(10);
			ms += 10;
		}
		assert_int_equal(data_rig_live_blocks(&rig), 0);
	}
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_thread_gets_room_ready),
		cmocka_unit_test(it_leaves_it_while_it_is_paused),
		cmocka_unit_test(a_step_takes_one_victim_at_most),
		cmocka_unit_test(a_commit_in_time_brings_what_is_coming),
		cmocka_unit_test(a_read_only_mount_leaves_all_as_it_is),
		cmocka_unit_test(the_target_is_what_the_mount_says),
		cmocka_unit_test(a_call_that_may_not_wait_is_told_that_another_thread_reclaims),
		cmocka_unit_test(what_cannot_be_read_does_not_count_as_changed),
		cmocka_unit_test(what_is_deleted_goes_soon),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
