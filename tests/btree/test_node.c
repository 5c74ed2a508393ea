/* SPDX-License-Identifier: MIT */
/* Editing nodes, and the checker: it finds a fault in each field, and all its messages have one
 * form. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "btree/node.h"
#include "sim/rng.h"

#define NODE_SIZE 4096u
#define ADDRESS	  UINT64_C(40960)

static const struct zf_geometry geometry = {
	.zone_size = 1 << 20,
	.zone_capacity = 1 << 20,
	.zone_count = 10,
};
static const struct zf_node_shape shape = {
	.geometry = &geometry,
	.node_size = NODE_SIZE,
	.copies = 1,
	.fsid = "sixteen bytes ok",
};
static const uint64_t address[ZF_COPIES_MAX] = {ADDRESS, 0};

static uint8_t node[ZF_NODE_SIZE_MAX], other[ZF_NODE_SIZE_MAX];
static struct zf_node_expect expect;
static char message[512];

static void remember(void *arg, enum zf_report_level level, const char *text)
{
	snprintf(message, sizeof(message), "%s", text);
}

static const struct zf_report report = {.fn = remember};

static void make_leaf(uint8_t *buf, unsigned int items, uint64_t from)
{
	zf_node_init(buf, &shape, ZF_TREE_FS, 0, address, 7);
	for (unsigned int i = 0; i < items; i++) {
		struct zf_key key = ZF_KEY(from + i, 1, 0);
		uint8_t value[100];

		memset(value, (int)(from + i), sizeof(value));
		zf_node_insert_item(buf, NODE_SIZE, i, &key, value, 10 + (from + i) % 50);
	}
}

static void make_internal(uint8_t *buf, unsigned int children)
{
	zf_node_init(buf, &shape, ZF_TREE_FS, 3, address, 7);
	for (unsigned int i = 0; i < children; i++) {
		struct zf_key key = ZF_KEY(10 * i, 0, 0);
		struct zf_node_ptr ptr = {
			.address = {(2 << 20) + 4096 * i}, .generation = 1 + i % 7, .csum = 1 + i};

		zf_node_insert_child(buf, i, &key, &ptr);
	}
}

static void seal(void)
{
	expect = (struct zf_node_expect){
		.ptr = {.address = {ADDRESS, 0},
			.generation = 7,
			.csum = zf_node_csum(node, NODE_SIZE)},
		.owner = ZF_TREE_FS,
		.level = zf_node_level(node),
	};
	zf_node_set_csum(node, expect.ptr.csum);
}

static void reseal(void)
{
	expect.ptr.csum = zf_node_csum(node, NODE_SIZE);
	zf_node_set_csum(node, expect.ptr.csum);
}

static void assert_sound(void)
{
	message[0] = '\0';
	reseal();
	assert_int_equal(zf_node_check(&shape, node, &expect, true, &report), 0);
	assert_string_equal(message, "");
}

static void assert_corrupt(const char *what)
{
	char text[512];

	reseal();
	snprintf(text, sizeof(text), "corrupt node at 40960: %s", what);
	assert_int_equal(zf_node_check(&shape, node, &expect, true, &report), -EUCLEAN);
	assert_string_equal(message, text);
}

static struct zf_disk_node_header *header(void)
{
	return (void *)node;
}

static struct zf_disk_item *item(unsigned int i)
{
	return (struct zf_disk_item *)(node + sizeof(struct zf_disk_node_header)) + i;
}

static struct zf_disk_child *child(unsigned int i)
{
	return (struct zf_disk_child *)(node + sizeof(struct zf_disk_node_header)) + i;
}

static int sound_leaf(void **state)
{
	make_leaf(node, 20, 100);
	seal();
	return 0;
}

static int sound_internal(void **state)
{
	make_internal(node, 20);
	seal();
	return 0;
}

static void sound_nodes_pass(void **state)
{
	sound_leaf(state);
	assert_sound();
	assert_true(zf_node_is_valid_at(&shape, node, ADDRESS, 0));
	assert_false(zf_node_is_valid_at(&shape, node, ADDRESS + 4096, 0));
	assert_false(zf_node_is_valid_at(&shape, node, 0, 1));
	sound_internal(state);
	assert_sound();
	assert_true(zf_node_is_valid_at(&shape, node, ADDRESS, 0));
	make_leaf(node, 0, 0);
	seal();
	assert_sound();
}

static void every_identity_field_is_checked(void **state)
{
	header()->magic[0] = 'X';
	assert_corrupt("magic has 58464e44, expected \"ZFND\"");
	sound_leaf(state);
	header()->fsid[0] = 'S';
	assert_corrupt("fsid has 5369787465656e20.., expected 7369787465656e20..");
	sound_leaf(state);
	header()->address[0] = zf_le64_from(8192);
	assert_corrupt("address[0] has 8192, expected 40960");
	sound_leaf(state);
	header()->address[1] = zf_le64_from(8192);
	assert_corrupt("address[1] has 8192, expected 0");
	sound_leaf(state);
	header()->owner = zf_le64_from(3);
	assert_corrupt("owner has 3, expected 2");
	sound_leaf(state);
	header()->level = 1;
	assert_corrupt("level has 1, expected 0");
	sound_leaf(state);
	header()->generation = zf_le64_from(6);
	assert_corrupt("generation has 6, expected 7");
	sound_leaf(state);
	header()->reserved_a[1] = 1;
	assert_corrupt("reserved_a has bits set, expected 0");
	sound_leaf(state);
	header()->reserved_b[3] = 1;
	assert_corrupt("reserved_b has bits set, expected 0");
}

static void a_level_beyond_the_highest_is_found(void **state)
{
	header()->level = ZF_TREE_LEVEL_MAX;
	expect.level = ZF_TREE_LEVEL_MAX;
	assert_corrupt("level has 12, expected below 12");
}

static void checksums_are_checked_against_bytes_and_pointer(void **state)
{
	node[3000] ^= 1;
	assert_int_equal(zf_node_check(&shape, node, &expect, true, &report), -EUCLEAN);
	assert_non_null(strstr(message, "corrupt node at 40960: csum has "));
	sound_leaf(state);
	expect.ptr.csum ^= 1;
	assert_int_equal(zf_node_check(&shape, node, &expect, true, &report), -EUCLEAN);
	assert_non_null(strstr(message, "by its parent"));
	assert_int_equal(zf_node_check(&shape, node, &expect, false, &report), 0);
}

static void wrong_counts_are_found(void **state)
{
	header()->count = zf_le32_from(192);
	assert_corrupt("count has 192, expected 0 to 191");
	header()->count = zf_le32_from(UINT32_MAX);
	assert_corrupt("count has 4294967295, expected 0 to 191");
	make_leaf(node, 0, 0);
	seal();
	expect.check_first_key = true;
	assert_corrupt("count has 0, expected 1 to 191");
	make_internal(node, 0);
	seal();
	assert_corrupt("count has 0, expected 1 to 71");
}

static void keys_out_of_order_or_bounds_are_found(void **state)
{
	item(5)->key = item(4)->key;
	assert_corrupt("key 5 has (104 1 0), expected above (104 1 0)");
	sound_leaf(state);
	expect.check_first_key = expect.check_next_key = true;
	expect.first_key = ZF_KEY(100, 1, 0);
	expect.next_key = ZF_KEY(119, 1, 1);
	assert_sound();
	expect.first_key = ZF_KEY(100, 1, 1);
	assert_corrupt("first key has (100 1 0), expected at least (100 1 1)");
	expect.first_key = ZF_KEY_MIN;
	expect.next_key = ZF_KEY(119, 1, 0);
	assert_corrupt("last key has (119 1 0), expected below (119 1 0)");
}

static void wrong_items_are_found(void **state)
{
	item(0)->size = zf_le16_from(986);
	assert_corrupt("item 0 size has 986, expected at most 985");
	sound_leaf(state);
	item(0)->size = zf_le16_from(11);
	assert_corrupt("item 0 offset has 4086, expected 4085");
	sound_leaf(state);
	item(7)->offset = zf_le16_from(80);
	message[0] = '\0';
	reseal();
	assert_int_equal(zf_node_check(&shape, node, &expect, true, &report), -EUCLEAN);
	assert_non_null(strstr(message, "item 7 offset has 80, expected "));
	sound_leaf(state);
	node[1500] = 1;
	reseal();
	assert_int_equal(zf_node_check(&shape, node, &expect, true, &report), -EUCLEAN);
	assert_non_null(strstr(message, "free space has bits set, expected 0 from 492 to "));
}

static void values_that_reach_into_the_headers_are_found(void **state)
{
	uint32_t end = NODE_SIZE;

	zf_node_init(node, &shape, ZF_TREE_FS, 0, address, 7);
	for (unsigned int i = 0; i < 5; i++) {
		struct zf_key key = ZF_KEY(i, 0, 0);

		end -= 985;
		*item(i) = (struct zf_disk_item){.key = {.objectid = zf_le64_from(key.objectid)},
						 .offset = zf_le16_from((uint16_t)end),
						 .size = zf_le16_from(985)};
	}
	header()->count = zf_le32_from(5);
	seal();
	assert_corrupt("item 3 size has 985, expected at most 964");
}

static void wrong_children_are_found(void **state)
{
	child(3)->reserved[6] = 1;
	assert_corrupt("child 3 reserved has bits set, expected 0");
	sound_internal(state);
	child(3)->ptr.address[0] = zf_le64_from(0);
	assert_corrupt("child 3 address[0] has 0, expected a block in zones 2 to 9");
	sound_internal(state);
	child(3)->ptr.address[0] = zf_le64_from((2 << 20) + 1);
	assert_corrupt("child 3 address[0] has 2097153, expected a block in zones 2 to 9");
	sound_internal(state);
	child(3)->ptr.address[1] = zf_le64_from(4096);
	assert_corrupt("child 3 address[1] has 4096, expected 0");
	sound_internal(state);
	child(3)->ptr.generation = zf_le64_from(8);
	assert_corrupt("child 3 generation has 8, expected 1 to 7");
	sound_internal(state);
	child(3)->ptr.generation = zf_le64_from(0);
	assert_corrupt("child 3 generation has 0, expected 1 to 7");
	sound_internal(state);
	child(3)->ptr.csum = zf_le64_from(0);
	assert_corrupt("child 3 csum has 0, expected another value");
	sound_internal(state);
	node[NODE_SIZE - 1] = 1;
	assert_corrupt("free space has bits set, expected 0 from 1192 to 4096");
}

static void search_finds_equal_keys_and_gaps(void **state)
{
	struct zf_key key = ZF_KEY(105, 1, 0);
	unsigned int slot;

	assert_true(zf_node_search(node, &key, &slot));
	assert_int_equal(slot, 5);
	key = ZF_KEY(105, 1, 1);
	assert_false(zf_node_search(node, &key, &slot));
	assert_int_equal(slot, 6);
	assert_int_equal(zf_node_search_child(node, &key), 5);
	key = ZF_KEY_MIN;
	assert_false(zf_node_search(node, &key, &slot));
	assert_int_equal(slot, 0);
	assert_int_equal(zf_node_search_child(node, &key), 0);
	key = ZF_KEY_MAX;
	assert_false(zf_node_search(node, &key, &slot));
	assert_int_equal(slot, 20);
	assert_int_equal(zf_node_search_child(node, &key), 19);
}

static void neighbouring_keys_step_over_field_borders(void **state)
{
	const struct zf_key a = ZF_KEY(4, 255, UINT64_MAX), b = ZF_KEY(5, 0, 0),
			    c = ZF_KEY(4, 9, UINT64_MAX), d = ZF_KEY(4, 10, 0);
	struct zf_key key;

	key = zf_key_next(a);
	assert_int_equal(zf_key_cmp(&key, &b), 0);
	key = zf_key_prev(b);
	assert_int_equal(zf_key_cmp(&key, &a), 0);
	key = zf_key_next(c);
	assert_int_equal(zf_key_cmp(&key, &d), 0);
	key = zf_key_prev(d);
	assert_int_equal(zf_key_cmp(&key, &c), 0);
}

static void assert_items(const uint8_t *buf, uint64_t from, unsigned int n)
{
	assert_int_equal(zf_node_count(buf), n);
	for (unsigned int i = 0; i < n; i++) {
		size_t len;
		const uint8_t *value = zf_node_value(buf, i, &len, NULL);

		assert_int_equal(zf_node_key(buf, i).objectid, from + i);
		assert_int_equal(len, 10 + (from + i) % 50);
		for (size_t j = 0; j < len; j++)
			assert_int_equal(value[j], (uint8_t)(from + i));
	}
}

static void splitting_and_absorbing_keep_all_items(void **state)
{
	for (unsigned int at = 0; at <= 20; at++) {
		make_leaf(node, 20, 100);
		zf_node_init(other, &shape, ZF_TREE_FS, 0, address, 7);
		zf_node_move(other, node, NODE_SIZE, at, 20 - at, false);
		seal();
		assert_sound();
		assert_items(node, 100, at);
		assert_items(other, 100 + at, 20 - at);
		zf_node_absorb(node, other, NODE_SIZE, 0, 20 - at, false);
		assert_sound();
		assert_items(node, 100, 20);

		make_leaf(other, at, 100 - at);
		zf_node_absorb(node, other, NODE_SIZE, 0, at, true);
		assert_sound();
		assert_items(node, 100 - at, 20 + at);
		zf_node_remove(node, NODE_SIZE, 0, at);
		zf_node_remove(node, NODE_SIZE, 13, 7);
		assert_sound();
		assert_items(node, 100, 13);
	}
}

/* Each part of a leaf, to the front and to the back of one with items of its own. */
static void moving_items_keeps_all_and_their_order(void **state)
{
	for (unsigned int n = 0; n <= 20; n++) {
		make_leaf(node, 20, 100);
		make_leaf(other, 10, 120);
		zf_node_move(other, node, NODE_SIZE, 20 - n, n, true);
		assert_items(node, 100, 20 - n);
		assert_items(other, 120 - n, 10 + n);
		seal();
		assert_sound();
		memcpy(node, other, NODE_SIZE);
		seal();
		assert_sound();

		make_leaf(node, 20, 100);
		make_leaf(other, 10, 90);
		zf_node_move(other, node, NODE_SIZE, 0, n, false);
		assert_items(node, 100 + n, 20 - n);
		assert_items(other, 90, 10 + n);
		seal();
		assert_sound();
		memcpy(node, other, NODE_SIZE);
		seal();
		assert_sound();
	}
	make_leaf(node, 20, 100);
	make_leaf(other, 3, 105);
	zf_node_absorb(other, node, NODE_SIZE, 8, 7, false);
	assert_items(other, 105, 10);
	assert_items(node, 100, 20);
}

static void changing_a_value_moves_its_neighbours(void **state)
{
	uint8_t value[300], original[60];

	memset(value, 1, sizeof(value));
	memset(original, 107, sizeof(original));
	zf_node_set_value(node, NODE_SIZE, 7, value, 300);
	assert_sound();
	zf_node_set_value(node, NODE_SIZE, 7, NULL, 0);
	assert_sound();
	zf_node_set_value(node, NODE_SIZE, 7, original, 10 + 107 % 50);
	assert_sound();
	assert_items(node, 100, 20);
}

static void a_copy_differs_in_identity_only(void **state)
{
	const uint64_t elsewhere[ZF_COPIES_MAX] = {81920, 0};

	zf_node_copy(other, node, &shape, elsewhere, 9);
	assert_int_equal(zf_node_generation(other), 9);
	assert_int_equal(zf_le64_get(zf_node_header(other)->address[0]), 81920);
	assert_items(other, 100, 20);
	zf_node_set_csum(other, zf_node_csum(other, NODE_SIZE));
	assert_true(zf_node_is_valid_at(&shape, other, 81920, 0));
}

/* With the checksum made right, only the other checks stand between these bytes and the tree. */
static void flipped_bytes_never_crash_the_checker(void **state)
{
	struct zf_rng rng;
	unsigned int refused = 0;

	zf_rng_seed(&rng, 1);
	for (unsigned int i = 0; i < 20000; i++) {
		if (i % 2)
			sound_leaf(state);
		else
			sound_internal(state);
		for (unsigned int n = 1 + (unsigned int)zf_rng_below(&rng, 4); n > 0; n--)
			node[zf_rng_below(&rng, NODE_SIZE)] ^= (uint8_t)zf_rng_next(&rng);
		reseal();
		refused += zf_node_check(&shape, node, &expect, true, NULL) == -EUCLEAN;
	}
	assert_true(refused > 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sound_nodes_pass),
		cmocka_unit_test_setup(every_identity_field_is_checked, sound_leaf),
		cmocka_unit_test_setup(a_level_beyond_the_highest_is_found, sound_internal),
		cmocka_unit_test_setup(checksums_are_checked_against_bytes_and_pointer, sound_leaf),
		cmocka_unit_test_setup(wrong_counts_are_found, sound_leaf),
		cmocka_unit_test_setup(keys_out_of_order_or_bounds_are_found, sound_leaf),
		cmocka_unit_test_setup(wrong_items_are_found, sound_leaf),
		cmocka_unit_test(values_that_reach_into_the_headers_are_found),
		cmocka_unit_test_setup(wrong_children_are_found, sound_internal),
		cmocka_unit_test_setup(search_finds_equal_keys_and_gaps, sound_leaf),
		cmocka_unit_test(neighbouring_keys_step_over_field_borders),
		cmocka_unit_test(splitting_and_absorbing_keep_all_items),
		cmocka_unit_test(moving_items_keeps_all_and_their_order),
		cmocka_unit_test_setup(changing_a_value_moves_its_neighbours, sound_leaf),
		cmocka_unit_test_setup(a_copy_differs_in_identity_only, sound_leaf),
		cmocka_unit_test(flipped_bytes_never_crash_the_checker),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
