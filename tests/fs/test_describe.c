/* SPDX-License-Identifier: MIT */
/*
 * A file's state as the log describes it (fs/data/describe.h). Applied to the map that the file had
 * at its last description, a description must give the file's current map.
 */
#include <errno.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "fs/data/data.h"
#include "fs/data_rig.h"
#include "fs/data/describe.h"
#include "fs/map/extent.h"
#include "fs/core/inode.h"
#include "log/body.h"

#define BLOCK  4096u
#define BLOCKS 300u

static struct data_rig rig;
static uint8_t buf[64 * BLOCK];

/* What stands for a block. */
struct map_block {
	enum zf_log_range_type type;
	uint8_t flags;
	uint64_t address; /* DATA */
	uint64_t csum;	  /* as the log says; 0: not said */
};

struct map {
	struct map_block at[BLOCKS];
	uint8_t bytes[ZF_INLINE_MAX];
	size_t inline_len;
};

/* ---- the map as it is ---- */

static int take_extent(void *arg, const struct zf_extent *extent, const uint8_t *bytes)
{
	struct map *map = arg;

	if (extent->type == ZF_EXTENT_INLINE) {
		memcpy(map->bytes, bytes, extent->len);
		map->inline_len = extent->len;
	}
	for (uint64_t at = extent->offset; at < zf_extent_end(extent); at += BLOCK) {
		assert_true(at / BLOCK < BLOCKS);
		map->at[at / BLOCK] = (struct map_block){
			.type = (enum zf_log_range_type)extent->type,
			.flags = extent->flags,
			.address = extent->type == ZF_EXTENT_DATA
					   ? extent->address + (at - extent->offset)
					   : 0,
		};
	}
	return 0;
}

static void take_map(struct zf_inode *inode, struct map *map)
{
	struct zf_extent_reader reader;

	*map = (struct map){0};
	zf_extent_reader_init(&reader, inode);
	assert_int_equal(zf_extent_scan(&reader, 0, UINT64_MAX, take_extent, map), 0);
}

/* ---- the map as it is told ---- */

static void apply_range(struct map *map, const struct zf_log_range_view *view)
{
	const struct zf_log_range *range = &view->range;

	assert_true(range->offset % BLOCK == 0 && range->len % BLOCK == 0 && range->len > 0);
	assert_true(range->offset + range->len <= BLOCKS * BLOCK);
	if (range->offset == 0)
		map->inline_len = 0;
	if (range->type == ZF_LOG_RANGE_INLINE) {
		memcpy(map->bytes, range->bytes, range->inline_len);
		map->inline_len = range->inline_len;
	}
	for (unsigned int i = 0; i < range->len / BLOCK; i++) {
		struct map_block *block = &map->at[range->offset / BLOCK + i];

		*block = (struct map_block){.type = range->type, .flags = range->flags};
		if (range->type != ZF_LOG_RANGE_DATA)
			continue;
		block->address = range->address + i * BLOCK;
		zf_log_range_csums(view, i, 1, &block->csum);
	}
}

static void apply(struct map *map, const struct zf_log_body *body, uint64_t ino, uint64_t size)
{
	struct zf_log_body_view view = {
		.bytes = body->bytes, .len = body->len, .type = ZF_LOG_EXTENTS};
	struct zf_log_range_view range;
	struct zf_log_inode logged;
	struct zf_disk_inode item;
	size_t len;

	assert_int_equal(zf_log_body_check(body->bytes, body->len, &len), 0);
	assert_int_equal(len, body->len);
	zf_log_view_inode(&view, &logged);
	assert_int_equal(logged.ino, ino);
	assert_int_equal(logged.item_len, sizeof(item));
	memcpy(&item, logged.item, sizeof(item));
	assert_int_equal(zf_le64_get(item.size), size);
	for (size_t at = 0; zf_log_next_range(&view, &at, &range);)
		apply_range(map, &range);
}

static void compare(struct map *told, const struct map *is)
{
	for (unsigned int i = 0; i < BLOCKS; i++) {
		struct map_block *block = &told->at[i];
		uint8_t bytes[BLOCK];

		if (block->csum) {
			zf_sim_peek(rig.sim, block->address, bytes);
			assert_int_equal(block->csum, zf_hash64(bytes, BLOCK));
			block->csum = 0;
		}
		if (memcmp(block, &is->at[i], sizeof(*block)) != 0)
			fail_msg("block %u: told %u %#x %lx, is %u %#x %lx", i, block->type,
				 block->flags, (unsigned long)block->address, is->at[i].type,
				 is->at[i].flags, (unsigned long)is->at[i].address);
	}
	assert_int_equal(told->inline_len, is->inline_len);
	assert_memory_equal(told->bytes, is->bytes, is->inline_len);
}

/* ---- describing ---- */

static struct zf_inode *get(uint64_t ino)
{
	struct zf_inode *inode;

	assert_int_equal(zf_inode_get(rig.fs, ino, &inode), 0);
	return inode;
}

/* All changes are in the trees. `told` follows them; -E2BIG: they could not be described, and
 * `told` becomes the current state. */
static int tell(struct zf_inode *inode, struct map *told)
{
	struct zf_log_body body;
	struct map is;
	uint64_t mark;
	int r;

	assert_int_equal(zf_data_flush(inode, true), 0);
	zf_rwlock_wrlock(&inode->lock);
	r = zf_describe_inode(inode, NULL, &body, &mark);
	take_map(inode, &is);
	if (r == 0) {
		apply(told, &body, inode->ino, inode->item.size);
		compare(told, &is);
		zf_changes_clear(&inode->data.changes);
	}
	zf_rwlock_unlock(&inode->lock);
	zf_log_body_end(&body);
	*told = is;
	return r;
}

/* ---- cases ---- */

static void begin(uint64_t seed, uint64_t cache_bytes)
{
	const struct data_rig_options options = {.seed = seed, .cache_bytes = cache_bytes};

	data_rig_init(&rig, &options);
}

static void write_pattern(uint64_t ino, uint64_t seed, uint64_t offset, size_t len)
{
	data_rig_fill(seed, offset, buf, len);
	data_rig_write(&rig, ino, offset, buf, len);
}

static void fallocate_range(uint64_t ino, int mode, uint64_t offset, uint64_t len)
{
	assert_int_equal(zf_fs_fallocate(rig.fs, &rig.ctx, ino, mode, offset, len), 0);
}

static void copy(uint64_t from, uint64_t offset_in, uint64_t ino, uint64_t offset, uint64_t len)
{
	assert_int_equal(zf_fs_copy_range(rig.fs, &rig.ctx, from, offset_in, ino, offset, len),
			 len);
}

static void every_kind_of_extent_is_told(void **state)
{
	uint64_t ino, other;
	struct map told = {0};
	struct zf_inode *inode;

	(void)state;
	begin(1, 0);
	ino = data_rig_make(&rig, "file");
	other = data_rig_make(&rig, "other");
	inode = get(ino);
	write_pattern(ino, 1, 0, 700);
	assert_int_equal(tell(inode, &told), 0);
	assert_int_equal(told.inline_len, 700);
	write_pattern(ino, 2, 0, 40 * BLOCK);
	assert_int_equal(tell(inode, &told), 0);
	assert_int_equal(told.at[39].type, ZF_LOG_RANGE_DATA);
	fallocate_range(ino, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 3 * BLOCK, 5 * BLOCK);
	fallocate_range(ino, FALLOC_FL_ZERO_RANGE, 10 * BLOCK, 5 * BLOCK);
	fallocate_range(ino, FALLOC_FL_KEEP_SIZE, 40 * BLOCK, 10 * BLOCK);
	assert_int_equal(tell(inode, &told), 0);
	assert_int_equal(told.at[7].type, ZF_LOG_RANGE_HOLE);
	assert_int_equal(told.at[14].type, ZF_LOG_RANGE_ZERO);
	assert_int_equal(told.at[45].flags, ZF_EXTENT_UNWRITTEN);
	/* Sharing its blocks does not change the file's content. */
	copy(ino, 20 * BLOCK, other, 0, 10 * BLOCK);
	copy(other, 0, ino, 60 * BLOCK, 10 * BLOCK);
	assert_int_equal(zf_data_flush(inode, true), 0);
	take_map(inode, &told);
	assert_int_equal(told.at[65].flags, ZF_EXTENT_SHARED);
	assert_int_equal(told.at[25].flags, ZF_EXTENT_SHARED);
	zf_inode_put(inode);
	data_rig_deinit(&rig);
}

/* A file of many holes has as many ranges as a description may have. */
static void too_many_ranges_are_committed(void **state)
{
	struct map told = {0};
	struct zf_inode *inode;
	struct zf_txn_stats before, after;
	uint64_t ino;

	(void)state;
	begin(2, 0);
	ino = data_rig_make(&rig, "file");
	data_rig_truncate(&rig, ino, 200 * BLOCK);
	data_rig_sync(&rig);
	inode = get(ino);
	for (unsigned int i = 0; i <= ZF_CHANGES_MAX; i++) {
		write_pattern(ino, 1, 2 * i * BLOCK, BLOCK);
		assert_int_equal(zf_data_flush(inode, true), 0);
	}
	assert_int_equal(tell(inode, &told), -E2BIG);
	zf_txn_get_stats(rig.fs->txn, &before);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
	zf_txn_get_stats(rig.fs->txn, &after);
	assert_int_equal(after.commits, before.commits + 1);
	/* Then the file can be described again. */
	write_pattern(ino, 2, 10 * BLOCK, 2 * BLOCK);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
	zf_txn_get_stats(rig.fs->txn, &after);
	assert_int_equal(after.commits, before.commits + 1);
	zf_inode_put(inode);
	data_rig_crash(&rig);
	for (unsigned int i = 0; i <= ZF_CHANGES_MAX; i++)
		data_rig_expect(&rig, ino, 2 * i == 10 ? 2 : 1, 2 * i * BLOCK, BLOCK);
	data_rig_expect(&rig, ino, 2, 11 * BLOCK, BLOCK);
	data_rig_deinit(&rig);
}

/* With so little memory, an inode leaves memory when its last user drops it. */
static void what_left_memory_is_committed(void **state)
{
	struct zf_txn_stats before, after;
	struct zf_inode *inode;
	uint64_t ino;

	(void)state;
	begin(3, 16 << 10);
	ino = data_rig_make(&rig, "file");
	data_rig_sync(&rig);
	write_pattern(ino, 1, 0, 20 * BLOCK);
	inode = get(ino);
	assert_int_equal(zf_data_flush(inode, true), 0);
	assert_true(zf_changes_any(&inode->data.changes));
	zf_inode_put(inode);
	for (unsigned int i = 0; atomic_load(&rig.fs->changes_lost) == 0; i++) {
		char name[8] = {'n', (char)('0' + i / 10), (char)('0' + i % 10)};

		assert_true(i < 90);
		data_rig_make(&rig, name);
	}
	zf_txn_get_stats(rig.fs->txn, &before);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, false), 0);
	zf_txn_get_stats(rig.fs->txn, &after);
	assert_int_equal(after.commits, before.commits + 1);
	data_rig_crash(&rig);
	data_rig_expect(&rig, ino, 1, 0, 20 * BLOCK);
	data_rig_deinit(&rig);
}

/* ---- only the size, or the times ---- */

static struct zf_attr attr_of(uint64_t ino)
{
	struct zf_attr attr;

	assert_int_equal(zf_fs_getattr(rig.fs, &rig.ctx, ino, &attr), 0);
	return attr;
}

/* The change that `change` makes is durable after an fdatasync, which makes no commit. */
static void expect_logged(uint64_t ino, uint64_t size)
{
	struct zf_attr before = attr_of(ino), after;
	struct zf_txn_stats stats;
	uint64_t commits;

	zf_txn_get_stats(rig.fs->txn, &stats);
	commits = stats.commits;
	assert_int_equal(before.size, size);
	assert_int_equal(zf_fs_fsync(rig.fs, &rig.ctx, ino, true), 0);
	zf_txn_get_stats(rig.fs->txn, &stats);
	assert_int_equal(stats.commits, commits);
	data_rig_crash(&rig);
	after = attr_of(ino);
	assert_int_equal(after.size, size);
	assert_memory_equal(&after.mtime, &before.mtime, sizeof(after.mtime));
	data_rig_sync(&rig);
}

static void changes_without_an_extent_are_told(void **state)
{
	uint64_t ino, hole, size;

	(void)state;
	begin(4, 0);
	ino = data_rig_make(&rig, "file");
	hole = data_rig_make(&rig, "hole");
	write_pattern(ino, 1, 0, 4 * BLOCK);
	data_rig_truncate(&rig, hole, 100 * BLOCK);
	data_rig_sync(&rig);
	/* A hole is copied to the end. */
	copy(hole, 0, ino, 10 * BLOCK, 7 * BLOCK);
	expect_logged(ino, 17 * BLOCK);
	/* A hole is copied into a hole: only the times change. */
	copy(hole, 0, ino, 6 * BLOCK, BLOCK);
	expect_logged(ino, 17 * BLOCK);
	/* Space that is kept already comes within the size. */
	fallocate_range(ino, FALLOC_FL_KEEP_SIZE, 17 * BLOCK, 10 * BLOCK);
	data_rig_sync(&rig);
	fallocate_range(ino, 0, 17 * BLOCK, 10 * BLOCK);
	expect_logged(ino, 27 * BLOCK);
	/* There is no space to keep or to punch. */
	fallocate_range(ino, 0, 0, 2 * BLOCK);
	expect_logged(ino, 27 * BLOCK);
	fallocate_range(ino, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 5 * BLOCK, 3 * BLOCK);
	expect_logged(ino, 27 * BLOCK);
	/* Data written behind the end is dropped before it lands; the size that it gave the file
	 * stays. */
	size = 40 * BLOCK;
	write_pattern(ino, 2, size - BLOCK, BLOCK);
	fallocate_range(ino, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, size - BLOCK, BLOCK);
	expect_logged(ino, size);
	/* The times that a write set were stored by a commit that did not become durable. */
	write_pattern(ino, 3, 0, BLOCK);
	expect_logged(ino, size);
	data_rig_expect(&rig, ino, 3, 0, BLOCK);
	data_rig_expect(&rig, ino, 1, BLOCK, 3 * BLOCK);
	data_rig_deinit(&rig);
}

/* ---- at random ---- */

static void change_something(struct zf_rng *rng, uint64_t ino, uint64_t other)
{
	uint64_t at = zf_rng_below(rng, 200 * BLOCK), len = 1 + zf_rng_below(rng, 30 * BLOCK);
	uint64_t block = at / BLOCK * BLOCK;

	switch (zf_rng_below(rng, 9)) {
	case 0:
		fallocate_range(ino, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, len);
		break;
	case 1:
		fallocate_range(ino, FALLOC_FL_ZERO_RANGE, at, len);
		break;
	case 2:
		fallocate_range(ino, zf_rng_chance(rng, 50) ? FALLOC_FL_KEEP_SIZE : 0, at, len);
		break;
	case 3:
		copy(other, 0, ino, block, zf_rng_chance(rng, 50) ? 8 * BLOCK : 64 * BLOCK);
		break;
	case 4:
		data_rig_truncate(&rig, ino, zf_rng_chance(rng, 20) ? zf_rng_below(rng, 3000) : at);
		break;
	default:
		write_pattern(ino, zf_rng_next(rng), at, len);
		break;
	}
}

/* A truncation is an operation of its own, and its record includes changes not described yet. */
static void random_changes_are_told(void **state)
{
	unsigned int told_count = 0, too_big = 0;
	struct map *told = calloc(1, sizeof(*told));
	struct zf_inode *inode;
	uint64_t ino, other;
	struct zf_rng rng;

	(void)state;
	zf_rng_seed(&rng, 5);
	begin(5, 0);
	ino = data_rig_make(&rig, "file");
	other = data_rig_make(&rig, "other");
	write_pattern(other, 9, 0, 64 * BLOCK);
	fallocate_range(other, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 20 * BLOCK, 20 * BLOCK);
	data_rig_sync(&rig);
	inode = get(ino);
	for (unsigned int i = 0; i < 2500; i++) {
		change_something(&rng, ino, other);
		if (!zf_rng_chance(&rng, 30))
			continue;
		if (tell(inode, told) == 0) {
			told_count++;
			continue;
		}
		too_big++;
		data_rig_sync(&rig);
		zf_rwlock_wrlock(&inode->lock);
		zf_changes_prune(&inode->data.changes, zf_txn_durable(rig.fs->txn));
		zf_rwlock_unlock(&inode->lock);
	}
	print_message("%u told, %u too big\n", told_count, too_big);
	assert_true(told_count > 300);
	zf_inode_put(inode);
	free(told);
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_extent_is_told),
		cmocka_unit_test(too_many_ranges_are_committed),
		cmocka_unit_test(what_left_memory_is_committed),
		cmocka_unit_test(changes_without_an_extent_are_told),
		cmocka_unit_test(random_changes_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
