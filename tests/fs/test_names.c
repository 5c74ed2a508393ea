/* SPDX-License-Identifier: MIT */
/* Making, finding and removing names: the effect and every possible error of each operation. */
#include "fs/names_rig.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define ROOT ZF_INO_ROOT

static int make(struct names_rig *rig, uint64_t parent, const char *name, mode_t mode)
{
	struct zf_attr attr;

	return zf_fs_make(rig->fs, &rig->ctx, parent, name, mode, 0, NULL, &attr);
}

static int lookup(struct names_rig *rig, uint64_t parent, const char *name)
{
	struct zf_attr attr;

	return zf_fs_lookup(rig->fs, &rig->ctx, parent, name, &attr);
}

static int link_to(struct names_rig *rig, uint64_t ino, uint64_t parent, const char *name)
{
	struct zf_attr attr;

	return zf_fs_link(rig->fs, &rig->ctx, ino, parent, name, &attr);
}

static int unlink_name(struct names_rig *rig, uint64_t parent, const char *name)
{
	return zf_fs_unlink(rig->fs, &rig->ctx, parent, name);
}

static int rmdir_name(struct names_rig *rig, uint64_t parent, const char *name)
{
	return zf_fs_rmdir(rig->fs, &rig->ctx, parent, name);
}

static char *name_of(size_t len)
{
	static char name[300];

	memset(name, 'n', len);
	name[len] = '\0';
	return name;
}

/* ---- tests ---- */

static void the_root_of_a_new_filesystem_is_an_empty_directory(void **state)
{
	struct names_rig *rig = *state;
	struct zf_attr attr = rig_attr(rig, ROOT);
	struct zf_dirent entries[3];

	assert_int_equal(attr.mode, S_IFDIR | 0755);
	assert_int_equal(attr.nlink, 2);
	assert_int_equal(attr.size, 0);
	assert_int_equal(attr.btime.seconds, 1);
	assert_int_equal(zf_fs_readdir(rig->fs, &rig->ctx, ROOT, 0, entries, 3), 2);
	assert_int_equal(entries[1].ino, ROOT);
	assert_int_equal(rig_inode_count(rig), 1);
}

static void each_type_of_file_comes_back_as_it_was_made(void **state)
{
	static const struct {
		const char *name;
		mode_t mode;
		uint64_t rdev;
		const char *target;
		uint32_t nlink;
	} files[] = {
		{"regular", S_IFREG | 0640, 0, NULL, 1},
		{"directory", S_IFDIR | S_ISVTX | 0751, 0, NULL, 2},
		{"link", S_IFLNK | 0777, 0, "../some/where", 1},
		{"character", S_IFCHR | 0600, 0x123456789abcu, NULL, 1},
		{"block", S_IFBLK | 0660, UINT64_MAX, NULL, 1},
		{"fifo", S_IFIFO | 0644, 0, NULL, 1},
		{"socket", S_IFSOCK | 04755, 0, NULL, 1},
	};
	struct names_rig *rig = *state;
	struct zf_attr made, found;

	rig->ctx.uid = 1000;
	rig->ctx.gid = 100;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		assert_int_equal(zf_fs_make(rig->fs, &rig->ctx, ROOT, files[i].name, files[i].mode,
					    files[i].rdev, files[i].target, &made),
				 0);
		assert_int_equal(made.mode, files[i].mode);
		assert_int_equal(made.nlink, files[i].nlink);
		assert_int_equal(made.rdev, files[i].rdev);
		assert_int_equal(made.uid, 1000);
		assert_int_equal(made.gid, 100);
		assert_int_equal(made.size, files[i].target ? strlen(files[i].target) : 0);
		assert_int_equal(made.btime.seconds, 2);
		assert_int_equal(made.mtime.seconds, 2);
	}
	names_rig_remount(rig);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		assert_int_equal(lookup(rig, ROOT, files[i].name), 0);
		found = rig_attr(rig, rig_find(rig, ROOT, files[i].name));
		assert_int_equal(found.mode, files[i].mode);
		assert_int_equal(found.rdev, files[i].rdev);
		assert_int_equal(found.uid, 1000);
	}
	assert_int_equal(rig_attr(rig, ROOT).nlink, 3);
	assert_int_equal(rig_inode_count(rig), 8);
}

static void names_have_limits(void **state)
{
	struct names_rig *rig = *state;
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);

	assert_int_equal(make(rig, ROOT, name_of(255), S_IFREG), 0);
	assert_int_equal(make(rig, ROOT, name_of(256), S_IFREG), -ENAMETOOLONG);
	assert_int_equal(make(rig, ROOT, "", S_IFREG), -ENOENT);
	assert_int_equal(make(rig, ROOT, "a/b", S_IFREG), -EINVAL);
	assert_int_equal(make(rig, ROOT, ".", S_IFREG), -EEXIST);
	assert_int_equal(make(rig, ROOT, "..", S_IFDIR), -EEXIST);
	assert_int_equal(make(rig, ROOT, "\xff\x01 \n", S_IFREG), 0);
	assert_int_equal(lookup(rig, ROOT, name_of(256)), -ENAMETOOLONG);
	assert_int_equal(unlink_name(rig, ROOT, name_of(256)), -ENAMETOOLONG);
	assert_int_equal(rmdir_name(rig, ROOT, name_of(256)), -ENAMETOOLONG);
	assert_int_equal(link_to(rig, file, dir, name_of(256)), -ENAMETOOLONG);
	assert_int_equal(
		zf_fs_rename(rig->fs, &rig->ctx, ROOT, "file", ROOT, name_of(256), 0, NULL),
		-ENAMETOOLONG);
	assert_int_equal(rig_find(rig, ROOT, name_of(255)) != 0, true);
	assert_int_equal(unlink_name(rig, ROOT, name_of(255)), 0);
}

static void what_is_not_there_gives_the_error_of_the_call(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);
	struct zf_dirent entry;
	char buf[10];

	assert_int_equal(lookup(rig, ROOT, "none"), -ENOENT);
	assert_int_equal(lookup(rig, file, "none"), -ENOTDIR);
	assert_int_equal(lookup(rig, 9999, "none"), -ESTALE);
	assert_int_equal(lookup(rig, ZF_INO_ORPHANS, "none"), -ESTALE);
	assert_int_equal(unlink_name(rig, ROOT, "none"), -ENOENT);
	assert_int_equal(unlink_name(rig, file, "none"), -ENOTDIR);
	assert_int_equal(unlink_name(rig, ROOT, "dir"), -EISDIR);
	assert_int_equal(unlink_name(rig, ROOT, "."), -EISDIR);
	assert_int_equal(rmdir_name(rig, ROOT, "none"), -ENOENT);
	assert_int_equal(rmdir_name(rig, ROOT, "file"), -ENOTDIR);
	assert_int_equal(rmdir_name(rig, ROOT, "."), -EINVAL);
	assert_int_equal(rmdir_name(rig, ROOT, ".."), -ENOTEMPTY);
	assert_int_equal(make(rig, file, "x", S_IFREG), -ENOTDIR);
	assert_int_equal(make(rig, ROOT, "file", S_IFREG), -EEXIST);
	assert_int_equal(make(rig, ROOT, "dir", S_IFREG), -EEXIST);
	assert_int_equal(make(rig, ROOT, "x", 0644), -EINVAL);
	assert_int_equal(make(rig, ROOT, "x", S_IFLNK | 0777), -EINVAL);
	assert_int_equal(link_to(rig, dir, ROOT, "x"), -EPERM);
	assert_int_equal(link_to(rig, file, ROOT, "dir"), -EEXIST);
	assert_int_equal(link_to(rig, file, file, "x"), -ENOTDIR);
	assert_int_equal(link_to(rig, 9999, ROOT, "x"), -ESTALE);
	assert_int_equal(zf_fs_readdir(rig->fs, &rig->ctx, file, 0, &entry, 1), -ENOTDIR);
	assert_int_equal(zf_fs_readlink(rig->fs, &rig->ctx, file, buf, sizeof(buf)), -EINVAL);
	assert_int_equal(rig_attr(rig, ROOT).nlink, 3);
}

static void dots_lead_where_they_should(void **state)
{
	struct names_rig *rig = *state;
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);
	uint64_t sub = rig_make(rig, dir, "sub", S_IFDIR | 0755);
	uint64_t file = rig_make(rig, dir, "file", S_IFREG | 0644);

	assert_int_equal(rig_find(rig, sub, "."), sub);
	assert_int_equal(rig_find(rig, sub, ".."), dir);
	assert_int_equal(rig_find(rig, dir, ".."), ROOT);
	assert_int_equal(rig_find(rig, ROOT, ".."), ROOT);
	assert_int_equal(lookup(rig, file, ".."), -ENOTDIR);
}

/* Looks up "." of an inode number, as the kernel does for a file handle. */
static void an_inode_is_found_by_its_number_while_it_has_a_name(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);

	assert_int_equal(rig_find(rig, file, "."), file);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ROOT, "file"), 0);
	assert_int_equal(lookup(rig, file, "."), -ESTALE);
	assert_int_equal(lookup(rig, 9999, "."), -ESTALE);
}

static void a_setgid_directory_hands_its_group_down(void **state)
{
	struct names_rig *rig = *state;
	uint64_t dir;

	rig->ctx.gid = 7;
	dir = rig_make(rig, ROOT, "dir", S_IFDIR | S_ISGID | 0775);
	rig->ctx.gid = 100;
	rig->ctx.umask = 022;
	assert_int_equal(rig_attr(rig, rig_make(rig, dir, "file", S_IFREG | 0666)).gid, 7);
	assert_int_equal(rig_attr(rig, rig_find(rig, dir, "file")).mode, S_IFREG | 0644);
	assert_int_equal(rig_attr(rig, rig_make(rig, dir, "sub", S_IFDIR | 0777)).gid, 7);
	assert_int_equal(rig_attr(rig, rig_find(rig, dir, "sub")).mode, S_IFDIR | S_ISGID | 0755);
	assert_int_equal(rig_attr(rig, rig_make(rig, ROOT, "other", S_IFDIR | 0777)).gid, 100);
	assert_int_equal(rig_attr(rig, rig_make(rig, dir, "link", S_IFLNK | 0777)).mode,
			 S_IFLNK | 0777);
}

static void directories_count_their_entries(void **state)
{
	struct names_rig *rig = *state;
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);
	uint64_t entry = sizeof(struct zf_disk_dirent);

	rig->now_ns = 5000000001;
	rig_make(rig, dir, "abc", S_IFREG | 0644);
	assert_int_equal(rig_attr(rig, dir).size, entry + 3);
	assert_int_equal(rig_attr(rig, dir).mtime.seconds, 5);
	assert_int_equal(rig_attr(rig, dir).mtime.nanoseconds, 1);
	assert_int_equal(rig_attr(rig, dir).ctime.seconds, 5);
	assert_int_equal(rig_attr(rig, dir).atime.seconds, 2);
	assert_int_equal(rig_attr(rig, dir).nlink, 2);
	rig_make(rig, dir, "de", S_IFDIR | 0755);
	assert_int_equal(rig_attr(rig, dir).size, 2 * entry + 5);
	assert_int_equal(rig_attr(rig, dir).nlink, 3);
	assert_int_equal(rmdir_name(rig, ROOT, "dir"), -ENOTEMPTY);
	assert_int_equal(rmdir_name(rig, dir, "de"), 0);
	assert_int_equal(rig_attr(rig, dir).nlink, 2);
	rig->now_ns = 6000000000;
	assert_int_equal(unlink_name(rig, dir, "abc"), 0);
	assert_int_equal(rig_attr(rig, dir).size, 0);
	assert_int_equal(rig_attr(rig, dir).mtime.seconds, 6);
	assert_int_equal(rmdir_name(rig, ROOT, "dir"), 0);
}

static void a_removed_directory_takes_no_more_names(void **state)
{
	struct names_rig *rig = *state;
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	struct zf_dirent entry;

	assert_int_equal(rmdir_name(rig, ROOT, "dir"), 0);
	assert_int_equal(rig_attr(rig, dir).nlink, 0);
	assert_int_equal(make(rig, dir, "x", S_IFREG), -ENOENT);
	assert_int_equal(link_to(rig, file, dir, "x"), -ENOENT);
	assert_int_equal(zf_fs_rename(rig->fs, &rig->ctx, ROOT, "file", dir, "x", 0, NULL),
			 -ENOENT);
	assert_int_equal(lookup(rig, dir, "x"), -ENOENT);
	assert_int_equal(lookup(rig, dir, ".."), -ENOENT);
	assert_int_equal(zf_fs_readdir(rig->fs, &rig->ctx, dir, 0, &entry, 1), 0);
	zf_fs_forget(rig->fs, dir, 1);
	assert_false(rig_inode_exists(rig, dir));
}

static void links_share_an_inode(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);
	struct zf_attr attr;

	rig->now_ns = 9000000000;
	assert_int_equal(zf_fs_link(rig->fs, &rig->ctx, file, dir, "other", &attr), 0);
	assert_int_equal(attr.ino, file);
	assert_int_equal(attr.nlink, 2);
	assert_int_equal(attr.ctime.seconds, 9);
	assert_int_equal(attr.mtime.seconds, 2);
	names_rig_remount(rig);
	assert_int_equal(rig_find(rig, dir, "other"), file);
	assert_int_equal(unlink_name(rig, ROOT, "file"), 0);
	assert_int_equal(rig_find(rig, ROOT, "file"), 0);
	assert_int_equal(rig_attr(rig, file).nlink, 1);
	assert_int_equal(rig_attr(rig, file).ctime.seconds, 9);
	assert_int_equal(unlink_name(rig, dir, "other"), 0);
	assert_false(rig_inode_exists(rig, file));
	assert_int_equal(rig_count_items(rig, file), 0);
	assert_int_equal(rig_count_items(rig, ZF_INO_ORPHANS), 0);
}

static void a_file_has_no_more_than_65000_names(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	struct zf_inode *inode;

	assert_int_equal(zf_inode_get(rig->fs, file, &inode), 0);
	inode->item.nlink = ZF_LINK_MAX - 1;
	assert_int_equal(link_to(rig, file, ROOT, "one"), 0);
	assert_int_equal(link_to(rig, file, ROOT, "more"), -EMLINK);
	assert_int_equal(rig_find(rig, ROOT, "more"), 0);
	inode->item.nlink = 2;
	zf_inode_put(inode);
}

static void many_names_of_one_inode_are_each_found_and_removed(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "0", S_IFREG | 0644);
	char name[16];

	for (int i = 1; i < 500; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(link_to(rig, file, ROOT, name), 0);
	}
	assert_int_equal(rig_attr(rig, file).nlink, 500);
	for (int i = 499; i >= 0; i--) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(unlink_name(rig, ROOT, name), 0);
	}
	assert_int_equal(rig_attr(rig, file).nlink, 0);
	zf_fs_forget(rig->fs, file, 500);
	assert_false(rig_inode_exists(rig, file));
}

static void symbolic_links_hold_targets_of_every_length(void **state)
{
	static const size_t lengths[] = {1, 59, 917, 918, 919, 1836, 1837, 4094, 4095};
	struct names_rig *rig = *state;
	char target[4097], read[5000], name[16];
	struct zf_attr attr;

	for (size_t i = 0; i < sizeof(target) - 1; i++)
		target[i] = (char)('a' + i % 26);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		char end = target[lengths[i]];

		target[lengths[i]] = '\0';
		snprintf(name, sizeof(name), "%zu", lengths[i]);
		assert_int_equal(zf_fs_make(rig->fs, &rig->ctx, ROOT, name, S_IFLNK | 0777, 0,
					    target, &attr),
				 0);
		assert_int_equal(attr.size, lengths[i]);
		target[lengths[i]] = end;
	}
	names_rig_remount(rig);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		uint64_t ino;

		snprintf(name, sizeof(name), "%zu", lengths[i]);
		ino = rig_find(rig, ROOT, name);
		assert_int_equal(zf_fs_readlink(rig->fs, &rig->ctx, ino, read, sizeof(read)),
				 lengths[i]);
		assert_memory_equal(read, target, lengths[i]);
		assert_int_equal(zf_fs_readlink(rig->fs, &rig->ctx, ino, read, 1), 1);
		assert_int_equal(unlink_name(rig, ROOT, name), 0);
		assert_int_equal(rig_count_items(rig, ino), 0);
	}
	target[4096] = '\0';
	assert_int_equal(
		zf_fs_make(rig->fs, &rig->ctx, ROOT, "x", S_IFLNK | 0777, 0, target, &attr),
		-ENAMETOOLONG);
	assert_int_equal(zf_fs_make(rig->fs, &rig->ctx, ROOT, "x", S_IFLNK | 0777, 0, "", &attr),
			 -ENOENT);
	assert_int_equal(zf_fs_make(rig->fs, &rig->ctx, ROOT, "x", S_IFREG | 0777, 0, "t", &attr),
			 -EINVAL);
}

static void a_read_only_mount_refuses_every_change(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	struct zf_setattr set = {.valid = ZF_SET_MODE};
	struct zf_attr attr;

	rig->fs->read_only = true;
	assert_int_equal(make(rig, ROOT, "x", S_IFREG), -EROFS);
	assert_int_equal(link_to(rig, file, ROOT, "x"), -EROFS);
	assert_int_equal(unlink_name(rig, ROOT, "file"), -EROFS);
	assert_int_equal(rmdir_name(rig, ROOT, "file"), -EROFS);
	assert_int_equal(zf_fs_rename(rig->fs, &rig->ctx, ROOT, "file", ROOT, "x", 0, NULL),
			 -EROFS);
	assert_int_equal(zf_fs_setattr(rig->fs, &rig->ctx, file, &set, &attr), -EROFS);
	assert_int_equal(zf_fs_setxattr(rig->fs, &rig->ctx, file, "user.a", "", 0, 0), -EROFS);
	assert_int_equal(zf_fs_removexattr(rig->fs, &rig->ctx, file, "user.a"), -EROFS);
	assert_int_equal(lookup(rig, ROOT, "file"), 0);
	rig->fs->read_only = false;
}

static void a_call_that_must_not_wait_gets_eagain_and_changes_nothing(void **state)
{
	struct names_rig *rig = *state;
	char name[16];
	int r = 0, made;

	/* Makes names until there is so much dirty metadata that a join is refused. */
	rig->ctx.may_wait = false;
	for (made = 0; made < 100000; made++) {
		snprintf(name, sizeof(name), "%d", made);
		r = make(rig, ROOT, name, S_IFREG | 0644);
		if (r != 0)
			break;
	}
	assert_int_equal(r, -EAGAIN);
	assert_int_equal(rig_find(rig, ROOT, name), 0);
	assert_int_equal(rig_inode_count(rig), made + 1);
	rig->ctx.may_wait = true;
	assert_int_equal(make(rig, ROOT, name, S_IFREG | 0644), 0);
	assert_int_not_equal(rig_find(rig, ROOT, name), 0);
}

static void a_full_filesystem_still_removes_names(void **state)
{
	struct names_rig *rig = *state;
	struct names_rig_options options = {.node_size = 4096, .zone_count = 16};
	struct zf_statfs before, full;
	char name[256];
	int r = 0, made, left;

	names_rig_deinit(rig);
	names_rig_init(rig, &options);
	memset(name, 'x', 200);
	assert_int_equal(zf_fs_statfs(rig->fs, &before), 0);
	for (made = 0; r == 0 && made < 400000; made++) {
		snprintf(name + 200, sizeof(name) - 200, "%d", made);
		r = make(rig, ROOT, name, S_IFREG | 0644);
		if (r == 0)
			zf_fs_forget(rig->fs, rig_find(rig, ROOT, name), 1);
	}
	assert_int_equal(r, -ENOSPC);
	made--;
	assert_int_equal(zf_fs_statfs(rig->fs, &full), 0);
	assert_true(full.files_free < before.files_free);
	for (left = made; left > made / 2; left--) {
		snprintf(name + 200, sizeof(name) - 200, "%d", left - 1);
		assert_int_equal(unlink_name(rig, ROOT, name), 0);
	}
	assert_int_equal(rig_inode_count(rig), left + 1);
	for (int i = 0; i < left / 2; i++) {
		snprintf(name + 200, sizeof(name) - 200, "again %d", i);
		assert_int_equal(make(rig, ROOT, name, S_IFREG | 0644), 0);
	}
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, names_rig_setup, names_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_root_of_a_new_filesystem_is_an_empty_directory),
		TEST(each_type_of_file_comes_back_as_it_was_made),
		TEST(names_have_limits),
		TEST(what_is_not_there_gives_the_error_of_the_call),
		TEST(dots_lead_where_they_should),
		TEST(an_inode_is_found_by_its_number_while_it_has_a_name),
		TEST(a_setgid_directory_hands_its_group_down),
		TEST(directories_count_their_entries),
		TEST(a_removed_directory_takes_no_more_names),
		TEST(links_share_an_inode),
		TEST(a_file_has_no_more_than_65000_names),
		TEST(many_names_of_one_inode_are_each_found_and_removed),
		TEST(symbolic_links_hold_targets_of_every_length),
		TEST(a_read_only_mount_refuses_every_change),
		TEST(a_call_that_must_not_wait_gets_eagain_and_changes_nothing),
		TEST(a_full_filesystem_still_removes_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
