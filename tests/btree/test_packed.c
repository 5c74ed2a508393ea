/* SPDX-License-Identifier: MIT */
/* A packed leaf: when it takes which form, what it then holds, and which faults its checker finds.
 */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "btree/packed.h"

#define NODE_SIZE 4096u
#define ADDRESS	  40960u
#define LEN	  24u
#define STEP	  4096u

static const struct zf_node_shape shape = {.node_size = NODE_SIZE, .copies = 1, .fsid = {1}};
static const uint64_t address[ZF_COPIES_MAX] = {ADDRESS};
static uint8_t node[NODE_SIZE], other[NODE_SIZE];
static char message[512];

static void keep_message(void *arg, enum zf_report_level level, const char *text)
{
	snprintf(message, sizeof(message), "%s", text);
}

static const struct zf_report report = {.fn = keep_message};

/* An extent of one block: number n, made by a transaction. */
static void make_value(unsigned int n, uint8_t *value)
{
	memset(value, 0, LEN);
	value[0] = 2;
	value[4] = 1;
	value[8] = (uint8_t)(n % 3);
	value[17] = (uint8_t)(n * 7);
	value[18] = (uint8_t)(n >> 3);
}

static struct zf_key key_of(unsigned int n)
{
	return ZF_KEY(256, 7, (uint64_t)n * STEP);
}

static bool put_value(void *leaf, const struct zf_key *key, const void *value, size_t len)
{
	unsigned int slot;
	bool found = zf_node_search(leaf, key, &slot);

	if (!zf_node_has_room(leaf, NODE_SIZE, slot, found, key, value, len))
		return false;
	if (found)
		zf_node_set_value(leaf, NODE_SIZE, slot, value, len);
	else
		zf_node_insert_item(leaf, NODE_SIZE, slot, key, value, len);
	return true;
}

static bool put(void *leaf, unsigned int n)
{
	struct zf_key key = key_of(n);
	uint8_t value[LEN];

	make_value(n, value);
	return put_value(leaf, &key, value, LEN);
}

/* Puts as many extents as fit, from number n on. Returns the first that does not fit. */
static unsigned int fill(void *leaf, unsigned int n)
{
	zf_node_init(leaf, &shape, ZF_TREE_FS, 0, address, 7);
	while (put(leaf, n))
		n++;
	return n;
}

static void expect_item(const void *leaf, unsigned int slot, unsigned int n)
{
	uint8_t expected[LEN], scratch[ZF_PACKED_VALUE_MAX];
	struct zf_key key = zf_node_key(leaf, slot), of = key_of(n);
	size_t len;
	const void *value = zf_node_value(leaf, slot, &len, scratch);

	make_value(n, expected);
	assert_int_equal(zf_key_cmp(&key, &of), 0);
	assert_int_equal(len, LEN);
	assert_memory_equal(value, expected, LEN);
}

static void expect_items(const void *leaf, unsigned int slot, unsigned int n, unsigned int end)
{
	for (; n < end; n++, slot++)
		expect_item(leaf, slot, n);
}

static int check(void *leaf)
{
	struct zf_node_expect expect = {
		.ptr = {.address = {ADDRESS}, .generation = 7}, .owner = ZF_TREE_FS, .level = 0};

	expect.ptr.csum = zf_node_csum(leaf, NODE_SIZE);
	zf_node_set_csum(leaf, expect.ptr.csum);
	message[0] = '\0';
	return zf_node_check(&shape, leaf, &expect, true, &report);
}

static void a_full_leaf_of_one_kind_is_packed(void **state)
{
	unsigned int end;

	zf_node_init(node, &shape, ZF_TREE_FS, 0, address, 7);
	for (unsigned int n = 0; n < 80; n++)
		put(node, n);
	assert_false(zf_node_is_packed(node)); /* it has room as it is */
	end = fill(node, 0);
	assert_true(zf_node_is_packed(node));
	assert_true(end > 4 * NODE_SIZE / (21 + LEN));
	assert_int_equal(zf_node_count(node), end);
	expect_items(node, 0, 0, end);
	assert_int_equal(check(node), 0);
	assert_true(zf_node_used(node, NODE_SIZE) <= zf_node_capacity(NODE_SIZE));
}

static void keys_are_found_in_a_packed_leaf(void **state)
{
	unsigned int end = fill(node, 10), slot;
	struct zf_key below = ZF_KEY(256, 7, 10 * STEP - 1),
		      between = ZF_KEY(256, 7, 20 * STEP + 1);
	struct zf_key other_type = ZF_KEY(256, 6, UINT64_MAX), other_object = ZF_KEY(257, 0, 0);

	for (unsigned int n = 10; n < end; n++) {
		struct zf_key key = key_of(n);

		assert_true(zf_node_search(node, &key, &slot));
		assert_int_equal(slot, n - 10);
	}
	assert_false(zf_node_search(node, &below, &slot));
	assert_int_equal(slot, 0);
	assert_false(zf_node_search(node, &between, &slot));
	assert_int_equal(slot, 11);
	assert_false(zf_node_search(node, &other_type, &slot));
	assert_int_equal(slot, 0);
	assert_false(zf_node_search(node, &other_object, &slot));
	assert_int_equal(slot, end - 10);
}

/* A byte that was the same in all items becomes a column, if each row has room for it. */
static void another_column_is_added(void **state)
{
	unsigned int end = fill(node, 0);
	struct zf_key key = key_of(5);
	uint8_t value[LEN], scratch[ZF_PACKED_VALUE_MAX];
	size_t len;

	make_value(5, value);
	memset(value + 8, 0xee, LEN - 8);
	assert_false(put_value(node, &key, value, LEN));
	expect_items(node, 0, 0, end); /* that has changed nothing */
	zf_node_remove(node, NODE_SIZE, end / 3, end - end / 3);
	assert_true(put_value(node, &key, value, LEN));
	assert_true(zf_node_is_packed(node));
	assert_memory_equal(zf_node_value(node, 5, &len, scratch), value, LEN);
	expect_items(node, 0, 0, 5);
	expect_items(node, 6, 6, end / 3);
	assert_int_equal(check(node), 0);
}

/* A column whose bytes have become equal is removed when room is needed. */
static void a_column_that_is_the_same_by_now_makes_room(void **state)
{
	unsigned int end, full = fill(node, 0);
	struct zf_key key = key_of(1);
	uint8_t value[LEN];

	zf_node_init(other, &shape, ZF_TREE_FS, 0, address, 7);
	for (end = 0; end < 100; end++)
		put(other, end);
	make_value(1, value);
	memset(value + 8, 0xee, 8);
	assert_true(put_value(other, &key, value, LEN));
	assert_true(zf_node_is_packed(other));
	assert_true(put(other, 1));
	while (put(other, end))
		end++;
	assert_int_equal(end, full);
	assert_int_equal(check(other), 0);
}

static void an_item_of_another_kind_makes_it_plain_if_few_are_left(void **state)
{
	unsigned int end = fill(node, 0);
	struct zf_key inode = ZF_KEY(256, 1, 0);
	uint8_t value[160] = {1};

	assert_false(put_value(node, &inode, value, sizeof(value)));
	zf_node_remove(node, NODE_SIZE, 50, end - 50);
	assert_true(zf_node_is_packed(node));
	assert_true(put_value(node, &inode, value, sizeof(value)));
	assert_false(zf_node_is_packed(node));
	expect_items(node, 1, 0, 50);
	assert_int_equal(check(node), 0);
	/* The same for an item of the same kind with a longer value. */
	fill(node, 0);
	zf_node_remove(node, NODE_SIZE, 50, zf_node_count(node) - 50);
	inode = key_of(7);
	assert_true(put_value(node, &inode, value, sizeof(value)));
	assert_false(zf_node_is_packed(node));
	expect_items(node, 0, 0, 7);
	expect_items(node, 8, 8, 50);
	assert_int_equal(check(node), 0);
}

static void an_empty_leaf_is_plain(void **state)
{
	fill(node, 0);
	zf_node_remove(node, NODE_SIZE, 0, zf_node_count(node));
	assert_false(zf_node_is_packed(node));
	assert_int_equal(zf_node_used(node, NODE_SIZE), 0);
	assert_int_equal(check(node), 0);
}

static void packed_leaves_are_cut_and_joined(void **state)
{
	unsigned int end = fill(node, 0), half = end / 2;

	zf_node_init(other, &shape, ZF_TREE_FS, 0, address, 7);
	zf_node_move(other, node, NODE_SIZE, half, end - half, false);
	assert_true(zf_node_is_packed(other));
	expect_items(node, 0, 0, half);
	expect_items(other, 0, half, end);
	assert_int_equal(check(node), 0);
	assert_int_equal(check(other), 0);
	assert_true(zf_node_used_together(node, NODE_SIZE, 0, 0, other) <=
		    zf_node_capacity(NODE_SIZE));
	zf_node_absorb(other, node, NODE_SIZE, 0, half, true);
	expect_items(other, 0, 0, end);
	assert_int_equal(check(other), 0);
}

/* If one leaf has items of another kind, the joined leaf is plain, and so much larger. */
static void leaves_of_different_kinds_are_joined_as_plain_ones(void **state)
{
	unsigned int end = fill(node, 0);
	struct zf_key inode = ZF_KEY(257, 1, 0);
	uint8_t value[160] = {1};

	zf_node_init(other, &shape, ZF_TREE_FS, 0, address, 7);
	assert_true(put_value(other, &inode, value, sizeof(value)));
	assert_true(zf_node_used_together(other, NODE_SIZE, 0, 0, node) >
		    zf_node_capacity(NODE_SIZE));
	zf_node_remove(node, NODE_SIZE, 40, end - 40);
	assert_int_equal(zf_node_used_together(other, NODE_SIZE, 0, 0, node),
			 40 * (21 + LEN) + 21 + sizeof(value));
	zf_node_absorb(other, node, NODE_SIZE, 0, 40, true);
	assert_false(zf_node_is_packed(other));
	assert_int_equal(zf_node_used(other, NODE_SIZE), 40 * (21 + LEN) + 21 + sizeof(value));
	expect_items(other, 0, 0, 40);
	assert_int_equal(check(other), 0);
}

/* ---- the checker ---- */

static struct zf_disk_packing *packing(void)
{
	return (void *)(node + sizeof(struct zf_disk_node_header));
}

static uint8_t *base(void)
{
	return (uint8_t *)(packing() + 1);
}

static void assert_corrupt(const char *what)
{
	char text[512];

	snprintf(text, sizeof(text), "corrupt node at %u: %s", ADDRESS, what);
	assert_int_equal(check(node), -EUCLEAN);
	assert_string_equal(message, text);
	fill(node, 0);
}

static void every_field_of_a_packing_is_checked(void **state)
{
	struct zf_disk_node_header *header = (void *)node;
	uint8_t *columns = base() + 17 + LEN;
	unsigned int count = fill(node, 0);
	char text[128];

	packing()->value_size = ZF_PACKED_VALUE_MAX + 1;
	assert_corrupt("packing value_size has 25, expected at most 24");
	packing()->width = 8 + LEN + 1;
	assert_corrupt("packing width has 33, expected at most 32");
	columns[0] = 8;
	assert_corrupt("column 0 has 8, expected 9 to 40");
	columns[1] = columns[0];
	snprintf(text, sizeof(text), "column 1 has %u, expected %u to 40", columns[0],
		 columns[0] + 1);
	assert_corrupt(text);
	columns[packing()->width - 1] = 17 + LEN;
	snprintf(text, sizeof(text), "column %u has 41, expected %u to 40", packing()->width - 1,
		 columns[packing()->width - 2] + 1);
	assert_corrupt(text);
	base()[columns[0]] = 3;
	snprintf(text, sizeof(text), "base byte %u has 3, expected 0: it is a column's",
		 columns[0]);
	assert_corrupt(text);
	header->count = zf_le32_from(UINT32_MAX);
	assert_int_equal(check(node), -EUCLEAN);
	assert_non_null(strstr(message, "count has 4294967295, expected 1 to"));
	fill(node, 0);
	header->count = zf_le32_from(0);
	assert_int_equal(check(node), -EUCLEAN);
	assert_non_null(strstr(message, "count has 0, expected 1 to"));
	fill(node, 0);
	header->count = zf_le32_from(count - 1);
	assert_int_equal(check(node), -EUCLEAN);
	assert_non_null(strstr(message, "free space has bits set"));
	fill(node, 0);
	header->packed = 2;
	assert_corrupt("packed has 2, expected 0 or 1");
	header->level = 1;
	assert_int_equal(check(node), -EUCLEAN);
}

/* Thousands of two-byte rows would fit into a leaf, but such a leaf could be neither cut nor moved.
 */
static void a_leaf_of_more_narrow_rows_than_it_may_have_is_corrupt(void **state)
{
	const unsigned int max = (NODE_SIZE - 72 - 2 - 17 - LEN - 2) / 8;
	struct zf_disk_node_header *header = (void *)node;
	uint8_t *rows = base() + 17 + LEN + 2;
	char text[64];

	zf_node_init(node, &shape, ZF_TREE_FS, 0, address, 7);
	header->packed = 1;
	*packing() = (struct zf_disk_packing){.value_size = LEN, .width = 2};
	rows[-2] = 9;
	rows[-1] = 10;
	for (unsigned int n = 0; n <= max; n++) {
		rows[2 * n] = (uint8_t)n;
		rows[2 * n + 1] = (uint8_t)(n >> 8);
	}
	header->count = zf_le32_from(max + 1);
	snprintf(text, sizeof(text), "count has %u, expected 1 to %u", max + 1, max);
	assert_int_equal(check(node), -EUCLEAN);
	assert_non_null(strstr(message, text));
	zf_node_remove(node, NODE_SIZE, max, 1);
	assert_int_equal(check(node), 0);
	assert_true(zf_node_used(node, NODE_SIZE) <= zf_node_capacity(NODE_SIZE));
}

/* Whatever the bytes are, the checker reads only within the node, and so do readers of a leaf that
 * the checker accepts. */
static void no_byte_of_a_packing_leads_out_of_the_node(void **state)
{
	fill(node, 0);
	for (unsigned int at = 64; at < 200; at++) {
		for (unsigned int value = 0; value < 256; value += 5) {
			uint8_t scratch[ZF_PACKED_VALUE_MAX];
			size_t len;

			node[at] = (uint8_t)value;
			if (check(node) == 0)
				for (unsigned int i = 0; i < zf_node_count(node); i++)
					zf_node_value(node, i, &len, scratch);
			fill(node, 0);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_leaf_of_one_kind_is_packed),
		cmocka_unit_test(keys_are_found_in_a_packed_leaf),
		cmocka_unit_test(another_column_is_added),
		cmocka_unit_test(a_column_that_is_the_same_by_now_makes_room),
		cmocka_unit_test(an_item_of_another_kind_makes_it_plain_if_few_are_left),
		cmocka_unit_test(an_empty_leaf_is_plain),
		cmocka_unit_test(packed_leaves_are_cut_and_joined),
		cmocka_unit_test(leaves_of_different_kinds_are_joined_as_plain_ones),
		cmocka_unit_test(every_field_of_a_packing_is_checked),
		cmocka_unit_test(a_leaf_of_more_narrow_rows_than_it_may_have_is_corrupt),
		cmocka_unit_test(no_byte_of_a_packing_leads_out_of_the_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
