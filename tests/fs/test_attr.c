/* SPDX-License-Identifier: MIT */
/* Attributes: what setattr sets, and what changes with it. */
#include "fs/names_rig.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define ROOT ZF_INO_ROOT

static void assert_same_time(struct zf_time a, struct zf_time b)
{
	assert_int_equal(a.seconds, b.seconds);
	assert_int_equal(a.nanoseconds, b.nanoseconds);
}

static void assert_same_attr(const struct zf_attr *a, const struct zf_attr *b)
{
	assert_int_equal(a->ino, b->ino);
	assert_int_equal(a->generation, b->generation);
	assert_int_equal(a->size, b->size);
	assert_int_equal(a->blocks, b->blocks);
	assert_int_equal(a->rdev, b->rdev);
	assert_int_equal(a->mode, b->mode);
	assert_int_equal(a->nlink, b->nlink);
	assert_int_equal(a->uid, b->uid);
	assert_int_equal(a->gid, b->gid);
	assert_int_equal(a->flags, b->flags);
	assert_same_time(a->atime, b->atime);
	assert_same_time(a->mtime, b->mtime);
	assert_same_time(a->ctime, b->ctime);
	assert_same_time(a->btime, b->btime);
}

static int set_attr(struct names_rig *rig, uint64_t ino, struct zf_setattr set)
{
	struct zf_attr attr, found;
	int r = zf_fs_setattr(rig->fs, &rig->ctx, ino, &set, &attr);

	if (r == 0) {
		found = rig_attr(rig, ino);
		assert_same_attr(&attr, &found);
	}
	return r;
}

static uint32_t mode_after(struct names_rig *rig, uint64_t ino, uint32_t mode,
			   struct zf_setattr set)
{
	struct zf_setattr before = {.valid = ZF_SET_MODE, .mode = mode};

	assert_int_equal(set_attr(rig, ino, before), 0);
	assert_int_equal(set_attr(rig, ino, set), 0);
	return rig_attr(rig, ino).mode & 07777;
}

static void mode_owner_and_group_are_stored(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	struct zf_attr attr;

	rig->now_ns = 3000000007;
	assert_int_equal(
		set_attr(rig, file, (struct zf_setattr){.valid = ZF_SET_MODE, .mode = 0107751}), 0);
	assert_int_equal(set_attr(rig, file,
				  (struct zf_setattr){.valid = ZF_SET_UID | ZF_SET_GID,
						      .uid = 12,
						      .gid = UINT32_MAX - 1}),
			 0);
	names_rig_remount(rig);
	attr = rig_attr(rig, file);
	assert_int_equal(attr.mode, S_IFREG | 01751);
	assert_int_equal(attr.uid, 12);
	assert_int_equal(attr.gid, UINT32_MAX - 1);
	assert_int_equal(attr.ctime.seconds, 3);
	assert_int_equal(attr.ctime.nanoseconds, 7);
	assert_int_equal(attr.mtime.seconds, 2);
	assert_int_equal(attr.btime.seconds, 2);
}

static void times_of_every_century_survive(void **state)
{
	static const struct zf_time times[] = {{0, 0},
					       {-1, 999999999},
					       {-6857222400, 1},
					       {4102444800, 500},
					       {INT64_MAX, 999999999},
					       {INT64_MIN, 0}};
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);

	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		struct zf_setattr set = {.valid = ZF_SET_ATIME | ZF_SET_MTIME | ZF_SET_CTIME,
					 .atime = times[i],
					 .mtime = times[i],
					 .ctime = times[i]};
		struct zf_attr attr;

		assert_int_equal(set_attr(rig, file, set), 0);
		names_rig_remount(rig);
		attr = rig_attr(rig, file);
		assert_same_time(attr.atime, times[i]);
		assert_same_time(attr.mtime, times[i]);
		assert_same_time(attr.ctime, times[i]);
	}
	rig->now_ns = -1;
	assert_int_equal(set_attr(rig, file, (struct zf_setattr){.valid = ZF_SET_ATIME_NOW}), 0);
	assert_int_equal(rig_attr(rig, file).atime.seconds, -1);
	assert_int_equal(rig_attr(rig, file).atime.nanoseconds, 999999999);
	assert_int_equal(rig_attr(rig, file).ctime.seconds, -1);
	assert_int_equal(rig_attr(rig, file).mtime.seconds, INT64_MIN);
	assert_int_equal(set_attr(rig, file, (struct zf_setattr){.valid = ZF_SET_MTIME_NOW}), 0);
	assert_int_equal(rig_attr(rig, file).mtime.seconds, -1);
}

static void a_new_owner_gets_no_setuid_file(void **state)
{
	static const struct zf_setattr owner = {.valid = ZF_SET_UID, .uid = 5};
	static const struct zf_setattr kill = {.valid = ZF_SET_KILL_SUIDGID};
	static const struct zf_setattr times = {.valid = ZF_SET_MTIME_NOW};
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);
	struct zf_setattr both = owner;

	assert_int_equal(mode_after(rig, file, 06755, owner), 0755);
	assert_int_equal(mode_after(rig, file, 06745, owner), 02745);
	assert_int_equal(mode_after(rig, file, 06755, kill), 0755);
	assert_int_equal(mode_after(rig, file, 02645, kill), 02645);
	rig->ctx.uid = 7;
	rig->ctx.gid = 8;
	assert_int_equal(mode_after(rig, file, 02645, kill), 0645);
	rig->ctx.gid = 0;
	assert_int_equal(mode_after(rig, file, 02645, kill), 02645);
	rig->ctx.uid = 0;
	assert_int_equal(mode_after(rig, file, 06755, times), 06755);
	assert_int_equal(mode_after(rig, dir, 06755, owner), 06755);
	assert_int_equal(mode_after(rig, dir, 06755, kill), 06755);
	both.valid |= ZF_SET_MODE;
	both.mode = 04711;
	assert_int_equal(mode_after(rig, file, 0644, both), 04711);
}

/* What chown(-1, -1) does for which caller. */
static void setuid_is_dropped_for_the_owner_and_root_only(void **state)
{
	static const struct zf_setattr same = {.valid = ZF_SET_SAME_OWNER};
	static const struct zf_setattr owner = {
		.valid = ZF_SET_UID | ZF_SET_GID, .uid = 7, .gid = 8};
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);

	assert_int_equal(set_attr(rig, file, owner), 0);
	assert_int_equal(mode_after(rig, file, 06777, same), 0777);
	rig->ctx.uid = 7;
	assert_int_equal(mode_after(rig, file, 06777, same), 0777);
	assert_int_equal(
		set_attr(rig, file, (struct zf_setattr){.valid = ZF_SET_MODE, .mode = 06777}), 0);
	rig->ctx.uid = 9;
	rig->ctx.gid = 8;
	rig->now_ns = 9000000000;
	assert_int_equal(set_attr(rig, file, same), -EPERM);
	assert_int_equal(rig_attr(rig, file).mode, S_IFREG | 06777);
	assert_int_not_equal(rig_attr(rig, file).ctime.seconds, 9);
	/* As on Linux' filesystems, any user may do this if nothing is lost. */
	assert_int_equal(mode_after(rig, file, 0777, same), 0777);
	assert_int_equal(mode_after(rig, file, 02767, same), 02767);
	rig->ctx.uid = 0;
	assert_int_equal(
		set_attr(rig, file, (struct zf_setattr){.valid = ZF_SET_MODE, .mode = 02767}), 0);
	rig->ctx.uid = rig->ctx.gid = 9;
	assert_int_equal(set_attr(rig, file, same), -EPERM);
	rig->ctx.uid = rig->ctx.gid = 0;
}

static void nonsense_is_refused(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	uint64_t fifo = rig_make(rig, ROOT, "fifo", S_IFIFO | 0644);
	struct zf_attr before = rig_attr(rig, file), after;

	rig->now_ns = 9000000000;
	assert_int_equal(
		set_attr(rig, ROOT, (struct zf_setattr){.valid = ZF_SET_SIZE | ZF_SET_MODE}),
		-EISDIR);
	assert_int_equal(set_attr(rig, fifo, (struct zf_setattr){.valid = ZF_SET_SIZE}), -EINVAL);
	assert_int_equal(set_attr(rig, file,
				  (struct zf_setattr){.valid = ZF_SET_SIZE | ZF_SET_MODE,
						      .size = UINT64_C(1) << 63}),
			 -EFBIG);
	assert_int_equal(
		set_attr(rig, file,
			 (struct zf_setattr){.valid = ZF_SET_ATIME, .atime = {0, 1000000000}}),
		-EINVAL);
	assert_int_equal(
		set_attr(rig, file, (struct zf_setattr){.valid = ZF_SET_UID, .uid = UINT32_MAX}),
		-EINVAL);
	assert_int_equal(
		set_attr(rig, file, (struct zf_setattr){.valid = ZF_SET_GID, .gid = UINT32_MAX}),
		-EINVAL);
	rig->ctx.uid = UINT32_MAX;
	assert_int_equal(zf_fs_make(rig->fs, &rig->ctx, ROOT, "new", S_IFREG, 0, NULL, &after),
			 -EOVERFLOW);
	rig->ctx.uid = 0;
	assert_int_equal(set_attr(rig, 9999, (struct zf_setattr){.valid = ZF_SET_MODE}), -ESTALE);
	assert_int_equal(set_attr(rig, file, (struct zf_setattr){.valid = 0}), 0);
	after = rig_attr(rig, file);
	assert_same_attr(&before, &after);
	assert_int_equal(rig_attr(rig, ROOT).mode, S_IFDIR | 0755);
}

static void a_new_size_brings_new_times_and_takes_privileges(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	struct zf_setattr set = {.valid = ZF_SET_SIZE | ZF_SET_KILL_SUIDGID, .size = 100000};

	rig->now_ns = 8000000000;
	assert_int_equal(
		zf_fs_setxattr(rig->fs, &rig->ctx, file, "security.capability", "cap", 3, 0), 0);
	assert_int_equal(mode_after(rig, file, 06755, set), 0755);
	assert_int_equal(rig_attr(rig, file).size, 100000);
	assert_int_equal(rig_attr(rig, file).mtime.seconds, 8);
	assert_int_equal(rig_attr(rig, file).ctime.seconds, 8);
	assert_int_equal(zf_fs_getxattr(rig->fs, &rig->ctx, file, "security.capability", NULL, 0),
			 -ENODATA);
	set = (struct zf_setattr){.valid = ZF_SET_SIZE | ZF_SET_MTIME | ZF_SET_MODE | ZF_SET_UID,
				  .size = 5,
				  .mode = 0600,
				  .uid = 3,
				  .mtime = {77, 0}};
	assert_int_equal(set_attr(rig, file, set), 0);
	assert_int_equal(rig_attr(rig, file).size, 5);
	assert_int_equal(rig_attr(rig, file).mode, S_IFREG | 0600);
	assert_int_equal(rig_attr(rig, file).uid, 3);
	assert_int_equal(rig_attr(rig, file).mtime.seconds, 77);
	assert_int_equal(rig_attr(rig, file).ctime.seconds, 8);
}

static void statfs_counts_files(void **state)
{
	struct names_rig *rig = *state;
	struct zf_statfs before, after;

	assert_int_equal(zf_fs_statfs(rig->fs, &before), 0);
	assert_int_equal(before.block_size, 4096);
	assert_int_equal(before.name_max, 255);
	assert_int_equal(before.fsid, 1);
	assert_true(before.blocks_free <= before.blocks);
	assert_true(before.blocks_free > before.blocks / 2);
	assert_int_equal(before.files - before.files_free, 1);
	rig_make(rig, ROOT, "file", S_IFREG | 0644);
	assert_int_equal(zf_fs_statfs(rig->fs, &after), 0);
	assert_int_equal(after.files - after.files_free, 2);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, names_rig_setup, names_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(mode_owner_and_group_are_stored),
		TEST(times_of_every_century_survive),
		TEST(a_new_owner_gets_no_setuid_file),
		TEST(setuid_is_dropped_for_the_owner_and_root_only),
		TEST(nonsense_is_refused),
		TEST(a_new_size_brings_new_times_and_takes_privileges),
		TEST(statfs_counts_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
