/* SPDX-License-Identifier: MIT */
/*
 * Writing the log, through fsyncs of a filesystem (P1): which commands an fsync sends to the
 * device, what the records say when they are read back, and what happens when a record cannot be
 * written.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "fs/data_rig.h"
#include "fs/core/inode.h"
#include "log/log.h"
#include "log/read.h"
#include "superblock/ring.h"

#define BLOCK 4096u
#define KIB   1024u

static struct data_rig rig;
static uint8_t buf[64 * BLOCK];
static uint64_t file; /* of most tests: committed, empty */

/* ---- short forms ---- */

static void begin(const struct data_rig_options *options)
{
	data_rig_init(&rig, options);
	file = data_rig_make(&rig, "file");
	data_rig_sync(&rig);
}

static void begin_default(uint64_t seed)
{
	const struct data_rig_options options = {.seed = seed};

	begin(&options);
}

static void write_pattern(uint64_t ino, uint64_t seed, uint64_t offset, size_t len,
			  unsigned int flags)
{
	data_rig_fill(seed, offset, buf, len);
	assert_int_equal(zf_fs_write(rig.fs, &rig.ctx, ino, offset, buf, len, flags), len);
}

static void sync_inode(uint64_t ino)
{
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
}

static bool exists(const char *name)
{
	struct zf_attr attr;
	int r = zf_fs_lookup(rig.fs, &rig.ctx, ZF_INO_ROOT, name, &attr);

	if (r == 0)
		zf_fs_forget(rig.fs, attr.ino, 1);
	else
		assert_int_equal(r, -ENOENT);
	return r == 0;
}

static struct zf_log_stats log_stats(void)
{
	struct zf_log_stats stats;

	zf_log_get_stats(rig.fs->log, &stats);
	return stats;
}

static uint64_t commits(void)
{
	struct zf_txn_stats stats;

	zf_txn_get_stats(rig.fs->txn, &stats);
	return stats.commits;
}

/* ---- what the device was asked ---- */

static struct zf_dev_stats before;

static void count_from_here(void)
{
	zf_dev_get_stats(rig.dev, &before);
}

/* Since `before`: so many writes, all with FUA, of so many bytes together, and nothing else. */
static void expect_written(uint64_t writes, uint64_t bytes)
{
	struct zf_dev_stats now;

	zf_dev_get_stats(rig.dev, &now);
	assert_int_equal(now.appends + now.writes - before.appends - before.writes, writes);
	assert_int_equal(now.fua_writes - before.fua_writes, writes);
	assert_int_equal(now.append_bytes + now.write_bytes - before.append_bytes -
				 before.write_bytes,
			 bytes);
	assert_int_equal(now.flushes, before.flushes);
	assert_int_equal(now.resets, before.resets);
}

/* ---- what is in the log ---- */

static void read_log(struct zf_log_found *found)
{
	const struct zf_super *super;
	struct zf_ring *ring;
	unsigned int stepped_over;

	assert_int_equal(zf_ring_open(rig.dev, &rig.report, &ring), 0);
	assert_int_equal(zf_ring_newest(ring, &super, &stepped_over), 0);
	assert_int_equal(zf_log_read(rig.dev, super, &rig.report, found), 0);
	/* The sequences of the records and the numbers of the bodies have no gap and no
	 * duplicate. */
	for (size_t i = 0, expected = super->log_sequence; i < found->list_count; i++)
		if (found->list[i].fate == ZF_LOG_TO_REPLAY)
			assert_int_equal(found->list[i].record.sequence, ++expected);
	for (size_t i = 0; i < found->body_count; i++)
		assert_int_equal(found->bodies[i].number, super->op_number + 1 + i);
	zf_ring_close(ring);
}

/* So many records to be replayed, with so many operations and states of inodes. */
static void expect_log(uint64_t records, size_t operations, size_t states)
{
	struct zf_log_found found;
	size_t n = 0;

	read_log(&found);
	for (size_t i = 0; i < found.body_count; i++)
		n += found.bodies[i].type == ZF_LOG_OPERATION;
	assert_int_equal(found.records, records);
	assert_int_equal(n, operations);
	assert_int_equal(found.body_count - n, states);
	zf_log_found_free(&found);
}

/* ---- what it costs ---- */

static void a_durable_block_is_one_append_of_two_blocks(void **state)
{
	(void)state;
	begin_default(1);
	for (unsigned int i = 0; i < 12; i++) {
		count_from_here();
		write_pattern(file, i, i * BLOCK, BLOCK, ZF_WRITE_DSYNC);
		expect_written(1, 2 * BLOCK);
	}
	for (unsigned int i = 0; i < 12; i++) {
		count_from_here();
		write_pattern(file, 50 + i, i * BLOCK, BLOCK, ZF_WRITE_DSYNC);
		expect_written(1, 2 * BLOCK);
	}
	expect_log(24, 0, 24);
	data_rig_crash(&rig);
	for (unsigned int i = 0; i < 12; i++)
		data_rig_expect(&rig, file, 50 + i, i * BLOCK, BLOCK);
	data_rig_deinit(&rig);
}

/* Content that packs costs no block of its own, as long as all else fits beside it. */
static void a_durable_block_that_packs_is_one_append_of_one_block(void **state)
{
	(void)state;
	begin_default(11);
	for (unsigned int i = 0; i < 24; i++) {
		count_from_here();
		write_pattern(file, DATA_RIG_PACKS + i, i % 12 * BLOCK, BLOCK, ZF_WRITE_DSYNC);
		expect_written(1, BLOCK);
	}
	/* Three blocks, of which one is carried, and two parts of a record. */
	count_from_here();
	write_pattern(file, DATA_RIG_PACKS + 24, 12 * BLOCK, 3 * BLOCK, ZF_WRITE_DSYNC);
	expect_written(1, 3 * BLOCK);
	/* Blocks that are neighbours in the file are neighbours on the device. */
	data_rig_expect(&rig, file, DATA_RIG_PACKS + 24, 12 * BLOCK, 3 * BLOCK);
	expect_log(25, 0, 25);
	data_rig_crash(&rig);
	for (unsigned int i = 0; i < 12; i++)
		data_rig_expect(&rig, file, DATA_RIG_PACKS + 12 + i, i * BLOCK, BLOCK);
	data_rig_expect(&rig, file, DATA_RIG_PACKS + 24, 12 * BLOCK, 3 * BLOCK);
	data_rig_remount(&rig);
	for (unsigned int i = 0; i < 12; i++)
		data_rig_expect(&rig, file, DATA_RIG_PACKS + 12 + i, i * BLOCK, BLOCK);
	data_rig_deinit(&rig);
}

static void what_was_carried_one_by_one_is_one_extent(void **state)
{
	struct data_rig_extents extents;

	(void)state;
	begin_default(12);
	for (unsigned int i = 0; i < 12; i++)
		write_pattern(file, DATA_RIG_PACKS + 1, i * BLOCK, BLOCK, ZF_WRITE_DSYNC);
	data_rig_extents(&rig, file, &extents);
	assert_int_equal(extents.count, 1);
	assert_int_equal(extents.at[0].len, 12 * BLOCK);
	data_rig_remount(&rig);
	data_rig_expect(&rig, file, DATA_RIG_PACKS + 1, 0, 12 * BLOCK);
	data_rig_deinit(&rig);
}

/* Beside many operations there is no room in the header block. */
static void what_finds_no_room_in_the_header_follows(void **state)
{
	struct zf_log_found found;
	char name[16];

	(void)state;
	begin_default(13);
	for (unsigned int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "new %u", i);
		data_rig_make(&rig, name);
	}
	write_pattern(file, DATA_RIG_PACKS + 1, 0, BLOCK, ZF_WRITE_DSYNC);
	read_log(&found);
	assert_int_equal(found.records, 1);
	assert_int_equal(found.body_count, 21);
	assert_int_equal(found.list[0].record.data_blocks, 1);
	assert_int_equal(found.list[0].record.carried, 0);
	zf_log_found_free(&found);
	data_rig_crash(&rig);
	data_rig_expect(&rig, file, DATA_RIG_PACKS + 1, 0, BLOCK);
	data_rig_deinit(&rig);
}

static void a_small_new_file_is_one_append_of_one_block(void **state)
{
	char name[16];

	(void)state;
	begin_default(2);
	for (unsigned int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "new %u", i);
		count_from_here();
		file = data_rig_make(&rig, name);
		write_pattern(file, i, 0, 1 + i * 200, 0);
		sync_inode(file);
		expect_written(1, BLOCK);
	}
	expect_log(10, 10, 10);
	data_rig_crash(&rig);
	data_rig_expect(&rig, file, 9, 0, 1 + 9 * 200);
	data_rig_deinit(&rig);
}

static void a_directory_is_synced_by_the_operations_alone(void **state)
{
	(void)state;
	begin_default(3);
	write_pattern(file, 1, 0, 3 * BLOCK, 0);
	data_rig_make(&rig, "a");
	data_rig_make(&rig, "b");
	count_from_here();
	sync_inode(ZF_INO_ROOT);
	expect_written(1, BLOCK);
	expect_log(1, 2, 0);
	data_rig_crash(&rig);
	assert_true(exists("a") && exists("b"));
	data_rig_deinit(&rig);
}

static void nothing_to_log_is_not_written(void **state)
{
	(void)state;
	begin_default(4);
	write_pattern(file, 1, 0, BLOCK, ZF_WRITE_DSYNC);
	count_from_here();
	sync_inode(file);
	sync_inode(ZF_INO_ROOT);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, file, true), 0);
	expect_written(0, 0);
	data_rig_deinit(&rig);
}

/* ---- beside a commit ---- */

static void what_is_frozen_is_written_until_it_is_durable(void **state)
{
	struct zf_sim *cut, *sim;
	uint64_t a, b, c;

	(void)state;
	begin_default(5);
	a = data_rig_make(&rig, "a");
	write_pattern(a, 1, 0, 100, 0);
	assert_int_equal(zf_txn_freeze(rig.fs->txn), 0);
	b = data_rig_make(&rig, "b");
	write_pattern(b, 2, 0, BLOCK, 0);
	sync_inode(b);
	expect_log(1, 2, 1);
	assert_int_equal(zf_txn_write(rig.fs->txn), 0);
	c = data_rig_make(&rig, "c");
	write_pattern(c, 3, 0, 5 * BLOCK, 0);
	sync_inode(c);
	sync_inode(a);
	expect_log(3, 3, 3);
	cut = zf_sim_clone(rig.sim);
	assert_int_equal(zf_txn_finish(rig.fs->txn), 0);
	/* Only the name of a is in the trees now. */
	expect_log(3, 2, 3);
	sync_inode(a);
	expect_log(3, 2, 3);

	/* As if the power had gone before the superblock was written. */
	sim = rig.sim;
	rig.sim = cut;
	data_rig_crash(&rig);
	zf_sim_free(sim);
	data_rig_expect(&rig, a, 1, 0, 100);
	data_rig_expect(&rig, b, 2, 0, BLOCK);
	data_rig_expect(&rig, c, 3, 0, 5 * BLOCK);
	assert_true(exists("a") && exists("b") && exists("c"));
	data_rig_deinit(&rig);
}

/* ---- where there is no room ---- */

static void full_zones_are_switched_and_then_committed(void **state)
{
	const struct data_rig_options options = {
		.seed = 6,
		.zone_size = 128 * KIB,
		.append_limit = 64 * KIB,
		.zone_count = 256,
		.node_size = 4096,
	};
	struct zf_log_stats stats;
	uint64_t made;
	unsigned int n;

	(void)state;
	begin(&options);
	made = commits();
	for (n = 0; commits() == made; n++) {
		assert_true(n < 1000);
		write_pattern(file, n, n % 8 * BLOCK, BLOCK, ZF_WRITE_DSYNC);
	}
	stats = log_stats();
	/* The log has two zones of 32 blocks, and a record takes two blocks. */
	assert_int_equal(stats.switches, 1);
	assert_true(stats.records > 16 && stats.records <= 32);
	assert_true(stats.commits_instead > 0);
	assert_int_equal(stats.failures, 0);
	made = commits();
	write_pattern(file, n, n % 8 * BLOCK, BLOCK, ZF_WRITE_DSYNC);
	assert_int_equal(commits(), made);
	assert_int_equal(log_stats().records, stats.records + 1);
	data_rig_crash(&rig);
	for (unsigned int i = n - 7; i <= n; i++)
		data_rig_expect(&rig, file, i, i % 8 * BLOCK, BLOCK);
	data_rig_deinit(&rig);
}

static void more_than_is_kept_is_committed(void **state)
{
	const struct data_rig_options options = {.seed = 7, .zone_count = 128};
	struct zf_log_stats stats;
	uint64_t made, other;
	char value[3000];

	(void)state;
	begin(&options);
	other = data_rig_make(&rig, "other");
	memset(value, 'v', sizeof(value));
	for (unsigned int i = 0; i * sizeof(value) <= ZF_LOG_KEEP_BYTES; i++) {
		value[0] = (char)i;
		assert_int_equal(
			zf_fs_setxattr(rig.fs, &rig.ctx, file, "user.a", value, sizeof(value), 0),
			0);
	}
	assert_false(zf_log_wants_operations(rig.fs->log));
	made = commits();
	write_pattern(other, 1, 0, BLOCK, 0);
	sync_inode(other);
	assert_int_equal(commits(), made + 1);
	stats = log_stats();
	assert_int_equal(stats.records, 0);
	assert_true(zf_log_wants_operations(rig.fs->log));
	data_rig_make(&rig, "last");
	sync_inode(ZF_INO_ROOT);
	assert_int_equal(commits(), made + 1);
	expect_log(1, 1, 0);
	data_rig_crash(&rig);
	assert_true(exists("other") && exists("last"));
	data_rig_expect(&rig, other, 1, 0, BLOCK);
	data_rig_deinit(&rig);
}

/* ---- failures ---- */

/* `seed` is or'ed to the seeds of all content, and decides whether the content packs. */
static void fail_record(struct zf_sim_fault fault, uint64_t seed)
{
	uint64_t made;

	begin_default(8);
	/* If the fault makes a zone fail, the data in that zone is lost, too. */
	write_pattern(file, seed | 1, 0, 4 * BLOCK, 0);
	data_rig_sync(&rig);
	made = commits();
	fault.op = ZF_IO_APPEND;
	fault.nth = 1;
	fault.error = -EIO;
	zf_sim_add_fault(rig.sim, &fault);
	data_rig_make(&rig, "a");
	rig.errors_expected = true;
	write_pattern(file, seed | 2, BLOCK, 2 * BLOCK, ZF_WRITE_DSYNC);
	assert_int_equal(zf_sim_faults_left(rig.sim), 0);
	assert_int_equal(log_stats().failures, 1);
	assert_int_equal(commits(), made + 1);
	expect_log(0, 0, 0);

	/* The log works again. */
	data_rig_make(&rig, "b");
	write_pattern(file, seed | 3, 2 * BLOCK, 2 * BLOCK, ZF_WRITE_DSYNC);
	assert_int_equal(commits(), made + 1);
	expect_log(1, 1, 1);
	data_rig_crash(&rig);
	assert_true(exists("a") && exists("b"));
	data_rig_expect(&rig, file, seed | 1, 0, BLOCK);
	data_rig_expect(&rig, file, seed | 2, BLOCK, BLOCK);
	data_rig_expect(&rig, file, seed | 3, 2 * BLOCK, 2 * BLOCK);
	data_rig_deinit(&rig);
}

static void a_record_that_fails_is_made_up_for_by_a_commit(void **state)
{
	const struct zf_sim_fault faults[] = {
		{0},
		{.moves_pointer = true},
		{.kills_zone = true, .zone_cond = ZF_ZONE_READONLY},
		{.kills_zone = true, .zone_cond = ZF_ZONE_OFFLINE},
	};

	(void)state;
	for (size_t i = 0; i < ZF_ARRAY_SIZE(faults); i++) {
		fail_record(faults[i], 0);
		fail_record(faults[i], DATA_RIG_PACKS);
	}
}

/* ---- without a log ---- */

static void a_fresh_filesystem_commits_first(void **state)
{
	const struct data_rig_options options = {.seed = 9};
	uint64_t made;

	(void)state;
	data_rig_init(&rig, &options);
	file = data_rig_make(&rig, "file");
	made = commits();
	write_pattern(file, 1, 0, BLOCK, ZF_WRITE_DSYNC);
	assert_int_equal(commits(), made + 1);
	assert_int_equal(log_stats().records, 0);
	write_pattern(file, 2, BLOCK, BLOCK, ZF_WRITE_DSYNC);
	assert_int_equal(commits(), made + 1);
	assert_int_equal(log_stats().records, 1);
	data_rig_crash(&rig);
	data_rig_expect(&rig, file, 1, 0, BLOCK);
	data_rig_expect(&rig, file, 2, BLOCK, BLOCK);
	data_rig_deinit(&rig);
}

static void a_read_only_one_syncs_and_writes_nothing(void **state)
{
	const struct zf_mount_options options = {.read_only = true};
	struct zf_fs *fs;

	(void)state;
	begin_default(10);
	write_pattern(file, 1, 0, BLOCK, ZF_WRITE_DSYNC);
	data_rig_remount(&rig);
	assert_int_equal(zf_fs_unmount(rig.fs), 0);
	count_from_here();
	assert_int_equal(zf_fs_mount(rig.dev, &options, &rig.report, &fs), 0);
	assert_int_equal(zf_fs_fsync(fs, &rig.ctx, file, false), 0);
	assert_int_equal(zf_fs_fsync(fs, &rig.ctx, ZF_INO_ROOT, false), 0);
	expect_written(0, 0);
	assert_int_equal(zf_fs_unmount(fs), 0);
	expect_written(0, 0);
	zf_dev_close(rig.dev);
	zf_sim_free(rig.sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_durable_block_is_one_append_of_two_blocks),
		cmocka_unit_test(a_durable_block_that_packs_is_one_append_of_one_block),
		cmocka_unit_test(what_was_carried_one_by_one_is_one_extent),
		cmocka_unit_test(what_finds_no_room_in_the_header_follows),
		cmocka_unit_test(a_small_new_file_is_one_append_of_one_block),
		cmocka_unit_test(a_directory_is_synced_by_the_operations_alone),
		cmocka_unit_test(nothing_to_log_is_not_written),
		cmocka_unit_test(what_is_frozen_is_written_until_it_is_durable),
		cmocka_unit_test(full_zones_are_switched_and_then_committed),
		cmocka_unit_test(more_than_is_kept_is_committed),
		cmocka_unit_test(a_record_that_fails_is_made_up_for_by_a_commit),
		cmocka_unit_test(a_fresh_filesystem_commits_first),
		cmocka_unit_test(a_read_only_one_syncs_and_writes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
