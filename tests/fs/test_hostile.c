/* SPDX-License-Identifier: MIT */
/*
 * P7, for operations: the nodes of the filesystem are valid, but their items are damaged. Every
 * operation returns, with an error or without, and nothing crashes or hangs.
 *
 * ZF_SEED repeats a run.
 */
#include "fs/names_rig.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "alloc/reserve.h"
#include "base/bits.h"
#include "fs/core/item.h"
#include "sim/rng.h"

#define ROOT	  ZF_INO_ROOT
#define ITEMS_MAX 4000u

struct item {
	enum zf_tree_id tree;
	struct zf_key key;
	size_t len;
	uint8_t value[1024];
};

struct items {
	unsigned int count;
	struct item at[ITEMS_MAX];
};

static struct items items; /* of the filesystem, as it was built */

static int collect(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct item *item = &items.at[items.count++];

	assert_true(items.count < ITEMS_MAX && len <= sizeof(item->value));
	item->tree = *(const enum zf_tree_id *)arg;
	item->key = *key;
	item->len = len;
	memcpy(item->value, value, len);
	return 0;
}

/* Files that name the same bytes, wholly and in part. */
static void build_shared(struct names_rig *rig)
{
	static char value[40960];
	uint64_t first = 0, ino;
	char name[16];

	memset(value, 's', sizeof(value));
	for (uint64_t i = 0; i < 6; i++) {
		snprintf(name, sizeof(name), "shared%u", (unsigned int)i);
		ino = rig_make_forgotten(rig, ROOT, name, S_IFREG | 0644);
		if (i == 0)
			first = ino;
		if (i == 0)
			zf_fs_write(rig->fs, &rig->ctx, ino, 0, value, sizeof(value), 0);
		else
			assert_true(zf_fs_copy_range(rig->fs, &rig->ctx, first, i / 2 * 4096, ino,
						     i % 2 * 4096, i * 8192) > 0);
	}
	assert_true(zf_fs_copy_range(rig->fs, &rig->ctx, first, 0, first, 40960, 20480) > 0);
}

/* Space that is kept, between what was written, zeroed and punched. */
static void build_kept(struct names_rig *rig)
{
	const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
	uint64_t ino = rig_make_forgotten(rig, ROOT, "kept", S_IFREG | 0644);

	assert_int_equal(zf_fs_fallocate(rig->fs, &rig->ctx, ino, 0, 0, 81920), 0);
	for (uint64_t i = 1; i < 20; i += 3)
		assert_int_equal(zf_fs_write(rig->fs, &rig->ctx, ino, i * 4096, "here", 4, 0), 4);
	assert_int_equal(
		zf_fs_fallocate(rig->fs, &rig->ctx, ino, FALLOC_FL_ZERO_RANGE, 20480, 20480), 0);
	assert_int_equal(zf_fs_fallocate(rig->fs, &rig->ctx, ino, punch, 45056, 12288), 0);
	assert_int_equal(
		zf_fs_fallocate(rig->fs, &rig->ctx, ino, FALLOC_FL_KEEP_SIZE, 1 << 20, 1 << 20), 0);
}

static void collect_items(struct names_rig *rig)
{
	static const enum zf_tree_id trees[] = {ZF_TREE_FS, ZF_TREE_SHARE};
	struct zf_key from = ZF_KEY_MIN, to = ZF_KEY_MAX;

	items.count = 0;
	for (size_t i = 0; i < ZF_ARRAY_SIZE(trees); i++)
		assert_int_equal(zf_tree_scan(rig->fs->forest, trees[i], &from, &to, collect,
					      (void *)&trees[i]),
				 0);
}

/* A bit of everything. */
static void build(struct names_rig *rig)
{
	static char value[5000];
	char name[16], target[3000];
	struct zf_attr attr;

	memset(target, 't', sizeof(target) - 1);
	target[sizeof(target) - 1] = '\0';
	for (int d = 0; d < 4; d++) {
		uint64_t dir, file = 0;

		snprintf(name, sizeof(name), "dir%d", d);
		dir = rig_make_forgotten(rig, d == 3 ? rig_find(rig, ROOT, "dir2") : ROOT, name,
					 S_IFDIR | 0755);
		for (int f = 0; f < 8; f++) {
			snprintf(name, sizeof(name), "file%d", f);
			file = rig_make_forgotten(rig, dir, name, S_IFREG | 0644);
			zf_fs_write(rig->fs, &rig->ctx, file, 0, value, f % 2 ? 5000 : 50, 0);
			zf_fs_setxattr(rig->fs, &rig->ctx, file, "user.a", value, f % 3 ? 10 : 3000,
				       0);
		}
		assert_int_equal(zf_fs_link(rig->fs, &rig->ctx, file, ROOT,
					    d == 0   ? "l0"
					    : d == 1 ? "l1"
					    : d == 2 ? "l2"
						     : "l3",
					    &attr),
				 0);
		zf_fs_forget(rig->fs, file, 1);
		assert_int_equal(zf_fs_make(rig->fs, &rig->ctx, dir, "link", S_IFLNK | 0777, 0,
					    target, &attr),
				 0);
		zf_fs_forget(rig->fs, attr.ino, 1);
	}
	/* An orphan for the next mount. */
	rig_make(rig, ROOT, "orphan", S_IFREG | 0644);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ROOT, "orphan"), 0);
	build_shared(rig);
	build_kept(rig);
	assert_int_equal(zf_fs_syncfs(rig->fs, &rig->ctx), 0);
	collect_items(rig);
}

static void set_item(struct names_rig *rig, struct zf_trans *trans, const struct item *item)
{
	assert_int_equal(zf_tree_set(rig->fs->forest, trans->writer, item->tree, &item->key,
				     item->value, item->len),
			 0);
}

/* Often draws an item of shared bytes, because there are few of these. */
static unsigned int draw_item(struct zf_rng *rng)
{
	unsigned int i = (unsigned int)zf_rng_below(rng, items.count);

	while (zf_rng_chance(rng, 30) && items.at[i].tree != ZF_TREE_SHARE &&
	       items.at[i].key.type != ZF_KEY_EXTENT)
		i = (i + 1) % items.count;
	return i;
}

/* One of: bytes changed, a number changed, cut, longer, gone, moved to another key. */
static void damage_one(struct names_rig *rig, struct zf_rng *rng, struct zf_trans *trans)
{
	struct item item = items.at[draw_item(rng)];
	const struct item *other = &items.at[zf_rng_below(rng, items.count)];
	size_t at = item.len > 8 ? zf_rng_below(rng, item.len - 7) : 0;

	switch (zf_rng_below(rng, 8)) {
	case 0:
		if (item.len > 0)
			item.value[zf_rng_below(rng, item.len)] ^=
				(uint8_t)(1 + zf_rng_below(rng, 255));
		break;
	case 1:
		if (item.len > 8)
			zf_rng_fill(rng, item.value + at, 8);
		break;
	case 2:
		item.len = zf_rng_below(rng, item.len + 1);
		break;
	case 3:
		item.len = zf_min_u64(item.len + zf_rng_below(rng, 100), 982);
		break;
	case 4:
		zf_tree_delete(rig->fs->forest, trans->writer, item.tree, &item.key);
		return;
	case 5:
		item.key.offset = other->key.offset;
		break;
	case 6:
		/* The number of another inode: passes every check of the item alone. */
		if (item.len > 8) {
			struct zf_le64 ino = zf_le64_from(other->key.objectid);

			memcpy(item.value + (zf_rng_chance(rng, 80) ? 0 : at), &ino, 8);
		}
		break;
	case 7:
		/* An extent of another length passes, too: one that overlaps the next ones, or one
		 * of space that is not kept. */
		if (item.key.type == ZF_KEY_EXTENT && item.value[0] != ZF_EXTENT_INLINE) {
			struct zf_disk_extent disk;

			memcpy(&disk, item.value, sizeof(disk));
			disk.count = zf_le32_from(1 + (uint32_t)zf_rng_below(rng, 12));
			memcpy(item.value, &disk, sizeof(disk));
		}
		break;
	}
	set_item(rig, trans, &item);
}

static void damage(struct names_rig *rig, struct zf_rng *rng)
{
	unsigned int count = 1 + (unsigned int)zf_rng_below(rng, 6);
	struct zf_trans trans;

	assert_int_equal(zf_trans_join(rig->fs->txn, ZF_RESERVE_NORMAL, count, true, &trans), 0);
	for (unsigned int i = 0; i < count; i++)
		damage_one(rig, rng, &trans);
	zf_trans_leave(&trans);
	assert_int_equal(zf_txn_sync(rig->fs->txn), 0);
}

/* ---- whatever is asked ---- */

static void ask_about(struct names_rig *rig, uint64_t ino)
{
	static char buf[70000];
	struct zf_fs *fs = rig->fs;
	struct zf_attr attr;

	zf_fs_getattr(fs, &rig->ctx, ino, &attr);
	zf_fs_readlink(fs, &rig->ctx, ino, buf, sizeof(buf));
	zf_fs_read(fs, &rig->ctx, ino, 0, buf, 8192);
	zf_fs_listxattr(fs, &rig->ctx, ino, buf, sizeof(buf));
	zf_fs_getxattr(fs, &rig->ctx, ino, "user.a", buf, sizeof(buf));
	zf_fs_lookup(fs, &rig->ctx, ino, "..", &attr);
}

static void change(struct names_rig *rig, struct zf_rng *rng, uint64_t dir, const char *name,
		   uint64_t ino)
{
	static const int modes[] = {0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_ZERO_RANGE,
				    FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE};
	static const uint8_t long_value[65536];
	struct zf_setattr set = {.valid = ZF_SET_MODE | (zf_rng_chance(rng, 50) ? ZF_SET_SIZE : 0),
				 .mode = 0600,
				 .size = 100};
	struct zf_fs *fs = rig->fs;
	struct zf_attr attr;
	uint64_t other = items.at[zf_rng_below(rng, items.count)].key.objectid;

	switch (zf_rng_below(rng, 12)) {
	case 0:
		zf_fs_unlink(fs, &rig->ctx, dir, name);
		break;
	case 1:
		zf_fs_rmdir(fs, &rig->ctx, dir, name);
		break;
	case 2:
		zf_fs_rename(fs, &rig->ctx, dir, name, other, "file3", 0, NULL);
		break;
	case 3:
		zf_fs_rename(fs, &rig->ctx, dir, name, other, "file4", RENAME_EXCHANGE, NULL);
		break;
	case 4:
		if (zf_fs_link(fs, &rig->ctx, ino, dir, "made", &attr) == 0)
			zf_fs_forget(fs, ino, 1);
		break;
	case 5:
		zf_fs_setattr(fs, &rig->ctx, ino, &set, &attr);
		break;
	case 6:
		zf_fs_setxattr(fs, &rig->ctx, ino, "user.a", "new", 3, 0);
		zf_fs_removexattr(fs, &rig->ctx, ino, "user.a");
		break;
	case 7:
		if (zf_fs_make(fs, &rig->ctx, dir, "file9", S_IFREG, 0, NULL, &attr) == 0)
			zf_fs_forget(fs, attr.ino, 1);
		break;
	case 8:
		zf_fs_copy_range(fs, &rig->ctx, ino, zf_rng_below(rng, 4) * 4096, other,
				 zf_rng_below(rng, 4) * 4096, 30000);
		break;
	case 9:
		zf_fs_write(fs, &rig->ctx, ino, zf_rng_below(rng, 40000), "written over", 12, 0);
		break;
	case 10:
		zf_fs_write(fs, &rig->ctx, ino, zf_rng_below(rng, 80000), long_value,
			    1 + zf_rng_below(rng, sizeof(long_value)), 0);
		break;
	case 11:
		zf_fs_fallocate(fs, &rig->ctx, ino, modes[zf_rng_below(rng, 4)],
				zf_rng_below(rng, 80000), 1 + zf_rng_below(rng, 80000));
		break;
	}
}

/* Visits every directory that can be reached, but only as many as exist: there may be cycles. */
static void ask_everything(struct names_rig *rig, struct zf_rng *rng)
{
	uint64_t dirs[64] = {ROOT};
	unsigned int dir_count = 1;

	for (unsigned int d = 0; d < dir_count; d++) {
		struct zf_dirent entries[32];
		int n = zf_fs_readdir(rig->fs, &rig->ctx, dirs[d], 2, entries, 32);

		for (int i = 0; i < n; i++) {
			struct zf_attr attr;

			if (zf_fs_lookup(rig->fs, &rig->ctx, dirs[d], entries[i].name, &attr) == 0)
				zf_fs_forget(rig->fs, attr.ino, 1);
			ask_about(rig, entries[i].ino);
			change(rig, rng, dirs[d], entries[i].name, entries[i].ino);
			if (dir_count < ZF_ARRAY_SIZE(dirs))
				dirs[dir_count++] = entries[i].ino;
		}
	}
}

static void try_seed(uint64_t seed)
{
	struct names_rig_options options = {.node_size = 4096};
	struct zf_fs *fs;
	struct names_rig rig;
	struct zf_rng rng;

	zf_rng_seed(&rng, seed);
	names_rig_init(&rig, &options);
	build(&rig);
	rig.errors_expected = true;
	damage(&rig, &rng);
	/* A mount may fail, but only with a message. */
	zf_fs_abandon(rig.fs);
	if (zf_fs_mount(rig.dev, &(struct zf_mount_options){0}, &rig.report, &fs) == 0) {
		rig.fs = fs;
		ask_everything(&rig, &rng);
		zf_fs_unmount(fs);
	} else {
		assert_int_not_equal(rig.errors, 0);
	}
	zf_dev_close(rig.dev);
	zf_memory_free(rig.memory);
}

static void damaged_items_neither_crash_nor_hang(void **state)
{
	const char *given = getenv("ZF_SEED");
	uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 1000;

	for (unsigned int i = 0; i < (given ? 1 : 300); i++) {
		fprintf(stderr, "\rseed %" PRIu64, seed + i);
		try_seed(seed + i);
	}
	fprintf(stderr, "\n");
}

/* Two directories that are each other's parent: the walk towards the root must end. */
static void a_ring_of_directories_does_not_hold_a_rename_up(void **state)
{
	struct names_rig_options options = {.node_size = 4096};
	struct names_rig rig;
	uint64_t a, b, c;

	names_rig_init(&rig, &options);
	a = rig_make(&rig, ROOT, "a", S_IFDIR | 0755);
	b = rig_make(&rig, a, "b", S_IFDIR | 0755);
	c = rig_make(&rig, ROOT, "c", S_IFDIR | 0755);
	build(&rig);
	for (unsigned int i = 0; i < items.count; i++) {
		struct item item = items.at[i];
		struct zf_trans trans;

		if (item.key.objectid != a || item.key.type != ZF_KEY_REF)
			continue;
		/* a's only name is now in b, under the hash that it has there. */
		memcpy(item.value, &(struct zf_le64){.b = {(uint8_t)b, (uint8_t)(b >> 8)}}, 8);
		assert_int_equal(zf_trans_join(rig.fs->txn, ZF_RESERVE_NORMAL, 2, true, &trans), 0);
		zf_tree_delete(rig.fs->forest, trans.writer, ZF_TREE_FS, &item.key);
		item.key.offset = zf_item_hash_ref(rig.fs->super.dir_hash_seed, b, "a", 1);
		set_item(&rig, &trans, &item);
		zf_trans_leave(&trans);
	}
	rig.errors_expected = true;
	assert_int_equal(zf_fs_rename(rig.fs, &rig.ctx, ROOT, "c", b, "x", 0, NULL), -EUCLEAN);
	assert_string_equal(strchr(rig.message, ':'), ": the directory is its own ancestor");
	assert_int_equal(rig_find(&rig, ROOT, "c"), c);
	names_rig_deinit(&rig);
}

/* A write bounds the range that it replaces by the end of one extent and the start of the next. */
static void extents_that_overlap_do_not_hold_a_write_up(void **state)
{
	struct names_rig_options options = {.node_size = 4096};
	static uint8_t buf[20 * 4096];
	struct zf_error_cursor errors = {0};
	struct names_rig rig;
	struct zf_trans trans;
	struct zf_ctx ctx;
	uint64_t ino;

	(void)state;
	names_rig_init(&rig, &options);
	ino = rig_make(&rig, ROOT, "file", S_IFREG | 0644);
	assert_int_equal(zf_fs_write(rig.fs, &rig.ctx, ino, 1 << 20, buf, 1, 0), 1);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
	assert_int_equal(zf_trans_join(rig.fs->txn, ZF_RESERVE_NORMAL, 7, true, &trans), 0);
	for (uint64_t i = 0; i < 7; i++) {
		const struct zf_disk_extent disk = {.type = ZF_EXTENT_ZERO,
						    .count = zf_le32_from(i == 3 ? 100 : 1),
						    .generation = zf_le64_from(1)};
		struct item item = {.tree = ZF_TREE_FS,
				    .key = ZF_KEY(ino, ZF_KEY_EXTENT, i * 4096),
				    .len = sizeof(disk)};

		memcpy(item.value, &disk, sizeof(disk));
		set_item(&rig, &trans, &item);
	}
	zf_trans_leave(&trans);
	rig.errors_expected = true;
	assert_int_equal(zf_fs_write(rig.fs, &rig.ctx, ino, 0, buf, sizeof(buf), 0), sizeof(buf));
	ctx = rig.ctx;
	ctx.told = zf_fs_told(&errors);
	assert_int_equal(zf_fs_fsync(rig.fs, &ctx, ino, false), -EUCLEAN);
	assert_int_equal(zf_txn_error(rig.fs->txn), 0);
	names_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_ring_of_directories_does_not_hold_a_rename_up),
		cmocka_unit_test(extents_that_overlap_do_not_hold_a_write_up),
		cmocka_unit_test(damaged_items_neither_crash_nor_hang),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
