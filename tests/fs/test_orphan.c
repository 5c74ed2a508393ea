/* SPDX-License-Identifier: MIT */
/* Inodes without a name: how long they live, and what deletes them. Inodes in memory: how many
 * stay. */
#include "fs/names_rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc/reserve.h"
#include "fs/core/kernel_refs.h"
#include "fs/data/delete.h"
#include "fs/map/extent.h"
#include "sim/rng.h"

#define ROOT ZF_INO_ROOT

static int unlink_name(struct names_rig *rig, uint64_t parent, const char *name)
{
	return zf_fs_unlink(rig->fs, &rig->ctx, parent, name);
}

/* ---- orphans ---- */

static void an_unlinked_file_lives_until_the_kernel_forgets_it(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	struct zf_attr attr;

	assert_int_equal(zf_fs_lookup(rig->fs, &rig->ctx, ROOT, "file", &attr), 0);
	assert_int_equal(zf_fs_lookup(rig->fs, &rig->ctx, ROOT, "file", &attr), 0);
	assert_int_equal(unlink_name(rig, ROOT, "file"), 0);
	assert_int_equal(rig_count_items(rig, ZF_INO_ORPHANS), 1);
	assert_int_equal(zf_fs_setxattr(rig->fs, &rig->ctx, file, "user.a", "v", 1, 0), 0);
	zf_fs_forget(rig->fs, file, 1);
	assert_int_equal(rig_attr(rig, file).nlink, 0);
	zf_fs_forget(rig->fs, file, 1);
	assert_int_equal(rig_attr(rig, file).nlink, 0);
	zf_fs_forget(rig->fs, file, 1);
	assert_false(rig_inode_exists(rig, file));
	assert_int_equal(rig_count_items(rig, file), 0);
	assert_int_equal(rig_count_items(rig, ZF_INO_ORPHANS), 0);
	assert_int_equal(rig_inode_count(rig), 1);
}

static void a_use_keeps_an_unlinked_file_too(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make_forgotten(rig, ROOT, "file", S_IFREG | 0644);
	struct zf_inode *inode;

	assert_int_equal(zf_inode_get(rig->fs, file, &inode), 0);
	assert_int_equal(unlink_name(rig, ROOT, "file"), 0);
	assert_int_equal(rig_count_items(rig, ZF_INO_ORPHANS), 1);
	zf_inode_put(zf_inode_ref(inode));
	assert_true(rig_inode_exists(rig, file));
	zf_inode_put(inode);
	assert_false(rig_inode_exists(rig, file));
	assert_int_equal(rig_count_items(rig, ZF_INO_ORPHANS), 0);
}

static void a_mount_deletes_what_a_crash_left_open(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);
	uint64_t stays = rig_make(rig, ROOT, "stays", S_IFREG | 0644);

	assert_int_equal(unlink_name(rig, ROOT, "file"), 0);
	assert_int_equal(zf_fs_rmdir(rig->fs, &rig->ctx, ROOT, "dir"), 0);
	assert_int_equal(zf_txn_sync(rig->fs->txn), 0);
	names_rig_crash(rig);
	assert_false(rig_inode_exists(rig, file));
	assert_false(rig_inode_exists(rig, dir));
	assert_true(rig_inode_exists(rig, stays));
	assert_int_equal(rig_count_items(rig, file), 0);
	assert_int_equal(rig_count_items(rig, ZF_INO_ORPHANS), 0);
	assert_int_equal(rig_inode_count(rig), 2);
}

static void an_unmount_deletes_what_is_still_open(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);

	assert_int_equal(unlink_name(rig, ROOT, "file"), 0);
	zf_delete_forget_all(rig->fs);
	assert_int_equal(rig_count_items(rig, file), 0);
	names_rig_remount(rig);
	assert_int_equal(rig_inode_count(rig), 1);
}

static void with_threads_deletion_is_left_to_them(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make_forgotten(rig, ROOT, "file", S_IFREG | 0644);

	rig->fs->options.threads = true;
	assert_int_equal(unlink_name(rig, ROOT, "file"), 0);
	assert_false(rig_inode_exists(rig, file));
	assert_int_not_equal(rig_count_items(rig, file), 0);
	assert_int_equal(zf_delete_doomed(rig->fs), 1);
	assert_int_equal(rig_count_items(rig, file), 0);
	assert_int_equal(zf_delete_doomed(rig->fs), 0);
	rig->fs->options.threads = false;
}

static void very_many_attributes_go_in_several_transactions(void **state)
{
	static char value[60000];
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	char name[16];

	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "user.%d", i);
		assert_int_equal(
			zf_fs_setxattr(rig->fs, &rig->ctx, file, name, value, sizeof(value), 0), 0);
	}
	assert_true(rig_count_items(rig, file) > 40 * 61);
	assert_int_equal(unlink_name(rig, ROOT, "file"), 0);
	zf_fs_forget(rig->fs, file, 1);
	assert_int_equal(rig_count_items(rig, file), 0);
	assert_int_equal(rig_count_items(rig, ZF_INO_ORPHANS), 0);
}

#define PIECES 500

/* Writes every other block, so that no two blocks become one extent. */
static uint64_t make_fragmented(struct names_rig *rig, const char *name)
{
	uint64_t file = rig_make(rig, ROOT, name, S_IFREG | 0644);
	static char block[4096];

	for (uint64_t i = 0; i < PIECES; i++)
		assert_int_equal(zf_fs_write(rig->fs, &rig->ctx, file, 2 * i * sizeof(block), block,
					     sizeof(block), 0),
				 sizeof(block));
	assert_int_equal(zf_fs_fsync(rig->fs, &rig->ctx, file, false), 0);
	assert_true(rig_count_items(rig, file) >= PIECES);
	return file;
}

static uint64_t live_bytes(struct names_rig *rig)
{
	struct zf_space space;

	zf_alloc_get_space(rig->fs->alloc, &space);
	return space.live;
}

static void very_many_extents_go_in_several_transactions(void **state)
{
	struct names_rig *rig = *state;
	uint64_t before = live_bytes(rig);
	uint64_t file = make_fragmented(rig, "file");

	assert_true(live_bytes(rig) >= before + PIECES * 4096);
	assert_int_equal(unlink_name(rig, ROOT, "file"), 0);
	zf_fs_forget(rig->fs, file, 1);
	assert_int_equal(rig_count_items(rig, file), 0);
	assert_int_equal(rig_count_items(rig, ZF_INO_ORPHANS), 0);
	/* Summary entries go with their zones. */
	assert_true(live_bytes(rig) < before + PIECES * 4096 / 4);
}

static void a_crash_between_these_leaves_the_rest_to_the_mount(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = make_fragmented(rig, "file");
	struct zf_inode *inode;
	struct zf_trans trans;

	assert_int_equal(unlink_name(rig, ROOT, "file"), 0);
	/* Runs only the first of the transactions of the deletion. */
	assert_int_equal(zf_inode_get(rig->fs, file, &inode), 0);
	zf_rwlock_wrlock(&inode->lock);
	assert_int_equal(zf_trans_join(rig->fs->txn, ZF_RESERVE_FREEING, 32, true, &trans), 0);
	assert_int_equal(zf_extent_drop_range(inode, &trans, 0, ZF_FILE_END_MAX, 16), 1);
	zf_trans_leave(&trans);
	zf_rwlock_unlock(&inode->lock);
	zf_inode_put(inode);
	assert_true(rig_count_items(rig, file) < PIECES);
	assert_int_equal(zf_txn_sync(rig->fs->txn), 0);
	names_rig_crash(rig);
	assert_int_equal(rig_count_items(rig, file), 0);
	assert_int_equal(rig_count_items(rig, ZF_INO_ORPHANS), 0);
	assert_int_equal(rig_inode_count(rig), 1);
}

static void data_that_can_no_longer_be_read_is_not_written(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644), appends;
	static char data[100000];
	struct zf_dev_stats stats;

	assert_int_equal(zf_fs_write(rig->fs, &rig->ctx, file, 0, data, sizeof(data), 0),
			 sizeof(data));
	zf_dev_get_stats(rig->dev, &stats);
	appends = stats.appends;
	assert_int_equal(unlink_name(rig, ROOT, "file"), 0);
	zf_fs_forget(rig->fs, file, 1);
	assert_int_equal(rig_count_items(rig, file), 0);
	assert_int_equal(zf_fs_syncfs(rig->fs, &rig->ctx), 0);
	zf_dev_get_stats(rig->dev, &stats);
	/* The only append is the superblock's. */
	assert_true(stats.appends <= appends + 1);
}

static void a_temporary_file_may_get_a_name(void **state)
{
	struct names_rig *rig = *state;
	struct zf_attr attr, linked;
	uint64_t named, other;

	assert_int_equal(zf_fs_tmpfile(rig->fs, &rig->ctx, ROOT, 0600, &attr), 0);
	assert_int_equal(attr.nlink, 0);
	assert_int_equal(attr.mode, S_IFREG | 0600);
	named = attr.ino;
	assert_int_equal(zf_fs_tmpfile(rig->fs, &rig->ctx, ROOT, 0600, &attr), 0);
	other = attr.ino;
	assert_int_equal(rig_count_items(rig, ZF_INO_ORPHANS), 2);
	assert_int_equal(zf_fs_link(rig->fs, &rig->ctx, named, ROOT, "name", &linked), 0);
	assert_int_equal(linked.nlink, 1);
	assert_int_equal(rig_count_items(rig, ZF_INO_ORPHANS), 1);
	zf_fs_forget(rig->fs, named, 2);
	assert_int_equal(zf_txn_sync(rig->fs->txn), 0);
	names_rig_crash(rig);
	assert_int_equal(rig_find(rig, ROOT, "name"), named);
	assert_false(rig_inode_exists(rig, other));
	assert_int_equal(zf_fs_tmpfile(rig->fs, &rig->ctx, named, 0600, &attr), -ENOTDIR);
}

/* A directory entry leads to an inode with a link count of 0 that is no orphan: it is not deleted.
 */
static void an_inode_without_names_that_is_no_orphan_is_damage(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make_forgotten(rig, ROOT, "file", S_IFREG | 0644);
	struct zf_inode *inode;
	struct zf_trans trans;
	struct zf_attr attr;

	assert_int_equal(zf_inode_get(rig->fs, file, &inode), 0);
	assert_int_equal(zf_trans_join(rig->fs->txn, ZF_RESERVE_NORMAL, 1, true, &trans), 0);
	inode->item.nlink = 0;
	assert_int_equal(zf_inode_store(inode, &trans), 0);
	zf_trans_leave(&trans);
	zf_inode_put(inode);
	names_rig_remount(rig);
	rig->errors_expected = true;
	assert_int_equal(zf_fs_lookup(rig->fs, &rig->ctx, ROOT, "file", &attr), -EUCLEAN);
	assert_string_equal(rig->message, "corrupt inode at 256: nlink has 0, expected at least "
					  "1, because there is no orphan item");
	assert_int_equal(unlink_name(rig, ROOT, "file"), -EUCLEAN);
	assert_int_not_equal(rig_count_items(rig, file), 0);
}

static void an_orphan_that_has_a_name_is_left_alone(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make_forgotten(rig, ROOT, "file", S_IFREG | 0644);
	struct zf_key key = ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, file);
	struct zf_key nobody = ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, file + 1);
	struct zf_trans trans;

	assert_int_equal(zf_trans_join(rig->fs->txn, ZF_RESERVE_NORMAL, 2, true, &trans), 0);
	assert_int_equal(zf_tree_insert(rig->fs->forest, trans.writer, ZF_TREE_FS, &key, "", 0), 0);
	assert_int_equal(zf_tree_insert(rig->fs->forest, trans.writer, ZF_TREE_FS, &nobody, "", 0),
			 0);
	zf_trans_leave(&trans);
	rig->errors_expected = true;
	names_rig_remount(rig);
	assert_int_equal(rig->errors, 1);
	assert_string_equal(rig->message,
			    "corrupt orphan at 256: nlink of its inode has 1, expected 0");
	assert_int_equal(rig_find(rig, ROOT, "file"), file);
	/* The orphan item without an inode is what an interrupted deletion leaves. */
	assert_int_equal(rig_count_items(rig, ZF_INO_ORPHANS), 1);
}

/* ---- the table ---- */

static void unused_inodes_leave_memory_and_come_back(void **state)
{
	struct names_rig *rig = *state;
	uint64_t in_table = 0, bytes;
	struct zf_inode *inode;
	char name[16];

	rig->mount.cache_bytes = 1 << 20;
	names_rig_remount(rig);
	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		rig_make(rig, ROOT, name, S_IFREG | 0644);
	}
	for (unsigned int i = 0; i < ZF_INODE_SHARDS; i++)
		in_table += rig->fs->shards[i].idle_count;
	bytes = in_table * sizeof(struct zf_inode);
	assert_in_range(bytes, rig->mount.cache_bytes / 4, rig->mount.cache_bytes / 2);
	assert_int_equal(zf_inode_get(rig->fs, ZF_INO_FIRST, &inode), 0);
	assert_int_equal(inode->item.mode, S_IFREG | 0644);
	assert_int_equal(inode->uses, 1);
	zf_inode_put(inode);
}

#define REFS 5000

static void kernel_references_are_counted_right(void **state)
{
	struct zf_kernel_refs refs = {0};
	static uint64_t counts[REFS];
	struct zf_rng rng;

	memset(counts, 0, sizeof(counts));
	zf_rng_seed(&rng, 1);
	assert_int_equal(zf_kernel_refs_sub(&refs, 1, 1), 0);
	assert_false(zf_kernel_refs_has(&refs, 1));
	for (int i = 0; i < 200000; i++) {
		/* As in one shard: numbers that differ by multiples of 64. */
		unsigned int at = (unsigned int)zf_rng_below(&rng, REFS);
		uint64_t ino = 64 * (uint64_t)at + 7, n = 1 + zf_rng_below(&rng, 3);

		assert_int_equal(zf_kernel_refs_has(&refs, ino), counts[at] > 0);
		if (zf_rng_chance(&rng, i < 100000 ? 60 : 40)) {
			assert_int_equal(zf_kernel_refs_add(&refs, ino), 0);
			counts[at]++;
		} else {
			counts[at] -= n < counts[at] ? n : counts[at];
			assert_int_equal(zf_kernel_refs_sub(&refs, ino, n), counts[at]);
		}
	}
	for (unsigned int at = 0; at < REFS; at++)
		assert_int_equal(zf_kernel_refs_has(&refs, 64 * (uint64_t)at + 7), counts[at] > 0);
	zf_kernel_refs_deinit(&refs);
}

static void what_the_kernel_has_forgotten_takes_no_memory(void **state)
{
	struct zf_kernel_refs refs = {0};

	for (uint64_t ino = 1; ino <= REFS; ino++)
		assert_int_equal(zf_kernel_refs_add(&refs, ino), 0);
	for (uint64_t ino = 1; ino <= REFS - 10; ino++)
		assert_int_equal(zf_kernel_refs_sub(&refs, ino, 1), 0);
	assert_true(refs.slot_count <= 128);
	for (uint64_t ino = 1; ino <= REFS; ino++)
		assert_int_equal(zf_kernel_refs_has(&refs, ino), ino > REFS - 10);
	zf_kernel_refs_deinit(&refs);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, names_rig_setup, names_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_unlinked_file_lives_until_the_kernel_forgets_it),
		TEST(a_use_keeps_an_unlinked_file_too),
		TEST(a_mount_deletes_what_a_crash_left_open),
		TEST(an_unmount_deletes_what_is_still_open),
		TEST(with_threads_deletion_is_left_to_them),
		TEST(very_many_attributes_go_in_several_transactions),
		TEST(very_many_extents_go_in_several_transactions),
		TEST(a_crash_between_these_leaves_the_rest_to_the_mount),
		TEST(data_that_can_no_longer_be_read_is_not_written),
		TEST(a_temporary_file_may_get_a_name),
		TEST(an_inode_without_names_that_is_no_orphan_is_damage),
		TEST(an_orphan_that_has_a_name_is_left_alone),
		TEST(unused_inodes_leave_memory_and_come_back),
		cmocka_unit_test(kernel_references_are_counted_right),
		cmocka_unit_test(what_the_kernel_has_forgotten_takes_no_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
