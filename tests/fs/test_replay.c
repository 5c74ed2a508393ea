/* SPDX-License-Identifier: MIT */
/* Replaying the log, case by case (fs/replay_rig.h). The checker runs after every mount. */
#include <errno.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc/reserve.h"
#include "base/hash.h"
#include "fs/core/inode.h"
#include "fs/data/data.h"
#include "fs/ops/attr/xattr.h"
#include "fs/replay_rig.h"

#define BLOCK 4096u
#define MIB   (1u << 20)

static struct replay_rig rig;
static uint8_t buf[4 * MIB], wanted[4 * MIB];

static void begin(uint64_t seed)
{
	struct data_rig_options options = {.seed = seed};

	replay_rig_init(&rig, &options);
}

static void crash(void)
{
	replay_rig_crash(&rig, 1);
	replay_rig_mount(&rig);
}

static uint64_t make(const char *name, mode_t mode, const char *target)
{
	struct zf_attr attr;

	assert_int_equal(
		zf_fs_make(rig.rig.fs, &rig.rig.ctx, ZF_INO_ROOT, name, mode, 0, target, &attr), 0);
	return attr.ino;
}

static uint64_t make_file(const char *name)
{
	return make(name, S_IFREG | 0644, NULL);
}

/* Makes a file with an operation that is in the log. */
static uint64_t log_file(const char *name)
{
	uint64_t ino;

	replay_rig_begin(&rig);
	ino = make_file(name);
	replay_rig_end(&rig);
	return ino;
}

static void log_unlink(const char *name)
{
	replay_rig_begin(&rig);
	assert_int_equal(zf_fs_unlink(rig.rig.fs, &rig.rig.ctx, ZF_INO_ROOT, name), 0);
	replay_rig_end(&rig);
}

static int lookup(const char *name, struct zf_attr *ret_attr)
{
	int r = zf_fs_lookup(rig.rig.fs, &rig.rig.ctx, ZF_INO_ROOT, name, ret_attr);

	if (r == 0)
		zf_fs_forget(rig.rig.fs, ret_attr->ino, 1);
	return r;
}

static void get_attr(uint64_t ino, struct zf_attr *ret_attr)
{
	assert_int_equal(zf_fs_getattr(rig.rig.fs, &rig.rig.ctx, ino, ret_attr), 0);
}

static void write_pattern(uint64_t ino, uint64_t seed, uint64_t offset, size_t len)
{
	data_rig_fill(seed, offset, buf, len);
	data_rig_write(&rig.rig, ino, offset, buf, len);
}

/* `len` bytes at `offset` are what the pattern has at `from`. */
static void expect_from(uint64_t ino, uint64_t offset, uint64_t seed, uint64_t from, size_t len)
{
	assert_int_equal(zf_fs_read(rig.rig.fs, &rig.rig.ctx, ino, offset, buf, len), len);
	data_rig_fill(seed, from, wanted, len);
	assert_memory_equal(buf, wanted, len);
}

static void copy(uint64_t in, uint64_t offset_in, uint64_t out, uint64_t offset_out, uint64_t len)
{
	assert_int_equal(
		zf_fs_copy_range(rig.rig.fs, &rig.rig.ctx, in, offset_in, out, offset_out, len),
		len);
}

/* ---- room ---- */

int __real_zf_trans_join(struct zf_txn *txn, enum zf_reserve_class class, unsigned int items,
			 bool may_wait, struct zf_trans *ret_trans);
int __wrap_zf_trans_join(struct zf_txn *txn, enum zf_reserve_class class, unsigned int items,
			 bool may_wait, struct zf_trans *ret_trans);

static bool only_for_system; /* no other join finds room */

int __wrap_zf_trans_join(struct zf_txn *txn, enum zf_reserve_class class, unsigned int items,
			 bool may_wait, struct zf_trans *ret_trans)
{
	if (only_for_system) {
		assert_true(may_wait);
		if (class != ZF_RESERVE_SYSTEM)
			return -ENOSPC;
	}
	return __real_zf_trans_join(txn, class, items, may_wait, ret_trans);
}

/* During a replay no other thread can wait for reclaim's reserve, or give way to it. */
static void a_replay_uses_what_is_set_aside_and_waits_for_it(void **state)
{
	struct zf_attr attr;

	(void)state;
	begin(70);
	replay_rig_commit(&rig);
	log_file("file");
	only_for_system = true;
	crash();
	only_for_system = false;
	assert_int_equal(lookup("file", &attr), 0);
	zf_fs_forget(rig.rig.fs, attr.ino, 1);
	replay_rig_deinit(&rig);
}

/* ---- operations ---- */

static void names_and_attributes_come_back(void **state)
{
	const struct zf_setattr set = {.valid = ZF_SET_MODE | ZF_SET_UID, .mode = 0600, .uid = 7};
	struct zf_attr attr, made;
	uint64_t dir, link, file;
	char target[64] = "";

	(void)state;
	begin(1);
	make_file("old");
	file = make_file("other");
	replay_rig_commit(&rig);

	replay_rig_begin(&rig);
	dir = make("dir", S_IFDIR | 0755, NULL);
	replay_rig_end(&rig);
	replay_rig_begin(&rig);
	link = make("link", S_IFLNK | 0777, "the/target");
	replay_rig_end(&rig);
	replay_rig_begin(&rig);
	assert_int_equal(
		zf_fs_rename(rig.rig.fs, &rig.rig.ctx, ZF_INO_ROOT, "old", dir, "new", 0, NULL), 0);
	replay_rig_end(&rig);
	replay_rig_begin(&rig);
	assert_int_equal(zf_fs_setattr(rig.rig.fs, &rig.rig.ctx, file, &set, &made), 0);
	replay_rig_end(&rig);
	replay_rig_begin(&rig);
	assert_int_equal(zf_fs_setxattr(rig.rig.fs, &rig.rig.ctx, file, "user.a", "value", 5, 0),
			 0);
	replay_rig_end(&rig);
	log_file("gone");
	log_unlink("gone");
	crash();

	assert_int_equal(lookup("old", &attr), -ENOENT);
	assert_int_equal(lookup("gone", &attr), -ENOENT);
	assert_int_equal(zf_fs_lookup(rig.rig.fs, &rig.rig.ctx, dir, "new", &attr), 0);
	zf_fs_forget(rig.rig.fs, attr.ino, 1);
	assert_int_equal(zf_fs_readlink(rig.rig.fs, &rig.rig.ctx, link, target, sizeof(target)),
			 10);
	assert_string_equal(target, "the/target");
	get_attr(file, &attr);
	assert_int_equal(attr.mode, S_IFREG | 0600);
	assert_int_equal(attr.uid, 7);
	assert_int_equal(attr.ctime.nanoseconds, made.ctime.nanoseconds + 1);
	assert_int_equal(zf_fs_getxattr(rig.rig.fs, &rig.rig.ctx, file, "user.a", target, 64), 5);
	/* Numbers are not used again. */
	assert_true(make_file("next") > link);
	replay_rig_remount(&rig);
	replay_rig_deinit(&rig);
}

static void an_orphan_that_gets_a_name_lives(void **state)
{
	struct zf_attr attr, made;

	(void)state;
	begin(2);
	assert_int_equal(
		zf_fs_tmpfile(rig.rig.fs, &rig.rig.ctx, ZF_INO_ROOT, S_IFREG | 0600, &made), 0);
	write_pattern(made.ino, 1, 0, 3 * BLOCK);
	replay_rig_commit(&rig);
	replay_rig_begin(&rig);
	assert_int_equal(
		zf_fs_link(rig.rig.fs, &rig.rig.ctx, made.ino, ZF_INO_ROOT, "named", &attr), 0);
	replay_rig_end(&rig);
	crash();
	assert_int_equal(lookup("named", &attr), 0);
	assert_int_equal(attr.ino, made.ino);
	data_rig_expect(&rig.rig, made.ino, 1, 0, 3 * BLOCK);
	replay_rig_deinit(&rig);
}

static void sizes_come_back(void **state)
{
	const struct zf_setattr set = {.valid = ZF_SET_MODE, .mode = 0604};
	uint64_t shorter, longer;
	struct zf_attr attr;

	(void)state;
	begin(3);
	shorter = make_file("shorter");
	longer = make_file("longer");
	write_pattern(shorter, 1, 0, 2 * MIB);
	write_pattern(longer, 2, 0, 3 * BLOCK);
	replay_rig_commit(&rig);
	replay_rig_resize(&rig, shorter, 5 * BLOCK + 10);
	/* What was cut off within the last block does not come back. */
	replay_rig_resize(&rig, longer, BLOCK + 100);
	replay_rig_resize(&rig, longer, MIB);
	/* Nothing of the file is in memory when its item is edited. */
	replay_rig_begin(&rig);
	assert_int_equal(zf_fs_setattr(rig.rig.fs, &rig.rig.ctx, longer, &set, &attr), 0);
	replay_rig_end(&rig);
	crash();
	get_attr(shorter, &attr);
	assert_int_equal(attr.size, 5 * BLOCK + 10);
	data_rig_expect(&rig.rig, shorter, 1, 0, 5 * BLOCK + 10);
	get_attr(longer, &attr);
	assert_int_equal(attr.size, MIB);
	assert_int_equal(attr.mode, S_IFREG | 0604);
	data_rig_expect(&rig.rig, longer, 2, 0, BLOCK + 100);
	data_rig_expect_zeroes(&rig.rig, longer, BLOCK + 100, MIB - BLOCK - 100);
	replay_rig_deinit(&rig);
}

static void an_operation_leaves_a_file_its_size(void **state)
{
	const struct zf_setattr set = {.valid = ZF_SET_MODE, .mode = 0640};
	struct zf_attr attr;
	uint64_t old, new;

	(void)state;
	begin(16);
	old = make_file("old");
	write_pattern(old, 1, 0, 10 * BLOCK);
	replay_rig_commit(&rig);
	new = log_file("new");
	/* This data is not in the log, but the file sizes in the tree include it. */
	write_pattern(old, 1, 10 * BLOCK, 10 * BLOCK);
	write_pattern(new, 2, 0, 10 * BLOCK);
	assert_int_equal(zf_data_flush_all(rig.rig.fs, true), 0);
	replay_rig_begin(&rig);
	assert_int_equal(zf_fs_setattr(rig.rig.fs, &rig.rig.ctx, old, &set, &attr), 0);
	assert_int_equal(zf_fs_setattr(rig.rig.fs, &rig.rig.ctx, new, &set, &attr), 0);
	replay_rig_end(&rig);
	crash();
	get_attr(old, &attr);
	assert_int_equal(attr.mode, S_IFREG | 0640);
	assert_int_equal(attr.size, 10 * BLOCK);
	get_attr(new, &attr);
	assert_int_equal(attr.mode, S_IFREG | 0640);
	assert_int_equal(attr.size, 0);
	assert_int_equal(attr.blocks, 0);
	replay_rig_deinit(&rig);
}

static void an_inode_of_a_lost_transaction_is_not_newer_than_this_one(void **state)
{
	struct zf_key key = ZF_KEY(0, ZF_KEY_INODE, 0);
	struct zf_disk_inode disk;
	struct zf_attr attr;

	(void)state;
	begin(17);
	replay_rig_begin(&rig);
	key.objectid = make_file("file");
	assert_int_equal(zf_tree_lookup(zf_fs_forest(rig.rig.fs), ZF_TREE_FS, &key, &disk,
					sizeof(disk), NULL),
			 0);
	disk.generation = disk.change = zf_le64_from(1000);
	replay_rig_end(&rig);
	/* The last edit of an item counts. */
	zf_log_body_set(&rig.bodies[0].body, &key, &disk, sizeof(disk));
	crash();
	assert_int_equal(lookup("file", &attr), 0);
	assert_true(attr.generation < 1000);
	replay_rig_deinit(&rig);
}

/* The link is made while the transaction before is being committed, and that transaction is
 * lost. */
static void a_symbolic_link_of_a_lost_transaction_is_not_newer_than_this_one(void **state)
{
	struct zf_txn *txn;
	struct zf_attr attr;
	char target[16] = "";
	uint64_t ino;

	(void)state;
	begin(19);
	txn = zf_fs_txn(rig.rig.fs);
	ino = make_file("file");
	replay_rig_commit(&rig);
	assert_int_equal(zf_txn_freeze(txn), 0);
	replay_rig_begin(&rig);
	assert_int_equal(zf_fs_make(rig.rig.fs, &rig.rig.ctx, ZF_INO_ROOT, "link", S_IFLNK | 0777,
				    0, "target", &attr),
			 0);
	replay_rig_end(&rig);
	crash();
	assert_int_equal(lookup("link", &attr), 0);
	assert_int_equal(zf_fs_readlink(rig.rig.fs, &rig.rig.ctx, attr.ino, target, sizeof(target)),
			 6);
	assert_string_equal(target, "target");
	get_attr(ino, &attr);
	replay_rig_deinit(&rig);
}

static void what_the_state_has_begun_comes_first(void **state)
{
	struct zf_disk_intent intent = {
		.type = ZF_INTENT_TRUNCATE,
		.from = zf_le64_from(4 * BLOCK),
		.to = zf_le64_from(ZF_FILE_END_MAX),
	};
	struct zf_key key = ZF_KEY(ZF_INO_INTENTS, ZF_KEY_INTENT, 0);
	struct zf_trans trans;
	struct zf_txn *txn;
	uint64_t ino;

	(void)state;
	begin(18);
	txn = zf_fs_txn(rig.rig.fs);
	ino = make_file("file");
	write_pattern(ino, 1, 0, 4 * BLOCK);
	/* Makes the state that a truncation leaves if the power goes before its last
	 * transaction. */
	assert_int_equal(zf_trans_join(txn, ZF_RESERVE_NORMAL, 1, true, &trans), 0);
	intent.ino = zf_le64_from(ino);
	key.offset = atomic_fetch_add(&zf_txn_counters(txn)->next_intent, 1);
	assert_int_equal(zf_tree_insert(zf_fs_forest(rig.rig.fs), trans.writer, ZF_TREE_FS, &key,
					&intent, sizeof(intent)),
			 0);
	zf_trans_leave(&trans);
	replay_rig_commit(&rig);
	write_pattern(ino, 2, 4 * BLOCK, 10 * BLOCK);
	replay_rig_state(&rig, ino);
	crash();
	data_rig_expect(&rig.rig, ino, 1, 0, 4 * BLOCK);
	data_rig_expect(&rig.rig, ino, 2, 4 * BLOCK, 10 * BLOCK);
	replay_rig_deinit(&rig);
}

/* ---- files ---- */

static void data_comes_back(void **state)
{
	uint64_t new, old, small;

	(void)state;
	begin(4);
	old = make_file("old");
	write_pattern(old, 1, 0, 2 * MIB);
	replay_rig_commit(&rig);
	new = log_file("new");
	write_pattern(new, 2, 0, MIB + 300);
	replay_rig_state(&rig, new);
	write_pattern(old, 3, 10 * BLOCK, 7 * BLOCK);
	write_pattern(old, 3, 100 * BLOCK + 5, 10);
	replay_rig_state(&rig, old);
	small = log_file("small");
	write_pattern(small, 4, 0, 100);
	replay_rig_state(&rig, small);
	crash();
	data_rig_expect(&rig.rig, new, 2, 0, MIB + 300);
	data_rig_expect(&rig.rig, old, 1, 0, 10 * BLOCK);
	data_rig_expect(&rig.rig, old, 3, 10 * BLOCK, 7 * BLOCK);
	data_rig_expect(&rig.rig, old, 1, 17 * BLOCK, 83 * BLOCK + 5);
	data_rig_expect(&rig.rig, old, 3, 100 * BLOCK + 5, 10);
	data_rig_expect(&rig.rig, small, 4, 0, 100);
	replay_rig_remount(&rig);
	data_rig_expect(&rig.rig, new, 2, 0, MIB + 300);
	replay_rig_deinit(&rig);
}

static void data_comes_back_after_the_host_stopped(void **state)
{
	uint64_t first, second;

	(void)state;
	begin(19);
	rig.host_stops = true;
	first = log_file("first");
	write_pattern(first, 1, 0, MIB + 300);
	replay_rig_state(&rig, first);
	crash();
	data_rig_expect(&rig.rig, first, 1, 0, MIB + 300);
	replay_rig_commit(&rig);
	/* The next data is appended behind all that data. */
	second = log_file("second");
	write_pattern(second, 2, 0, 2 * MIB);
	replay_rig_state(&rig, second);
	crash();
	data_rig_expect(&rig.rig, first, 1, 0, MIB + 300);
	data_rig_expect(&rig.rig, second, 2, 0, 2 * MIB);
	replay_rig_deinit(&rig);
}

static void holes_and_kept_space_come_back(void **state)
{
	struct zf_space before, after;
	uint64_t ino;

	(void)state;
	begin(5);
	ino = make_file("file");
	write_pattern(ino, 1, 0, MIB);
	replay_rig_commit(&rig);
	assert_int_equal(zf_fs_fallocate(rig.rig.fs, &rig.rig.ctx, ino,
					 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 20 * BLOCK,
					 30 * BLOCK),
			 0);
	assert_int_equal(zf_fs_fallocate(rig.rig.fs, &rig.rig.ctx, ino, FALLOC_FL_KEEP_SIZE, MIB,
					 40 * BLOCK),
			 0);
	assert_int_equal(zf_fs_fallocate(rig.rig.fs, &rig.rig.ctx, ino,
					 FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 100 * BLOCK,
					 10 * BLOCK),
			 0);
	replay_rig_state(&rig, ino);
	zf_alloc_get_space(zf_fs_alloc(rig.rig.fs), &before);
	crash();
	zf_alloc_get_space(zf_fs_alloc(rig.rig.fs), &after);
	assert_int_equal(after.kept, before.kept);
	assert_int_equal(after.kept, 50 * BLOCK);
	data_rig_expect(&rig.rig, ino, 1, 0, 20 * BLOCK);
	data_rig_expect_zeroes(&rig.rig, ino, 20 * BLOCK, 30 * BLOCK);
	data_rig_expect(&rig.rig, ino, 1, 50 * BLOCK, 50 * BLOCK);
	data_rig_expect_zeroes(&rig.rig, ino, 100 * BLOCK, 10 * BLOCK);
	replay_rig_deinit(&rig);
}

/* Zeroes, and data that is guaranteed because it lies where those were. */
static void written_zeroes_come_back_guaranteed(void **state)
{
	struct zf_space before, after;
	struct data_rig_extents extents;
	uint64_t ino;

	(void)state;
	begin(7);
	ino = make_file("file");
	replay_rig_commit(&rig);
	assert_int_equal(zf_fs_fallocate(rig.rig.fs, &rig.rig.ctx, ino, ZF_FALLOC_WRITE_ZEROES, 0,
					 20 * BLOCK),
			 0);
	write_pattern(ino, 1, 5 * BLOCK, 5 * BLOCK);
	assert_int_equal(zf_data_flush_all(rig.rig.fs, true), 0);
	replay_rig_state(&rig, ino);
	zf_alloc_get_space(zf_fs_alloc(rig.rig.fs), &before);
	crash();
	zf_alloc_get_space(zf_fs_alloc(rig.rig.fs), &after);
	assert_int_equal(after.kept, before.kept);
	assert_int_equal(after.kept, 15 * BLOCK);
	assert_int_equal(data_rig_guaranteed(&rig.rig), 20);
	data_rig_extents(&rig.rig, ino, &extents);
	assert_int_equal(extents.count, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(extents.at[i].flags, ZF_EXTENT_GUARANTEED);
	data_rig_expect_zeroes(&rig.rig, ino, 0, 5 * BLOCK);
	data_rig_expect(&rig.rig, ino, 1, 5 * BLOCK, 5 * BLOCK);
	data_rig_expect_zeroes(&rig.rig, ino, 10 * BLOCK, 10 * BLOCK);
	replay_rig_deinit(&rig);
}

static void a_file_replaced_by_rename_is_whole(void **state)
{
	struct zf_attr attr;
	uint64_t ino;

	(void)state;
	begin(6);
	ino = make_file("target");
	write_pattern(ino, 1, 0, 20 * BLOCK);
	replay_rig_commit(&rig);
	ino = log_file("temporary");
	write_pattern(ino, 2, 0, 9 * BLOCK);
	replay_rig_state(&rig, ino);
	replay_rig_begin(&rig);
	assert_int_equal(zf_fs_rename(rig.rig.fs, &rig.rig.ctx, ZF_INO_ROOT, "temporary",
				      ZF_INO_ROOT, "target", 0, NULL),
			 0);
	replay_rig_end(&rig);
	crash();
	assert_int_equal(lookup("target", &attr), 0);
	assert_int_equal(attr.ino, ino);
	data_rig_expect(&rig.rig, ino, 2, 0, 9 * BLOCK);
	assert_int_equal(data_rig_live_blocks(&rig.rig), 9);
	replay_rig_deinit(&rig);
}

/* ---- shared ---- */

static void copies_of_what_is_committed_share_it(void **state)
{
	uint64_t in, out;

	(void)state;
	begin(7);
	in = make_file("in");
	write_pattern(in, 1, 0, 2 * MIB);
	replay_rig_commit(&rig);
	out = log_file("out");
	copy(in, 0, out, 5 * BLOCK, 2 * MIB);
	replay_rig_state(&rig, out);
	crash();
	expect_from(out, 5 * BLOCK, 1, 0, 2 * MIB);
	assert_int_equal(data_rig_live_blocks(&rig.rig), 2 * MIB / BLOCK);
	/* A file that gives up its copy leaves the other file's copy alone. */
	write_pattern(in, 2, 0, 2 * MIB);
	replay_rig_remount(&rig);
	expect_from(out, 5 * BLOCK, 1, 0, 2 * MIB);
	data_rig_expect(&rig.rig, in, 2, 0, 2 * MIB);
	replay_rig_deinit(&rig);
}

static void copies_share_data_whose_file_is_deleted(void **state)
{
	uint64_t in, out, third;

	(void)state;
	begin(8);
	in = make_file("in");
	write_pattern(in, 1, 0, 300 * BLOCK);
	replay_rig_commit(&rig);
	out = log_file("out");
	third = log_file("third");
	copy(in, 0, out, 0, 300 * BLOCK);
	copy(in, 0, third, 0, 300 * BLOCK);
	/* In the log's order, the source drops the blocks before other files name them. */
	replay_rig_resize(&rig, in, 0);
	replay_rig_state(&rig, out);
	log_unlink("in");
	replay_rig_state(&rig, third);
	crash();
	data_rig_expect(&rig.rig, out, 1, 0, 300 * BLOCK);
	data_rig_expect(&rig.rig, third, 1, 0, 300 * BLOCK);
	assert_int_equal(data_rig_live_blocks(&rig.rig), 300);
	data_rig_truncate(&rig.rig, out, 0);
	replay_rig_remount(&rig);
	data_rig_expect(&rig.rig, third, 1, 0, 300 * BLOCK);
	data_rig_truncate(&rig.rig, third, 0);
	assert_int_equal(data_rig_live_blocks(&rig.rig), 0);
	replay_rig_deinit(&rig);
}

static void a_copy_logged_before_its_source(void **state)
{
	uint64_t in, out;

	(void)state;
	begin(9);
	in = log_file("in");
	out = log_file("out");
	write_pattern(in, 1, 0, 40 * BLOCK);
	copy(in, 0, out, 3 * BLOCK, 40 * BLOCK);
	replay_rig_state(&rig, out);
	replay_rig_state(&rig, in);
	crash();
	data_rig_expect(&rig.rig, in, 1, 0, 40 * BLOCK);
	expect_from(out, 3 * BLOCK, 1, 0, 40 * BLOCK);
	assert_int_equal(data_rig_live_blocks(&rig.rig), 40);
	replay_rig_deinit(&rig);
}

static void bytes_that_moved_within_a_file(void **state)
{
	uint64_t file, temporary;

	(void)state;
	begin(10);
	file = make_file("file");
	write_pattern(file, 1, 0, 40 * BLOCK);
	replay_rig_commit(&rig);
	temporary = make_file("temporary");
	copy(file, 0, temporary, 0, 40 * BLOCK);
	copy(temporary, 2 * BLOCK, file, 0, 30 * BLOCK);
	replay_rig_state(&rig, file);
	crash();
	expect_from(file, 0, 1, 2 * BLOCK, 30 * BLOCK);
	data_rig_expect(&rig.rig, file, 1, 30 * BLOCK, 10 * BLOCK);
	data_rig_truncate(&rig.rig, file, 0);
	assert_int_equal(data_rig_live_blocks(&rig.rig), 0);
	replay_rig_deinit(&rig);
}

/* ---- order ---- */

static void bodies_are_applied_by_number_whatever_record_they_are_in(void **state)
{
	struct replay_body swapped;
	struct zf_attr attr;

	(void)state;
	begin(11);
	log_file("a");
	replay_rig_begin(&rig);
	assert_int_equal(
		zf_fs_rename(rig.rig.fs, &rig.rig.ctx, ZF_INO_ROOT, "a", ZF_INO_ROOT, "b", 0, NULL),
		0);
	replay_rig_end(&rig);
	log_unlink("b");
	log_file("b");
	/* A small body points into itself, so the pointers are set again after the swap. */
	swapped = rig.bodies[0];
	rig.bodies[0] = rig.bodies[3];
	rig.bodies[3] = swapped;
	for (unsigned int i = 0; i < 4; i++)
		if (rig.bodies[i].body.room == sizeof(rig.bodies[i].body.first))
			rig.bodies[i].body.bytes = rig.bodies[i].body.first;
	crash();
	assert_int_equal(lookup("a", &attr), -ENOENT);
	assert_int_equal(lookup("b", &attr), 0);
	assert_int_equal(attr.nlink, 1);
	replay_rig_deinit(&rig);
}

static void what_the_state_has_already_is_passed_over(void **state)
{
	const struct zf_setattr set = {.valid = ZF_SET_MODE, .mode = 0604};
	struct zf_attr attr;
	uint64_t ino;

	(void)state;
	begin(12);
	ino = log_file("first");
	crash();
	replay_rig_commit(&rig);
	assert_true(rig.super.op_number > 0);
	/* The first body has a number that the committed state has counted already. */
	replay_rig_begin(&rig);
	assert_int_equal(zf_fs_setattr(rig.rig.fs, &rig.rig.ctx, ino, &set, &attr), 0);
	replay_rig_end(&rig);
	rig.bodies[0].number = rig.super.op_number;
	log_file("other");
	rig.bodies[1].number = rig.super.op_number + 1;
	crash();
	get_attr(ino, &attr);
	assert_int_not_equal(attr.mode & 07777, 0604);
	assert_int_equal(lookup("other", &attr), 0);
	replay_rig_deinit(&rig);
}

static void a_second_mount_replays_nothing(void **state)
{
	struct zf_super was;
	struct zf_attr attr;
	uint64_t ino;

	(void)state;
	begin(13);
	ino = log_file("file");
	write_pattern(ino, 1, 0, 5 * BLOCK);
	replay_rig_state(&rig, ino);
	crash();
	/* There was no unmount: the recovery's own commit has all these changes, and begins another
	 * epoch. */
	was = rig.super;
	replay_rig_read_super(&rig);
	assert_true(rig.super.generation > was.generation);
	assert_int_equal(rig.super.log_epoch, was.log_epoch + 1);
	assert_true(rig.super.op_number >= was.op_number + 2);
	data_rig_unlink(&rig.rig, "file", ino);
	replay_rig_commit(&rig);
	replay_rig_crash(&rig, 1);
	was = rig.super;
	replay_rig_mount(&rig);
	replay_rig_read_super(&rig);
	assert_int_equal(rig.super.generation, was.generation);
	assert_int_equal(lookup("file", &attr), -ENOENT);
	replay_rig_deinit(&rig);
}

static unsigned int warnings;
static char warning[512];

static void count_warnings(void *arg, enum zf_report_level level, const char *message)
{
	(void)arg;
	warnings += level == ZF_REPORT_WARNING;
	snprintf(warning, sizeof(warning), "%s", message);
}

static void a_read_only_mount_says_what_it_does_not_show(void **state)
{
	const struct zf_report report = rig.rig.report;
	struct zf_attr attr;

	(void)state;
	begin(14);
	log_file("file");
	log_file("other");
	replay_rig_crash(&rig, 1);
	rig.rig.report = (struct zf_report){.fn = count_warnings};
	warnings = 0;
	assert_int_equal(replay_rig_try_mount(&rig, true), 0);
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(warning, "2 changes in 2 records"));
	assert_int_equal(lookup("file", &attr), -ENOENT);
	assert_int_equal(zf_fs_unmount(rig.rig.fs), 0);
	zf_dev_close(rig.rig.dev);
	rig.rig.report = report;
	replay_rig_mount(&rig);
	assert_int_equal(lookup("file", &attr), 0);
	replay_rig_deinit(&rig);
}

static void a_log_that_is_gone_can_be_done_without_when_reading(void **state)
{
	struct zf_io io = {.op = ZF_IO_RESET};
	struct zf_attr attr;

	(void)state;
	begin(20);
	make_file("file");
	replay_rig_commit(&rig);
	log_file("other");
	replay_rig_crash(&rig, 1);
	/* The state is as if all superblocks newer than this one were damaged. */
	assert_int_equal(zf_sim_open(rig.rig.sim, &rig.rig.report, &rig.rig.dev), 0);
	io.addr = rig.super.log_zone[0] * zf_dev_geometry(rig.rig.dev)->zone_size;
	assert_int_equal(zf_dev_run(rig.rig.dev, &io), 0);
	zf_dev_close(rig.rig.dev);
	rig.rig.errors_expected = true;
	assert_int_equal(replay_rig_try_mount(&rig, false), -EUCLEAN);
	assert_int_equal(replay_rig_try_mount(&rig, true), 0);
	assert_int_equal(lookup("file", &attr), 0);
	assert_int_equal(lookup("other", &attr), -ENOENT);
	replay_rig_drop(&rig);
}

/* ---- cuts ---- */

struct scene {
	uint64_t old, in, out, gone, many[400];
};

static void many_name(unsigned int i, char name[256])
{
	memset(name, 'n', 250);
	snprintf(name + 240, 16, "%u", i);
}

static void verify_scene(struct replay_rig *unused, void *arg)
{
	const struct scene *scene = arg;
	struct zf_attr attr;
	char name[256];

	(void)unused;
	for (unsigned int i = 0; i < 400; i++) {
		many_name(i, name);
		assert_int_equal(lookup(name, &attr), 0);
		assert_int_equal(attr.ino, scene->many[i]);
	}
	assert_int_equal(lookup("gone", &attr), -ENOENT);
	assert_int_equal(data_rig_size(&rig.rig, scene->old), MIB);
	data_rig_expect(&rig.rig, scene->old, 1, 0, 20 * BLOCK + 7);
	data_rig_expect_zeroes(&rig.rig, scene->old, 20 * BLOCK + 7, MIB - 20 * BLOCK - 7);
	expect_from(scene->out, 0, 2, BLOCK, 199 * BLOCK);
	expect_from(scene->out, 199 * BLOCK, 2, 0, BLOCK);
	data_rig_expect(&rig.rig, scene->in, 3, 0, 50 * BLOCK);
	data_rig_expect(&rig.rig, scene->in, 2, 50 * BLOCK, 150 * BLOCK);
	assert_int_equal(data_rig_live_blocks(&rig.rig), 21 + 200 + 50);
}

static void a_recovery_that_is_cut_begins_again(void **state)
{
	struct data_rig_options options = {.seed = 15, .node_size = 4096};
	struct zf_txn_stats stats;
	struct scene scene;
	char name[256];

	(void)state;
	replay_rig_init(&rig, &options);
	scene.old = make_file("old");
	write_pattern(scene.old, 1, 0, 60 * BLOCK);
	scene.in = make_file("in");
	write_pattern(scene.in, 2, 0, 200 * BLOCK);
	scene.gone = make_file("gone");
	write_pattern(scene.gone, 4, 0, 30 * BLOCK);
	replay_rig_commit(&rig);
	scene.out = log_file("out");
	copy(scene.in, BLOCK, scene.out, 0, 199 * BLOCK);
	copy(scene.in, 0, scene.out, 199 * BLOCK, BLOCK);
	replay_rig_state(&rig, scene.out);
	for (unsigned int i = 0; i < 100; i++) {
		many_name(i, name);
		scene.many[i] = log_file(name);
	}
	write_pattern(scene.in, 3, 0, 50 * BLOCK);
	replay_rig_state(&rig, scene.in);
	replay_rig_resize(&rig, scene.old, 20 * BLOCK + 7);
	replay_rig_resize(&rig, scene.old, MIB);
	log_unlink("gone");
	for (unsigned int i = 100; i < 400; i++) {
		many_name(i, name);
		scene.many[i] = log_file(name);
	}
	assert_int_equal(zf_txn_durable(zf_fs_txn(rig.rig.fs)), rig.super.generation);
	/* Little may be dirty, so that recovery commits on the way. */
	rig.rig.options.cache_bytes = 1;
	replay_rig_crash(&rig, 20);
	assert_true(replay_rig_cut_everywhere(&rig, verify_scene, &scene) >= 10);
	/* Recovery must have committed on the way, or the test has shown little. */
	zf_txn_get_stats(zf_fs_txn(rig.rig.fs), &stats);
	assert_true(stats.commits > 1);
	replay_rig_deinit(&rig);
}

/* ---- room ---- */

static uint64_t available(void)
{
	struct zf_space space;

	zf_alloc_get_space(zf_fs_alloc(rig.rig.fs), &space);
	return space.available;
}

static void verify_among_garbage(struct replay_rig *unused, void *arg)
{
	const uint64_t *inos = arg;

	(void)unused;
	for (unsigned int i = 0; i < 20; i++)
		data_rig_expect(&rig.rig, inos[i], i, 0, 4 * BLOCK);
}

static void write_junk(uint64_t ino, uint64_t i)
{
	if (available() < 3 * MIB / 2)
		return;
	write_pattern(ino, 99, i * (MIB / 4), MIB / 4);
	assert_int_equal(zf_data_flush_all(rig.rig.fs, true), 0);
}

/*
 * The data of the lost transaction takes most of the device, and the data that the log names lies
 * in between. None of the latter may be reset or overwritten, however often recovery is cut.
 */
static void data_comes_back_among_garbage(void **state)
{
	struct data_rig_options options = {
		.seed = 20,
		.node_size = 4096,
		.zone_count = 24,
		.zone_size = MIB / 2,
	};
	uint64_t inos[20], junk;
	char name[256];

	(void)state;
	replay_rig_init(&rig, &options);
	junk = make_file("junk");
	replay_rig_commit(&rig);
	for (unsigned int i = 0; i < 20; i++) {
		many_name(i, name);
		inos[i] = log_file(name);
		write_pattern(inos[i], i, 0, 4 * BLOCK);
		replay_rig_state(&rig, inos[i]);
		write_junk(junk, i);
	}
	/* Names need nodes, and nodes need zones. */
	for (unsigned int i = 20; i < 320; i++) {
		many_name(i, name);
		log_file(name);
	}
	for (unsigned int i = 20; available() > 3 * MIB / 2; i++)
		write_junk(junk, i);
	assert_int_equal(zf_txn_durable(zf_fs_txn(rig.rig.fs)), rig.super.generation);
	rig.rig.options.cache_bytes = 1;
	replay_rig_crash(&rig, 40);
	replay_rig_cut_everywhere(&rig, verify_among_garbage, inos);
	replay_rig_deinit(&rig);
}

static void a_file_grows_where_nothing_else_could(void **state)
{
	struct data_rig_options options = {.seed = 22, .zone_count = 20};
	uint64_t ino, junk, offset = 0;
	ssize_t r;

	(void)state;
	replay_rig_init(&rig, &options);
	ino = make_file("file");
	junk = make_file("junk");
	write_pattern(ino, 1, 0, 2 * BLOCK);
	data_rig_truncate(&rig.rig, ino, BLOCK + 100);
	data_rig_fill(2, 0, buf, MIB);
	while ((r = zf_fs_write(rig.rig.fs, &rig.rig.ctx, junk, offset, buf, 8 * BLOCK, 0)) > 0)
		offset += r;
	assert_int_equal(r, -ENOSPC);
	replay_rig_commit(&rig);
	zf_log_body_resize(replay_rig_body(&rig, ZF_LOG_OPERATION), ino, MIB);
	crash();
	assert_int_equal(data_rig_size(&rig.rig, ino), MIB);
	data_rig_expect(&rig.rig, ino, 1, 0, BLOCK + 100);
	data_rig_expect_zeroes(&rig.rig, ino, BLOCK + 100, MIB - BLOCK - 100);
	replay_rig_deinit(&rig);
}

/* The test makes this record: a live filesystem would not have promised the space. */
static void log_zeroes(uint64_t ino, uint64_t len)
{
	struct zf_key key = ZF_KEY(ino, ZF_KEY_INODE, 0);
	struct zf_log_body *body = replay_rig_body(&rig, ZF_LOG_EXTENTS);
	struct zf_disk_inode item;

	assert_int_equal(zf_tree_lookup(zf_fs_forest(rig.rig.fs), ZF_TREE_FS, &key, &item,
					sizeof(item), NULL),
			 0);
	zf_log_body_inode(body, ino, &item, sizeof(item));
	zf_log_body_range(body, &(struct zf_log_range){.type = ZF_LOG_RANGE_ZERO, .len = len});
}

static void kept_space_that_is_gone_does_not_stop_a_mount(void **state)
{
	struct data_rig_options options = {.seed = 21, .zone_count = 24};
	uint64_t ino, junk;

	(void)state;
	replay_rig_init(&rig, &options);
	ino = make_file("file");
	junk = make_file("junk");
	for (unsigned int i = 0; available() > 3 * MIB; i++)
		write_pattern(junk, 1, i * MIB, MIB);
	replay_rig_commit(&rig);
	log_zeroes(ino, 20 * MIB);
	rig.rig.report = (struct zf_report){.fn = count_warnings};
	warnings = 0;
	crash();
	assert_int_equal(warnings, 1);
	assert_non_null(strstr(warning, "that fallocate has allocated"));
	data_rig_unlink(&rig.rig, "junk", junk);
	zf_fs_forget(rig.rig.fs, junk, 1);
	write_pattern(ino, 3, 0, 4 * MIB);
	replay_rig_remount(&rig);
	data_rig_expect(&rig.rig, ino, 3, 0, 4 * MIB);
	replay_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_replay_uses_what_is_set_aside_and_waits_for_it),
		cmocka_unit_test(names_and_attributes_come_back),
		cmocka_unit_test(an_orphan_that_gets_a_name_lives),
		cmocka_unit_test(sizes_come_back),
		cmocka_unit_test(an_operation_leaves_a_file_its_size),
		cmocka_unit_test(an_inode_of_a_lost_transaction_is_not_newer_than_this_one),
		cmocka_unit_test(a_symbolic_link_of_a_lost_transaction_is_not_newer_than_this_one),
		cmocka_unit_test(what_the_state_has_begun_comes_first),
		cmocka_unit_test(data_comes_back),
		cmocka_unit_test(data_comes_back_after_the_host_stopped),
		cmocka_unit_test(holes_and_kept_space_come_back),
		cmocka_unit_test(written_zeroes_come_back_guaranteed),
		cmocka_unit_test(a_file_replaced_by_rename_is_whole),
		cmocka_unit_test(copies_of_what_is_committed_share_it),
		cmocka_unit_test(copies_share_data_whose_file_is_deleted),
		cmocka_unit_test(a_copy_logged_before_its_source),
		cmocka_unit_test(bytes_that_moved_within_a_file),
		cmocka_unit_test(bodies_are_applied_by_number_whatever_record_they_are_in),
		cmocka_unit_test(what_the_state_has_already_is_passed_over),
		cmocka_unit_test(a_second_mount_replays_nothing),
		cmocka_unit_test(a_read_only_mount_says_what_it_does_not_show),
		cmocka_unit_test(a_log_that_is_gone_can_be_done_without_when_reading),
		cmocka_unit_test(a_recovery_that_is_cut_begins_again),
		cmocka_unit_test(data_comes_back_among_garbage),
		cmocka_unit_test(a_file_grows_where_nothing_else_could),
		cmocka_unit_test(kept_space_that_is_gone_does_not_stop_a_mount),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
