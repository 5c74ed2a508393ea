/* SPDX-License-Identifier: MIT */
/*
 * Random operations on a tree are compared with a sorted array. The cache is far too small; commits
 * come in steps between the operations; the tree is reopened with and without a loss of uncommitted
 * changes. `--seed N` replays, `--rounds N` lengthens.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "base/bits.h"
#include "rig.h"
#include "sim/rng.h"

#define ITEMS_MAX     6000
#define NODE_SIZE     4096u
#define NODE_SIZE_MAX 16384u
#define ALIKE	      24u   /* bytes of the values that are alike */
#define PHASE	      1000u /* puts until values become of another length, and more alike or less */

struct item {
	struct zf_key key;
	uint32_t version; /* gives the value's bytes */
	uint32_t len;
	uint8_t alike; /* percent of the bytes that are the same in all such values */
};

struct model {
	struct item items[ITEMS_MAX];
	unsigned int count;
};

/* The kind of most items. */
enum items {
	ITEMS_ANY,
	ITEMS_ALIKE,	/* of one kind: leaves are packed */
	ITEMS_CHANGING, /* the same, but what they have in common changes, and streams among them */
};

enum commit_step {
	STEP_FREEZE,
	STEP_SEAL_FS,
	STEP_SEAL_SUMMARY,
	STEP_SEAL_ROOT,
	STEP_WRITE,
	STEP_CLEAN,
	STEP_COUNT,
};

struct test {
	struct rig rig;
	struct zf_rng rng;
	struct model model, frozen, committed;
	enum commit_step next;
	uint32_t versions;
	enum items items;
	unsigned int packed;	/* leaves seen that were */
	struct zf_key last;	/* put */
	unsigned int grow;	/* percent of insertions among modifications */
	unsigned int low, high; /* items at which that changes */
};

static uint64_t seed;
static unsigned int rounds = 60000;

static void make_value(const struct item *item, uint8_t *buf)
{
	struct zf_rng rng;

	zf_rng_seed(&rng, item->version);
	zf_rng_fill(&rng, buf, item->len);
	for (uint32_t i = 0; i < item->len; i++)
		if (i * 100 < item->alike * item->len)
			buf[i] = 0x5a;
}

/* The index of the first item whose key is not less. */
static unsigned int find(const struct model *model, const struct zf_key *key, bool *ret_equal)
{
	unsigned int low = 0, high = model->count;

	while (low < high) {
		unsigned int middle = (low + high) / 2;

		if (zf_key_cmp(&model->items[middle].key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_equal = low < model->count && zf_key_cmp(&model->items[low].key, key) == 0;
	return low;
}

static void model_put(struct model *model, const struct item *item)
{
	bool equal;
	unsigned int i = find(model, &item->key, &equal);

	if (!equal) {
		assert_true(model->count < ITEMS_MAX);
		memmove(model->items + i + 1, model->items + i, (model->count - i) * sizeof(*item));
		model->count++;
	}
	model->items[i] = *item;
}

static void model_remove(struct model *model, unsigned int first, unsigned int n)
{
	memmove(model->items + first, model->items + first + n,
		(model->count - first - n) * sizeof(struct item));
	model->count -= n;
}

static struct zf_key random_key(struct test *t)
{
	const struct zf_key max = ZF_KEY_MAX;

	if (zf_rng_chance(&t->rng, 2))
		return zf_rng_chance(&t->rng, 50) ? ZF_KEY_MIN : max;
	if (t->items == ITEMS_CHANGING && zf_rng_chance(&t->rng, 40))
		return ZF_KEY(t->last.objectid, t->last.type, t->last.offset + 1);
	if (t->items != ITEMS_ANY)
		return ZF_KEY(zf_rng_below(&t->rng, 2) * (UINT64_MAX / 11),
			      (uint8_t)(zf_rng_chance(&t->rng, 2)),
			      zf_rng_below(&t->rng, 4000) << (zf_rng_chance(&t->rng, 1) ? 50 : 12));
	/* Few objects with many items, also at the ends of the number ranges. */
	return ZF_KEY(zf_rng_below(&t->rng, 12) * (UINT64_MAX / 11),
		      (uint8_t)(zf_rng_below(&t->rng, 3) * 127), zf_rng_below(&t->rng, 200));
}

static struct zf_key key_in_use(struct test *t)
{
	if (t->model.count == 0 || zf_rng_chance(&t->rng, 10))
		return random_key(t);
	return t->model.items[zf_rng_below(&t->rng, t->model.count)].key;
}

static void make_changing(struct test *t, struct item *item)
{
	static const uint32_t len[] = {0, 24, 8, 5, 23, 16};
	static const uint8_t alike[] = {90, 0, 100, 60, 95};
	unsigned int phase = t->versions / PHASE;

	item->len = item->key.objectid == 0 ? 24 : len[phase / 4 % 6];
	if (zf_rng_below(&t->rng, 1000) == 0)
		item->len = (uint32_t)zf_rng_below(&t->rng, 67);
	item->alike = zf_rng_chance(&t->rng, 99) ? alike[phase % 5] : 0;
}

static struct item random_item(struct test *t, const struct zf_key *key)
{
	uint32_t max = zf_node_value_max(t->rig.options.shape.node_size);
	struct item item = {.key = *key, .version = ++t->versions};

	if (t->items == ITEMS_CHANGING && zf_rng_below(&t->rng, 1000) > 0) {
		make_changing(t, &item);
	} else if (t->items == ITEMS_ALIKE && zf_rng_chance(&t->rng, 98)) {
		item.len = ALIKE;
		item.alike = zf_rng_chance(&t->rng, 1) ? 0 : 90;
	} else if (zf_rng_chance(&t->rng, 5))
		item.len = (uint32_t)(zf_rng_chance(&t->rng, 50) ? max : 0);
	else if (zf_rng_chance(&t->rng, 10))
		item.len = (uint32_t)zf_rng_below(&t->rng, max + 1);
	else
		item.len = (uint32_t)zf_rng_below(&t->rng, 200);
	return item;
}

static void check_value(const struct item *item, const uint8_t *buf, size_t size, size_t len)
{
	uint8_t expected[NODE_SIZE_MAX];

	make_value(item, expected);
	assert_int_equal(len, item->len);
	assert_memory_equal(buf, expected, zf_min_u64(size, len));
}

/* In some operations the writer has no address left: these operations must not change anything. */
static void maybe_fail_allocation(struct test *t)
{
	t->rig.fail_after =
		zf_rng_chance(&t->rng, 5) ? 1 + (unsigned int)zf_rng_below(&t->rng, 5) : 0;
}

static void do_put(struct test *t)
{
	unsigned int kind =
		zf_rng_chance(&t->rng, 70) ? 0 : 1 + (unsigned int)zf_rng_below(&t->rng, 2);
	struct zf_key key = kind == 0 || zf_rng_chance(&t->rng, 60) ? random_key(t) : key_in_use(t);
	struct item item = random_item(t, &key);
	struct zf_writer *writer = rig_writer(&t->rig);
	unsigned int worst = zf_forest_worst_nodes(t->rig.forest);
	uint64_t allocated = t->rig.allocated;
	uint8_t value[NODE_SIZE_MAX];
	bool exists;
	int r, expected = 0;

	if (t->model.count == ITEMS_MAX)
		return;
	find(&t->model, &key, &exists);
	make_value(&item, value);
	maybe_fail_allocation(t);
	if (kind == 0) {
		r = zf_tree_insert(t->rig.forest, writer, ZF_TREE_FS, &key, value, item.len);
		expected = exists ? -EEXIST : 0;
	} else if (kind == 1) {
		r = zf_tree_set(t->rig.forest, writer, ZF_TREE_FS, &key, value, item.len);
	} else {
		r = zf_tree_update(t->rig.forest, writer, ZF_TREE_FS, &key, value, item.len);
		expected = exists ? 0 : -ENOENT;
	}
	if (r == -ENOSPC && t->rig.fail_after == 0)
		return;
	t->rig.fail_after = 0;
	assert_int_equal(r, expected);
	assert_true(t->rig.allocated - allocated <= worst);
	if (r == 0) {
		model_put(&t->model, &item);
		t->last = key;
	}
}

static void do_delete(struct test *t)
{
	struct zf_key key = key_in_use(t);
	bool exists;
	unsigned int i = find(&t->model, &key, &exists);
	int r;

	maybe_fail_allocation(t);
	r = zf_tree_delete(t->rig.forest, rig_writer(&t->rig), ZF_TREE_FS, &key);
	if (r == -ENOSPC && t->rig.fail_after == 0)
		return;
	t->rig.fail_after = 0;
	assert_int_equal(r, exists ? 0 : -ENOENT);
	if (r == 0)
		model_remove(&t->model, i, 1);
}

static void do_delete_range(struct test *t)
{
	struct zf_key a = key_in_use(t), b = key_in_use(t), *from = &a, *to = &b;
	unsigned int max = 1 + (unsigned int)zf_rng_below(&t->rng, 20), first, end, before;
	bool equal;
	int r;

	if (zf_key_cmp(from, to) > 0) {
		from = &b;
		to = &a;
	}
	first = find(&t->model, from, &equal);
	end = find(&t->model, to, &equal) + equal;
	if (!zf_rng_chance(&t->rng, 5) && end - first > 100) {
		end = first + 100;
		*to = t->model.items[end - 1].key;
	}
	do {
		uint64_t allocated = t->rig.allocated;

		before = zf_forest_worst_nodes(t->rig.forest);
		r = zf_tree_delete_range(t->rig.forest, rig_writer(&t->rig), ZF_TREE_FS, from, to,
					 max);
		assert_in_range(r, 0, 1);
		assert_true(t->rig.allocated - allocated <= max + before);
	} while (r == 1);
	model_remove(&t->model, first, end - first);
}

static void do_lookup(struct test *t)
{
	struct zf_key key = key_in_use(t);
	size_t size = zf_rng_chance(&t->rng, 80) ? NODE_SIZE_MAX : zf_rng_below(&t->rng, 40), len;
	uint8_t buf[NODE_SIZE_MAX];
	bool exists;
	unsigned int i = find(&t->model, &key, &exists);
	int r;

	r = zf_tree_lookup(t->rig.forest, ZF_TREE_FS, &key, buf, size, &len);
	assert_int_equal(r, exists ? 0 : -ENOENT);
	if (r == 0)
		check_value(&t->model.items[i], buf, size, len);
}

static void do_lookup_near(struct test *t)
{
	bool up = zf_rng_chance(&t->rng, 50), exists;
	struct zf_key key = zf_rng_chance(&t->rng, 50) ? random_key(t) : key_in_use(t);
	unsigned int i = find(&t->model, &key, &exists);
	uint8_t buf[NODE_SIZE_MAX];
	size_t len;
	int r;

	if (!up && !exists)
		i--;
	r = up ? zf_tree_lookup_ge(t->rig.forest, ZF_TREE_FS, &key, buf, sizeof(buf), &len)
	       : zf_tree_lookup_le(t->rig.forest, ZF_TREE_FS, &key, buf, sizeof(buf), &len);
	assert_int_equal(r, i < t->model.count ? 0 : -ENOENT);
	if (r < 0)
		return;
	assert_int_equal(zf_key_cmp(&key, &t->model.items[i].key), 0);
	check_value(&t->model.items[i], buf, sizeof(buf), len);
}

struct expectation {
	const struct model *model;
	unsigned int next, stop; /* stop: the callback ends the scan here */
};

static int scan_item(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct expectation *e = arg;
	const struct item *item = &e->model->items[e->next];

	if (e->next == e->stop)
		return 77;
	assert_true(e->next < e->model->count);
	assert_int_equal(zf_key_cmp(key, &item->key), 0);
	check_value(item, value, len, len);
	e->next++;
	return 0;
}

static void do_scan(struct test *t)
{
	struct zf_key from = random_key(t), to = random_key(t);
	struct expectation e = {.model = &t->model, .stop = UINT32_MAX};
	bool le = zf_rng_chance(&t->rng, 50), equal;
	unsigned int end;
	int r;

	e.next = find(&t->model, &from, &equal);
	if (le && !equal && e.next > 0 && zf_key_cmp(&from, &to) <= 0)
		e.next--;
	end = find(&t->model, &to, &equal) + equal;
	if (zf_key_cmp(&from, &to) > 0)
		end = e.next;
	if (end > e.next && zf_rng_chance(&t->rng, 30))
		e.stop = e.next + (unsigned int)zf_rng_below(&t->rng, end - e.next);
	r = (le ? zf_tree_scan_le : zf_tree_scan)(t->rig.forest, ZF_TREE_FS, &from, &to, scan_item,
						  &e);
	assert_int_equal(r, e.stop == UINT32_MAX ? 0 : 77);
	assert_int_equal(e.next, e.stop == UINT32_MAX ? end : e.stop);
}

struct pick {
	uint64_t left;
	struct zf_node_expect expect;
	struct zf_key first_key;
};

static int pick_node(void *arg, const struct zf_node_expect *expect, const void *node, int error)
{
	struct pick *pick = arg;

	assert_int_equal(error, 0);
	pick->expect = *expect;
	pick->first_key = zf_node_count(node) > 0 ? zf_node_key(node, 0) : ZF_KEY_MIN;
	return pick->left-- == 0;
}

static void do_relocate(struct test *t)
{
	struct pick pick = {.left = zf_rng_below(&t->rng, 40)};
	bool stale = zf_rng_chance(&t->rng, 10);
	uint64_t address;
	int r, expected;

	zf_tree_walk(t->rig.forest, ZF_TREE_FS, pick_node, &pick);
	address = pick.expect.ptr.address[zf_rng_below(&t->rng, t->rig.options.shape.copies)];
	expected = stale || pick.expect.ptr.generation == t->rig.running.generation ? 1 : 0;
	r = zf_tree_relocate(t->rig.forest, rig_writer(&t->rig), ZF_TREE_FS, pick.expect.level,
			     &pick.first_key, stale ? address + 1 : address);
	assert_int_equal(r, expected);
	if (r == 0) {
		r = zf_tree_relocate(t->rig.forest, rig_writer(&t->rig), ZF_TREE_FS,
				     pick.expect.level, &pick.first_key, address);
		assert_int_equal(r, 1);
	}
}

static int count_packed(void *arg, const struct zf_node_expect *expect, const void *node, int error)
{
	struct test *t = arg;

	assert_int_equal(error, 0);
	t->packed += zf_node_is_packed(node);
	return 0;
}

static void check_all(struct test *t)
{
	const struct zf_key min = ZF_KEY_MIN, max = ZF_KEY_MAX;
	struct expectation e = {.model = &t->model, .stop = UINT32_MAX};

	assert_int_equal(zf_tree_scan(t->rig.forest, ZF_TREE_FS, &min, &max, scan_item, &e), 0);
	assert_int_equal(e.next, t->model.count);
	rig_check(&t->rig);
	zf_tree_walk(t->rig.forest, ZF_TREE_FS, count_packed, t);
}

static void do_commit_step(struct test *t)
{
	switch (t->next) {
	case STEP_FREEZE:
		t->frozen = t->model;
		rig_freeze(&t->rig);
		break;
	case STEP_SEAL_FS:
		rig_seal(&t->rig, ZF_TREE_FS);
		break;
	case STEP_SEAL_SUMMARY:
		rig_seal(&t->rig, ZF_TREE_SUMMARY);
		break;
	case STEP_SEAL_ROOT:
		rig_seal_root(&t->rig);
		break;
	case STEP_WRITE:
		rig_write(&t->rig);
		break;
	default:
		rig_clean(&t->rig);
		t->committed = t->frozen;
		break;
	}
	t->next = (t->next + 1) % STEP_COUNT;
}

/* Reopens between two commits: during a commit the rig would not know which state is committed. */
static void do_reopen(struct test *t)
{
	while (t->next != STEP_FREEZE)
		do_commit_step(t);
	rig_reopen(&t->rig);
	t->model = t->committed;
	check_all(t);
}

static void do_modification(struct test *t)
{
	unsigned int dice = (unsigned int)zf_rng_below(&t->rng, 1000);

	if (dice < 2)
		do_delete_range(t);
	else if (dice < 20)
		do_relocate(t);
	else if (zf_rng_chance(&t->rng, t->grow))
		do_put(t);
	else
		do_delete(t);
}

/* The tree grows to three levels and shrinks again, now and then to nothing. */
static void set_mood(struct test *t)
{
	if (t->model.count >= t->high) {
		t->grow = 5;
		t->low = zf_rng_chance(&t->rng, 30) ? 0 : 500;
	} else if (t->model.count <= t->low) {
		t->grow = 97;
		t->high = 1000 + (unsigned int)zf_rng_below(&t->rng, ITEMS_MAX - 1000);
	}
}

static void do_round(struct test *t)
{
	unsigned int dice = (unsigned int)zf_rng_below(&t->rng, 10000);

	set_mood(t);
	if (dice < 1)
		do_reopen(t);
	else if (dice < 16)
		check_all(t);
	else if (dice < 200)
		do_commit_step(t);
	else if (dice < 250)
		do_scan(t);
	else if (dice < 2000)
		do_lookup(t);
	else if (dice < 3500)
		do_lookup_near(t);
	else
		do_modification(t);
}

static void run(uint64_t run_seed, const struct rig_options *options, enum items items)
{
	struct test *t = calloc(1, sizeof(*t));
	struct zf_forest_stats stats;

	rig_init(&t->rig, options);
	t->rig.verbose = true;
	t->items = items;
	zf_rng_seed(&t->rng, run_seed);
	t->grow = 97;
	t->high = 3000;
	for (unsigned int i = 0; i < rounds; i++)
		do_round(t);
	do_reopen(t);
	assert_int_equal(t->rig.messages, 0);
	zf_forest_get_stats(t->rig.forest, &stats);
	assert_int_equal(stats.nodes_dirty, 0);
	/* In short runs, leaves of 16 KiB are hardly ever full. */
	assert_true(items == ITEMS_ANY || t->packed > 0 || rounds < 30000);
	rig_deinit(&t->rig);
	free(t);
}

static const struct rig_options tiny_cache = {.node_size = NODE_SIZE,
					      .copies = 1,
					      .zone_count = 400,
					      .zone_blocks = 64,
					      .cache_bytes = 4 * NODE_SIZE};

static void random_operations_match_the_model_with_a_tiny_cache(void **state)
{
	for (uint64_t i = 0; i < 8; i++)
		run(seed + i, &tiny_cache, ITEMS_ANY);
}

static void random_operations_match_the_model_with_two_copies(void **state)
{
	const struct rig_options options = {.node_size = NODE_SIZE,
					    .copies = 2,
					    .zone_count = 800,
					    .zone_blocks = 64,
					    .cache_bytes = 200 * NODE_SIZE};

	for (uint64_t i = 0; i < 4; i++)
		run(seed + i, &options, ITEMS_ANY);
}

static void random_operations_on_items_of_a_kind_match_the_model(void **state)
{
	for (uint64_t i = 0; i < 8; i++)
		run(seed + i, &tiny_cache, ITEMS_ALIKE);
}

static void random_operations_on_items_whose_kind_changes_match_the_model(void **state)
{
	for (uint64_t i = 0; i < 6; i++) {
		uint32_t node_size = i % 3 == 2 ? NODE_SIZE_MAX : NODE_SIZE;
		const struct rig_options options = {.node_size = node_size,
						    .copies = 1,
						    .zone_count = 800,
						    .zone_blocks = 64,
						    .cache_bytes = 8 * (uint64_t)node_size};

		run(seed + i, &options, ITEMS_CHANGING);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_operations_match_the_model_with_a_tiny_cache),
		cmocka_unit_test(random_operations_match_the_model_with_two_copies),
		cmocka_unit_test(random_operations_on_items_of_a_kind_match_the_model),
		cmocka_unit_test(random_operations_on_items_whose_kind_changes_match_the_model),
	};

	seed = (uint64_t)time(NULL);
	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seed") == 0)
			seed = strtoull(argv[i + 1], NULL, 0);
		else if (strcmp(argv[i], "--rounds") == 0)
			rounds = (unsigned int)strtoul(argv[i + 1], NULL, 0);
	}
	printf("seed %" PRIu64 " (replay with --seed)\n", seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
