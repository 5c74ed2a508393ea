/* SPDX-License-Identifier: MIT */
/*
 * A repair is cut at each of its commands, and then a second repair runs. After it the filesystem
 * must be in order, and no more files may be lost than after a repair that was not cut.
 *
 *      test_repair_cuts [all]
 *
 * Without `all` it is cut at some commands only, with fewer of the states that may be found then.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "fixture.h"
#include "fs/core/fs.h"
#include "fs/mount/format.h"
#include "sample.h"
#include "superblock/ring.h"
#include "sim/sim.h"
#include "txn/roots.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#define NODE_SIZE 4096u

/* So few bytes that transactions are committed, and withheld, all the time. */
#define DIRTY_BYTES (32u << 10)

static struct {
	uint64_t every;	   /* one in so many commands is cut */
	uint64_t outcomes; /* states tried of one cut */
} plan = {.every = 7, .outcomes = 3};

static const struct zf_ctx ctx = {.may_wait = true};

/* ---- the filesystem ---- */

static struct zf_dev *open_sim(struct zf_sim *sim)
{
	struct zf_dev *dev;

	assert_int_equal(zf_sim_open(sim, NULL, &dev), 0);
	return dev;
}

static struct zf_fs *mount(struct zf_dev *dev)
{
	const struct zf_mount_options options = {0};
	struct zf_fs *fs;

	assert_int_equal(zf_fs_mount(dev, &options, NULL, &fs), 0);
	return fs;
}

/* Makes a filesystem whose newest two superblocks have nearly the same state. */
static struct zf_sim *make(void)
{
	const struct zf_geometry geometry = {
		.zone_size = 1u << 20,
		.zone_capacity = 1u << 20,
		.zone_count = 40,
		.append_limit = 128u << 10,
		.max_open = 14,
		.max_active = 14,
		.volatile_cache = true,
	};
	const struct zf_format_options format = {
		.fsid = {1, 2, 3},
		.node_size = NODE_SIZE,
		.dir_hash_seed = 4711,
		.log_secret = {9},
	};
	struct zf_sim *sim = zf_sim_new(&geometry, 1);
	struct zf_dev *dev = open_sim(sim);
	struct sample sample;
	struct zf_fs *fs;

	assert_int_equal(zf_fs_format(dev, &format, NULL), 0);
	fs = mount(dev);
	sample_populate(&sample, fs);
	assert_int_equal(zf_fs_unmount(fs), 0);
	fs = mount(dev);
	assert_int_equal(zf_fs_unlink(fs, &ctx, sample.many, "7"), 0);
	assert_int_equal(zf_fs_unmount(fs), 0);
	zf_dev_close(dev);
	return sim;
}

/* ---- damage ---- */

static struct zf_super newest(struct zf_sim *sim)
{
	struct zf_dev *dev = open_sim(sim);
	const struct zf_super *super;
	unsigned int stepped_over;
	struct zf_super copy;
	struct zf_ring *ring;

	assert_int_equal(zf_ring_open(dev, NULL, &ring), 0);
	assert_int_equal(zf_ring_newest(ring, &super, &stepped_over), 0);
	copy = *super;
	zf_ring_close(ring);
	zf_dev_close(dev);
	return copy;
}

static void spoil(struct zf_sim *sim, uint64_t address)
{
	uint8_t block[ZF_BLOCK_SIZE];

	zf_sim_peek(sim, address, block);
	memset(block + 64, 0x5a, 512);
	zf_sim_poke(sim, address, block);
}

/* The root of a tree, as the root tree has it. */
static struct zf_node_ptr root_of(struct zf_sim *sim, enum zf_tree_id tree)
{
	struct zf_super super = newest(sim);
	struct zf_node_ptr ptr = {0};
	uint8_t node[NODE_SIZE];

	zf_sim_peek(sim, super.root.address[0], node);
	for (unsigned int i = 0; i < zf_node_count(node); i++) {
		char scratch[ZF_PACKED_VALUE_MAX];
		struct zf_disk_root disk;
		size_t len;

		if (zf_node_key(node, i).objectid != tree)
			continue;
		memcpy(&disk, zf_node_value(node, i, &len, scratch), sizeof(disk));
		zf_node_ptr_decode(&disk.ptr, &ptr);
	}
	assert_true(ptr.address[0] > 0);
	return ptr;
}

static void the_root_tree(struct zf_sim *sim)
{
	spoil(sim, newest(sim).root.address[0]);
}

static void an_inner_node_of_files(struct zf_sim *sim)
{
	spoil(sim, root_of(sim, ZF_TREE_FS).address[0]);
}

static void a_leaf_of_files(struct zf_sim *sim)
{
	uint8_t node[NODE_SIZE];

	zf_sim_peek(sim, root_of(sim, ZF_TREE_FS).address[0], node);
	spoil(sim, zf_node_child(node, 1).address[0]);
}

static void the_zone_tree(struct zf_sim *sim)
{
	spoil(sim, root_of(sim, ZF_TREE_ZONE).address[0]);
}

static void the_summary_tree(struct zf_sim *sim)
{
	spoil(sim, root_of(sim, ZF_TREE_SUMMARY).address[0]);
}

/* Spoils the superblock of the last commit, and a leaf of the state of the one before it. */
static void the_newest_record(struct zf_sim *sim)
{
	spoil(sim, newest(sim).address);
	a_leaf_of_files(sim);
}

static void all_records(struct zf_sim *sim)
{
	for (uint64_t at = newest(sim).address;; at -= ZF_BLOCK_SIZE) {
		spoil(sim, at);
		if (at == 0)
			break;
	}
}

/* Spoils all superblocks and root trees: only trees that nothing names are left. */
static void all_records_and_root_trees(struct zf_sim *sim)
{
	const uint64_t zone_size = 1u << 20;
	uint8_t block[ZF_BLOCK_SIZE];

	all_records(sim);
	for (uint64_t at = 2 * zone_size; at < 40 * zone_size; at += ZF_BLOCK_SIZE) {
		const struct zf_disk_node_header *header = (const void *)block;

		zf_sim_peek(sim, at, block);
		if (memcmp(header->magic, ZF_NODE_MAGIC, sizeof(header->magic)) == 0 &&
		    zf_le64_get(header->owner) == ZF_TREE_ROOT)
			spoil(sim, at);
	}
}

/* ---- cutting ---- */

static int repair(struct zf_dev *dev)
{
	const struct zf_repair_options options = {.dirty_bytes = DIRTY_BYTES};
	struct zf_repair_counts counts;

	return fixture_repair_with(dev, &options, &counts);
}

/* Repairs the filesystem if it has errors, and lists its files. */
static void finish(struct zf_sim *sim, struct zf_vector *ret_list)
{
	struct zf_dev *dev = open_sim(sim);

	if (fixture_errors(dev) > 0 && repair(dev) < 0) {
		fixture_print_messages();
		fail();
	}
	if (fixture_errors(dev) > 0) {
		fixture_print_messages();
		fail();
	}
	assert_int_equal(listing_make(dev, ret_list), 0);
	zf_dev_close(dev);
}

static void judge(struct zf_sim *sim, const struct zf_vector *whole, uint64_t cut)
{
	struct zf_vector list;

	finish(sim, &list);
	/* Deleted files may be back, if the host's crash lost the newest pointers: not counted. */
	if (listing_compare(whole, &list, true) > 0) {
		print_error("cut at command %ju: %zu files, expected %zu\n", (uintmax_t)cut,
			    list.count, whole->count);
		fail();
	}
	zf_vector_deinit(&list);
}

/* Cuts a repair at command n, and judges some of the states that may be found after the cut. */
static void cut_at(const struct zf_sim *damaged, uint64_t n, const struct zf_vector *whole)
{
	struct zf_sim *sim = zf_sim_clone(damaged);
	struct zf_dev *dev = open_sim(sim);

	zf_sim_set_cut(sim, zf_sim_commands(sim) + n);
	/* Names hashed anew have another order each time: the repair may have one command less. */
	if (repair(dev) == 0)
		assert_false(zf_sim_is_cut(sim));
	zf_dev_close(dev);
	for (uint64_t seed = 0; seed < plan.outcomes; seed++) {
		struct zf_sim *found = zf_sim_clone(sim);

		if (seed % 3 == 0)
			zf_sim_crash_some(found, seed);
		else
			zf_sim_crash(found, seed,
				     seed % 3 == 1 ? ZF_SIM_CUT_DEVICE : ZF_SIM_CUT_HOST);
		judge(found, whole, n);
		zf_sim_free(found);
	}
	zf_sim_free(sim);
}

static void cut_everywhere(void (*damage)(struct zf_sim *sim))
{
	struct zf_sim *sim = make(), *whole_sim;
	struct zf_vector whole;
	struct zf_dev *dev;
	uint64_t before, commands;

	damage(sim);
	whole_sim = zf_sim_clone(sim);
	before = zf_sim_commands(whole_sim);
	dev = open_sim(whole_sim);
	assert_true(fixture_errors(dev) > 0);
	if (repair(dev) < 0) {
		fixture_print_messages();
		fail();
	}
	zf_dev_close(dev);
	commands = zf_sim_commands(whole_sim) - before;
	finish(whole_sim, &whole);
	assert_true(commands > 10);
	for (uint64_t n = 1; n <= commands; n += plan.every)
		cut_at(sim, n, &whole);
	zf_vector_deinit(&whole);
	zf_sim_free(whole_sim);
	zf_sim_free(sim);
}

/* Takes the first zone that has data offline. */
static void take_offline(struct zf_sim *sim, const struct zf_super *super, struct zf_dev *dev)
{
	for (uint32_t z = 2; z < super->zone_count; z++) {
		struct zf_zone_info info;

		assert_int_equal(zf_dev_report(dev, z, 1, &info), 0);
		if (info.wp == info.start || z == super->meta_zone[0] || z == super->log_zone[0])
			continue;
		zf_sim_set_zone_cond(sim, z, ZF_ZONE_OFFLINE);
		return;
	}
	fail();
}

/* A zone is offline, and a leaf is damaged: the leaf is repaired, the zone's data stays lost. */
static void a_zone_that_is_offline(void **state)
{
	struct zf_sim *sim = make();
	const struct zf_super super = newest(sim);
	struct zf_dev *dev;
	uint64_t errors;

	(void)state;
	a_leaf_of_files(sim);
	dev = open_sim(sim);
	take_offline(sim, &super, dev);
	errors = fixture_errors(dev);
	if (repair(dev) < 0) {
		fixture_print_messages();
		fail();
	}
	assert_in_range(fixture_errors(dev), 1, errors - 1);
	assert_true(fixture_said("offline", "lost"));
	zf_dev_close(dev);
	zf_sim_free(sim);
}

/* If nothing else is wrong, the repair writes nothing, and a message says so. */
static void nothing_but_a_zone_that_is_offline(void **state)
{
	struct zf_sim *sim = make();
	const struct zf_super super = newest(sim);
	struct zf_dev *dev = open_sim(sim);
	uint64_t commands;

	(void)state;
	take_offline(sim, &super, dev);
	assert_true(fixture_errors(dev) > 0);
	commands = zf_sim_commands(sim);
	assert_int_equal(repair(dev), -EUCLEAN);
	assert_true(fixture_said("would still have errors", "nothing was changed"));
	assert_int_equal(zf_sim_commands(sim), commands);
	zf_dev_close(dev);
	zf_sim_free(sim);
}

/* Zones that look empty have nodes, and no zone item shows that. */
static void pointers_that_are_lower_bounds(void **state)
{
	struct zf_sim *sim = make();
	struct zf_vector before;

	(void)state;
	finish(sim, &before);
	for (uint64_t seed = 0; seed < 10; seed++) {
		struct zf_sim *found = zf_sim_clone(sim);

		zf_sim_crash(found, seed, ZF_SIM_CUT_HOST);
		the_zone_tree(found);
		judge(found, &before, 0);
		zf_sim_free(found);
	}
	zf_vector_deinit(&before);
	zf_sim_free(sim);
}

/* Each of the repairs that are cut has written to empty zones. */
static void again_and_again(void **state)
{
	struct zf_sim *sim = make();
	struct zf_vector list;

	(void)state;
	a_leaf_of_files(sim);
	for (unsigned int i = 0; i < 40; i++) {
		struct zf_dev *dev = open_sim(sim);

		zf_sim_set_cut(sim, zf_sim_commands(sim) + 6);
		assert_int_not_equal(repair(dev), 0);
		zf_dev_close(dev);
		zf_sim_crash(sim, i, ZF_SIM_CUT_DEVICE);
	}
	finish(sim, &list);
	assert_true(list.count > 100);
	zf_vector_deinit(&list);
	zf_sim_free(sim);
}

#define CUT_TEST(name)                                                                             \
	static void without_##name(void **state)                                                   \
	{                                                                                          \
		(void)state;                                                                       \
		cut_everywhere(name);                                                              \
	}

CUT_TEST(the_root_tree)
CUT_TEST(an_inner_node_of_files)
CUT_TEST(a_leaf_of_files)
CUT_TEST(the_zone_tree)
CUT_TEST(the_summary_tree)
CUT_TEST(the_newest_record)
CUT_TEST(all_records)
CUT_TEST(all_records_and_root_trees)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_the_root_tree),
		cmocka_unit_test(without_an_inner_node_of_files),
		cmocka_unit_test(without_a_leaf_of_files),
		cmocka_unit_test(without_the_zone_tree),
		cmocka_unit_test(without_the_summary_tree),
		cmocka_unit_test(without_the_newest_record),
		cmocka_unit_test(without_all_records),
		cmocka_unit_test(without_all_records_and_root_trees),
		cmocka_unit_test(a_zone_that_is_offline),
		cmocka_unit_test(nothing_but_a_zone_that_is_offline),
		cmocka_unit_test(pointers_that_are_lower_bounds),
		cmocka_unit_test(again_and_again),
	};

	if (argc > 1 && strcmp(argv[1], "all") == 0) {
		plan.every = 1;
		plan.outcomes = 12;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
