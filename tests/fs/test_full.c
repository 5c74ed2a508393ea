/* SPDX-License-Identifier: MIT */
/* A filesystem that is full of data, on devices of several shapes: which operations still work. */
#include <errno.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc/alloc_internal.h"
#include "base/bits.h"
#include "fs/data_rig.h"
#include "fs/core/inode.h"
#include "fs/space/reclaim.h"

#define BLOCK UINT64_C(4096)
#define MIB   (UINT64_C(1) << 20)
#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

static const struct data_rig_options shapes[] = {
	{.seed = 1, .zone_count = 16, .zone_size = 4 * MIB, .max_active = 6, .memory = true},
	{.seed = 2, .zone_count = 16, .zone_size = 4 * MIB, .node_size = 4096, .memory = true},
	{.seed = 3,
	 .zone_count = 24,
	 .zone_size = 4 * MIB,
	 .copies = 2,
	 .max_active = 7,
	 .memory = true},
	{.seed = 4, .zone_count = 40, .zone_size = 1 * MIB, .node_size = 4096, .memory = true},
};

static uint8_t buf[MIB];

static uint64_t available(struct data_rig *rig)
{
	struct zf_space space;

	zf_alloc_get_space(zf_fs_alloc(rig->fs), &space);
	return space.available;
}

static void each_shape(void (*test)(struct data_rig *rig))
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(shapes); i++) {
		struct data_rig rig;

		data_rig_init(&rig, &shapes[i]);
		memset(buf, 7, sizeof(buf));
		test(&rig);
		data_rig_deinit(&rig);
	}
}

/* Writes until not one more block fits. Returns how many bytes did. */
static uint64_t fill(struct data_rig *rig, uint64_t ino, size_t piece)
{
	uint64_t at = 0;
	ssize_t r;

	while ((r = zf_fs_write(rig->fs, &rig->ctx, ino, at, buf, piece, 0)) > 0)
		at += (uint64_t)r;
	assert_int_equal(r, -ENOSPC);
	return at;
}

/* ---- writing ---- */

/* A long write that does not fit becomes a short write. Then there is no room for another block. */
static void write_to_the_last_block(struct data_rig *rig)
{
	uint64_t ino = data_rig_make(rig, "file"), at = 0, last;
	ssize_t r;

	do {
		r = zf_fs_write(rig->fs, &rig->ctx, ino, at + 100, buf, sizeof(buf), 0);
		assert_true(r > 0);
		at += (uint64_t)r;
		last = (uint64_t)r;
	} while (last == sizeof(buf));
	print_message("the last of %" PRIu64 " MiB took %" PRIu64 " KiB, %" PRIu64
		      " KiB available\n",
		      at >> 20, last >> 10, available(rig) >> 10);
	assert_int_equal(zf_fs_write(rig->fs, &rig->ctx, ino, at + 100, buf, BLOCK, 0), -ENOSPC);
	assert_int_equal(data_rig_size(rig, ino), at + 100);
	data_rig_sync(rig);
}

static void a_write_takes_what_there_is(void **state)
{
	(void)state;
	each_shape(write_to_the_last_block);
}

/* The kernel does not check how many of its pages were written: it only sees an error. */
static void write_pages(struct data_rig *rig)
{
	uint64_t ino = data_rig_make(rig, "file"), at = 0;
	ssize_t r;

	while ((r = zf_fs_write(rig->fs, &rig->ctx, ino, at, buf, sizeof(buf), ZF_WRITE_PAGE)) >
	       0) {
		assert_int_equal(r, sizeof(buf));
		at += sizeof(buf);
	}
	assert_int_equal(r, -ENOSPC);
	data_rig_sync(rig);
}

static void pages_are_written_or_fail(void **state)
{
	(void)state;
	each_shape(write_pages);
}

/* ---- names and attributes ---- */

#define NAMES 200u

static void make_names(struct data_rig *rig, uint64_t inos[NAMES])
{
	char name[32];

	for (unsigned int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "name %04u", i);
		inos[i] = data_rig_make(rig, name);
	}
}

static int rename_to(struct data_rig *rig, unsigned int from, unsigned int to, unsigned int flags)
{
	char old[32], new[32];

	snprintf(old, sizeof(old), "name %04u", from);
	snprintf(new, sizeof(new), "name %04u", to);
	return zf_fs_rename(rig->fs, &rig->ctx, ZF_INO_ROOT, old, ZF_INO_ROOT, new, flags, NULL);
}

/* None of these operations needs more than a full filesystem has, however often they are done. */
static void change_names(struct data_rig *rig)
{
	const struct zf_setattr set = {.valid = ZF_SET_MODE, .mode = 0600};
	uint64_t inos[NAMES], file = data_rig_make(rig, "file");
	struct zf_attr attr;

	make_names(rig, inos);
	fill(rig, file, sizeof(buf));
	for (unsigned int i = 0; i < 20 * NAMES; i++) {
		unsigned int n = i % NAMES, round = i / NAMES;

		assert_int_equal(rename_to(rig, n + round * NAMES, n + (round + 1) * NAMES, 0), 0);
		assert_int_equal(zf_fs_setattr(rig->fs, &rig->ctx, inos[n], &set, &attr), 0);
		if (i % 100 == 99)
			data_rig_sync(rig);
	}
	for (unsigned int i = 0; i + 1 < NAMES; i++)
		assert_int_equal(
			rename_to(rig, 20 * NAMES + i, 20 * NAMES + i + 1, RENAME_EXCHANGE), 0);
	for (unsigned int i = 0; i + 1 < NAMES; i += 2)
		assert_int_equal(rename_to(rig, 20 * NAMES + i, 20 * NAMES + i + 1, 0), 0);
	assert_int_equal(
		zf_fs_write(rig->fs, &rig->ctx, file, data_rig_size(rig, file), buf, MIB, 0),
		-ENOSPC);
}

static void names_are_changed_however_full_it_is(void **state)
{
	(void)state;
	each_shape(change_names);
}

/* Punches within blocks that have landed, so that each of these blocks is written anew. */
static void punch_within_blocks(struct data_rig *rig, uint64_t file, uint64_t len)
{
	for (uint64_t at = 0; at < len; at += 30 * BLOCK)
		data_rig_allocate(rig, file, PUNCH, at + 5, BLOCK);
}

/* Files and directories, and links, until there is no room for any. Returns how many of each. */
static unsigned int add_names(struct data_rig *rig, uint64_t linked)
{
	struct zf_attr attr;
	char name[200];
	unsigned int i;
	int r = 0;

	for (i = 0; r == 0; i++) {
		snprintf(name, sizeof(name), "%0190u", i);
		r = zf_fs_make(rig->fs, &rig->ctx, ZF_INO_ROOT, name,
			       i % 2 ? S_IFDIR | 0755 : S_IFREG | 0644, 0, NULL, &attr);
		if (r == 0)
			zf_fs_forget(rig->fs, attr.ino, 1);
	}
	assert_int_equal(r, -ENOSPC);
	assert_int_equal(zf_fs_link(rig->fs, &rig->ctx, linked, ZF_INO_ROOT, "link", &attr),
			 -ENOSPC);
	return i - 1;
}

static void remove_names(struct data_rig *rig, unsigned int count)
{
	char name[200];

	for (unsigned int i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%0190u", i);
		assert_int_equal(i % 2 ? zf_fs_rmdir(rig->fs, &rig->ctx, ZF_INO_ROOT, name)
				       : zf_fs_unlink(rig->fs, &rig->ctx, ZF_INO_ROOT, name),
				 0);
	}
}

/* The filesystem is first full of data, then also of names; then everything is deleted. */
static void give_back(struct data_rig *rig)
{
	uint64_t file = data_rig_make(rig, "file"), len;
	unsigned int count;

	len = zf_align_down(fill(rig, file, sizeof(buf)), 8 * BLOCK);
	punch_within_blocks(rig, file, len);
	count = add_names(rig, file);
	print_message("%u names\n", count);
	assert_true(count > 100);
	data_rig_allocate(rig, file, PUNCH, len / 2, 3 * BLOCK);
	data_rig_truncate(rig, file, len / 2 - 5);
	data_rig_allocate(rig, file, PUNCH, BLOCK, len / 4);
	remove_names(rig, count);
	data_rig_unlink(rig, "file", file);
}

static void what_gives_back_works_when_nothing_else_does(void **state)
{
	(void)state;
	each_shape(give_back);
}

/* ---- space that is kept ---- */

/* Takes metadata's room until a removal has to wait for room. Returns how many blocks it took. */
static uint64_t starve_removals(struct data_rig *rig)
{
	struct zf_alloc *alloc = zf_fs_alloc(rig->fs);
	uint64_t taken = 0;
	struct zf_trans trans;

	while (zf_trans_join(rig->fs->txn, ZF_RESERVE_FREEING, 6, false, &trans) == 0) {
		zf_trans_leave(&trans);
		assert_int_equal(zf_alloc_reserve(alloc, ZF_RESERVE_SYSTEM, 64, 0, 0), 0);
		taken += 64;
	}
	return taken;
}

static void removals_bring_garbage_back_before_kept_space_gives_way(void **state)
{
	struct zf_reclaim_stats stats;
	struct data_rig rig;
	uint64_t kept, data, taken;
	struct zf_attr attr;

	(void)state;
	data_rig_init(&rig, &shapes[0]);
	kept = data_rig_make(&rig, "kept");
	data = data_rig_make(&rig, "data");
	assert_int_equal(
		zf_fs_make(rig.fs, &rig.ctx, ZF_INO_ROOT, "dir", S_IFDIR | 0755, 0, NULL, &attr),
		0);
	zf_fs_forget(rig.fs, attr.ino, 1);
	data_rig_allocate(&rig, kept, 0, 0, 8 * MIB);
	for (uint64_t at = 0; at < 14 * MIB; at += MIB)
		data_rig_write(&rig, data, at, buf, sizeof(buf));
	data_rig_sync(&rig);
	for (uint64_t at = 0; at < 14 * MIB; at += 64 * BLOCK)
		data_rig_allocate(&rig, data, PUNCH, at, 32 * BLOCK);
	data_rig_sync(&rig);
	taken = starve_removals(&rig);
	assert_int_equal(zf_fs_rmdir(rig.fs, &rig.ctx, ZF_INO_ROOT, "dir"), 0);
	zf_reclaim_get_stats(rig.fs, &stats);
	assert_true(stats.victims > 0);
	assert_int_equal(zf_fs_alloc(rig.fs)->kept_short, 0);
	zf_alloc_unreserve(zf_fs_alloc(rig.fs), taken, 0);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_takes_what_there_is),
		cmocka_unit_test(pages_are_written_or_fail),
		cmocka_unit_test(names_are_changed_however_full_it_is),
		cmocka_unit_test(what_gives_back_works_when_nothing_else_does),
		cmocka_unit_test(removals_bring_garbage_back_before_kept_space_gives_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
