/* SPDX-License-Identifier: MIT */
/*
 * Zones that turn read-only or offline while the filesystem is mounted, or before a mount.
 * docs/space.md, "Zones that fail", says what must hold.
 */
#include <errno.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc/log_zone.h"
#include "alloc/reserve.h"
#include "alloc/zone.h"
#include "check/check.h"
#include "ctl/report.h"
#include "fs/core/inode.h"
#include "fs/data/data.h"
#include "fs/data/flush.h"
#include "fs/data_rig.h"
#include "fs/space/reclaim.h"

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
	/* The next data goes to another zone, without an error. */
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
	/* The zone's room is gone, and no other room. */
	step(&rig, 4);
	after = get_space(&rig);
	assert_int_equal(after.total, before.total - ZONE);
	assert_int_equal(after.retired, ZONE);
	assert_true(after.available < before.available - ZONE / 2);
	expect_sound(&rig);
	/* The zone stays unusable after a remount. */
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

/* However many zones fail in a row: the fsync is answered, with no more than lines in the log. */
static void data_goes_on_while_one_zone_after_the_other_fails(void **state)
{
	const struct zf_sim_wear wear = {.first = 2, .readonly = 10000, .zones_max = 5};
	struct zf_inode *inode;
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	data_rig_init(&rig, &tiny);
	ino = data_rig_make(&rig, "file");
	data_rig_sync(&rig);
	data_rig_write_pattern(&rig, ino, 1, 0, 20 * BLOCK);
	zf_sim_set_wear(rig.sim, &wear);
	assert_int_equal(zf_inode_get(rig.fs, ino, &inode), 0);
	assert_int_equal(zf_data_flush(inode, true), 0);
	zf_inode_put(inode);
	assert_int_equal(rig.errors, 0);
	step(&rig, 2);
	assert_int_equal(get_space(&rig).retired, 5 * ZONE);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 1, 0, 20 * BLOCK);
	data_rig_deinit(&rig);
}

/* If there is no room to move the zone's data, the data stays there and can be read. */
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
	/* Deleting files works, and makes room for the data. */
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
		/* After the read failed, zfuse asks the device for the zone's condition. */
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
		/* The lost file can be overwritten, truncated and deleted. */
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

/* The zone with the only copy of nodes is read-only. The nodes are read, and written to other
 * zones. A commit that finds the zone read-only fails. */
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
		/* All metadata has two copies again, and none is in the failed zone. */
		rig.errors_expected = false;
		rig.errors = 0;
		data_rig_remount(&rig);
		data_rig_expect(&rig, ino, 1, 0, 20 * BLOCK);
		data_rig_deinit(&rig);
	}
}

/* ---- the log's zones ---- */

static bool exists(struct data_rig *rig, const char *name)
{
	struct zf_attr attr;
	int r = zf_fs_lookup(rig->fs, &rig->ctx, ZF_INO_ROOT, name, &attr);

	if (r == 0)
		zf_fs_forget(rig->fs, attr.ino, 1);
	return r == 0;
}

/*
 * Changes that only the log had are lost, and only if a mount option allows that. All other data
 * is there, and the log goes on.
 */
static void a_log_zone_that_is_offline_at_mount_costs_what_only_it_had(void **state)
{
	struct zf_log_zones zones;
	struct data_rig rig;
	uint64_t ino, one;
	uint32_t failed;

	(void)state;
	data_rig_init(&rig, &tiny);
	ino = make(&rig, "file", 1, 20);
	data_rig_sync(&rig);
	one = data_rig_make(&rig, "one");
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, one, false), 0);
	zf_alloc_log_get(zf_fs_alloc(rig.fs), &zones);
	failed = zones.zone[0];
	zf_fs_abandon(rig.fs);
	zf_dev_close(rig.dev);
	zf_sim_crash(rig.sim, 3, ZF_SIM_CUT_DEVICE);
	zf_sim_set_zone_cond(rig.sim, failed, ZF_ZONE_OFFLINE);
	rig.errors_expected = true;
	assert_int_equal(data_rig_try_mount(&rig), -EIO);
	assert_non_null(strstr(rig.message, "abandon_log"));
	rig.options.abandon_log = true;
	data_rig_mount(&rig);
	assert_false(exists(&rig, "one"));
	data_rig_expect(&rig, ino, 1, 0, 20 * BLOCK);
	one = data_rig_make(&rig, "two");
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, one, false), 0);
	/* If the zone comes back, its records belong to an epoch that is over. */
	zf_fs_abandon(rig.fs);
	zf_dev_close(rig.dev);
	zf_sim_crash(rig.sim, 4, ZF_SIM_CUT_DEVICE);
	zf_sim_set_zone_cond(rig.sim, failed, ZF_ZONE_CLOSED);
	rig.errors_expected = false;
	rig.errors = 0;
	rig.options.abandon_log = false;
	data_rig_mount(&rig);
	assert_true(exists(&rig, "two"));
	assert_false(exists(&rig, "one"));
	expect_sound(&rig);
	data_rig_deinit(&rig);
}

/* Makes read number `first` of the next mount fail, and the read that tries its first block
 * again. */
static void fail_reads(struct data_rig *rig, uint64_t first)
{
	for (uint64_t nth = first; nth <= first + 1; nth++) {
		struct zf_sim_fault fault = {.op = ZF_IO_READ, .nth = nth, .error = -EIO};

		zf_sim_add_fault(rig->sim, &fault);
	}
}

/* Two files that only the log has. */
static void cut_with_a_log(struct data_rig *rig)
{
	data_rig_init(rig, &tiny);
	make(rig, "file", 1, 1);
	data_rig_sync(rig);
	for (unsigned int i = 0; i < 2; i++)
		assert_int_equal(zf_fs_fsync(rig->fs, &rig->ctx,
					     data_rig_make(rig, i ? "two" : "one"), false),
				 0);
	zf_fs_abandon(rig->fs);
	zf_dev_close(rig->dev);
	zf_sim_crash(rig->sim, 3, ZF_SIM_CUT_DEVICE);
	rig->errors_expected = true;
}

static void give_up_the_log(struct data_rig *rig, uint64_t nth)
{
	rig->options.abandon_log = true;
	fail_reads(rig, nth);
	data_rig_mount(rig);
	assert_false(exists(rig, "one"));
	assert_false(exists(rig, "two"));
	rig->options.abandon_log = false;
	data_rig_crash(rig);
	assert_false(exists(rig, "one"));
	data_rig_deinit(rig);
}

/* The log seems to end at a block that cannot be read. A mount takes the block for the end of the
 * log only on request. */
static void what_cannot_be_read_of_the_log_is_given_up_only_on_request(void **state)
{
	unsigned int refused = 0;
	struct data_rig rig;
	bool all_read = false;

	(void)state;
	for (uint64_t nth = 1; !all_read; nth++) {
		int r;

		cut_with_a_log(&rig);
		fail_reads(&rig, nth);
		r = data_rig_try_mount(&rig);
		all_read = zf_sim_faults_left(rig.sim) > 0;
		if (r == -EIO && strstr(rig.message, "abandon_log")) {
			refused++;
			give_up_the_log(&rig, nth);
			continue;
		}
		if (r == 0) {
			assert_true(exists(&rig, "one"));
			assert_true(exists(&rig, "two"));
		}
		data_rig_drop(&rig);
	}
	assert_true(refused > 0);
}

static void a_log_zone_that_is_read_only_at_mount_is_replayed(void **state)
{
	struct zf_log_zones zones;
	struct data_rig rig;
	uint64_t one;

	(void)state;
	data_rig_init(&rig, &tiny);
	data_rig_sync(&rig);
	one = data_rig_make(&rig, "one");
	data_rig_write_pattern(&rig, one, 1, 0, 3 * BLOCK);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, one, false), 0);
	zf_alloc_log_get(zf_fs_alloc(rig.fs), &zones);
	zf_sim_set_zone_cond(rig.sim, zones.zone[0], ZF_ZONE_READONLY);
	data_rig_crash(&rig);
	data_rig_expect(&rig, one, 1, 0, 3 * BLOCK);
	one = data_rig_make(&rig, "two");
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, one, false), 0);
	data_rig_crash(&rig);
	assert_true(exists(&rig, "one") && exists(&rig, "two"));
	step(&rig, 6);
	data_rig_expect(&rig, one - 1, 1, 0, 3 * BLOCK);
	assert_int_equal(get_zone(&rig, zones.zone[0]).live, 0);
	data_rig_deinit(&rig);
}

/* ---- the superblock's zones ---- */

static struct json_object *
ask(struct data_rig *rig, int (*report)(const struct zf_report_source *source,
					struct json_object *args, struct json_object **ret_result))
{
	const struct zf_report_source source = {
		.dev = rig->dev,
		.ring = zf_fs_ring(rig->fs),
		.super = &rig->fs->super,
		.fs = rig->fs,
		.mounted = true,
	};
	struct json_object *result;

	assert_int_equal(report(&source, NULL, &result), 0);
	return result;
}

static const char *text_of(struct json_object *object, const char *key)
{
	return json_object_get_string(json_object_object_get(object, key));
}

static void the_other_superblock_zone_takes_over_until_it_is_full(void **state)
{
	static const enum zf_zone_cond conds[] = {ZF_ZONE_READONLY, ZF_ZONE_OFFLINE};

	(void)state;
	for (unsigned int i = 0; i < 4; i++) {
		struct zf_attr attr;
		struct json_object *status;
		struct data_rig rig;
		uint64_t ino;
		unsigned int n;

		data_rig_init(&rig, i / 2 ? &twice : &tiny);
		ino = make(&rig, "file", 1, 20);
		zf_sim_set_zone_cond(rig.sim, 0, conds[i % 2]);
		rig.errors_expected = true;
		data_rig_write_pattern(&rig, ino, 2, 0, 20 * BLOCK);
		data_rig_sync(&rig);
		assert_true(rig.errors > 0);
		expect_sound(&rig);
		data_rig_crash(&rig);
		data_rig_expect(&rig, ino, 2, 0, 20 * BLOCK);
		for (n = 0; n < 200 && zf_txn_error(zf_fs_txn(rig.fs)) == 0; n++) {
			data_rig_write_pattern(&rig, ino, 3 + n, 0, BLOCK);
			(void)zf_fs_syncfs(rig.fs, &rig.ctx);
		}
		assert_in_range(n, 20, ZONE / BLOCK);
		/* The mount is read-only and says why. Durable data can be read, and the unmount
		 * works. */
		status = ask(&rig, zf_report_status);
		assert_string_equal(text_of(status, "failed"), "writing the superblock");
		assert_non_null(text_of(status, "error"));
		json_object_put(status);
		assert_int_equal(zf_fs_make(rig.fs, &rig.ctx, ZF_INO_ROOT, "new", S_IFREG | 0600, 0,
					    NULL, &attr),
				 -EROFS);
		data_rig_expect(&rig, ino, 2, BLOCK, 19 * BLOCK);
		assert_true(zf_fs_unmount(rig.fs) < 0);
		zf_dev_close(rig.dev);
		zf_sim_free(rig.sim);
	}
}

/* ---- what the tools show ---- */

static void the_tools_show_retired_zones(void **state)
{
	struct json_object *status, *df, *zones, *zone;
	struct data_rig rig;
	uint64_t first, second;
	uint32_t failed[2];

	(void)state;
	data_rig_init(&rig, &tiny);
	first = make(&rig, "first", 1, 64);
	second = make(&rig, "second", 2, 64);
	failed[0] = zone_of(&rig, first);
	failed[1] = zone_of(&rig, second);
	status = ask(&rig, zf_report_status);
	assert_null(text_of(status, "retired_zones"));
	json_object_put(status);
	zf_sim_set_zone_cond(rig.sim, failed[0], ZF_ZONE_READONLY);
	zf_sim_set_zone_cond(rig.sim, failed[1], ZF_ZONE_OFFLINE);
	rig.errors_expected = true;
	assert_int_equal(zf_fs_unmount(rig.fs), 0);
	zf_dev_close(rig.dev);
	data_rig_mount(&rig);
	status = ask(&rig, zf_report_status);
	assert_string_equal(text_of(status, "retired_zones"), "2");
	assert_string_equal(text_of(status, "lost_bytes"), "262144");
	json_object_put(status);
	step(&rig, 4);
	df = ask(&rig, zf_report_df);
	assert_string_equal(text_of(df, "retired"), "262144");
	json_object_put(df);
	zones = ask(&rig, zf_report_zones);
	for (unsigned int i = 0; i < 2; i++) {
		zone = json_object_array_get_idx(json_object_object_get(zones, "zones"), failed[i]);
		assert_string_equal(text_of(zone, "retired"), "true");
		assert_string_equal(text_of(zone, "condition"), i ? "ol" : "ro");
	}
	zone = json_object_array_get_idx(json_object_object_get(zones, "zones"), 9);
	assert_string_equal(text_of(zone, "retired"), "false");
	json_object_put(zones);
	data_rig_unlink(&rig, "second", second);
	step(&rig, 4);
	rig.errors_expected = false;
	rig.errors = 0;
	data_rig_deinit(&rig);
}

static void note_line(void *arg, enum zf_report_level level, const char *message)
{
	char *line = arg;

	if (level == ZF_REPORT_ERROR && strstr(message, "are lost"))
		snprintf(line, 256, "%s", message);
}

static void the_checker_says_whose_data_is_lost(void **state)
{
	const struct zf_check_options options = {0};
	struct zf_check_counts counts;
	const struct zf_super *super;
	unsigned int stepped_over;
	struct data_rig_extents extents;
	char line[256] = "", inode[40];
	const struct zf_report report = {.fn = note_line, .arg = line};
	struct data_rig rig;
	uint64_t lost;

	(void)state;
	data_rig_init(&rig, &tiny);
	lost = make(&rig, "lost", 1, 64);
	zf_sim_set_zone_cond(rig.sim, zone_of(&rig, lost), ZF_ZONE_OFFLINE);
	assert_int_equal(zf_ring_newest(zf_fs_ring(rig.fs), &super, &stepped_over), 0);
	assert_int_equal(zf_check_run(rig.dev, super, &options, &report, &counts), 0);
	data_rig_extents(&rig, lost, &extents);
	assert_int_equal(counts.errors, extents.count);
	snprintf(inode, sizeof(inode), "inode at %lu", (unsigned long)lost);
	assert_non_null(strstr(line, inode));
	snprintf(inode, sizeof(inode), "%lu bytes at offset",
		 (unsigned long)extents.at[extents.count - 1].len);
	assert_non_null(strstr(line, inode));
	data_rig_drop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_zone_that_turns_read_only_is_written_no_more_and_its_data_moves_out),
		cmocka_unit_test(a_zone_that_is_read_only_at_mount_is_the_same),
		cmocka_unit_test(data_goes_on_while_one_zone_after_the_other_fails),
		cmocka_unit_test(what_has_no_room_elsewhere_stays_where_it_can_be_read),
		cmocka_unit_test(a_zone_that_goes_offline_takes_its_own_data_and_no_other),
		cmocka_unit_test(nodes_move_out_of_a_zone_that_is_read_only_at_mount),
		cmocka_unit_test(with_two_copies_a_failed_zone_of_one_is_made_good),
		cmocka_unit_test(a_log_zone_that_is_offline_at_mount_costs_what_only_it_had),
		cmocka_unit_test(what_cannot_be_read_of_the_log_is_given_up_only_on_request),
		cmocka_unit_test(a_log_zone_that_is_read_only_at_mount_is_replayed),
		cmocka_unit_test(the_other_superblock_zone_takes_over_until_it_is_full),
		cmocka_unit_test(the_tools_show_retired_zones),
		cmocka_unit_test(the_checker_says_whose_data_is_lost),
	};

	return cmocka_run_group_tests_name("zones_fail", tests, NULL, NULL);
}
