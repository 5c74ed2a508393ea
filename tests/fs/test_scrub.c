/* SPDX-License-Identifier: MIT */
/* What a scrub reads, finds and repairs (fs/space/scrub.h), and which operations it does not delay.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc/reclaim.h"
#include "alloc/reserve.h"
#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/data_rig.h"
#include "fs/space/reclaim.h"
#include "fs/space/scrub.h"

#define BLOCK 4096u

/* ---- a scrub ---- */

struct found {
	unsigned int data, nodes, repaired;
	struct zf_scrub_error last; /* of data */
	uint64_t bad_bytes;
	uint64_t inos; /* a bit for each inode, of the first ones */
};

static void take_error(void *arg, const struct zf_scrub_error *error)
{
	struct found *found = arg;

	found->nodes += error->is_node;
	found->data += !error->is_node;
	found->repaired += error->repaired;
	if (error->is_node)
		return;
	found->last = *error;
	found->bad_bytes += error->len;
	found->inos |= UINT64_C(1) << error->ino % 64;
}

struct totals {
	uint64_t data_bytes, node_bytes, errors, repaired;
};

static struct totals totals_of(struct zf_fs *fs)
{
	return (struct totals){
		.data_bytes = fs->scrubbed.data_bytes,
		.node_bytes = fs->scrubbed.node_bytes,
		.errors = fs->scrubbed.errors,
		.repaired = fs->scrubbed.repaired,
	};
}

/* The filesystem has counted what this scrub has done, and when. */
static void expect_counted(struct zf_fs *fs, const struct totals *before,
			   const struct zf_scrub_step *step, const struct found *found)
{
	struct totals now = totals_of(fs);

	assert_int_equal(now.data_bytes - before->data_bytes, step->data_bytes);
	assert_int_equal(now.node_bytes - before->node_bytes, step->node_bytes);
	assert_int_equal(now.repaired - before->repaired, found->repaired);
	assert_int_equal(now.errors - before->errors, found->data + found->nodes - found->repaired);
	assert_in_range(fs->scrubbed.finished_at, 1, (uint64_t)time(NULL));
}

/* Runs a whole scrub, and `meanwhile` between any two steps. */
static struct zf_scrub_step scrub(struct data_rig *rig, struct found *ret_found,
				  void (*meanwhile)(struct data_rig *rig))
{
	struct zf_scrub_step step = {.error = take_error, .arg = ret_found};
	const struct totals before = totals_of(rig->fs);
	struct zf_scrub_place place = {0};
	int r;

	*ret_found = (struct found){0};
	while ((r = zf_scrub_step(rig->fs, true, &place, &step)) > 0)
		if (meanwhile)
			meanwhile(rig);
	assert_int_equal(r, 0);
	assert_int_equal(step.skipped, 0);
	expect_counted(rig->fs, &before, &step, ret_found);
	return step;
}

static void expect_no_damage(struct data_rig *rig)
{
	struct found found;

	scrub(rig, &found, NULL);
	assert_int_equal(found.data + found.nodes, 0);
}

/* ---- damage ---- */

/* Flips a bit of the stored bytes. */
static void flip(struct data_rig *rig, uint64_t address)
{
	uint64_t zone_size = zf_dev_geometry(rig->dev)->zone_size;
	uint8_t *zone = zf_memory_zone(rig->memory, (uint32_t)(address / zone_size));

	zone[address % zone_size] ^= 1;
}

static uint64_t address_of(struct data_rig *rig, uint64_t ino, uint64_t offset)
{
	struct data_rig_extents extents;

	data_rig_extents(rig, ino, &extents);
	for (int i = 0; i < extents.count; i++)
		if (offset - extents.at[i].offset < extents.at[i].len)
			return extents.at[i].address + (offset - extents.at[i].offset);
	fail_msg("offset %lu is a hole", (unsigned long)offset);
	return 0;
}

static void init_rig(struct data_rig *rig, uint8_t copies)
{
	const struct data_rig_options options = {.memory = true, .copies = copies};

	data_rig_init(rig, &options);
}

/* ---- what is found ---- */

static void a_sound_filesystem_is_read_whole(void **state)
{
	struct data_rig rig;
	struct zf_scrub_step step;
	struct found found;
	uint64_t ino, other, nodes;

	(void)state;
	init_rig(&rig, 1);
	ino = data_rig_make(&rig, "file");
	other = data_rig_make(&rig, "other");
	data_rig_write_pattern(&rig, ino, 1, 0, 300 * BLOCK);
	data_rig_write_pattern(&rig, other, DATA_RIG_PACKS | 2, 0, BLOCK);
	assert_int_equal(data_rig_fsync(&rig, other, NULL), 0);
	data_rig_sync(&rig);
	step = scrub(&rig, &found, NULL);
	assert_int_equal(found.data + found.nodes, 0);
	assert_int_equal(step.data_bytes, 301 * BLOCK);
	nodes = zf_alloc_count_nodes(rig.fs->alloc).live;
	/* Those of the root and zone trees are not among the live ones. */
	assert_true(step.node_bytes >= (nodes + 2) * zf_forest_shape(rig.fs->forest)->node_size);
	data_rig_deinit(&rig);
}

static void damaged_data_is_told_by_file_and_place(void **state)
{
	struct data_rig rig;
	struct found found;
	char path[64];
	uint64_t ino;

	(void)state;
	init_rig(&rig, 1);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 300 * BLOCK);
	data_rig_sync(&rig);
	rig.errors_expected = true;
	flip(&rig, address_of(&rig, ino, 7 * BLOCK));
	flip(&rig, address_of(&rig, ino, 9 * BLOCK - 1));
	scrub(&rig, &found, NULL);
	assert_int_equal(found.data, 1);
	assert_int_equal(found.last.ino, ino);
	assert_int_equal(found.last.offset, 7 * BLOCK);
	assert_int_equal(found.last.len, 2 * BLOCK);
	assert_int_equal(found.last.address, address_of(&rig, ino, 7 * BLOCK));
	assert_int_equal(zf_fs_path(rig.fs, ino, path, sizeof(path)), 0);
	assert_string_equal(path, "/file");
	/* Overwritten blocks are sound. */
	data_rig_write_pattern(&rig, ino, 1, 7 * BLOCK, 2 * BLOCK);
	data_rig_sync(&rig);
	expect_no_damage(&rig);
	rig.errors_expected = false;
	rig.errors = 0;
	data_rig_deinit(&rig);
}

static void data_that_no_file_names_is_not_read(void **state)
{
	struct data_rig rig;
	uint64_t ino;

	(void)state;
	init_rig(&rig, 1);
	ino = data_rig_make(&rig, "file");
	data_rig_write_pattern(&rig, ino, 1, 0, 10 * BLOCK);
	data_rig_sync(&rig);
	flip(&rig, address_of(&rig, ino, 8 * BLOCK));
	flip(&rig, address_of(&rig, ino, 2 * BLOCK));
	data_rig_truncate(&rig, ino, 5 * BLOCK);
	data_rig_write_pattern(&rig, ino, 2, 2 * BLOCK, BLOCK);
	data_rig_sync(&rig);
	expect_no_damage(&rig);
	data_rig_deinit(&rig);
}

static void all_files_that_share_damaged_data_are_reported(void **state)
{
	struct data_rig rig;
	struct found found;
	struct zf_scrub_step step;
	uint64_t a, b;

	(void)state;
	init_rig(&rig, 1);
	a = data_rig_make(&rig, "a");
	b = data_rig_make(&rig, "b");
	data_rig_write_pattern(&rig, a, 1, 0, 20 * BLOCK);
	data_rig_sync(&rig);
	assert_int_equal(zf_fs_copy_range(rig.fs, &rig.ctx, a, 0, b, 0, 20 * BLOCK), 20 * BLOCK);
	data_rig_sync(&rig);
	rig.errors_expected = true;
	flip(&rig, address_of(&rig, a, 3 * BLOCK));
	step = scrub(&rig, &found, NULL);
	assert_int_equal(found.data, 2);
	assert_int_equal(found.inos, UINT64_C(1) << a % 64 | UINT64_C(1) << b % 64);
	assert_int_equal(found.bad_bytes, 2 * BLOCK);
	assert_int_equal(step.data_bytes, 20 * BLOCK);
	data_rig_drop(&rig);
}

/* The files of shared bytes are found by their names; of others only the writer was recorded, which
 * is no longer known. */
static void bytes_without_a_checksum_are_damaged(void **state)
{
	struct data_rig rig;
	struct zf_trans trans;
	struct found found;
	struct zf_key key;
	uint64_t a, b;

	(void)state;
	init_rig(&rig, 1);
	a = data_rig_make(&rig, "a");
	b = data_rig_make(&rig, "b");
	data_rig_write_pattern(&rig, a, 1, 0, 20 * BLOCK);
	data_rig_sync(&rig);
	assert_int_equal(zf_fs_copy_range(rig.fs, &rig.ctx, a, 0, b, 0, 5 * BLOCK), 5 * BLOCK);
	key = ZF_KEY(address_of(&rig, a, 0), ZF_KEY_SUMMARY, 0);
	assert_int_equal(zf_trans_join(rig.fs->txn, ZF_RESERVE_SYSTEM, 1, true, &trans), 0);
	assert_int_equal(zf_tree_delete(rig.fs->forest, trans.writer, ZF_TREE_SUMMARY, &key), 0);
	zf_trans_leave(&trans);
	rig.errors_expected = true;
	scrub(&rig, &found, NULL);
	assert_int_equal(found.inos, UINT64_C(1) << a % 64 | UINT64_C(1) << b % 64);
	assert_int_equal(found.bad_bytes, 10 * BLOCK);
	data_rig_drop(&rig);
}

/* ---- nodes ---- */

struct search {
	struct zf_node_expect leaf;
	bool found;
};

static int take_leaf(void *arg, const struct zf_node_expect *expect)
{
	struct search *search = arg;

	search->leaf = *expect;
	search->found = true;
	return 0;
}

static struct zf_node_expect first_leaf(struct data_rig *rig, enum zf_tree_id tree)
{
	struct search search = {.found = false};
	struct zf_key from = {0};

	assert_true(zf_tree_children(rig->fs->forest, tree, 0, &from, take_leaf, &search) >= 0);
	assert_true(search.found);
	return search.leaf;
}

static void make_files(struct data_rig *rig)
{
	char name[16];

	for (unsigned int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "file%u", i);
		data_rig_make(rig, name);
	}
	data_rig_sync(rig);
}

/*
 * Damages copy `copy` of a leaf of this tree, in a filesystem with `copies` copies of metadata that
 * nothing else changes.
 */
static void damage_a_node(enum zf_tree_id tree, uint8_t copies, unsigned int copy)
{
	struct zf_node_expect leaf;
	struct data_rig rig;
	struct found found;

	init_rig(&rig, copies);
	make_files(&rig);
	leaf = first_leaf(&rig, tree);
	rig.errors_expected = true;
	flip(&rig, leaf.ptr.address[copy] + 100);
	scrub(&rig, &found, NULL);
	assert_int_equal(found.nodes, 1);
	assert_int_equal(found.repaired, 1);
	assert_int_equal(found.data, 0);
	/* The leaf was written anew, the new leaf is durable, and a mount can read it. */
	assert_false(zf_txn_is_dirty(rig.fs->txn));
	assert_int_not_equal(first_leaf(&rig, tree).ptr.address[0], leaf.ptr.address[0]);
	expect_no_damage(&rig);
	rig.errors_expected = false;
	rig.errors = 0;
	data_rig_remount(&rig);
	data_rig_deinit(&rig);
}

static void a_bad_copy_of_a_node_is_repaired_from_the_other(void **state)
{
	(void)state;
	damage_a_node(ZF_TREE_FS, 2, 0);
	damage_a_node(ZF_TREE_FS, 2, 1);
}

static void a_bad_node_is_repaired_from_memory(void **state)
{
	(void)state;
	damage_a_node(ZF_TREE_FS, 1, 0);
}

/* Every commit writes these nodes anew, but here nothing else causes a commit. */
static void a_bad_node_of_the_root_or_zone_tree_is_repaired(void **state)
{
	(void)state;
	damage_a_node(ZF_TREE_ROOT, 1, 0);
	damage_a_node(ZF_TREE_ZONE, 1, 0);
	damage_a_node(ZF_TREE_ROOT, 2, 1);
	damage_a_node(ZF_TREE_ZONE, 2, 1);
}

static void unmake_files(struct data_rig *rig)
{
	struct zf_attr attr;
	char name[16];

	for (unsigned int i = 0; i < 200; i++) {
		snprintf(name, sizeof(name), "file%u", i);
		assert_int_equal(zf_fs_lookup(rig->fs, &rig->ctx, ZF_INO_ROOT, name, &attr), 0);
		zf_fs_forget(rig->fs, attr.ino, 1);
		data_rig_unlink(rig, name, attr.ino);
	}
	data_rig_sync(rig);
}

/* While its leaves are read the tree loses its root: the leaf that is left is read all the same. */
static void a_tree_that_becomes_lower_is_read_to_its_end(void **state)
{
	struct zf_scrub_place place = {0};
	struct found found = {0};
	struct zf_scrub_step step = {.error = take_error, .arg = &found};
	struct zf_node_ptr root;
	struct data_rig rig;
	uint64_t leaf;
	uint8_t level;
	int r;

	(void)state;
	init_rig(&rig, 1);
	make_files(&rig);
	while (place.height != 1)
		assert_int_equal(zf_scrub_step(rig.fs, false, &place, &step), 1);
	unmake_files(&rig);
	zf_tree_get_root(rig.fs->forest, ZF_TREE_FS, &root, &level);
	assert_int_equal(level, 0);
	leaf = first_leaf(&rig, ZF_TREE_FS).ptr.address[0];
	rig.errors_expected = true;
	flip(&rig, leaf + 100);
	while ((r = zf_scrub_step(rig.fs, false, &place, &step)) > 0)
		;
	assert_int_equal(r, 0);
	assert_int_equal(found.nodes, 1);
	data_rig_drop(&rig);
}

static void without_leave_to_repair_nothing_is_written(void **state)
{
	struct zf_scrub_place place = {0};
	struct found found = {0};
	struct zf_scrub_step step = {.error = take_error, .arg = &found};
	struct zf_node_expect leaf;
	struct data_rig rig;
	int r;

	(void)state;
	init_rig(&rig, 2);
	make_files(&rig);
	leaf = first_leaf(&rig, ZF_TREE_FS);
	rig.errors_expected = true;
	flip(&rig, leaf.ptr.address[1] + 100);
	while ((r = zf_scrub_step(rig.fs, false, &place, &step)) > 0)
		;
	assert_int_equal(r, 0);
	assert_int_equal(found.nodes, 1);
	assert_int_equal(found.repaired, 0);
	assert_false(zf_txn_is_dirty(rig.fs->txn));
	data_rig_drop(&rig);
}

/* ---- calls that a scrub does not hold up ---- */

static uint64_t busy_ino;
static unsigned int busy_round;

/* Overwrites, commits, and has a zone reclaimed. */
static void be_busy(struct data_rig *rig)
{
	unsigned int i = busy_round++;

	data_rig_write_pattern(rig, busy_ino, i, i % 40 * 4 * BLOCK, 4 * BLOCK);
	assert_int_equal(zf_txn_commit(rig->fs->txn, true), 0);
	if (i % 4 == 0)
		assert_true(zf_reclaim_one(rig->fs, ZF_RECLAIM_URGENT) >= 0);
}

static void steps_and_commits_take_turns(void **state)
{
	struct data_rig rig;
	struct found found;
	uint64_t ino;

	(void)state;
	init_rig(&rig, 1);
	ino = data_rig_make(&rig, "file");
	busy_ino = data_rig_make(&rig, "busy");
	busy_round = 0;
	data_rig_write_pattern(&rig, ino, 1, 0, 2000 * BLOCK);
	data_rig_sync(&rig);
	scrub(&rig, &found, be_busy);
	assert_int_equal(found.data + found.nodes, 0);
	assert_true(busy_round > 20);
	data_rig_expect(&rig, ino, 1, 0, 2000 * BLOCK);
	data_rig_deinit(&rig);
}

/* A scrub's position comes from outside: no value does harm, and each scrub ends. */
static void any_place_ends(void **state)
{
	struct found found = {0};
	struct zf_scrub_step step = {.error = take_error, .arg = &found};
	struct data_rig rig;
	struct zf_rng rng;

	(void)state;
	init_rig(&rig, 1);
	make_files(&rig);
	data_rig_write_pattern(&rig, data_rig_make(&rig, "file"), 1, 0, 300 * BLOCK);
	data_rig_sync(&rig);
	zf_rng_seed(&rng, 1);
	for (unsigned int i = 0; i < 500; i++) {
		struct zf_scrub_place place = {
			.tree = (uint32_t)zf_rng_below(&rng, 8),
			.height = (uint32_t)zf_rng_below(&rng, 4) * (i % 3 ? 1 : 1000000000u),
			.from = ZF_KEY(zf_rng_next(&rng) >> zf_rng_below(&rng, 64),
				       (uint8_t)zf_rng_below(&rng, 256), zf_rng_next(&rng)),
			.address = zf_rng_next(&rng) >> zf_rng_below(&rng, 64),
		};
		unsigned int steps = 0;

		while (zf_scrub_step(rig.fs, true, &place, &step) > 0)
			assert_true(++steps < 10000);
	}
	assert_int_equal(found.data + found.nodes, 0);
	data_rig_deinit(&rig);
}

/* ---- threads ---- */

#define WRITERS 3u
/* Under the thread sanitizer each takes half a second, for the writers are slow, too. */
#if defined(__SANITIZE_THREAD__)
#define SCRUBS 25u
#else
#define SCRUBS 100u
#endif

struct writer {
	struct data_rig *rig;
	pthread_t thread;
	uint64_t ino, copy; /* the copy shares what was just written */
	atomic_bool *stop;
	int result;
};

static void *run_writer(void *arg)
{
	struct writer *writer = arg;
	uint8_t bytes[BLOCK];
	struct zf_rng rng;

	zf_rng_seed(&rng, writer->ino);
	memset(bytes, (int)writer->ino, sizeof(bytes));
	while (!atomic_load(writer->stop) && writer->result == 0) {
		uint64_t offset = zf_rng_below(&rng, 400) * BLOCK;
		ssize_t n = zf_fs_write(writer->rig->fs, &writer->rig->ctx, writer->ino, offset,
					bytes, sizeof(bytes), 0);

		writer->result = n == (ssize_t)sizeof(bytes) ? 0 : -EIO;
		if (writer->result == 0 && zf_rng_chance(&rng, 70) &&
		    zf_fs_copy_range(writer->rig->fs, &writer->rig->ctx, writer->ino, offset,
				     writer->copy, offset, sizeof(bytes)) != n)
			writer->result = -EIO;
		if (writer->result == 0 && zf_rng_chance(&rng, 10))
			writer->result =
				zf_fs_fsync(writer->rig->fs, &writer->rig->ctx, writer->ino, false);
	}
	return NULL;
}

static void writers_commits_and_reclaim_run_beside_it(void **state)
{
	const struct data_rig_options options = {.threads = true, .commit_ms = 10};
	struct writer writers[WRITERS];
	atomic_bool stop = false;
	struct data_rig rig;
	struct found found;
	char name[16];

	(void)state;
	data_rig_init(&rig, &options);
	make_files(&rig);
	for (unsigned int i = 0; i < WRITERS; i++) {
		snprintf(name, sizeof(name), "written%u", i);
		writers[i] = (struct writer){
			.rig = &rig, .ino = data_rig_make(&rig, name), .stop = &stop};
		snprintf(name, sizeof(name), "copy%u", i);
		writers[i].copy = data_rig_make(&rig, name);
		assert_int_equal(pthread_create(&writers[i].thread, NULL, run_writer, &writers[i]),
				 0);
	}
	for (unsigned int round = 0; round < SCRUBS; round++) {
		scrub(&rig, &found, NULL);
		assert_int_equal(found.data + found.nodes, 0);
		assert_true(zf_reclaim_one(rig.fs, ZF_RECLAIM_URGENT) >= 0);
	}
	atomic_store(&stop, true);
	for (unsigned int i = 0; i < WRITERS; i++) {
		pthread_join(writers[i].thread, NULL);
		assert_int_equal(writers[i].result, 0);
	}
	data_rig_deinit(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sound_filesystem_is_read_whole),
		cmocka_unit_test(damaged_data_is_told_by_file_and_place),
		cmocka_unit_test(data_that_no_file_names_is_not_read),
		cmocka_unit_test(all_files_that_share_damaged_data_are_reported),
		cmocka_unit_test(bytes_without_a_checksum_are_damaged),
		cmocka_unit_test(a_bad_copy_of_a_node_is_repaired_from_the_other),
		cmocka_unit_test(a_bad_node_is_repaired_from_memory),
		cmocka_unit_test(a_bad_node_of_the_root_or_zone_tree_is_repaired),
		cmocka_unit_test(a_tree_that_becomes_lower_is_read_to_its_end),
		cmocka_unit_test(without_leave_to_repair_nothing_is_written),
		cmocka_unit_test(steps_and_commits_take_turns),
		cmocka_unit_test(any_place_ends),
		cmocka_unit_test(writers_commits_and_reclaim_run_beside_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
