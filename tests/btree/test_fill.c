/* SPDX-License-Identifier: MIT */
/*
 * How full leaves become under different orders of insertion, with commits in between. The seeds
 * are fixed, so each run prints the same numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "rig.h"
#include "sim/rng.h"

#define NODE_SIZE 4096u
#define ITEMS	  40000u
#define STREAMS	  8u

static struct rig rig;
static struct zf_rng rng;

static int setup(void **state)
{
	const struct rig_options options = {.node_size = NODE_SIZE,
					    .copies = 1,
					    .zone_count = 1000,
					    .zone_blocks = 256,
					    .cache_bytes = 10000 * NODE_SIZE};

	rig_init(&rig, &options);
	zf_rng_seed(&rng, 1);
	return 0;
}

static int teardown(void **state)
{
	rig_deinit(&rig);
	return 0;
}

static void insert(const struct zf_key *key, size_t len)
{
	static const uint8_t value[NODE_SIZE];

	assert_int_equal(zf_tree_insert(rig.forest, rig_writer(&rig), ZF_TREE_FS, key, value, len),
			 0);
}

struct leaves {
	uint64_t count, used;
};

static int add_leaf(void *arg, const struct zf_node_expect *expect, const void *node, int error)
{
	struct leaves *leaves = arg;

	assert_int_equal(error, 0);
	if (expect->level == 0) {
		leaves->count++;
		leaves->used += zf_node_used(node, NODE_SIZE);
	}
	return 0;
}

static struct leaves leaves; /* of the last call of fill() */

/* Returns the average fill in percent. Commits, and checks that the tree is consistent. */
static unsigned int fill(const char *what)
{
	unsigned int percent;

	leaves = (struct leaves){0};
	rig_commit(&rig);
	rig_check(&rig);
	assert_int_equal(zf_tree_walk(rig.forest, ZF_TREE_FS, add_leaf, &leaves), 0);
	percent = (unsigned int)(leaves.used * 100 / (leaves.count * zf_node_capacity(NODE_SIZE)));
	printf("%-40s %u %% of %u leaves\n", what, percent, (unsigned int)leaves.count);
	return percent;
}

/* A file's blocks in random order, each an extent: the extents differ in little but their address.
 */
static void extents_in_random_places(void **state)
{
	static unsigned int order[ITEMS];

	for (unsigned int i = 0; i < ITEMS; i++) {
		unsigned int j = (unsigned int)zf_rng_below(&rng, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (unsigned int n = 0; n < ITEMS; n++) {
		struct zf_key key = ZF_KEY(256, 7, order[n] * UINT64_C(4096));
		uint8_t value[24] = {2, 0, 0, 0, 1, 0, 0, 0, (uint8_t)(n >> 12)};

		value[17] = (uint8_t)(n << 4);
		value[18] = (uint8_t)(n >> 4);
		value[19] = (uint8_t)(n >> 12);
		assert_int_equal(zf_tree_insert(rig.forest, rig_writer(&rig), ZF_TREE_FS, &key,
						value, sizeof(value)),
				 0);
		if (n % 10000 == 9999)
			rig_commit(&rig);
	}
	assert_in_range(fill("extents in random places"), 75, 100);
	/* An extent takes about ten bytes here, and 45 in a plain leaf. */
	assert_true(leaves.count * NODE_SIZE < ITEMS * 13);
}

static struct zf_key random_key(unsigned int n)
{
	return ZF_KEY(zf_rng_next(&rng), 1, n);
}

/* Random keys, with a commit after every `batch` of them. */
static void insert_random(unsigned int items, unsigned int batch, size_t len_max)
{
	for (unsigned int n = 0; n < items; n++) {
		struct zf_key key = random_key(n);

		insert(&key, len_max > 48 ? zf_rng_below(&rng, len_max + 1) : len_max);
		if (n % batch == batch - 1)
			rig_commit(&rig);
	}
}

static void random_insertions_with_all_leaves_dirty(void **state)
{
	insert_random(ITEMS, 10000, 48);
	assert_in_range(fill("random, all leaves dirty"), 81, 100);
}

static void random_insertions_of_any_length(void **state)
{
	insert_random(ITEMS / 2, 10000, 300);
	assert_in_range(fill("random, values up to 300 bytes"), 79, 100);
}

static void random_insertions_of_the_longest_values(void **state)
{
	insert_random(ITEMS / 20, 1000, zf_node_value_max(NODE_SIZE));
	assert_in_range(fill("random, values up to the maximum"), 70, 100);
}

static void random_insertions_with_few_leaves_dirty(void **state)
{
	insert_random(ITEMS / 4, 20, 48);
	assert_in_range(fill("random, few leaves dirty"), 66, 100);
}

/* Appends items to all objects, in turn or in random order. */
static void append_to_streams(unsigned int items, bool in_turn, unsigned int batch)
{
	uint64_t next[STREAMS] = {0};

	for (unsigned int n = 0; n < items; n++) {
		unsigned int i = in_turn ? n % STREAMS : (unsigned int)zf_rng_below(&rng, STREAMS);
		struct zf_key key = ZF_KEY(1 + i, 1, next[i]++ * 4096);

		insert(&key, 48);
		if (n % batch == batch - 1)
			rig_commit(&rig);
	}
}

static void streams_in_turn(void **state)
{
	append_to_streams(8 * ITEMS, true, 10000);
	assert_in_range(fill("streams in turn"), 95, 100);
}

static void streams_at_random(void **state)
{
	append_to_streams(8 * ITEMS, false, 500);
	assert_in_range(fill("streams at random"), 95, 100);
}

/* The stream's keys lie between those of a leaf: the stream grows in the middle of that leaf until
 * it has leaves of its own. */
static void a_stream_among_others(void **state)
{
	for (unsigned int i = 0; i < 400; i++) {
		struct zf_key key = ZF_KEY(i, 1, 0);

		insert(&key, 48);
	}
	for (unsigned int n = 0; n < 8 * ITEMS; n++) {
		struct zf_key key = ZF_KEY(n % 4 * 100 + 20, 2, n);

		insert(&key, 48);
		if (n % 40 == 39) /* long before any of them has filled a leaf */
			rig_commit(&rig);
	}
	assert_in_range(fill("streams among other items"), 95, 100);
}

/* Items come in short bursts, each at the end of one of many objects. */
static void short_bursts(void **state)
{
	static unsigned int next[2000];

	memset(next, 0, sizeof(next));
	for (unsigned int n = 0; n < ITEMS / 8; n++) {
		unsigned int i = (unsigned int)zf_rng_below(&rng, 2000);

		for (unsigned int k = 0; k < 8; k++) {
			struct zf_key key = ZF_KEY(i, 1, next[i]++);

			insert(&key, 48);
		}
		if (n % 500 == 499)
			rig_commit(&rig);
	}
	assert_in_range(fill("bursts of 8 at many places"), 66, 100);
}

/* ---- items that do not go with those of packed leaves ---- */

#define ROWS  10000u
#define SPACE 4096u
#define LEN   24u

static struct zf_key row_key(unsigned int n)
{
	return ZF_KEY(7, 1, (uint64_t)n * SPACE);
}

static void make_rows(void)
{
	for (unsigned int n = 0; n < ROWS; n++) {
		struct zf_key key = row_key(n);

		insert(&key, LEN);
	}
	rig_commit(&rig);
}

/* Leaves that so many bytes of plain items fill half. */
static uint64_t twice_the_leaves(uint64_t bytes)
{
	return 2 * bytes / zf_node_capacity(NODE_SIZE) + 1;
}

static uint64_t count_leaves(void)
{
	leaves = (struct leaves){0};
	rig_check(&rig);
	assert_int_equal(zf_tree_walk(rig.forest, ZF_TREE_FS, add_leaf, &leaves), 0);
	printf("%u leaves\n", (unsigned int)leaves.count);
	return leaves.count;
}

/* Puts a value of another length behind every third item, in ascending or descending order of keys.
 */
static void others_among_packed_items(void **state)
{
	for (unsigned int backwards = 0; backwards < 2; backwards++) {
		make_rows();
		for (unsigned int i = 0; i < ROWS; i += 3) {
			struct zf_key key = row_key(backwards ? ROWS - 1 - i : i);

			key.offset++;
			insert(&key, LEN + 1);
		}
		assert_in_range(count_leaves(), 1, twice_the_leaves(ROWS * (21 + LEN) * 4 / 3));
		teardown(NULL);
		setup(NULL);
	}
}

/* Values that have nothing in common replace similar values. */
static void packed_items_that_become_unlike(void **state)
{
	for (unsigned int backwards = 0; backwards < 2; backwards++) {
		make_rows();
		for (unsigned int i = 0; i < ROWS; i++) {
			struct zf_key key = row_key(backwards ? ROWS - 1 - i : i);
			uint8_t value[LEN];

			zf_rng_fill(&rng, value, LEN);
			assert_int_equal(zf_tree_set(rig.forest, rig_writer(&rig), ZF_TREE_FS, &key,
						     value, LEN),
					 0);
		}
		assert_in_range(count_leaves(), 1, twice_the_leaves(ROWS * (21 + LEN)));
		teardown(NULL);
		setup(NULL);
	}
}

/* A leaf that most items were cut out of is merged with a neighbour that is two thirds full. */
static void a_range_cut_out_of_packed_items(void **state)
{
	struct zf_key from = row_key(10), to = row_key(470);
	uint64_t before;

	make_rows();
	for (unsigned int n = 0; n < ROWS; n += 3) {
		struct zf_key key = row_key(n);

		assert_int_equal(zf_tree_delete(rig.forest, rig_writer(&rig), ZF_TREE_FS, &key), 0);
	}
	rig_commit(&rig);
	before = count_leaves();
	assert_int_equal(
		zf_tree_delete_range(rig.forest, rig_writer(&rig), ZF_TREE_FS, &from, &to, 100), 0);
	rig_commit(&rig);
	assert_int_equal(count_leaves(), before - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
		TEST(random_insertions_with_all_leaves_dirty),
		TEST(random_insertions_of_any_length),
		TEST(random_insertions_of_the_longest_values),
		TEST(random_insertions_with_few_leaves_dirty),
		TEST(streams_in_turn),
		TEST(streams_at_random),
		TEST(a_stream_among_others),
		TEST(short_bursts),
		TEST(extents_in_random_places),
		TEST(others_among_packed_items),
		TEST(a_range_cut_out_of_packed_items),
		TEST(packed_items_that_become_unlike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
