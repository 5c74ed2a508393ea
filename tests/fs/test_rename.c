/* SPDX-License-Identifier: MIT */
/* Rename: what it moves, replaces and exchanges, and what it refuses. */
#include "fs/names_rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ROOT ZF_INO_ROOT

static int move(struct names_rig *rig, uint64_t from, const char *name, uint64_t to,
		const char *new_name, unsigned int flags)
{
	return zf_fs_rename(rig->fs, &rig->ctx, from, name, to, new_name, flags, NULL);
}

static uint64_t parent_of(struct names_rig *rig, uint64_t dir)
{
	struct zf_dirent entries[2];

	assert_int_equal(zf_fs_readdir(rig->fs, &rig->ctx, dir, 0, entries, 2), 2);
	return entries[1].ino;
}

/* ---- tests ---- */

static void a_file_gets_another_name(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "old", S_IFREG | 0644);
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);

	rig->now_ns = 7000000000;
	assert_int_equal(move(rig, ROOT, "old", ROOT, "new", 0), 0);
	assert_int_equal(rig_find(rig, ROOT, "old"), 0);
	assert_int_equal(rig_find(rig, ROOT, "new"), file);
	assert_int_equal(rig_attr(rig, file).ctime.seconds, 7);
	assert_int_equal(rig_attr(rig, file).mtime.seconds, 2);
	assert_int_equal(rig_attr(rig, ROOT).mtime.seconds, 7);
	rig->now_ns = 8000000000;
	assert_int_equal(move(rig, ROOT, "new", dir, "a longer name", 0), 0);
	assert_int_equal(rig_find(rig, dir, "a longer name"), file);
	assert_int_equal(rig_attr(rig, dir).mtime.seconds, 8);
	assert_int_equal(rig_attr(rig, ROOT).mtime.seconds, 8);
	assert_int_equal(rig_attr(rig, dir).size, sizeof(struct zf_disk_dirent) + 13);
	assert_int_equal(rig_attr(rig, ROOT).size, sizeof(struct zf_disk_dirent) + 3);
	names_rig_remount(rig);
	assert_int_equal(rig_find(rig, dir, "a longer name"), file);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, dir, "a longer name"), 0);
	assert_int_equal(rig_count_items(rig, file), 0);
}

static void a_directory_takes_its_parent_with_it(void **state)
{
	struct names_rig *rig = *state;
	uint64_t a = rig_make(rig, ROOT, "a", S_IFDIR | 0755);
	uint64_t b = rig_make(rig, ROOT, "b", S_IFDIR | 0755);
	uint64_t sub = rig_make(rig, a, "sub", S_IFDIR | 0755);

	assert_int_equal(move(rig, a, "sub", b, "sub", 0), 0);
	assert_int_equal(rig_attr(rig, a).nlink, 2);
	assert_int_equal(rig_attr(rig, b).nlink, 3);
	assert_int_equal(parent_of(rig, sub), b);
	assert_int_equal(move(rig, b, "sub", b, "other", 0), 0);
	assert_int_equal(rig_attr(rig, b).nlink, 3);
	assert_int_equal(parent_of(rig, sub), b);
	assert_int_equal(zf_fs_rmdir(rig->fs, &rig->ctx, ROOT, "a"), 0);
	assert_int_equal(zf_fs_rmdir(rig->fs, &rig->ctx, ROOT, "b"), -ENOTEMPTY);
}

static void what_is_replaced_loses_its_name(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	uint64_t target = rig_make_forgotten(rig, ROOT, "target", S_IFREG | 0644);
	uint64_t open = rig_make(rig, ROOT, "open", S_IFREG | 0644);
	uint64_t fifo = rig_make_forgotten(rig, ROOT, "fifo", S_IFIFO | 0644);

	assert_int_equal(move(rig, ROOT, "file", ROOT, "target", 0), 0);
	assert_int_equal(rig_find(rig, ROOT, "target"), file);
	assert_false(rig_inode_exists(rig, target));
	assert_int_equal(rig_count_items(rig, target), 0);
	rig->now_ns = 7000000000;
	assert_int_equal(move(rig, ROOT, "target", ROOT, "open", 0), 0);
	assert_int_equal(rig_attr(rig, open).nlink, 0);
	assert_int_equal(rig_attr(rig, open).ctime.seconds, 7);
	zf_fs_forget(rig->fs, open, 1);
	assert_false(rig_inode_exists(rig, open));
	assert_int_equal(move(rig, ROOT, "open", ROOT, "fifo", 0), 0);
	assert_false(rig_inode_exists(rig, fifo));
	assert_int_equal(rig_inode_count(rig), 2);
}

static void a_directory_replaces_only_an_empty_directory(void **state)
{
	struct names_rig *rig = *state;
	uint64_t a = rig_make(rig, ROOT, "a", S_IFDIR | 0755);
	uint64_t b = rig_make_forgotten(rig, ROOT, "b", S_IFDIR | 0755);
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);

	rig_make(rig, b, "x", S_IFREG | 0644);
	rig_make(rig, ROOT, "file", S_IFREG | 0644);
	assert_int_equal(move(rig, ROOT, "a", ROOT, "b", 0), -ENOTEMPTY);
	assert_int_equal(move(rig, ROOT, "a", ROOT, "file", 0), -ENOTDIR);
	assert_int_equal(move(rig, ROOT, "file", ROOT, "a", 0), -EISDIR);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, b, "x"), 0);
	assert_int_equal(rig_attr(rig, ROOT).nlink, 5);
	assert_int_equal(move(rig, ROOT, "a", ROOT, "b", 0), 0);
	assert_int_equal(rig_attr(rig, ROOT).nlink, 4);
	assert_int_equal(rig_find(rig, ROOT, "b"), a);
	assert_false(rig_inode_exists(rig, b));
	b = rig_make_forgotten(rig, dir, "inner", S_IFDIR | 0755);
	assert_int_equal(move(rig, ROOT, "b", dir, "inner", 0), 0);
	assert_int_equal(rig_attr(rig, ROOT).nlink, 3);
	assert_int_equal(rig_attr(rig, dir).nlink, 3);
	assert_int_equal(parent_of(rig, a), dir);
	assert_false(rig_inode_exists(rig, b));
}

static void nothing_happens_between_two_names_of_one_file(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "a", S_IFREG | 0644);
	struct zf_attr attr;

	assert_int_equal(zf_fs_link(rig->fs, &rig->ctx, file, ROOT, "b", &attr), 0);
	assert_int_equal(move(rig, ROOT, "a", ROOT, "b", 0), 0);
	assert_int_equal(move(rig, ROOT, "a", ROOT, "a", 0), 0);
	assert_int_equal(move(rig, ROOT, "a", ROOT, "b", RENAME_EXCHANGE), 0);
	assert_int_equal(move(rig, ROOT, "a", ROOT, "b", RENAME_NOREPLACE), -EEXIST);
	rig_make(rig, rig_make(rig, ROOT, "dir", S_IFDIR | 0755), "in", S_IFREG | 0644);
	assert_int_equal(move(rig, ROOT, "dir", ROOT, "dir", 0), 0);
	assert_int_equal(rig_find(rig, ROOT, "a"), file);
	assert_int_equal(rig_find(rig, ROOT, "b"), file);
	assert_int_equal(rig_attr(rig, file).nlink, 2);
}

static void flags_are_obeyed(void **state)
{
	struct names_rig *rig = *state;
	uint64_t a = rig_make(rig, ROOT, "a", S_IFREG | 0644);

	rig_make(rig, ROOT, "b", S_IFREG | 0644);
	assert_int_equal(move(rig, ROOT, "a", ROOT, "b", RENAME_NOREPLACE), -EEXIST);
	assert_int_equal(move(rig, ROOT, "a", ROOT, "c", RENAME_NOREPLACE), 0);
	assert_int_equal(rig_find(rig, ROOT, "c"), a);
	assert_int_equal(move(rig, ROOT, "c", ROOT, "none", RENAME_EXCHANGE), -ENOENT);
	assert_int_equal(move(rig, ROOT, "none", ROOT, "c", RENAME_EXCHANGE), -ENOENT);
	assert_int_equal(move(rig, ROOT, "c", ROOT, "b", RENAME_EXCHANGE | RENAME_NOREPLACE),
			 -EINVAL);
	assert_int_equal(move(rig, ROOT, "c", ROOT, "b", RENAME_EXCHANGE | RENAME_WHITEOUT),
			 -EINVAL);
	assert_int_equal(move(rig, ROOT, "c", ROOT, "d", 8), -EINVAL);
	assert_int_equal(move(rig, ROOT, "c", ROOT, "b", RENAME_WHITEOUT | RENAME_NOREPLACE),
			 -EEXIST);
	assert_int_equal(move(rig, ROOT, "none", ROOT, "b", RENAME_WHITEOUT), -ENOENT);
	rig->ctx.uid = UINT32_MAX;
	assert_int_equal(move(rig, ROOT, "c", ROOT, "b", RENAME_WHITEOUT), -EOVERFLOW);
	rig->ctx.uid = 0;
	assert_int_equal(zf_txn_error(rig->fs->txn), 0);
	assert_int_equal(rig_find(rig, ROOT, "none"), 0);
	assert_int_equal(move(rig, ROOT, "none", ROOT, "d", 0), -ENOENT);
	assert_int_equal(move(rig, ROOT, ".", ROOT, "d", 0), -EBUSY);
	assert_int_equal(move(rig, ROOT, "c", ROOT, "..", 0), -EBUSY);
	assert_int_equal(move(rig, a, "c", ROOT, "d", 0), -ENOTDIR);
	assert_int_equal(move(rig, ROOT, "c", a, "d", 0), -ENOTDIR);
	assert_int_equal(move(rig, 9999, "c", ROOT, "d", 0), -ESTALE);
}

static void assert_whiteout(struct names_rig *rig, uint64_t dir, const char *name)
{
	struct zf_attr attr = rig_attr(rig, rig_find(rig, dir, name));

	assert_int_equal(attr.mode, S_IFCHR);
	assert_int_equal(attr.rdev, 0);
	assert_int_equal(attr.nlink, 1);
	assert_int_equal(attr.uid, rig->ctx.uid);
	assert_int_equal(attr.btime.seconds, rig->now_ns / 1000000000);
}

static void a_whiteout_takes_the_old_name(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	uint64_t sub = rig_make(rig, ROOT, "sub", S_IFDIR | 0755);
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);
	uint64_t target = rig_make_forgotten(rig, dir, "target", S_IFREG | 0644);
	uint64_t count = rig_inode_count(rig);

	rig->ctx.uid = 1000;
	rig->now_ns = 7000000000;
	assert_int_equal(move(rig, ROOT, "file", ROOT, "other", RENAME_WHITEOUT), 0);
	assert_int_equal(rig_find(rig, ROOT, "other"), file);
	assert_whiteout(rig, ROOT, "file");
	assert_int_equal(move(rig, ROOT, "other", dir, "target", RENAME_WHITEOUT), 0);
	assert_int_equal(rig_find(rig, dir, "target"), file);
	assert_false(rig_inode_exists(rig, target));
	assert_whiteout(rig, ROOT, "other");
	assert_int_equal(move(rig, ROOT, "sub", dir, "sub", RENAME_WHITEOUT | RENAME_NOREPLACE), 0);
	assert_int_equal(rig_find(rig, dir, "sub"), sub);
	assert_int_equal(parent_of(rig, sub), dir);
	assert_whiteout(rig, ROOT, "sub");
	assert_int_equal(rig_attr(rig, ROOT).nlink, 3);
	assert_int_equal(rig_attr(rig, dir).nlink, 3);
	assert_int_equal(rig_attr(rig, ROOT).mtime.seconds, 7);
	assert_int_equal(rig_inode_count(rig), count - 1 + 3);
	/* A whiteout is a file like any other. */
	assert_int_equal(move(rig, ROOT, "other", ROOT, "file", RENAME_WHITEOUT), 0);
	assert_whiteout(rig, ROOT, "other");
	names_rig_remount(rig);
	assert_whiteout(rig, ROOT, "file");
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ROOT, "file"), 0);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ROOT, "other"), 0);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ROOT, "sub"), 0);
	assert_int_equal(rig_attr(rig, ROOT).size, sizeof(struct zf_disk_dirent) + 3);
}

static void exchange_swaps_files_and_directories(void **state)
{
	struct names_rig *rig = *state;
	uint64_t a = rig_make(rig, ROOT, "a", S_IFDIR | 0755);
	uint64_t b = rig_make(rig, ROOT, "b", S_IFDIR | 0755);
	uint64_t file = rig_make(rig, a, "x", S_IFREG | 0644);
	uint64_t dir = rig_make(rig, b, "y", S_IFDIR | 0755);
	uint64_t inner = rig_make(rig, dir, "inner", S_IFREG | 0644);

	assert_int_equal(move(rig, a, "x", b, "y", RENAME_EXCHANGE), 0);
	assert_int_equal(rig_find(rig, a, "x"), dir);
	assert_int_equal(rig_find(rig, b, "y"), file);
	assert_int_equal(rig_find(rig, dir, "inner"), inner);
	assert_int_equal(parent_of(rig, dir), a);
	assert_int_equal(rig_attr(rig, a).nlink, 3);
	assert_int_equal(rig_attr(rig, b).nlink, 2);
	assert_int_equal(move(rig, ROOT, "a", ROOT, "b", RENAME_EXCHANGE), 0);
	assert_int_equal(rig_find(rig, ROOT, "b"), a);
	names_rig_remount(rig);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, b, "y"), 0);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, dir, "inner"), 0);
	assert_int_equal(zf_fs_rmdir(rig->fs, &rig->ctx, a, "x"), 0);
	assert_int_equal(rig_count_items(rig, file), 0);
	assert_int_equal(rig_count_items(rig, dir), 0);
}

static void a_directory_never_becomes_its_own_descendant(void **state)
{
	struct names_rig *rig = *state;
	uint64_t a = rig_make(rig, ROOT, "a", S_IFDIR | 0755);
	uint64_t b = rig_make(rig, a, "b", S_IFDIR | 0755);
	uint64_t c = rig_make(rig, b, "c", S_IFDIR | 0755);

	rig_make(rig, c, "d", S_IFDIR | 0755);
	rig_make(rig, c, "file", S_IFREG | 0644);
	assert_int_equal(move(rig, ROOT, "a", a, "x", 0), -EINVAL);
	assert_int_equal(move(rig, ROOT, "a", c, "x", 0), -EINVAL);
	assert_int_equal(move(rig, a, "b", c, "d", 0), -EINVAL);
	assert_int_equal(move(rig, c, "d", ROOT, "a", RENAME_EXCHANGE), -EINVAL);
	assert_int_equal(move(rig, ROOT, "a", c, "d", RENAME_EXCHANGE), -EINVAL);
	assert_int_equal(move(rig, c, "file", ROOT, "a", RENAME_EXCHANGE), -EINVAL);
	assert_int_equal(move(rig, c, "d", ROOT, "a", 0), -ENOTEMPTY);
	assert_int_equal(move(rig, b, "c", ROOT, "x", 0), 0);
	assert_int_equal(move(rig, ROOT, "a", c, "a", 0), 0);
	assert_int_equal(parent_of(rig, a), c);
}

static void a_listing_that_renames_what_it_sees_comes_to_an_end(void **state)
{
	struct names_rig *rig = *state;
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);
	struct zf_dirent entry;
	uint64_t cookie = 2;
	char name[ZF_NAME_MAX + 16];
	int seen = 0;

	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "%d", i);
		rig_make(rig, dir, name, S_IFREG | 0644);
	}
	while (zf_fs_readdir(rig->fs, &rig->ctx, dir, cookie, &entry, 1) == 1) {
		snprintf(name, sizeof(name), "renamed %s", entry.name);
		assert_int_equal(move(rig, dir, entry.name, dir, name, 0), 0);
		cookie = entry.cookie;
		assert_true(++seen <= 100);
	}
	assert_int_equal(seen, 100);
}

/* P2: when a rename over a file is answered, its source's data need only a commit, and no flush. */
static void a_rename_over_a_file_takes_its_data_along(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "new", S_IFREG | 0644);
	struct zf_inode *inode;
	static char data[20000], read[20000];

	rig_make_forgotten(rig, ROOT, "old", S_IFREG | 0644);
	memset(data, 'd', sizeof(data));
	assert_int_equal(zf_fs_write(rig->fs, &rig->ctx, file, 0, data, sizeof(data), 0),
			 sizeof(data));
	assert_int_equal(zf_inode_get(rig->fs, file, &inode), 0);
	assert_true(zf_data_is_dirty(inode));

	/* A rename to a free name, or an exchange, overwrites nothing, and needs no flush. */
	assert_int_equal(move(rig, ROOT, "new", ROOT, "newer", 0), 0);
	assert_int_equal(move(rig, ROOT, "newer", ROOT, "old", RENAME_EXCHANGE), 0);
	assert_int_equal(move(rig, ROOT, "newer", ROOT, "new", 0), 0);
	assert_int_equal(move(rig, ROOT, "new", ROOT, "newer", RENAME_NOREPLACE), 0);
	assert_int_equal(move(rig, ROOT, "newer", ROOT, "old", RENAME_EXCHANGE), 0);
	assert_int_equal(move(rig, ROOT, "newer", ROOT, "new", 0), 0);
	assert_true(zf_data_is_dirty(inode));

	rig->ctx.may_wait = false;
	assert_int_equal(move(rig, ROOT, "new", ROOT, "old", 0), -EAGAIN);
	assert_int_equal(rig_find(rig, ROOT, "new"), file);
	rig->ctx.may_wait = true;
	assert_int_equal(move(rig, ROOT, "new", ROOT, "old", 0), 0);
	assert_false(zf_data_is_dirty(inode));
	zf_inode_put(inode);
	assert_int_equal(zf_txn_commit(rig->fs->txn, false), 0);
	names_rig_crash(rig);
	assert_int_equal(rig_find(rig, ROOT, "old"), file);
	assert_int_equal(zf_fs_read(rig->fs, &rig->ctx, file, 0, read, sizeof(read)), sizeof(read));
	assert_memory_equal(read, data, sizeof(data));
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, names_rig_setup, names_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_gets_another_name),
		TEST(a_directory_takes_its_parent_with_it),
		TEST(what_is_replaced_loses_its_name),
		TEST(a_directory_replaces_only_an_empty_directory),
		TEST(nothing_happens_between_two_names_of_one_file),
		TEST(flags_are_obeyed),
		TEST(a_whiteout_takes_the_old_name),
		TEST(exchange_swaps_files_and_directories),
		TEST(a_directory_never_becomes_its_own_descendant),
		TEST(a_rename_over_a_file_takes_its_data_along),
		TEST(a_listing_that_renames_what_it_sees_comes_to_an_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
