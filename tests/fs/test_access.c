/* SPDX-License-Identifier: MIT */
/* Access times: which reads change them, and when they are stored. */
#include "fs/names_rig.h"

#include <string.h>
#include <sys/stat.h>

#define ROOT   ZF_INO_ROOT
#define SECOND INT64_C(1000000000)
#define DAY    (86400 * SECOND)

static void look_at(struct names_rig *rig, uint64_t ino)
{
	struct zf_dirent entries[4];
	struct zf_attr attr = rig_attr(rig, ino);
	char buf[100];

	if (S_ISDIR(attr.mode))
		assert_true(zf_fs_readdir(rig->fs, &rig->ctx, ino, 0, entries, 4) >= 0);
	else if (S_ISLNK(attr.mode))
		assert_true(zf_fs_readlink(rig->fs, &rig->ctx, ino, buf, sizeof(buf)) >= 0);
	else
		assert_true(zf_fs_read(rig->fs, &rig->ctx, ino, 0, buf, sizeof(buf)) >= 0);
}

/* The access time in seconds after a look at second `at`. */
static int64_t atime_after(struct names_rig *rig, uint64_t ino, int64_t at)
{
	rig->now_ns = at * SECOND;
	look_at(rig, ino);
	return rig_attr(rig, ino).atime.seconds;
}

static void change(struct names_rig *rig, uint64_t ino, int64_t at, unsigned int valid)
{
	struct zf_setattr set = {.valid = valid, .mode = 0700};
	struct zf_attr attr;

	rig->now_ns = at * SECOND;
	assert_int_equal(zf_fs_setattr(rig->fs, &rig->ctx, ino, &set, &attr), 0);
}

static void set_flags(struct names_rig *rig, uint64_t ino, uint32_t flags)
{
	struct zf_set_flags set = {.mask = UINT32_MAX, .flags = flags};

	assert_int_equal(zf_fs_set_flags(rig->fs, &rig->ctx, ino, &set), 0);
}

static void mount_with(struct names_rig *rig, enum zf_atime atime, bool no_dir_atime, bool lazy)
{
	rig->mount.atime = atime;
	rig->mount.no_dir_atime = no_dir_atime;
	rig->mount.lazy_time = lazy;
	names_rig_remount(rig);
}

static void the_first_read_after_a_change_counts(void **state)
{
	static const mode_t types[] = {S_IFREG | 0644, S_IFDIR | 0755, S_IFLNK | 0777};
	struct names_rig *rig = *state;

	for (unsigned int i = 0; i < 3; i++) {
		char name[] = {(char)('a' + i), '\0'};
		uint64_t ino;
		struct zf_attr before;

		rig->now_ns = 2 * SECOND;
		ino = rig_make(rig, ROOT, name, types[i]);
		before = rig_attr(rig, ino);
		assert_int_equal(atime_after(rig, ino, 10), 10);
		assert_int_equal(rig_attr(rig, ino).ctime.seconds, before.ctime.seconds);
		assert_int_equal(rig_attr(rig, ino).mtime.seconds, before.mtime.seconds);
		assert_int_equal(atime_after(rig, ino, 11), 10);
		change(rig, ino, 12, ZF_SET_MTIME_NOW);
		assert_int_equal(atime_after(rig, ino, 13), 13);
		assert_int_equal(atime_after(rig, ino, 14), 13);
		change(rig, ino, 15, ZF_SET_MODE);
		/* The same holds in the second of the change itself. */
		assert_int_equal(atime_after(rig, ino, 15), 15);
		assert_int_equal(atime_after(rig, ino, 16), 16);
		assert_int_equal(atime_after(rig, ino, 17), 16);
	}
}

static void a_day_later_a_read_counts_again(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);

	assert_int_equal(atime_after(rig, file, 10), 10);
	assert_int_equal(atime_after(rig, file, 10 + 86399), 10);
	assert_int_equal(atime_after(rig, file, 10 + 86400), 86410);
}

static void no_atime_and_the_inode_flag_keep_the_access_time(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	struct zf_attr before = rig_attr(rig, file);

	rig->ctx.no_atime = true;
	assert_int_equal(atime_after(rig, file, 10), before.atime.seconds);
	rig->ctx.no_atime = false;
	set_flags(rig, file, ZF_INODE_NOATIME);
	assert_int_equal(atime_after(rig, file, 11), before.atime.seconds);
	set_flags(rig, file, ZF_INODE_IMMUTABLE);
	assert_int_equal(atime_after(rig, file, 12), 12);
}

static void mount_options_are_obeyed(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);

	mount_with(rig, ZF_ATIME_STRICT, true, false);
	assert_int_equal(atime_after(rig, file, 10), 10);
	assert_int_equal(atime_after(rig, file, 11), 11);
	assert_int_equal(atime_after(rig, dir, 11), 2);
	mount_with(rig, ZF_ATIME_NEVER, false, false);
	change(rig, file, 12, ZF_SET_MODE);
	assert_int_equal(atime_after(rig, file, 13), 11);
	assert_int_equal(atime_after(rig, dir, 13), 2);
	mount_with(rig, ZF_ATIME_RELATIVE, false, false);
	assert_int_equal(atime_after(rig, dir, 14), 14);
}

/* A flush stores access times, but they alone do not trigger one; any other store of the inode
 * stores them, too. */
static void access_times_are_stored(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);

	assert_int_equal(zf_fs_step(rig->fs), 0);
	assert_int_equal(atime_after(rig, file, 10), 10);
	assert_int_equal(atime_after(rig, dir, 11), 11);
	names_rig_crash(rig);
	assert_int_equal(rig_attr(rig, file).atime.seconds, 2);
	assert_int_equal(atime_after(rig, file, 12), 12);
	assert_int_equal(atime_after(rig, dir, 13), 13);
	assert_int_equal(zf_fs_step(rig->fs), 0);
	names_rig_crash(rig);
	assert_int_equal(rig_attr(rig, file).atime.seconds, 12);
	assert_int_equal(rig_attr(rig, dir).atime.seconds, 13);
	assert_false(zf_txn_is_dirty(zf_fs_txn(rig->fs)));
	look_at(rig, file);
	assert_int_equal(zf_fs_step(rig->fs), 0);
	assert_false(zf_txn_is_dirty(zf_fs_txn(rig->fs)));
}

/* Otherwise such inodes would stay in memory, and would never be deleted. */
static void an_inode_leaves_the_list_of_dirty_ones(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make_forgotten(rig, ROOT, "file", S_IFREG | 0644);

	assert_int_equal(atime_after(rig, file, 10), 10);
	change(rig, file, 11, ZF_SET_MODE);
	assert_int_equal(zf_fs_step(rig->fs), 0);
	assert_true(TAILQ_EMPTY(&rig->fs->dirty));
	look_at(rig, file);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ROOT, "file"), 0);
	assert_false(rig_inode_exists(rig, file));
	assert_true(TAILQ_EMPTY(&rig->fs->dirty));
}

static void lazy_times_wait_for_a_day_or_something_else(void **state)
{
	struct names_rig *rig = *state;
	uint64_t a = rig_make(rig, ROOT, "a", S_IFREG | 0644);
	uint64_t b = rig_make(rig, ROOT, "b", S_IFREG | 0644);
	uint64_t c = rig_make(rig, ROOT, "c", S_IFREG | 0644);

	mount_with(rig, ZF_ATIME_RELATIVE, false, true);
	for (int round = 0; round < 2; round++) {
		int64_t at = 10 + round;

		assert_int_equal(atime_after(rig, a, at), at);
		assert_int_equal(zf_fs_step(rig->fs), 0);
		assert_int_equal(rig->fs->lazy_count, 1);
		names_rig_crash(rig);
		assert_int_equal(rig_attr(rig, a).atime.seconds, 2);
	}
	atime_after(rig, a, 20);
	atime_after(rig, b, 20);
	atime_after(rig, c, 20);
	change(rig, a, 21, ZF_SET_MODE);
	assert_int_equal(zf_fs_fsync(rig->fs, &rig->ctx, b, false), 0);
	assert_int_equal(zf_fs_step(rig->fs), 0);
	assert_int_equal(rig->fs->lazy_count, 1);
	names_rig_crash(rig);
	assert_int_equal(rig_attr(rig, a).atime.seconds, 20);
	assert_int_equal(rig_attr(rig, b).atime.seconds, 20);
	assert_int_equal(rig_attr(rig, c).atime.seconds, 2);
	atime_after(rig, c, 30);
	rig->now_ns += DAY;
	assert_int_equal(zf_fs_step(rig->fs), 0);
	names_rig_crash(rig);
	assert_int_equal(rig_attr(rig, c).atime.seconds, 30);
	change(rig, c, 200000, ZF_SET_MODE);
	atime_after(rig, c, 200001);
	names_rig_remount(rig);
	assert_int_equal(rig_attr(rig, c).atime.seconds, 200001);
}

static void a_read_only_mount_moves_nothing(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);

	rig->mount.read_only = true;
	names_rig_remount(rig);
	assert_int_equal(atime_after(rig, file, 10), 2);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, names_rig_setup, names_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_read_after_a_change_counts),
		TEST(a_day_later_a_read_counts_again),
		TEST(no_atime_and_the_inode_flag_keep_the_access_time),
		TEST(mount_options_are_obeyed),
		TEST(access_times_are_stored),
		TEST(an_inode_leaves_the_list_of_dirty_ones),
		TEST(lazy_times_wait_for_a_day_or_something_else),
		TEST(a_read_only_mount_moves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
