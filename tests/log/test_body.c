/* SPDX-License-Identifier: MIT */
/* Bodies of log records: reading gives what was written, and the check rejects everything that is
 * wrong (P7). */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/bits.h"
#include "log/body.h"
#include "sim/rng.h"

#define BLOCK	   UINT64_C(4096)
#define BODY_SIZE  sizeof(struct zf_disk_log_body)
#define ROUNDS	   60000
#define DATA_COUNT 4u /* of the body of make_inode() */

/* The memory ends with the body, so that sanitizers report a read behind the body. */
static uint8_t *copy_of(const struct zf_log_body *body, size_t len)
{
	uint8_t *bytes = malloc(len);

	assert_non_null(bytes);
	memcpy(bytes, body->bytes, len);
	return bytes;
}

static int check(const uint8_t *bytes, size_t len)
{
	size_t found = 0;
	int r = zf_log_body_check(bytes, len, &found);

	if (r == 0)
		assert_true(found <= len && found >= BODY_SIZE);
	return r;
}

static struct zf_log_body_view view_of(const uint8_t *bytes)
{
	const struct zf_disk_log_body *disk = (const void *)bytes;

	return (struct zf_log_body_view){
		.bytes = bytes,
		.len = zf_le32_get(disk->bytes),
		.type = (enum zf_log_body_type)disk->type,
		.data_address = 1000 * BLOCK,
		.data_count = zf_le32_get(disk->data_count),
	};
}

static void make_operation(struct zf_log_body *body)
{
	const struct zf_key set = ZF_KEY(300, 5, 77), empty = ZF_KEY(2, 8, 300);
	const struct zf_key gone = ZF_KEY(300, 6, 9);

	zf_log_body_begin(body, ZF_LOG_OPERATION);
	zf_log_body_resize(body, 300, 12345);
	zf_log_body_set(body, &set, "a value", 7);
	zf_log_body_set(body, &empty, NULL, 0);
	zf_log_body_delete(body, &gone);
	assert_int_equal(zf_log_body_error(body), 0);
}

static const uint64_t some_csums[] = {11, 22, 33, 44};

static const struct zf_log_range some_ranges[] = {
	{.type = ZF_LOG_RANGE_DATA, .flags = 2, .offset = 0, .len = BLOCK, .address = 64 * BLOCK},
	{.type = ZF_LOG_RANGE_DATA,
	 .offset = BLOCK,
	 .len = 2 * BLOCK,
	 .address = 80 * BLOCK,
	 .csums = some_csums + 2},
	{.type = ZF_LOG_RANGE_HOLE, .offset = 4 * BLOCK, .len = (UINT64_C(1) << 63) - 4 * BLOCK},
	{.type = ZF_LOG_RANGE_ZERO, .flags = 4, .offset = 4 * BLOCK, .len = 1000 * BLOCK},
	{.type = ZF_LOG_RANGE_INLINE,
	 .offset = 0,
	 .len = BLOCK,
	 .bytes = (const uint8_t *)"inlined",
	 .inline_len = 7},
	{.type = ZF_LOG_RANGE_DATA,
	 .riding = true,
	 .offset = 0,
	 .len = DATA_COUNT * BLOCK,
	 .address = 0,
	 .csums = some_csums},
};

static void make_inode(struct zf_log_body *body)
{
	struct zf_disk_log_body *disk;

	zf_log_body_begin(body, ZF_LOG_EXTENTS);
	zf_log_body_inode(body, 300, "the inode's item", 17);
	for (size_t i = 0; i < ZF_ARRAY_SIZE(some_ranges); i++)
		zf_log_body_range(body, &some_ranges[i]);
	assert_int_equal(zf_log_body_error(body), 0);
	disk = (void *)body->bytes;
	disk->data_count = zf_le32_from(DATA_COUNT);
}

/* ---- what goes in comes out ---- */

static void expect_edit(const struct zf_log_body_view *view, size_t *at, enum zf_log_edit_kind kind,
			struct zf_key key, const char *value)
{
	struct zf_log_edit edit;

	assert_true(zf_log_next_edit(view, at, &edit));
	assert_int_equal(edit.kind, kind);
	assert_int_equal(zf_key_cmp(&edit.key, &key), 0);
	assert_int_equal(edit.len, strlen(value));
	assert_memory_equal(edit.value, value, edit.len);
}

static void the_edits_of_an_operation_come_out_in_order(void **state)
{
	struct zf_log_body body;
	struct zf_log_body_view view;
	struct zf_log_edit edit;
	size_t at = 0, len;

	make_operation(&body);
	assert_int_equal(zf_log_body_check(body.bytes, body.len, &len), 0);
	assert_int_equal(len, body.len);
	view = view_of(body.bytes);
	expect_edit(&view, &at, ZF_LOG_RESIZE, ZF_KEY(300, 0, 12345), "");
	expect_edit(&view, &at, ZF_LOG_SET, ZF_KEY(300, 5, 77), "a value");
	expect_edit(&view, &at, ZF_LOG_SET, ZF_KEY(2, 8, 300), "");
	expect_edit(&view, &at, ZF_LOG_DELETE, ZF_KEY(300, 6, 9), "");
	assert_false(zf_log_next_edit(&view, &at, &edit));
	zf_log_body_end(&body);
}

static void expect_csums(const struct zf_log_range_view *range, const uint64_t *expected)
{
	uint64_t csum;

	if (!expected) {
		assert_null(range->csums);
		return;
	}
	for (unsigned int i = 0; i < range->range.len / BLOCK; i++) {
		zf_log_range_csums(range, i, 1, &csum);
		assert_int_equal(csum, expected[i]);
	}
}

static void expect_range(const struct zf_log_range_view *found, const struct zf_log_range *range)
{
	assert_int_equal(found->range.type, range->type);
	assert_int_equal(found->range.flags, range->flags);
	assert_int_equal(found->range.riding, range->riding);
	assert_int_equal(found->range.offset, range->offset);
	assert_int_equal(found->range.len, range->len);
	assert_int_equal(found->range.address, range->address + (range->riding ? 1000 * BLOCK : 0));
	assert_int_equal(found->range.inline_len, range->inline_len);
	if (range->bytes)
		assert_memory_equal(found->range.bytes, range->bytes, range->inline_len);
	expect_csums(found, range->csums);
}

static void the_state_of_an_inode_comes_out_in_order(void **state)
{
	struct zf_log_range_view range;
	struct zf_log_body_view view;
	struct zf_log_inode inode;
	struct zf_log_body body;
	size_t at = 0;

	make_inode(&body);
	assert_int_equal(check(body.bytes, body.len), 0);
	view = view_of(body.bytes);
	zf_log_view_inode(&view, &inode);
	assert_int_equal(inode.ino, 300);
	assert_int_equal(inode.item_len, 17);
	assert_string_equal(inode.item, "the inode's item");
	assert_int_equal(inode.range_count, ZF_ARRAY_SIZE(some_ranges));
	for (size_t i = 0; i < ZF_ARRAY_SIZE(some_ranges); i++) {
		assert_true(zf_log_next_range(&view, &at, &range));
		expect_range(&range, &some_ranges[i]);
	}
	assert_false(zf_log_next_range(&view, &at, &range));
	zf_log_body_end(&body);
}

static void a_body_grows_up_to_its_limit(void **state)
{
	static uint8_t value[8000];
	const struct zf_key key = ZF_KEY(300, 4, 1);
	struct zf_log_body body;
	size_t expected = BODY_SIZE;

	zf_log_body_begin(&body, ZF_LOG_OPERATION);
	while (expected + sizeof(struct zf_disk_log_edit) + sizeof(value) <= ZF_LOG_BODY_MAX) {
		memset(value, (int)expected, sizeof(value));
		zf_log_body_set(&body, &key, value, sizeof(value));
		expected += sizeof(struct zf_disk_log_edit) + sizeof(value);
		assert_int_equal(zf_log_body_error(&body), 0);
		assert_int_equal(body.len, expected);
		assert_int_equal(check(body.bytes, body.len), 0);
	}
	zf_log_body_set(&body, &key, value, sizeof(value));
	assert_int_equal(zf_log_body_error(&body), -E2BIG);
	/* The error stays, although this edit would fit. */
	zf_log_body_delete(&body, &key);
	assert_int_equal(zf_log_body_error(&body), -E2BIG);
	zf_log_body_end(&body);
}

/* ---- what is wrong does not get past the check ---- */

/* A change of bytes somewhere in a body, and what the check says then. */
struct change {
	const char *what;
	size_t at;
	unsigned int size; /* bytes, 1 to 8 */
	uint64_t value;
	int expected;
};

#define EDIT(n) (BODY_SIZE + (n) * sizeof(struct zf_disk_log_edit))
#define E(n, f) (EDIT(n) + offsetof(struct zf_disk_log_edit, f))
#define B(f)	offsetof(struct zf_disk_log_body, f)

static void expect_changes(const struct zf_log_body *body, const struct change *changes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t *bytes = copy_of(body, body->len);
		struct zf_le64 le = zf_le64_from(changes[i].value);
		int r;

		memcpy(bytes + changes[i].at, &le, changes[i].size);
		r = check(bytes, body->len);
		if (r != changes[i].expected)
			fail_msg("%s: %d, expected %d", changes[i].what, r, changes[i].expected);
		free(bytes);
	}
}

static void a_wrong_operation_is_refused(void **state)
{
	/* RESIZE, SET with 8 bytes, SET with none, DELETE */
	const size_t set = EDIT(1), empty = EDIT(2) + 8, delete = EDIT(3) + 8;
	const struct change changes[] = {
		{"as it is", B(bytes), 1, EDIT(4) + 8, 0},
		{"a type of the future", B(type), 1, 3, -EPROTONOSUPPORT},
		{"no type", B(type), 1, 0, -EPROTONOSUPPORT},
		{"a version of the future", B(version), 1, 2, -EPROTONOSUPPORT},
		{"reserved", B(reserved_a), 1, 1, -EUCLEAN},
		{"longer than there is", B(bytes), 4, EDIT(4) + 16, -EUCLEAN},
		{"much longer", B(bytes), 4, UINT32_MAX, -EUCLEAN},
		{"no multiple of 8", B(bytes), 4, EDIT(4) + 7, -EUCLEAN},
		{"ends in an edit", B(bytes), 4, EDIT(4), -EUCLEAN},
		{"ends in a value", B(bytes), 4, EDIT(2), -EUCLEAN},
		{"ends in the header", B(bytes), 4, BODY_SIZE - 8, -EUCLEAN},
		{"has data", B(data_count), 4, 1, -EUCLEAN},
		{"no kind", set, 1, 0, -EUCLEAN},
		{"an unknown kind", set, 1, 4, -EUCLEAN},
		{"a second resize", empty, 1, ZF_LOG_RESIZE, -EUCLEAN},
		{"a resize with a key's type", E(0, key_type), 1, 1, -EUCLEAN},
		{"a resize with a value", E(0, value_len), 2, 8, -EUCLEAN},
		{"a deletion with a value", delete +2, 2, 8, -EUCLEAN},
		{"a value behind the end", delete, 4, 0x00080000 | ZF_LOG_SET, -EUCLEAN},
		{"reserved bytes of an edit", E(1, reserved) + 3, 1, 1, -EUCLEAN},
		{"padding that is not zero", EDIT(2) + 7, 1, 1, -EUCLEAN},
	};
	struct zf_log_body body;

	make_operation(&body);
	assert_int_equal(body.len, EDIT(4) + 8);
	expect_changes(&body, changes, ZF_ARRAY_SIZE(changes));
	zf_log_body_end(&body);
}

/* Where range n of make_inode() begins. */
static size_t range_at(const struct zf_log_body *body, unsigned int n)
{
	struct zf_log_body_view view = view_of(body->bytes);
	struct zf_log_range_view range;
	size_t at = 0;

	assert_true(zf_log_next_range(&view, &at, &range));
	if (n == 0)
		return BODY_SIZE + at - sizeof(struct zf_disk_log_range);
	for (unsigned int i = 1; i < n; i++)
		assert_true(zf_log_next_range(&view, &at, &range));
	return BODY_SIZE + at;
}

#define R(n, f) (range_at(&body, n) + offsetof(struct zf_disk_log_range, f))
#define I(f)	(BODY_SIZE + offsetof(struct zf_disk_log_inode, f))

static void a_wrong_state_of_an_inode_is_refused(void **state)
{
	struct zf_log_body body;

	make_inode(&body);
	const struct change changes[] = {
		{"as it is", B(type), 1, ZF_LOG_EXTENTS, 0},
		{"an item longer than there is", I(item_len), 2, 65535, -EUCLEAN},
		{"an item that ends in a range", I(item_len), 2, 25, -EUCLEAN},
		{"reserved", I(reserved), 1, 1, -EUCLEAN},
		{"padding of the item", BODY_SIZE + 16 + 20, 1, 1, -EUCLEAN},
		{"a range too many", I(range_count), 4, 7, -EUCLEAN},
		{"a range too few", I(range_count), 4, 5, -EUCLEAN},
		{"very many ranges", I(range_count), 4, UINT32_MAX, -EUCLEAN},
		{"an unknown type", R(0, type), 1, 4, -EUCLEAN},
		{"riding 2", R(0, riding), 1, 2, -EUCLEAN},
		{"csums 2", R(1, csums), 1, 2, -EUCLEAN},
		{"rides without checksums", R(0, riding), 1, 1, -EUCLEAN},
		{"data with inline bytes", R(0, inline_len), 4, 8, -EUCLEAN},
		{"offset in a block", R(0, offset), 8, 512, -EUCLEAN},
		{"empty", R(0, len), 8, 0, -EUCLEAN},
		{"length in a block", R(0, len), 8, 100, -EUCLEAN},
		{"ends behind any file", R(2, len), 8, UINT64_C(1) << 63, -EUCLEAN},
		{"ends behind 2^64", R(2, len), 8, 0 - BLOCK, -EUCLEAN},
		{"address in a block", R(0, address), 8, 100, -EUCLEAN},
		{"address behind any device", R(0, address), 8, UINT64_C(1) << 63, -EUCLEAN},
		{"fewer checksums than blocks", R(1, len), 8, 3 * BLOCK, -EUCLEAN},
		{"checksums for 2^63 bytes", R(1, len), 8, UINT64_C(1) << 62, -EUCLEAN},
		{"a hole with an address", R(2, address), 8, BLOCK, -EUCLEAN},
		{"a hole with checksums", R(2, csums), 1, 1, -EUCLEAN},
		{"zeroes that ride", R(3, riding), 1, 1, -EUCLEAN},
		{"inline bytes behind the end", R(4, inline_len), 4, UINT32_MAX, -EUCLEAN},
		{"inline padding", range_at(&body, 5) - 1, 1, 1, -EUCLEAN},
		{"rides where no data is", R(5, address), 8, BLOCK, -EUCLEAN},
		{"rides in fewer blocks", B(data_count), 4, DATA_COUNT - 1, -EUCLEAN},
		{"others ride too", R(1, riding), 1, 1, -EUCLEAN},
	};
	expect_changes(&body, changes, ZF_ARRAY_SIZE(changes));
	zf_log_body_end(&body);
}

static void no_block_rides_twice(void **state)
{
	struct zf_log_range range = some_ranges[5];
	struct zf_disk_log_body *disk;
	struct zf_log_body body;

	zf_log_body_begin(&body, ZF_LOG_EXTENTS);
	zf_log_body_inode(&body, 300, "item", 4);
	range.len = 2 * BLOCK;
	zf_log_body_range(&body, &range);
	zf_log_body_range(&body, &range);
	disk = (void *)body.bytes;
	disk->data_count = zf_le32_from(4);
	assert_int_equal(check(body.bytes, body.len), 0);
	disk->data_count = zf_le32_from(3);
	assert_int_equal(check(body.bytes, body.len), -EUCLEAN);
	zf_log_body_end(&body);
}

static void a_body_that_is_cut_is_refused(void **state)
{
	void (*const makers[])(struct zf_log_body *body) = {make_operation, make_inode};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(makers); i++) {
		struct zf_log_body body;

		makers[i](&body);
		for (size_t len = 1; len < body.len; len++) {
			uint8_t *bytes = copy_of(&body, len);
			struct zf_le32 shorter = zf_le32_from((uint32_t)len);

			assert_int_equal(check(bytes, len), -EUCLEAN);
			if (len >= BODY_SIZE) {
				memcpy(bytes + B(bytes), &shorter, sizeof(shorter));
				check(bytes, len);
			}
			free(bytes);
		}
		zf_log_body_end(&body);
	}
}

/* ---- chance ---- */

static uint64_t sum(const void *bytes, size_t len)
{
	uint64_t total = 0;

	for (size_t i = 0; i < len; i++)
		total += ((const uint8_t *)bytes)[i];
	return total;
}

static uint64_t visit_range(const struct zf_log_range_view *range)
{
	uint64_t total = sum(range->range.bytes, range->range.inline_len), csum;

	for (unsigned int i = 0; range->csums && i < range->range.len / BLOCK; i++) {
		zf_log_range_csums(range, i, 1, &csum);
		total += csum;
	}
	return total;
}

/* Touches everything that the iterators give: a memory checker sees whether it is there. */
static uint64_t visit(const uint8_t *bytes)
{
	struct zf_log_body_view view = view_of(bytes);
	struct zf_log_range_view range;
	struct zf_log_inode inode;
	struct zf_log_edit edit;
	uint64_t total = 0;
	size_t at = 0;

	if (view.type == ZF_LOG_OPERATION) {
		while (zf_log_next_edit(&view, &at, &edit))
			total += sum(edit.value, edit.len);
		return total;
	}
	zf_log_view_inode(&view, &inode);
	total += sum(inode.item, inode.item_len);
	for (; zf_log_next_range(&view, &at, &range); inode.range_count--)
		total += visit_range(&range);
	assert_int_equal(inode.range_count, 0);
	return total;
}

static void mutate(struct zf_rng *rng, uint8_t *bytes, size_t len)
{
	static const uint8_t values[] = {0, 1, 2, 3, 8, 16, 127, 128, 255};

	for (uint64_t n = 1 + zf_rng_below(rng, 3); n > 0; n--)
		bytes[zf_rng_below(rng, len)] = values[zf_rng_below(rng, sizeof(values))];
}

static void no_chance_leads_out_of_a_body(void **state)
{
	void (*const makers[])(struct zf_log_body *body) = {make_operation, make_inode};
	volatile uint64_t total = 0;
	struct zf_rng rng;
	unsigned int good = 0;

	zf_rng_seed(&rng, 7);
	for (unsigned int i = 0; i < ROUNDS; i++) {
		struct zf_log_body body;
		uint8_t *bytes;

		makers[i % 2](&body);
		bytes = copy_of(&body, body.len);
		mutate(&rng, bytes, body.len);
		if (check(bytes, body.len) == 0) {
			good++;
			total += visit(bytes);
		}
		free(bytes);
		zf_log_body_end(&body);
	}
	/* Values and numbers may be anything. */
	assert_in_range(good, ROUNDS / 20, ROUNDS / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_edits_of_an_operation_come_out_in_order),
		cmocka_unit_test(the_state_of_an_inode_comes_out_in_order),
		cmocka_unit_test(a_body_grows_up_to_its_limit),
		cmocka_unit_test(a_wrong_operation_is_refused),
		cmocka_unit_test(a_wrong_state_of_an_inode_is_refused),
		cmocka_unit_test(no_block_rides_twice),
		cmocka_unit_test(a_body_that_is_cut_is_refused),
		cmocka_unit_test(no_chance_leads_out_of_a_body),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
