/* SPDX-License-Identifier: MIT */
/* Cases that the random tests do not pin down: reading under damage and change, bounds, costs. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "io/dev_ops.h"
#include "rig.h"

#define NODE_SIZE 4096u
#define VALUE	  100
#define ITEMS	  2000u

static struct rig rig;

/* Stands between the forest and the device's read. */
static struct {
	struct zf_dev_ops ops;
	int (*read)(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
		    unsigned int iovcnt);
	void (*before)(void); /* called once, before the next read */
	unsigned int fail;    /* how many of the next reads fail */
	unsigned int count;
} hook;

static int hooked_read(struct zf_dev *dev, uint64_t addr, const struct iovec *iov,
		       unsigned int iovcnt)
{
	void (*before)(void) = hook.before;

	hook.count++;
	hook.before = NULL;
	if (before)
		before();
	if (hook.fail > 0) {
		hook.fail--;
		return -EIO;
	}
	return hook.read(dev, addr, iov, iovcnt);
}

static void install_hook(void)
{
	memset(&hook, 0, sizeof(hook));
	hook.ops = *rig.dev->ops;
	hook.read = hook.ops.read;
	hook.ops.read = hooked_read;
	rig.dev->ops = &hook.ops;
}

static struct zf_key key_of(uint64_t n)
{
	return ZF_KEY(1, 1, n);
}

static int put(uint64_t n, uint8_t byte)
{
	struct zf_key key = key_of(n);
	uint8_t value[VALUE];

	memset(value, byte, sizeof(value));
	return zf_tree_set(rig.forest, rig_writer(&rig), ZF_TREE_FS, &key, value, sizeof(value));
}

/* The first byte of the value, or an error. */
static int get(uint64_t n)
{
	struct zf_key key = key_of(n);
	uint8_t value[VALUE];
	int r = zf_tree_lookup(rig.forest, ZF_TREE_FS, &key, value, sizeof(value), NULL);

	return r < 0 ? r : value[0];
}

static int delete(uint64_t n)
{
	struct zf_key key = key_of(n);

	return zf_tree_delete(rig.forest, rig_writer(&rig), ZF_TREE_FS, &key);
}

/* ITEMS items, on the device; nothing but the roots in the cache. */
static void make_tree(uint8_t copies)
{
	const struct rig_options options = {.node_size = NODE_SIZE,
					    .copies = copies,
					    .zone_count = 200,
					    .zone_blocks = 32,
					    .cache_bytes = 1000 * NODE_SIZE};

	rig_init(&rig, &options);
	for (uint64_t n = 0; n < ITEMS; n++)
		assert_int_equal(put(n, (uint8_t)n), 0);
	rig_commit(&rig);
	rig_reopen(&rig);
	zf_forest_free(rig.forest);
	assert_int_equal(zf_forest_new(rig.dev, &rig.options, &rig.report, &rig.forest), 0);
	rig_set_roots(&rig);
	install_hook();
}

static int one_copy(void **state)
{
	make_tree(1);
	return 0;
}

static int two_copies(void **state)
{
	make_tree(2);
	return 0;
}

static int teardown(void **state)
{
	rig_deinit(&rig);
	return 0;
}

struct search {
	struct zf_key key;
	struct zf_node_expect leaf;
	unsigned int leaves, unreadable;
};

static int find_leaf(void *arg, const struct zf_node_expect *expect, const void *node, int error)
{
	struct search *search = arg;

	search->unreadable += !node;
	if (expect->level > 0)
		return 0;
	search->leaves++;
	if (zf_key_cmp(&expect->first_key, &search->key) <= 0)
		search->leaf = *expect;
	return 0;
}

/* Of a forest of its own, so that the rig's cache stays cold. */
static struct search walk(uint64_t n)
{
	struct search search = {.key = key_of(n)};
	struct zf_forest *forest;
	struct zf_node_ptr root;
	uint8_t level;

	zf_tree_get_root(rig.forest, ZF_TREE_FS, &root, &level);
	assert_int_equal(zf_forest_new(rig.dev, &rig.options, NULL, &forest), 0);
	zf_tree_set_root(forest, ZF_TREE_FS, &root, level);
	assert_int_equal(zf_tree_walk(forest, ZF_TREE_FS, find_leaf, &search), 0);
	zf_forest_free(forest);
	return search;
}

static void damage(uint64_t address)
{
	uint64_t zone_size = zf_dev_geometry(rig.dev)->zone_size;
	uint8_t *zone = zf_memory_zone(rig.memory, (uint32_t)(address / zone_size));

	zone[address % zone_size + 2000] ^= 1;
}

static void ascending_insertions_fill_the_leaves(void **state)
{
	unsigned int per_leaf = (NODE_SIZE - 72) / (21 + VALUE);

	assert_int_equal(walk(0).leaves, (ITEMS + per_leaf - 1) / per_leaf);
}

static void values_up_to_the_maximum_are_taken(void **state)
{
	const struct zf_key key = ZF_KEY(9, 9, 9);
	uint8_t value[NODE_SIZE] = {0};
	uint32_t max = zf_node_value_max(NODE_SIZE);

	assert_int_equal(zf_tree_insert(rig.forest, rig_writer(&rig), ZF_TREE_FS, &key, value, max),
			 0);
	assert_int_equal(
		zf_tree_set(rig.forest, rig_writer(&rig), ZF_TREE_FS, &key, value, max + 1),
		-EINVAL);
}

static uint64_t damaged_copies(void)
{
	struct zf_forest_stats stats;

	zf_forest_get_stats(rig.forest, &stats);
	return stats.damaged;
}

static void a_damaged_node_is_an_error_reported_once(void **state)
{
	struct search search = walk(1000);
	uint64_t first = search.leaf.first_key.offset;

	damage(search.leaf.ptr.address[0]);
	assert_int_equal(get(1000), -EUCLEAN);
	assert_int_equal(rig.messages, 1);
	assert_non_null(strstr(rig.message, "csum has "));
	assert_int_equal(damaged_copies(), 1);
	assert_int_equal(put(1000, 1), -EUCLEAN);
	assert_int_equal(get(first - 1), (uint8_t)(first - 1));
}

static void a_read_that_fails_once_is_repeated(void **state)
{
	assert_int_equal(get(0), 0);
	hook.fail = 1;
	assert_int_equal(get(1000), 1000 % 256);
	assert_int_equal(rig.messages, 0);
	assert_int_equal(damaged_copies(), 0);
	hook.fail = 1000;
	assert_int_equal(get(1900), -EIO);
	assert_int_equal(rig.messages, 1);
}

static void rewrite_everything(void)
{
	for (uint64_t n = 0; n < ITEMS; n++)
		assert_int_equal(put(n, (uint8_t)(n + 1)), 0);
	rig_commit(&rig);
	rig_commit(&rig); /* the old zones are reset by now */
}

static void a_node_that_moved_before_it_was_read_is_no_error(void **state)
{
	hook.before = rewrite_everything;
	assert_int_equal(get(1000), 1001 % 256);
	assert_int_equal(rig.messages, 0);
	assert_int_equal(damaged_copies(), 0);
}

static void change_others(void)
{
	for (uint64_t n = 0; n < ITEMS; n += 2)
		assert_int_equal(delete (n), 0);
	rig_commit(&rig);
	rig_commit(&rig);
}

static void a_modification_starts_over_when_its_path_moved(void **state)
{
	hook.before = change_others;
	assert_int_equal(put(1000, 77), 0);
	assert_int_equal(get(1000), 77);
	assert_int_equal(get(1001), 1001 % 256);
	assert_int_equal(get(1002), -ENOENT);
	rig_commit(&rig);
	rig_check(&rig);
}

static void the_second_copy_serves_when_the_first_is_damaged(void **state)
{
	struct search search = walk(1000);

	damage(search.leaf.ptr.address[0]);
	assert_int_equal(get(1000), 1000 % 256);
	assert_int_equal(rig.messages, 1);
	assert_int_equal(damaged_copies(), 1);
	assert_int_equal(put(1000, 7), 0);
	rig_commit(&rig);
	rig_reopen(&rig);
	assert_int_equal(get(1000), 7);
	assert_int_equal(rig.messages, 1);
}

static void both_copies_damaged_are_an_error_reported_for_each(void **state)
{
	struct search search = walk(1000);

	damage(search.leaf.ptr.address[0]);
	damage(search.leaf.ptr.address[1]);
	assert_int_equal(get(1000), -EUCLEAN);
	assert_int_equal(rig.messages, 2);
	assert_int_equal(damaged_copies(), 2);
}

static void deleting_works_beside_damaged_neighbours(void **state)
{
	struct search search = walk(1000);
	uint64_t first = search.leaf.first_key.offset, next = search.leaf.next_key.offset;

	damage(walk(first - 1).leaf.ptr.address[0]);
	damage(walk(next).leaf.ptr.address[0]);
	for (uint64_t n = first; n < next; n++)
		assert_int_equal(delete (n), 0);
	assert_int_equal(get(1000), -EUCLEAN); /* where it would be now */
}

static void a_walk_names_unreadable_nodes_and_goes_on(void **state)
{
	struct search whole = walk(1000), damaged;

	damage(whole.leaf.ptr.address[0]);
	damaged = walk(1000);
	assert_int_equal(damaged.unreadable, 1);
	assert_int_equal(damaged.leaves, whole.leaves);
}

static void deleting_a_range_does_not_read_the_leaves_in_it(void **state)
{
	struct zf_key from = key_of(100), to = key_of(1900);
	unsigned int before = hook.count;

	assert_int_equal(
		zf_tree_delete_range(rig.forest, rig_writer(&rig), ZF_TREE_FS, &from, &to, 10000),
		0);
	assert_in_range(hook.count - before, 3, 6);
	assert_int_equal(get(99), 99);
	assert_int_equal(get(100), -ENOENT);
	assert_int_equal(get(1900), -ENOENT);
	assert_int_equal(get(1901), 1901 % 256);
	rig_check(&rig);
}

static unsigned int count_left(void)
{
	unsigned int n = 0;

	for (unsigned int i = 100; i <= 1900; i++)
		n += get(i) >= 0;
	return n;
}

/* The caller of a function that returns an error assumes that nothing was removed. */
static void deleting_a_range_fails_only_before_it_begins(void **state)
{
	struct zf_key from = key_of(100), to = key_of(1900);
	unsigned int failed = 0, partly = 0;
	int r = 1;

	for (unsigned int n = 1; r != 0; n++) {
		unsigned int before = count_left();

		rig.fail_after = n;
		r = zf_tree_delete_range(rig.forest, rig_writer(&rig), ZF_TREE_FS, &from, &to,
					 10000);
		rig.fail_after = 0;
		if (r < 0)
			assert_int_equal(count_left(), before);
		failed += r < 0;
		partly += r > 0;
	}
	assert_true(failed > 0 && partly > 0);
	assert_int_equal(count_left(), 0);
	rig_check(&rig);
}

static void deleting_everything_leaves_one_empty_leaf(void **state)
{
	const struct zf_key min = ZF_KEY_MIN, max = ZF_KEY_MAX;
	struct zf_node_ptr root;
	unsigned int calls = 1;
	uint8_t level;

	while (zf_tree_delete_range(rig.forest, rig_writer(&rig), ZF_TREE_FS, &min, &max, 10) == 1)
		calls++;
	assert_in_range(calls, 5, 12);
	zf_tree_get_root(rig.forest, ZF_TREE_FS, &root, &level);
	assert_int_equal(level, 0);
	assert_int_equal(get(5), -ENOENT);
	rig_check(&rig);
	rig_commit(&rig);
	rig_reopen(&rig);
	assert_int_equal(get(5), -ENOENT);
}

static void dirty_nodes_are_found_by_both_addresses_until_clean(void **state)
{
	struct zf_node_ptr root, sealed, old;
	uint8_t level;
	uint64_t generation = rig.running.generation;

	zf_tree_get_root(rig.forest, ZF_TREE_FS, &old, &level);
	assert_null(zf_forest_dirty_node(rig.forest, old.address[0], 0, generation));
	assert_int_equal(put(5, 5), 0);
	zf_tree_get_root(rig.forest, ZF_TREE_FS, &root, &level);
	assert_int_equal(root.csum, 0);
	assert_null(zf_forest_dirty_node(rig.forest, root.address[0], 0, generation - 1));
	rig_freeze(&rig);
	rig_seal(&rig, ZF_TREE_FS);
	rig_seal(&rig, ZF_TREE_SUMMARY);
	rig_seal_root(&rig);
	zf_tree_get_root(rig.forest, ZF_TREE_FS, &sealed, &level);
	assert_int_equal(sealed.address[0], root.address[0]);
	assert_int_not_equal(sealed.csum, 0);

	/* The next transaction copies the frozen node, which is still there to be written. */
	assert_int_equal(put(5, 6), 0);
	for (unsigned int copy = 0; copy < 2; copy++) {
		const void *node =
			zf_forest_dirty_node(rig.forest, root.address[copy], copy, generation);

		assert_non_null(node);
		assert_true(
			zf_node_is_valid_at(&rig.options.shape, node, root.address[copy], copy));
		assert_null(
			zf_forest_dirty_node(rig.forest, root.address[copy], 1 - copy, generation));
	}
	rig_write(&rig);
	rig_clean(&rig);
	assert_null(zf_forest_dirty_node(rig.forest, root.address[0], 0, generation));
	assert_null(zf_forest_dirty_node(rig.forest, root.address[1], 1, generation));
	assert_int_equal(get(5), 6);
	rig_reopen(&rig);
	assert_int_equal(get(5), 5);
}

static void a_node_freed_before_it_was_written_is_a_hole(void **state)
{
	const struct zf_key key = ZF_KEY(1, 1, 1);
	struct zf_node_ptr root;
	uint8_t level;
	uint64_t generation = rig.running.generation, dirty;

	for (uint64_t n = 0; n < 100; n++)
		assert_int_equal(zf_tree_insert(rig.forest, rig_writer(&rig), ZF_TREE_SUMMARY,
						&(struct zf_key){.objectid = n}, &key, sizeof(key)),
				 0);
	zf_tree_get_root(rig.forest, ZF_TREE_SUMMARY, &root, &level);
	assert_int_equal(level, 1);
	dirty = zf_forest_dirty_bytes(rig.forest);
	for (uint64_t n = 0; n < 100; n++)
		assert_int_equal(zf_tree_delete(rig.forest, rig_writer(&rig), ZF_TREE_SUMMARY,
						&(struct zf_key){.objectid = n}),
				 0);
	assert_true(zf_forest_dirty_bytes(rig.forest) < dirty);
	assert_null(zf_forest_dirty_node(rig.forest, root.address[0], 0, generation));
	rig_commit(&rig);
	rig_check(&rig);
}

/* The running root is then an old leaf, yet the frozen tree is still the whole of it. */
static void a_root_that_collapses_after_the_freeze_is_not_sealed(void **state)
{
	struct zf_key from = key_of((NODE_SIZE - 72) / (21 + VALUE)); /* behind the first leaf */
	struct zf_key to = ZF_KEY_MAX;
	struct zf_node_ptr root;
	uint8_t level;

	assert_int_equal(put(ITEMS - 1, 99), 0);
	rig_freeze(&rig);
	assert_int_equal(
		zf_tree_delete_range(rig.forest, rig_writer(&rig), ZF_TREE_FS, &from, &to, 10000),
		0);
	zf_tree_get_root(rig.forest, ZF_TREE_FS, &root, &level);
	assert_int_equal(level, 0);
	assert_true(root.generation < rig.frozen.generation);
	rig_seal(&rig, ZF_TREE_FS);
	rig_seal(&rig, ZF_TREE_SUMMARY);
	rig_seal_root(&rig);
	rig_write(&rig);
	rig_clean(&rig);
	assert_int_equal(get(ITEMS - 1), -ENOENT);
	rig_reopen(&rig);
	assert_int_equal(get(ITEMS - 1), 99);
}

static void a_cache_of_one_node_suffices(void **state)
{
	rig.options.cache_bytes = 1;
	rig_reopen(&rig);
	for (uint64_t n = 0; n < ITEMS; n += 50)
		assert_int_equal(get(n), n % 256);
	for (uint64_t n = 500; n < 700; n++) {
		assert_int_equal(delete (n), 0);
		rig_commit(&rig);
		assert_int_equal(get(n + 1), (n + 1) % 256);
	}
	rig_check(&rig);
}

/* Dirty nodes displace clean ones, except for the quarter of the cache that is reserved for them.
 */
static void the_bound_of_the_cache_includes_dirty_nodes(void **state)
{
	const uint64_t bound = 48;
	struct zf_forest_stats stats;

	rig.options.cache_bytes = bound * NODE_SIZE;
	rig_reopen(&rig);
	for (uint64_t n = 0; n < ITEMS; n++)
		assert_int_equal(get(n), n % 256);
	zf_forest_get_stats(rig.forest, &stats);
	assert_int_equal(stats.nodes_cached, bound);
	for (uint64_t n = 0; n < ITEMS; n++) {
		assert_int_equal(put(n, 7), 0);
		zf_forest_get_stats(rig.forest, &stats);
		assert_true(stats.nodes_cached <= bound ||
			    stats.nodes_cached <= stats.nodes_dirty + bound / 4);
	}
	assert_true(stats.nodes_dirty > bound / 2);
	rig_commit(&rig);
	zf_forest_get_stats(rig.forest, &stats);
	assert_true(stats.nodes_cached <= bound);
	rig_check(&rig);
}

/* How many nodes an edit of item n looks at in the cache. */
static uint64_t nodes_on_the_way(int (*edit)(uint64_t n), uint64_t n)
{
	struct zf_forest_stats before, after;

	zf_forest_get_stats(rig.forest, &before);
	assert_int_equal(edit(n), 0);
	zf_forest_get_stats(rig.forest, &after);
	return after.cache_hits - before.cache_hits;
}

static int put_1(uint64_t n)
{
	return put(n, 1);
}

static void what_is_near_the_last_edit_is_found_without_descending(void **state)
{
	(void)state;
	assert_true(nodes_on_the_way(put_1, 500) > 1);
	assert_int_equal(nodes_on_the_way(put_1, 501), 0);
	assert_int_equal(nodes_on_the_way(delete, 500), 0);
	assert_int_equal(get(501), 1);
	assert_int_equal(get(500), -ENOENT);
	/* Edits another leaf, and makes the copy that a new transaction needs. */
	assert_true(nodes_on_the_way(put_1, 900) > 1);
	rig_commit(&rig);
	assert_true(nodes_on_the_way(put_1, 900) > 1);
	assert_int_equal(nodes_on_the_way(put_1, 901), 0);
	rig_check(&rig);
}

static int put_in_root_tree(uint64_t n)
{
	static const uint8_t value[900];
	struct zf_key key = ZF_KEY(n, 0, 0);

	return zf_tree_insert(rig.forest, &rig.tail_writer.writer, ZF_TREE_ROOT, &key, value,
			      sizeof(value));
}

/* The commit edits the trees that it seals, and the parent's knowledge of the neighbour becomes
 * outdated. */
static void a_sealed_leaf_that_takes_items_is_sealed_anew(void **state)
{
	struct zf_forest_stats before, after;

	rig_freeze(&rig);
	for (uint64_t n = 10; n <= 50; n += 10) /* the last one in a second leaf */
		assert_int_equal(put_in_root_tree(n), 0);
	rig_seal(&rig, ZF_TREE_FS);
	rig_seal(&rig, ZF_TREE_SUMMARY);
	rig_seal_root(&rig);
	zf_forest_get_stats(rig.forest, &before);
	assert_int_equal(put_in_root_tree(15), 0);
	zf_forest_get_stats(rig.forest, &after);
	assert_int_equal(after.shares, before.shares + 1);
	rig_seal_root(&rig);
	rig_write(&rig);
	rig_clean(&rig);
	rig_reopen(&rig);
	rig_check(&rig);
	for (uint64_t n = 10; n <= 50; n += 10) {
		struct zf_key key = ZF_KEY(n, 0, 0);

		assert_int_equal(zf_tree_lookup(rig.forest, ZF_TREE_ROOT, &key, NULL, 0, NULL), 0);
	}
	assert_int_equal(rig.messages, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define ONE(t) cmocka_unit_test_setup_teardown(t, one_copy, teardown)
#define TWO(t) cmocka_unit_test_setup_teardown(t, two_copies, teardown)
		ONE(ascending_insertions_fill_the_leaves),
		ONE(values_up_to_the_maximum_are_taken),
		ONE(a_damaged_node_is_an_error_reported_once),
		ONE(a_read_that_fails_once_is_repeated),
		ONE(a_node_that_moved_before_it_was_read_is_no_error),
		ONE(a_modification_starts_over_when_its_path_moved),
		TWO(the_second_copy_serves_when_the_first_is_damaged),
		TWO(both_copies_damaged_are_an_error_reported_for_each),
		ONE(deleting_works_beside_damaged_neighbours),
		ONE(a_walk_names_unreadable_nodes_and_goes_on),
		ONE(deleting_a_range_does_not_read_the_leaves_in_it),
		ONE(deleting_a_range_fails_only_before_it_begins),
		ONE(deleting_everything_leaves_one_empty_leaf),
		TWO(dirty_nodes_are_found_by_both_addresses_until_clean),
		ONE(a_root_that_collapses_after_the_freeze_is_not_sealed),
		ONE(a_cache_of_one_node_suffices),
		ONE(the_bound_of_the_cache_includes_dirty_nodes),
		ONE(what_is_near_the_last_edit_is_found_without_descending),
		ONE(a_node_freed_before_it_was_written_is_a_hole),
		ONE(a_sealed_leaf_that_takes_items_is_sealed_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
