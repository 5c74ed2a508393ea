/* SPDX-License-Identifier: MIT */
/*
 * Zones that turn read-only or offline under the filesystem, and are so when it is mounted. What
 * must hold is in docs/space.md, "Zones that fail".
 */
#include <errno.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/data_rig.h"
#include "fs/inode.h"
#include "fs/reclaim.h"

#define BLOCK 4096u
#define ZONE  (256u << 10)

static const struct data_rig_options tiny = {
	.seed = 1, .zone_size = ZONE, .append_limit = 128 << 10, .node_size = 4096};
static const struct data_rig_options twice = {
	.seed = 1, .zone_size = ZONE, .append_limit = 128 << 10, .node_size = 4096, .copies = 2};

static struct zf_zone get_zone(struct data_rig *rig, uint32_t zone_no)
{
	struct zf_zone zone;

	zf_alloc_get_zone(zf_fs_alloc(rig->fs), zone_no, &zone);
	return zone;
}

static struct zf_space get_space(struct data_rig *rig)
{
	struct zf_space space;

	zf_alloc_get_space(zf_fs_alloc(rig->fs), &space);
	assert_int_equal(space.total, space.live + space.in_place + space.unusable +
					      space.reclaimable + space.free);
	return space;
}

static uint32_t zone_of(struct data_rig *rig, uint64_t ino)
{
	struct data_rig_extents extents;

	data_rig_extents(rig, ino, &extents);
	assert_true(extents.count > 0);
	return zf_zone_of(zf_dev_geometry(rig->dev), extents.at[0].address);
}

/* The zone that metadata is being written to, of this copy. */
static uint32_t meta_zone(struct data_rig *rig, unsigned int copy)
{
	const struct zf_super *super;
	unsigned int stepped_over;

	assert_int_equal(zf_ring_newest(zf_fs_ring(rig->fs), &super, &stepped_over), 0);
	return super->meta_zone[copy];
}

static void step(struct data_rig *rig, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		assert_int_equal(zf_fs_step(rig->fs), 0);
}

static uint64_t make(struct data_rig *rig, const char *name, uint64_t seed, uint64_t blocks)
{
	uint64_t ino = data_rig_make(rig, name);

	data_rig_write_pattern(rig, ino, seed, 0, blocks * BLOCK);
	data_rig_sync(rig);
	return ino;
}

static void expect_sound(struct data_rig *rig)
{
	assert_int_equal(zf_txn_error(zf_fs_txn(rig->fs)), 0);
	assert_false(zf_fs_is_read_only(rig->fs));
}

/* ---- zones of data ---- */

/* The zone of the file's data is read-only from the next append on. */
static void turn_read_only(struct data_rig *rig, uint64_t ino)
{
	zf_sim_set_zone_cond(rig->sim, zone_of(rig, ino), ZF_ZONE_READONLY);
}

static void a_zone_that_turns_read_only_is_written_no_more_and_its_data_moves_out(void **state)
{
	struct zf_space before, after;
	struct data_rig rig;
	uint64_t ino, other;
	uint32_t failed;

	(void)state;
	data_rig_init(&rig, &tiny);
	ino = make(&rig, "file", 1, 20);
	failed = zone_of(&rig, ino);
	before = get_space(&rig);
	turn_read_only(&rig, ino);
	/* What comes next goes to another zone, without an error. */
	other = make(&rig, "other", 2, 40);
	assert_int_not_equal(zone_of(&rig, other), failed);
	data_rig_expect(&rig, ino, 1, 0, 20 * BLOCK);
	step(&rig, 1);
	assert_true(get_zone(&rig, failed).unusable);
	step(&rig, 4);
	assert_int_equal(get_zone(&rig, failed).live, 0);
	assert_int_not_equal(zone_of(&rig, ino), failed);
	data_rig_expect(&rig, ino, 1, 0, 20 * BLOCK);
	data_rig_expect(&rig, other, 2, 0, 40 * BLOCK);
	/* Its room is gone, and with it no more than that. */
	step(&rig, 4);
	after = get_space(&rig);
	assert_int_equal(after.total, before.total - ZONE);
	assert_int_equal(after.retired, ZONE);
	assert_true(after.available < before.available - ZONE / 2);
	expect_sound(&rig);
	/* And so it stays. */
	data_rig_remount(&rig);
	assert_true(get_zone(&rig, failed).unusable);
	assert_int_equal(get_space(&rig).retired, ZONE);
	for (unsigned int i = 0; i < 8; i++) {
		data_rig_write_pattern(&rig, other, 3 + i, 0, 60 * BLOCK);
		data_rig_sync(&rig);
		step(&rig, 3);
	}
	assert_int_equal(get_zone(&rig, failed).live, 0);
	data_rig_expect(&rig, ino, 1, 0, 20 * BLOCK);
	data_rig_expect(&rig, other, 10, 0, 60 * BLOCK);
	data_rig_deinit(&rig);
}

static void a_zone_that_is_read_only_at_mount_is_the_same(void **state)
{
	struct data_rig rig;
	uint64_t ino, shared, copy;
	uint32_t failed;

	(void)state;
	for (unsigned int crash = 0; crash < 2; crash++) {
		data_rig_init(&rig, &tiny);
		ino = make(&rig, "file", 1, 10);
		shared = make(&rig, "shared", 2, 10);
		copy = data_rig_make(&rig, "copy");
		assert_int_equal(zf_fs_copy_range(rig.fs, &rig.ctx, shared, 0, copy, 0, 10 * BLOCK),
				 10 * BLOCK);
		data_rig_sync(&rig);
		failed = zone_of(&rig, ino);
		assert_int_equal(zone_of(&rig, shared), failed);
		turn_read_only(&rig, ino);
		if (crash)
			data_rig_crash(&rig);
		else
			data_rig_remount(&rig);
		data_rig_expect(&rig, ino, 1, 0, 10 * BLOCK);
		step(&rig, 4);
		assert_int_equal(get_zone(&rig, failed).live, 0);
		data_rig_expect(&rig, ino, 1, 0, 10 * BLOCK);
		data_rig_expect(&rig, copy, 2, 0, 10 * BLOCK);
		data_rig_expect(&rig, shared, 2, 0, 10 * BLOCK);
		data_rig_deinit(&rig);
	}
}

/* Without room for what lies there it stays, and can be read. */
static void what_has_no_room_elsewhere_stays_where_it_can_be_read(void **state)
{
	struct data_rig_options options = tiny;
	struct data_rig rig;
	uint64_t first, last = 0;
	uint32_t failed;
	unsigned int n;

	(void)state;
	options.zone_count = 24;
	data_rig_init(&rig, &options);
	first = make(&rig, "first", 1, 60);
	failed = zone_of(&rig, first);
	for (n = 0;; n++) {
		static uint8_t buf[30 * BLOCK];
		struct zf_attr attr;
		char name[16];

		snprintf(name, sizeof(name), "%u", n);
		if (zf_fs_make(rig.fs, &rig.ctx, ZF_INO_ROOT, name, S_IFREG | 0600, 0, NULL,
			       &attr) < 0)
			break;
		zf_fs_forget(rig.fs, attr.ino, 1);
		last = attr.ino;
		data_rig_fill(n, 0, buf, sizeof(buf));
		if (zf_fs_write(rig.fs, &rig.ctx, last, 0, buf, sizeof(buf), 0) !=
		    (ssize_t)sizeof(buf))
			break;
	}
	data_rig_sync(&rig);
	turn_read_only(&rig, first);
	data_rig_remount(&rig);
	step(&rig, 4);
	assert_true(get_zone(&rig, failed).live > 0);
	data_rig_expect(&rig, first, 1, 0, 60 * BLOCK);
	/* Deleting works, and makes room for it. */
	for (unsigned int i = 0; i < n; i += 2) {
		char name[16];

		snprintf(name, sizeof(name), "%u", i);
		data_rig_unlink(&rig, name, last);
	}
	step(&rig, 12);
	assert_int_equal(get_zone(&rig, failed).live, 0);
	data_rig_expect(&rig, first, 1, 0, 60 * BLOCK);
	data_rig_deinit(&rig);
}

static void expect_eio(struct data_rig *rig, uint64_t ino)
{
	uint8_t byte;
	unsigned int before = rig->errors;

	rig->errors_expected = true;
	assert_int_equal(zf_fs_read(rig->fs, &rig->ctx, ino, 0, &byte, 1), -EIO);
	assert_int_equal(rig->errors, before + 1);
	assert_non_null(strstr(rig->message, "cannot be read"));
}

static void a_zone_that_goes_offline_takes_its_own_data_and_no_other(void **state)
{
	struct zf_space before, after;
	struct data_rig rig;
	uint64_t lost, kept, again;
	uint32_t failed;

	(void)state;
	for (unsigned int crash = 0; crash < 2; crash++) {
		data_rig_init(&rig, &tiny);
		lost = make(&rig, "lost", 1, 64);
		failed = zone_of(&rig, lost);
		kept = make(&rig, "kept", 2, 60);
		assert_int_not_equal(zone_of(&rig, kept), failed);
		before = get_space(&rig);
		zf_sim_set_zone_cond(rig.sim, failed, ZF_ZONE_OFFLINE);
		expect_eio(&rig, lost);
		/* A read is reason enough to ask the device. */
		step(&rig, 1);
		assert_true(get_zone(&rig, failed).offline);
		after = get_space(&rig);
		assert_int_equal(after.total,
				 before.total - ZONE +
					 (uint64_t)get_zone(&rig, failed).live * BLOCK);
		if (crash) {
			zf_fs_abandon(rig.fs);
			zf_dev_close(rig.dev);
			zf_sim_crash(rig.sim, 7, ZF_SIM_CUT_DEVICE);
		} else {
			assert_int_equal(zf_fs_unmount(rig.fs), 0);
			zf_dev_close(rig.dev);
		}
		data_rig_mount(&rig);
		expect_eio(&rig, lost);
		data_rig_expect(&rig, kept, 2, 0, 60 * BLOCK);
		/* It can be written over, cut short, deleted. */
		data_rig_write_pattern(&rig, lost, 3, 0, 10 * BLOCK);
		data_rig_sync(&rig);
		data_rig_expect(&rig, lost, 3, 0, 10 * BLOCK);
		data_rig_truncate(&rig, lost, 20 * BLOCK);
		again = make(&rig, "again", 4, 100);
		data_rig_unlink(&rig, "lost", lost);
		step(&rig, 8);
		assert_int_equal(get_zone(&rig, failed).live, 0);
		data_rig_expect(&rig, again, 4, 0, 100 * BLOCK);
		rig.errors_expected = false;
		rig.errors = 0;
		expect_sound(&rig);
		data_rig_deinit(&rig);
	}
}

/* ---- zones of metadata ---- */

static void churn(struct data_rig *rig, unsigned int files)
{
	for (unsigned int i = 0; i < files; i++) {
		char name[24];

		snprintf(name, sizeof(name), "churn-%u", i);
		make(rig, name, i, 2);
	}
	for (unsigned int i = 0; i < files; i++) {
		char name[24];

		snprintf(name, sizeof(name), "churn-%u", i);
		data_rig_unlink(rig, name, 0);
	}
	data_rig_sync(rig);
}

/* One copy, read-only: its nodes are read, and written elsewhere; a commit that meets it fails. */
static void nodes_move_out_of_a_zone_that_is_read_only_at_mount(void **state)
{
	struct data_rig rig;
	uint32_t failed;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &tiny);
	ino = make(&rig, "file", 1, 20);
	churn(&rig, 40);
	failed = meta_zone(&rig, 0);
	assert_true(get_zone(&rig, failed).live > 0);
	assert_int_equal(zf_fs_unmount(rig.fs), 0);
	zf_dev_close(rig.dev);
	zf_sim_set_zone_cond(rig.sim, failed, ZF_ZONE_READONLY);
	data_rig_mount(&rig);
	assert_true(get_zone(&rig, failed).unusable);
	step(&rig, 4);
	assert_int_equal(get_zone(&rig, failed).live, 0);
	assert_int_equal(get_zone(&rig, failed).system_live, 0);
	expect_sound(&rig);
	zf_sim_set_zone_cond(rig.sim, failed, ZF_ZONE_OFFLINE);
	data_rig_remount(&rig);
	data_rig_expect(&rig, ino, 1, 0, 20 * BLOCK);
	data_rig_deinit(&rig);
}

static void with_two_copies_a_failed_zone_of_one_is_made_good(void **state)
{
	static const enum zf_zone_cond conds[] = {ZF_ZONE_READONLY, ZF_ZONE_OFFLINE};
	struct data_rig rig;
	uint32_t failed;
	uint64_t ino;

	(void)state;
	for (unsigned int i = 0; i < 8; i++) {
		unsigned int copy = i / 2 % 2;
		bool mounted = i / 4;

		data_rig_init(&rig, &twice);
		ino = make(&rig, "file", 1, 20);
		churn(&rig, 40);
		failed = meta_zone(&rig, copy);
		rig.errors_expected = true;
		if (!mounted) {
			assert_int_equal(zf_fs_unmount(rig.fs), 0);
			zf_dev_close(rig.dev);
		}
		zf_sim_set_zone_cond(rig.sim, failed, conds[i % 2]);
		if (!mounted)
			data_rig_mount(&rig);
		churn(&rig, 10);
		step(&rig, 8);
		assert_int_equal(get_zone(&rig, failed).live, 0);
		assert_int_equal(get_zone(&rig, failed).system_live, 0);
		expect_sound(&rig);
		/* Now everything is there twice again, and nothing needs the zone. */
		rig.errors_expected = false;
		rig.errors = 0;
		data_rig_remount(&rig);
		data_rig_expect(&rig, ino, 1, 0, 20 * BLOCK);
		data_rig_deinit(&rig);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_zone_that_turns_read_only_is_written_no_more_and_its_data_moves_out),
		cmocka_unit_test(a_zone_that_is_read_only_at_mount_is_the_same),
		cmocka_unit_test(what_has_no_room_elsewhere_stays_where_it_can_be_read),
		cmocka_unit_test(a_zone_that_goes_offline_takes_its_own_data_and_no_other),
		cmocka_unit_test(nodes_move_out_of_a_zone_that_is_read_only_at_mount),
		cmocka_unit_test(with_two_copies_a_failed_zone_of_one_is_made_good),
	};

	return cmocka_run_group_tests_name("zones_fail", tests, NULL, NULL);
}
