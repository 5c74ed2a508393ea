/* SPDX-License-Identifier: MIT */
/* Inodes, their attributes and their extents: the checker reports each lie. */
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "sample.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#define FIELD(type, member) offsetof(type, member), sizeof(((type *)NULL)->member)

static struct zf_key inode_key(uint64_t ino)
{
	return ZF_KEY(ino, ZF_KEY_INODE, 0);
}

static void set_inode(struct sample *sample, uint64_t ino, size_t offset, size_t size,
		      uint64_t value)
{
	forge_field(&sample->forge, ZF_TREE_FS, inode_key(ino), offset, size, value);
}

/* ---- inode items ---- */

static void an_inode_item_that_is_missing(void **state)
{
	struct sample *sample = *state;

	forge_delete(&sample->forge, ZF_TREE_FS, inode_key(sample->deep));
	sample_expect(sample, false, "inode", "it has items, but no inode item, expected one");
	sample_expect(sample, false, "corrupt directory", "expected one that exists");
}

static void a_root_directory_that_is_missing(void **state)
{
	struct sample *sample = *state;

	forge_delete(&sample->forge, ZF_TREE_FS, inode_key(ZF_INO_ROOT));
	sample_expect(sample, false, "corrupt inode at 1:", "expected the root directory's");
}

static void a_field_out_of_its_range(void **state)
{
	struct sample *sample = *state;

	set_inode(sample, sample->deep, FIELD(struct zf_disk_inode, mtime.nanoseconds), 1000000000);
	sample_expect(sample, false, "mtime.nanoseconds has 1000000000", "expected");
}

static void a_link_count_that_is_too_high(void **state)
{
	struct sample *sample = *state;

	set_inode(sample, sample->file, FIELD(struct zf_disk_inode, nlink), 3);
	sample_expect(sample, false, "nlink has 3", "expected 2 by its names");
}

static void a_link_count_of_a_directory_without_a_subdirectory(void **state)
{
	struct sample *sample = *state;

	set_inode(sample, sample->dir, FIELD(struct zf_disk_inode, nlink), 2);
	sample_expect(sample, false, "corrupt directory", "nlink has 2, expected 3");
}

static void an_inode_above_next_ino(void **state)
{
	struct sample *sample = *state;

	sample->forge.super.next_ino = sample->deep;
	forge_write_super(&sample->forge);
	sample_expect(sample, false, "ino has", "the superblock's next_ino");
}

static void a_wrong_inode_count(void **state)
{
	struct sample *sample = *state;

	sample->forge.super.inode_count++;
	forge_write_super(&sample->forge);
	sample_expect(sample, false, "corrupt superblock", "inode_count has");
}

static void kept_space_that_no_extent_has(void **state)
{
	struct sample *sample = *state;

	sample->forge.super.kept_bytes = ZF_BLOCK_SIZE;
	forge_write_super(&sample->forge);
	sample_expect(sample, false, "corrupt superblock", "kept_bytes has 4096, expected 0");
}

/* ---- orphans and intents ---- */

static void an_inode_without_names_that_is_no_orphan(void **state)
{
	struct sample *sample = *state;

	set_inode(sample, sample->deep, FIELD(struct zf_disk_inode, nlink), 0);
	sample_expect(sample, false, "nlink has 0", "expected an orphan's item");
}

static void an_orphan_that_has_names(void **state)
{
	struct sample *sample = *state;

	forge_insert(&sample->forge, ZF_TREE_FS,
		     ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, sample->deep), NULL, 0);
	sample_expect(sample, false, "nlink has 1", "expected 0 of an orphan");
}

static void an_orphan_that_does_not_exist(void **state)
{
	struct sample *sample = *state;

	forge_insert(&sample->forge, ZF_TREE_FS, ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, 999999),
		     NULL, 0);
	sample_expect(sample, false, "corrupt orphan at 999999", "expected an inode that exists");
}

static void insert_intent(struct sample *sample, uint64_t number, uint64_t ino)
{
	struct zf_disk_intent intent = {.type = ZF_INTENT_TRUNCATE,
					.ino = zf_le64_from(ino),
					.to = zf_le64_from(UINT64_C(1) << 62)};

	forge_insert(&sample->forge, ZF_TREE_FS, ZF_KEY(ZF_INO_INTENTS, ZF_KEY_INTENT, number),
		     &intent, sizeof(intent));
}

static void an_intent_for_an_inode_that_does_not_exist(void **state)
{
	struct sample *sample = *state;

	insert_intent(sample, 1, 999999);
	sample_expect(sample, false, "corrupt intent", "ino has 999999");
}

static void an_intent_above_next_intent(void **state)
{
	struct sample *sample = *state;

	insert_intent(sample, 77777, sample->file);
	sample_expect(sample, false, "corrupt intent at 77777", "the superblock's next_intent");
}

/* ---- the superblock's counters ---- */

/* A mount raises each counter, and refuses a superblock with a counter above its limit. */
static void a_counter_that_is_near_its_end(void **state)
{
	struct sample *sample = *state;
	struct zf_super *super = &sample->forge.super;
	const struct {
		const char *said;
		uint64_t *counter;
	} counters[] = {
		{"next_ino has", &super->next_ino},
		{"next_intent has", &super->next_intent},
		{"op_number has", &super->op_number},
		{"log_epoch has", &super->log_epoch},
		{"log_sequence has", &super->log_sequence},
	};

	for (unsigned int i = 0; i < ZF_ARRAY_SIZE(counters); i++) {
		uint64_t before = *counters[i].counter;

		*counters[i].counter = ZF_SUPER_COUNTER_MAX;
		forge_write_super(&sample->forge);
		sample_expect(sample, false, "corrupt superblock", counters[i].said);
		*counters[i].counter = before;
	}
}

/* ---- extents ---- */

static struct zf_key extent_key(struct sample *sample, uint64_t ino)
{
	return sample_key(sample, ino, ZF_KEY_EXTENT);
}

static void set_extent(struct sample *sample, uint64_t ino, size_t offset, size_t size,
		       uint64_t value)
{
	forge_field(&sample->forge, ZF_TREE_FS, extent_key(sample, ino), offset, size, value);
}

static void allocated_bytes_that_extents_do_not_have(void **state)
{
	struct sample *sample = *state;

	set_inode(sample, sample->file, FIELD(struct zf_disk_inode, bytes), 4096);
	sample_expect(sample, false, "bytes has 4096", "by its extents");
}

static void an_extent_behind_the_end_of_the_file(void **state)
{
	struct sample *sample = *state;

	set_inode(sample, sample->file, FIELD(struct zf_disk_inode, size), 5000);
	sample_expect(sample, false, "size has 5000", "for the extent at");
}

static void an_extent_behind_the_end_that_an_intent_will_drop(void **state)
{
	struct sample *sample = *state;
	struct zf_check_counts counts;

	set_inode(sample, sample->file, FIELD(struct zf_disk_inode, size), 5000);
	sample->forge.super.next_intent = 2;
	insert_intent(sample, 1, sample->file);
	sample_check(sample, false, &counts);
	assert_int_equal(counts.errors, 0);
}

static void extents_that_overlap_in_the_file(void **state)
{
	struct sample *sample = *state;
	struct zf_key key = extent_key(sample, sample->file);
	uint8_t value[sizeof(struct zf_disk_extent)];

	forge_get(&sample->forge, ZF_TREE_FS, key, value, sizeof(value));
	key.offset += ZF_BLOCK_SIZE;
	forge_insert(&sample->forge, ZF_TREE_FS, key, value, sizeof(value));
	sample_expect(sample, false, "corrupt extent of inode", "where the extent before ends");
}

static void inline_bytes_that_the_size_does_not_cover(void **state)
{
	struct sample *sample = *state;

	set_inode(sample, sample->small, FIELD(struct zf_disk_inode, size), 50);
	sample_expect(sample, false, "size has 50", "its inline bytes");
}

static void a_symbolic_link_of_the_wrong_length(void **state)
{
	struct sample *sample = *state;

	set_inode(sample, sample->sym, FIELD(struct zf_disk_inode, size), 9);
	sample_expect(sample, false, "size has 9", "its target's");
}

static void extents_of_a_fifo(void **state)
{
	struct sample *sample = *state;
	uint8_t value[sizeof(struct zf_disk_extent) + ZF_INLINE_MAX];
	struct zf_key key = extent_key(sample, sample->small);
	size_t len = forge_get(&sample->forge, ZF_TREE_FS, key, value, sizeof(value));

	forge_insert(&sample->forge, ZF_TREE_FS, ZF_KEY(sample->fifo, ZF_KEY_EXTENT, 0), value,
		     len);
	sample_expect(sample, false, "corrupt inode", "expected a file or symbolic link");
}

static void blocks_of_a_symbolic_link(void **state)
{
	struct sample *sample = *state;
	struct zf_disk_extent zero = {
		.type = ZF_EXTENT_ZERO,
		.count = zf_le32_from(1),
		.generation = zf_le64_from(1),
	};

	forge_insert(&sample->forge, ZF_TREE_FS, ZF_KEY(sample->sym, ZF_KEY_EXTENT, ZF_BLOCK_SIZE),
		     &zero, sizeof(zero));
	sample_expect(sample, false, "extents have blocks", "target in inline bytes");
}

static void an_extent_across_the_capacity_of_its_zone(void **state)
{
	struct sample *sample = *state;

	/* Zones are 4 MiB with a capacity of 3 MiB. */
	set_extent(sample, sample->other, FIELD(struct zf_disk_extent, address),
		   (27u << 20) - 4096);
	sample_expect(sample, false, "corrupt extent of inode", "expected a place within one zone");
}

/* ---- attributes ---- */

static void a_long_attribute_that_lacks_a_chunk(void **state)
{
	struct sample *sample = *state;

	forge_delete(&sample->forge, ZF_TREE_FS,
		     sample_key(sample, sample->file, ZF_KEY_XATTR_VALUE));
	sample_expect(sample, false, "corrupt attribute value", "chunk of value");
	sample_expect(sample, false, "corrupt attribute value", "expected 30000");
}

static void a_chunk_that_no_attribute_has(void **state)
{
	struct sample *sample = *state;

	forge_insert(&sample->forge, ZF_TREE_FS, ZF_KEY(sample->deep, ZF_KEY_XATTR_VALUE, 9u << 16),
		     "x", 1);
	sample_expect(sample, false, "value id has 9", "expected one that an attribute has");
}

static void two_attributes_with_one_value(void **state)
{
	struct sample *sample = *state;
	struct zf_key key = sample_key(sample, sample->file, ZF_KEY_XATTR);
	uint8_t value[512];
	size_t len;

	/* One of the two attributes is the long one: both get the number of its value. */
	for (int i = 0; i < 2; i++) {
		struct zf_disk_xattr xattr;

		len = forge_get(&sample->forge, ZF_TREE_FS, key, value, sizeof(value));
		memcpy(&xattr, value, sizeof(xattr));
		xattr.value_len = zf_le32_from(SAMPLE_LONG_XATTR);
		xattr.value_id = zf_le32_from(1);
		memcpy(value, &xattr, sizeof(xattr));
		len = sizeof(xattr) + zf_le16_get(xattr.name_len);
		forge_set(&sample->forge, ZF_TREE_FS, key, value, len);
		key.offset++;
		forge_find(&sample->forge, ZF_TREE_FS, &key);
	}
	sample_expect(sample, false, "value_id has 1", "expected one that no other attribute has");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_inode_item_that_is_missing),
		TEST(a_root_directory_that_is_missing),
		TEST(a_field_out_of_its_range),
		TEST(a_link_count_that_is_too_high),
		TEST(a_link_count_of_a_directory_without_a_subdirectory),
		TEST(an_inode_above_next_ino),
		TEST(a_wrong_inode_count),
		TEST(kept_space_that_no_extent_has),
		TEST(an_inode_without_names_that_is_no_orphan),
		TEST(an_orphan_that_has_names),
		TEST(an_orphan_that_does_not_exist),
		TEST(an_intent_for_an_inode_that_does_not_exist),
		TEST(an_intent_above_next_intent),
		TEST(a_counter_that_is_near_its_end),
		TEST(allocated_bytes_that_extents_do_not_have),
		TEST(an_extent_behind_the_end_of_the_file),
		TEST(an_extent_behind_the_end_that_an_intent_will_drop),
		TEST(extents_that_overlap_in_the_file),
		TEST(inline_bytes_that_the_size_does_not_cover),
		TEST(a_symbolic_link_of_the_wrong_length),
		TEST(extents_of_a_fifo),
		TEST(blocks_of_a_symbolic_link),
		TEST(an_extent_across_the_capacity_of_its_zone),
		TEST(a_long_attribute_that_lacks_a_chunk),
		TEST(a_chunk_that_no_attribute_has),
		TEST(two_attributes_with_one_value),
	};

	return cmocka_run_group_tests_name("check_inodes", tests, NULL, NULL);
}
