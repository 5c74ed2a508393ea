/* SPDX-License-Identifier: MIT */
/* The flags that chattr sets: what they forbid, what is inherited, and what is durable at once. */
#include "fs/names_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ROOT	  ZF_INO_ROOT
#define PROTECTED (ZF_INODE_IMMUTABLE | ZF_INODE_APPEND)

/* ---- short forms ---- */

static int try_flags(struct names_rig *rig, uint64_t ino, uint32_t flags)
{
	struct zf_set_flags set = {.mask = UINT32_MAX, .flags = flags};

	return zf_fs_set_flags(rig->fs, &rig->ctx, ino, &set);
}

static void set_flags(struct names_rig *rig, uint64_t ino, uint32_t flags)
{
	assert_int_equal(try_flags(rig, ino, flags), 0);
}

static void set_project(struct names_rig *rig, uint64_t ino, uint32_t project)
{
	struct zf_set_flags set = {.set_project = true, .project = project};

	assert_int_equal(zf_fs_set_flags(rig->fs, &rig->ctx, ino, &set), 0);
}

static ssize_t put(struct names_rig *rig, uint64_t ino, uint64_t offset, const char *text,
		   unsigned int flags)
{
	return zf_fs_write(rig->fs, &rig->ctx, ino, offset, text, strlen(text), flags);
}

static int setattr(struct names_rig *rig, uint64_t ino, unsigned int valid)
{
	struct zf_setattr set = {.valid = valid, .mode = 0600, .size = 2};
	struct zf_attr attr;

	return zf_fs_setattr(rig->fs, &rig->ctx, ino, &set, &attr);
}

static int make(struct names_rig *rig, uint64_t dir, const char *name)
{
	struct zf_attr attr;
	int r = zf_fs_make(rig->fs, &rig->ctx, dir, name, S_IFREG | 0644, 0, NULL, &attr);

	if (r == 0)
		zf_fs_forget(rig->fs, attr.ino, 1);
	return r;
}

static int link_to(struct names_rig *rig, uint64_t ino, uint64_t dir, const char *name)
{
	struct zf_attr attr;
	int r = zf_fs_link(rig->fs, &rig->ctx, ino, dir, name, &attr);

	if (r == 0)
		zf_fs_forget(rig->fs, ino, 1);
	return r;
}

static int move(struct names_rig *rig, uint64_t from, const char *name, uint64_t to,
		const char *new_name, unsigned int flags)
{
	return zf_fs_rename(rig->fs, &rig->ctx, from, name, to, new_name, flags, NULL);
}

static int set_xattr(struct names_rig *rig, uint64_t ino)
{
	return zf_fs_setxattr(rig->fs, &rig->ctx, ino, "user.a", "1", 1, 0);
}

static int remove_xattr(struct names_rig *rig, uint64_t ino)
{
	return zf_fs_removexattr(rig->fs, &rig->ctx, ino, "user.a");
}

static int open_file(struct names_rig *rig, uint64_t ino, int flags)
{
	struct zf_attr attr;

	return zf_fs_open(rig->fs, &rig->ctx, ino, flags, &attr);
}

/* ---- setting them ---- */

static void flags_are_stored(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);
	uint64_t fifo = rig_make(rig, ROOT, "fifo", S_IFIFO | 0644);
	struct zf_set_flags set = {.mask = ZF_INODE_APPEND | ZF_INODE_NODUMP,
				   .flags = ZF_INODE_NODUMP};

	rig->now_ns = 7000000000;
	/* Flags that a type of file cannot have are dropped, as on ext4. */
	set_flags(rig, file, ZF_INODE_FLAGS_DIR & ~ZF_INODE_IMMUTABLE);
	set_flags(rig, dir, ZF_INODE_FLAGS_DIR);
	set_flags(rig, fifo, ZF_INODE_FLAGS_DIR);
	assert_int_equal(rig_attr(rig, file).ctime.seconds, 7);
	names_rig_remount(rig);
	assert_int_equal(rig_attr(rig, file).flags, ZF_INODE_FLAGS_FILE & ~ZF_INODE_IMMUTABLE);
	assert_int_equal(rig_attr(rig, dir).flags, ZF_INODE_FLAGS_DIR);
	assert_int_equal(rig_attr(rig, fifo).flags, ZF_INODE_FLAGS_OTHER);
	/* Bits that are not in the mask stay. */
	assert_int_equal(zf_fs_set_flags(rig->fs, &rig->ctx, file, &set), 0);
	assert_int_equal(rig_attr(rig, file).flags,
			 ZF_INODE_SYNC | ZF_INODE_NOATIME | ZF_INODE_NODUMP);
}

static void unknown_flags_are_refused(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	struct zf_set_flags set = {.set_project = true, .project = UINT32_MAX};

	assert_int_equal(try_flags(rig, file, 0x1), -EOPNOTSUPP);
	assert_int_equal(try_flags(rig, file, 0x800000 | ZF_INODE_NODUMP), -EOPNOTSUPP);
	assert_int_equal(rig_attr(rig, file).flags, 0);
	assert_int_equal(zf_fs_set_flags(rig->fs, &rig->ctx, file, &set), -EINVAL);
	assert_int_equal(try_flags(rig, 9999, 0), -ESTALE);
}

static void an_immutable_file_keeps_its_other_flags(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	struct zf_set_flags set = {.set_project = true, .project = 5};

	set_flags(rig, file, ZF_INODE_IMMUTABLE | ZF_INODE_NODUMP);
	assert_int_equal(try_flags(rig, file, ZF_INODE_IMMUTABLE), -EPERM);
	assert_int_equal(zf_fs_set_flags(rig->fs, &rig->ctx, file, &set), -EPERM);
	assert_int_equal(try_flags(rig, file, ZF_INODE_IMMUTABLE | ZF_INODE_NODUMP), 0);
	assert_int_equal(try_flags(rig, file, ZF_INODE_APPEND), 0);
	assert_int_equal(rig_attr(rig, file).flags, ZF_INODE_APPEND);
}

/* ---- what they forbid ---- */

static void nothing_changes_an_immutable_file(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	char buf[8];

	assert_int_equal(put(rig, file, 0, "12345", 0), 5);
	assert_int_equal(set_xattr(rig, file), 0);
	set_flags(rig, file, ZF_INODE_IMMUTABLE);
	assert_int_equal(put(rig, file, 0, "a", 0), -EPERM);
	assert_int_equal(put(rig, file, 5, "a", 0), -EPERM);
	assert_int_equal(put(rig, file, 0, "a", ZF_WRITE_APPEND), -EPERM);
	assert_int_equal(setattr(rig, file, ZF_SET_SIZE), -EPERM);
	assert_int_equal(setattr(rig, file, ZF_SET_MODE), -EPERM);
	assert_int_equal(setattr(rig, file, ZF_SET_UID), -EPERM);
	assert_int_equal(setattr(rig, file, ZF_SET_MTIME), -EPERM);
	assert_int_equal(setattr(rig, file, ZF_SET_ATIME_NOW | ZF_SET_MTIME_NOW), -EPERM);
	assert_int_equal(set_xattr(rig, file), -EPERM);
	assert_int_equal(remove_xattr(rig, file), -EPERM);
	assert_int_equal(link_to(rig, file, ROOT, "second"), -EPERM);
	assert_int_equal(move(rig, ROOT, "file", ROOT, "other", 0), -EPERM);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ROOT, "file"), -EPERM);
	assert_int_equal(open_file(rig, file, O_RDWR), -EPERM);
	assert_int_equal(open_file(rig, file, O_WRONLY | O_APPEND), -EPERM);
	assert_int_equal(open_file(rig, file, O_RDONLY | O_TRUNC), -EPERM);
	assert_int_equal(open_file(rig, file, O_RDONLY), 0);
	assert_int_equal(zf_fs_read(rig->fs, &rig->ctx, file, 0, buf, sizeof(buf)), 5);
	assert_memory_equal(buf, "12345", 5);
	/* The kernel may still write data that it cached before the flag was set, but a mapping is
	 * no way around the flag. */
	assert_int_equal(put(rig, file, 0, "abc", ZF_WRITE_PAGE), -EPERM);
	assert_int_equal(put(rig, file, 0, "abc", ZF_WRITE_PAGE | ZF_WRITE_CACHE), 3);
	set_flags(rig, file, 0);
	assert_int_equal(put(rig, file, 0, "a", 0), 1);
}

static void an_append_only_file_grows_at_its_end(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	char buf[16];

	assert_int_equal(put(rig, file, 0, "12345", 0), 5);
	assert_int_equal(set_xattr(rig, file), 0);
	set_flags(rig, file, ZF_INODE_APPEND);
	assert_int_equal(put(rig, file, 4, "a", 0), -EPERM);
	assert_int_equal(put(rig, file, 4, "a", ZF_WRITE_PAGE), -EPERM);
	assert_int_equal(put(rig, file, 5, "6", 0), 1);
	assert_int_equal(put(rig, file, 0, "7", ZF_WRITE_APPEND), 1);
	assert_int_equal(setattr(rig, file, ZF_SET_SIZE), -EPERM);
	assert_int_equal(setattr(rig, file, ZF_SET_MODE), -EPERM);
	assert_int_equal(setattr(rig, file, ZF_SET_MTIME_NOW), -EPERM);
	assert_int_equal(setattr(rig, file, ZF_SET_ATIME_NOW | ZF_SET_MTIME_NOW), 0);
	assert_int_equal(set_xattr(rig, file), -EPERM);
	assert_int_equal(remove_xattr(rig, file), -EPERM);
	assert_int_equal(link_to(rig, file, ROOT, "second"), -EPERM);
	assert_int_equal(move(rig, ROOT, "file", ROOT, "other", 0), -EPERM);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ROOT, "file"), -EPERM);
	assert_int_equal(open_file(rig, file, O_WRONLY), -EPERM);
	assert_int_equal(open_file(rig, file, O_WRONLY | O_APPEND | O_TRUNC), -EPERM);
	assert_int_equal(open_file(rig, file, O_RDWR | O_APPEND), 0);
	assert_int_equal(zf_fs_read(rig->fs, &rig->ctx, file, 0, buf, sizeof(buf)), 7);
	assert_memory_equal(buf, "1234567", 7);
}

/* A kernel that keeps the times of writes hands them over later, and says when "now" was. */
static void times_that_the_kernel_kept_are_taken(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	const unsigned int kept = ZF_SET_MTIME | ZF_SET_CTIME;
	struct zf_setattr set = {.valid = kept, .mtime = {8, 0}, .ctime = {9, 0}};
	struct zf_attr attr;

	rig->now_ns = 10000000000;
	set_flags(rig, file, ZF_INODE_IMMUTABLE);
	assert_int_equal(zf_fs_setattr(rig->fs, &rig->ctx, file, &set, &attr), 0);
	set.mtime = set.ctime = (struct zf_time){11, 0};
	assert_int_equal(zf_fs_setattr(rig->fs, &rig->ctx, file, &set, &attr), -EPERM);
	set_flags(rig, file, ZF_INODE_APPEND);
	assert_int_equal(zf_fs_setattr(rig->fs, &rig->ctx, file, &set, &attr), 0);
	set.valid = kept | ZF_SET_ATIME_NOW;
	assert_int_equal(zf_fs_setattr(rig->fs, &rig->ctx, file, &set, &attr), 0);
	set.valid = kept | ZF_SET_ATIME;
	assert_int_equal(zf_fs_setattr(rig->fs, &rig->ctx, file, &set, &attr), -EPERM);
	set.valid = kept;
	set.ctime.seconds = 12;
	assert_int_equal(zf_fs_setattr(rig->fs, &rig->ctx, file, &set, &attr), -EPERM);
}

/* A write removes a capability, even if no user may remove it otherwise. A write that fails removes
 * none. */
static void capabilities_go_with_the_writes_that_are_let_through(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);

	assert_int_equal(zf_fs_setxattr(rig->fs, &rig->ctx, file, "security.capability", "1", 1, 0),
			 0);
	set_flags(rig, file, ZF_INODE_IMMUTABLE);
	assert_int_equal(put(rig, file, 0, "a", 0), -EPERM);
	assert_int_equal(setattr(rig, file, ZF_SET_SIZE), -EPERM);
	assert_int_equal(zf_fs_getxattr(rig->fs, &rig->ctx, file, "security.capability", NULL, 0),
			 1);
	set_flags(rig, file, ZF_INODE_APPEND);
	assert_int_equal(put(rig, file, 0, "a", 0), 1);
	assert_int_equal(zf_fs_getxattr(rig->fs, &rig->ctx, file, "security.capability", NULL, 0),
			 -ENODATA);
}

static void protected_directories_keep_their_names(void **state)
{
	struct names_rig *rig = *state;
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	struct zf_attr attr;

	for (uint32_t flag = ZF_INODE_IMMUTABLE; flag <= ZF_INODE_APPEND; flag <<= 1) {
		int expected = flag == ZF_INODE_IMMUTABLE ? -EPERM : 0;

		set_flags(rig, dir, 0);
		rig_make(rig, dir, "in", S_IFREG | 0644);
		rig_make(rig, dir, "sub", S_IFDIR | 0755);
		set_flags(rig, dir, flag);
		assert_int_equal(make(rig, dir, "in"), -EEXIST);
		assert_int_equal(make(rig, dir, "new"), expected);
		assert_int_equal(link_to(rig, file, dir, "link"), expected);
		assert_int_equal(zf_fs_tmpfile(rig->fs, &rig->ctx, dir, S_IFREG | 0600, &attr),
				 expected);
		assert_int_equal(move(rig, ROOT, "file", dir, "moved", 0), expected);
		assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, dir, "in"), -EPERM);
		assert_int_equal(zf_fs_rmdir(rig->fs, &rig->ctx, dir, "sub"), -EPERM);
		assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, dir, "none"), -ENOENT);
		assert_int_equal(move(rig, dir, "in", dir, "other", 0), -EPERM);
		assert_int_equal(move(rig, dir, "in", ROOT, "out", 0), -EPERM);
		assert_int_equal(move(rig, dir, "in", ROOT, "out", RENAME_WHITEOUT), -EPERM);
		rig_make(rig, ROOT, "second", S_IFREG | 0644);
		assert_int_equal(move(rig, ROOT, "second", dir, "in", 0), -EPERM);
		assert_int_equal(move(rig, ROOT, "second", dir, "in", RENAME_EXCHANGE), -EPERM);
		assert_int_equal(move(rig, dir, "in", ROOT, "second", RENAME_EXCHANGE), -EPERM);
		assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ROOT, "second"), 0);
		assert_int_equal(zf_fs_rmdir(rig->fs, &rig->ctx, ROOT, "dir"), -EPERM);
		set_flags(rig, dir, 0);
		assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, dir, "in"), 0);
		assert_int_equal(zf_fs_rmdir(rig->fs, &rig->ctx, dir, "sub"), 0);
	}
}

static void two_names_of_a_protected_file_are_no_rename(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "a", S_IFREG | 0644);

	assert_int_equal(link_to(rig, file, ROOT, "b"), 0);
	set_flags(rig, file, ZF_INODE_IMMUTABLE);
	assert_int_equal(move(rig, ROOT, "a", ROOT, "b", 0), 0);
	assert_int_equal(rig_attr(rig, file).nlink, 2);
}

/* ---- inheritance ---- */

static void new_inodes_inherit(void **state)
{
	struct names_rig *rig = *state;
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);
	uint32_t handed_down = ZF_INODE_FLAGS_DIR & ~PROTECTED;
	uint64_t file, sub, fifo;

	set_project(rig, dir, 77);
	set_flags(rig, dir, ZF_INODE_FLAGS_DIR & ~ZF_INODE_IMMUTABLE);
	file = rig_make(rig, dir, "file", S_IFREG | 0644);
	sub = rig_make(rig, dir, "sub", S_IFDIR | 0755);
	fifo = rig_make(rig, dir, "fifo", S_IFIFO | 0644);
	names_rig_remount(rig);
	assert_int_equal(rig_attr(rig, file).flags, handed_down & ZF_INODE_FLAGS_FILE);
	assert_int_equal(rig_attr(rig, sub).flags, handed_down);
	assert_int_equal(rig_attr(rig, fifo).flags, ZF_INODE_FLAGS_OTHER);
	assert_int_equal(rig_attr(rig, file).project, 77);
	assert_int_equal(rig_attr(rig, sub).project, 77);
	assert_int_equal(rig_attr(rig, fifo).project, 77);
	set_flags(rig, dir, 0);
	assert_int_equal(rig_attr(rig, rig_make(rig, dir, "x", S_IFREG | 0644)).project, 0);
}

static void projects_are_not_mixed(void **state)
{
	struct names_rig *rig = *state;
	uint64_t a = rig_make(rig, ROOT, "a", S_IFDIR | 0755);
	uint64_t b = rig_make(rig, ROOT, "b", S_IFDIR | 0755);
	uint64_t file;

	set_project(rig, a, 1);
	set_flags(rig, a, ZF_INODE_PROJINHERIT);
	set_project(rig, b, 2);
	file = rig_make(rig, a, "file", S_IFREG | 0644);
	/* A directory that hands down no project takes any file. */
	assert_int_equal(link_to(rig, file, b, "link"), 0);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, b, "link"), 0);
	set_flags(rig, b, ZF_INODE_PROJINHERIT);
	rig_make(rig, b, "other", S_IFREG | 0644);
	assert_int_equal(link_to(rig, file, b, "link"), -EXDEV);
	assert_int_equal(move(rig, a, "file", b, "file", 0), -EXDEV);
	assert_int_equal(move(rig, a, "file", b, "other", RENAME_EXCHANGE), -EXDEV);
	set_project(rig, file, 2);
	assert_int_equal(move(rig, a, "file", b, "other", RENAME_EXCHANGE), -EXDEV);
	assert_int_equal(move(rig, a, "file", b, "file", 0), 0);
}

/* ---- sync ---- */

static void changes_of_sync_inodes_survive_a_crash(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);
	char buf[8];

	set_flags(rig, file, ZF_INODE_SYNC);
	set_flags(rig, dir, ZF_INODE_DIRSYNC);
	assert_int_equal(put(rig, file, 0, "12345", 0), 5);
	names_rig_crash(rig);
	assert_int_equal(zf_fs_read(rig->fs, &rig->ctx, file, 0, buf, sizeof(buf)), 5);
	assert_int_equal(setattr(rig, file, ZF_SET_SIZE), 0);
	names_rig_crash(rig);
	assert_int_equal(rig_attr(rig, file).size, 2);
	assert_int_equal(set_xattr(rig, file), 0);
	names_rig_crash(rig);
	assert_int_equal(zf_fs_getxattr(rig->fs, &rig->ctx, file, "user.a", NULL, 0), 1);
	assert_int_equal(make(rig, dir, "a"), 0);
	names_rig_crash(rig);
	assert_int_equal(move(rig, dir, "a", ROOT, "b", 0), 0);
	names_rig_crash(rig);
	assert_int_not_equal(rig_find(rig, ROOT, "b"), 0);
	assert_int_equal(move(rig, ROOT, "b", dir, "c", 0), 0);
	names_rig_crash(rig);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, dir, "c"), 0);
	names_rig_crash(rig);
	assert_int_equal(rig_find(rig, dir, "c"), 0);
	/* A name in a directory without the flag is not durable. */
	assert_int_equal(make(rig, ROOT, "lost"), 0);
	names_rig_crash(rig);
	assert_int_equal(rig_find(rig, ROOT, "lost"), 0);
}

static void sync_inodes_wait_where_waiting_is_allowed(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);

	set_flags(rig, file, ZF_INODE_SYNC);
	set_flags(rig, dir, ZF_INODE_DIRSYNC);
	rig->ctx.may_wait = false;
	assert_int_equal(put(rig, file, 0, "1", 0), -EAGAIN);
	assert_int_equal(setattr(rig, file, ZF_SET_SIZE), -EAGAIN);
	assert_int_equal(setattr(rig, file, ZF_SET_MODE), -EAGAIN);
	assert_int_equal(make(rig, dir, "a"), -EAGAIN);
	assert_int_equal(rig_attr(rig, file).size, 0);
	assert_int_equal(rig_find(rig, dir, "a"), 0);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, names_rig_setup, names_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(flags_are_stored),
		TEST(unknown_flags_are_refused),
		TEST(an_immutable_file_keeps_its_other_flags),
		TEST(nothing_changes_an_immutable_file),
		TEST(an_append_only_file_grows_at_its_end),
		TEST(times_that_the_kernel_kept_are_taken),
		TEST(capabilities_go_with_the_writes_that_are_let_through),
		TEST(protected_directories_keep_their_names),
		TEST(two_names_of_a_protected_file_are_no_rename),
		TEST(new_inodes_inherit),
		TEST(projects_are_not_mixed),
		TEST(changes_of_sync_inodes_survive_a_crash),
		TEST(sync_inodes_wait_where_waiting_is_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
