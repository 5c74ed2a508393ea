/* SPDX-License-Identifier: MIT */
/* Nodes, roots and the superblock: errors below the level of items. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sample.h"
#include "txn/root_format.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#define FIELD(type, member) offsetof(type, member), sizeof(((type *)NULL)->member)

/* The node of a level on the way to /file's inode. */
static uint8_t *node_at(struct sample *sample, unsigned int level)
{
	uint64_t address[ZF_TREE_LEVEL_MAX];
	unsigned int top = forge_path(&sample->forge, ZF_TREE_FS,
				      ZF_KEY(sample->file, ZF_KEY_INODE, 0), address);

	assert_true(level <= top);
	return forge_bytes(&sample->forge, address[level]);
}

static void seal_at(struct sample *sample, unsigned int level)
{
	forge_seal(&sample->forge, ZF_TREE_FS, ZF_KEY(sample->file, ZF_KEY_INODE, 0), level);
}

static void a_flipped_bit_in_a_leaf(void **state)
{
	struct sample *sample = *state;

	node_at(sample, 0)[200] ^= 4;
	sample_expect(sample, false, "corrupt node", "csum has");
	/* Names and link counts that are known only in part are not judged. */
	assert_true(sample_said("names and link counts were not compared", "fs tree"));
	assert_false(sample_said("nlink", "expected"));
}

static void a_wrong_level(void **state)
{
	struct sample *sample = *state;

	node_at(sample, 0)[offsetof(struct zf_disk_node_header, level)] = 3;
	seal_at(sample, 0);
	sample_expect(sample, false, "corrupt node", "level has 3, expected 0");
}

static void a_node_of_another_tree(void **state)
{
	struct sample *sample = *state;

	node_at(sample, 0)[offsetof(struct zf_disk_node_header, owner)] = ZF_TREE_SUMMARY;
	seal_at(sample, 0);
	sample_expect(sample, false, "corrupt node", "owner has 3, expected 2");
}

static void keys_out_of_order(void **state)
{
	struct sample *sample = *state;
	struct zf_disk_item *items =
		(void *)(node_at(sample, 0) + sizeof(struct zf_disk_node_header));

	items[1].key = items[0].key;
	seal_at(sample, 0);
	sample_expect(sample, false, "corrupt node", "key 1 has");
}

static void a_key_beyond_the_parents_next_key(void **state)
{
	struct sample *sample = *state;
	uint8_t *leaf = node_at(sample, 0);
	struct zf_disk_item *items = (void *)(leaf + sizeof(struct zf_disk_node_header));
	struct zf_disk_key *last = &items[zf_node_count(leaf) - 1].key;

	last->objectid = zf_le64_from(UINT64_MAX - 1);
	seal_at(sample, 0);
	sample_expect(sample, false, "corrupt node", "last key has");
}

static void a_node_that_two_parents_name(void **state)
{
	struct sample *sample = *state;
	uint8_t *parent = node_at(sample, 1);
	struct zf_node_ptr first = zf_node_child(parent, 0);

	zf_node_set_child(parent, 1, &first);
	seal_at(sample, 1);
	sample_expect(sample, false, "corrupt node", "one parent for each node");
}

static void a_node_outside_the_device(void **state)
{
	struct sample *sample = *state;
	uint8_t *parent = node_at(sample, 1);
	/* The last child: node_at() finds the node by /file's inode, below another child. */
	unsigned int last = zf_node_count(parent) - 1;
	struct zf_node_ptr ptr = zf_node_child(parent, last);

	ptr.address[0] = UINT64_C(1) << 40;
	zf_node_set_child(parent, last, &ptr);
	seal_at(sample, 1);
	sample_expect(sample, false, "corrupt node", "address[0] has 1099511627776");
}

static void a_damaged_second_copy(void **state)
{
	struct sample sample;
	struct zf_check_counts counts;
	uint8_t *node;

	(void)state;
	sample_make(&sample, &(struct sample_options){.copies = 2});
	node = node_at(&sample, 0);
	forge_bytes(&sample.forge,
		    zf_le64_get(((struct zf_disk_node_header *)(void *)node)->address[1]))[300] ^=
		1;
	sample_expect(&sample, true, "corrupt node", "copy 1 has other bytes");
	sample_check(&sample, true, &counts);
	assert_int_equal(counts.errors, 1);
	/* If the first copy is damaged, too, the node is lost. */
	node[300] ^= 1;
	sample_expect(&sample, true, "names and link counts were not compared", "cannot be read");
	sample_free(&sample);
}

static void a_damaged_first_copy_is_told_and_the_second_used(void **state)
{
	struct sample sample;
	struct zf_check_counts counts;

	(void)state;
	sample_make(&sample, &(struct sample_options){.copies = 2});
	node_at(&sample, 0)[300] ^= 1;
	sample_expect(&sample, true, "corrupt node", "csum has");
	sample_check(&sample, true, &counts);
	assert_int_equal(counts.errors, 1);
	sample_free(&sample);
}

/* ---- roots ---- */

static void a_tree_without_a_root(void **state)
{
	struct sample *sample = *state;

	forge_delete(&sample->forge, ZF_TREE_ROOT, ZF_KEY(ZF_TREE_SHARE, ZF_KEY_ROOT, 0));
	sample_expect(sample, false, "corrupt root tree", "tree 4 has no root");
}

static void a_root_of_an_unknown_tree(void **state)
{
	struct sample *sample = *state;
	const struct zf_disk_root root = {0};

	forge_insert(&sample->forge, ZF_TREE_ROOT, ZF_KEY(9, ZF_KEY_ROOT, 0), &root, sizeof(root));
	sample_expect(sample, false, "corrupt root item at 9", "key has");
}

static void a_root_of_an_impossible_level(void **state)
{
	struct sample *sample = *state;

	forge_field(&sample->forge, ZF_TREE_ROOT, ZF_KEY(ZF_TREE_SHARE, ZF_KEY_ROOT, 0),
		    FIELD(struct zf_disk_root, level), 200);
	sample_expect(sample, false, "corrupt root item at 4", "level has 200");
}

static void a_root_from_the_future(void **state)
{
	struct sample *sample = *state;

	forge_field(&sample->forge, ZF_TREE_ROOT, ZF_KEY(ZF_TREE_SHARE, ZF_KEY_ROOT, 0),
		    FIELD(struct zf_disk_root, ptr.generation), 1u << 30);
	sample_expect(sample, false, "corrupt root item at 4", "generation has 1073741824");
}

/* ---- the superblock ---- */

static void a_superblock_of_another_device(void **state)
{
	struct sample *sample = *state;

	sample->forge.super.zone_count = 64;
	forge_write_super(&sample->forge);
	sample_expect(sample, false, "corrupt superblock", "zone_count has 64, expected 32");
}

static void a_superblock_of_smaller_zones(void **state)
{
	struct sample *sample = *state;

	sample->forge.super.zone_capacity = 2u << 20;
	forge_write_super(&sample->forge);
	sample_expect(sample, false, "corrupt superblock", "zone_capacity has 2097152");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_flipped_bit_in_a_leaf),
		TEST(a_wrong_level),
		TEST(a_node_of_another_tree),
		TEST(keys_out_of_order),
		TEST(a_key_beyond_the_parents_next_key),
		TEST(a_node_that_two_parents_name),
		TEST(a_node_outside_the_device),
		cmocka_unit_test(a_damaged_second_copy),
		cmocka_unit_test(a_damaged_first_copy_is_told_and_the_second_used),
		TEST(a_tree_without_a_root),
		TEST(a_root_of_an_unknown_tree),
		TEST(a_root_of_an_impossible_level),
		TEST(a_root_from_the_future),
		TEST(a_superblock_of_another_device),
		TEST(a_superblock_of_smaller_zones),
	};

	return cmocka_run_group_tests_name("check_trees", tests, NULL, NULL);
}
