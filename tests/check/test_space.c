/* SPDX-License-Identifier: MIT */
/* Data, summary, shares and zones: the checker reports each lie about space. */
#include <stddef.h>
#include <string.h>

#include "alloc/zone_format.h"
#include "fs/core/item.h"
#include "sample.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#define FIELD(type, member) offsetof(type, member), sizeof(((type *)NULL)->member)

static struct zf_disk_extent first_extent(struct sample *sample, uint64_t ino,
					  struct zf_key *ret_key)
{
	struct zf_disk_extent extent;

	*ret_key = sample_key(sample, ino, ZF_KEY_EXTENT);
	forge_get(&sample->forge, ZF_TREE_FS, *ret_key, &extent, sizeof(extent));
	return extent;
}

static uint64_t first_address(struct sample *sample, uint64_t ino)
{
	struct zf_key key;

	return zf_le64_get(first_extent(sample, ino, &key).address);
}

/* ---- data ---- */

static void a_damaged_block_is_found_only_when_data_is_read(void **state)
{
	struct sample *sample = *state;
	struct zf_check_counts counts;

	forge_bytes(&sample->forge, first_address(sample, sample->file))[77] ^= 1;
	sample_check(sample, false, &counts);
	assert_int_equal(counts.errors, 0);
	sample_expect(sample, true, "corrupt data", "offset 0)");
	sample_check(sample, true, &counts);
	assert_int_equal(counts.errors, 1);
}

static void two_extents_that_name_the_same_bytes(void **state)
{
	struct sample *sample = *state;
	struct zf_key key;

	first_extent(sample, sample->other, &key);
	forge_field(&sample->forge, ZF_TREE_FS, key, FIELD(struct zf_disk_extent, address),
		    first_address(sample, sample->file) + ZF_BLOCK_SIZE);
	sample_expect(sample, false, "corrupt extent of inode", "bytes that no other extent names");
}

static void an_extent_above_the_pointer_of_its_zone(void **state)
{
	struct sample *sample = *state;
	struct zf_key key;
	uint64_t zone_end;

	first_extent(sample, sample->other, &key);
	zone_end = first_address(sample, sample->other) / (4u << 20) * (4u << 20) + (3u << 20);
	forge_field(&sample->forge, ZF_TREE_FS, key, FIELD(struct zf_disk_extent, address),
		    zone_end - 3 * ZF_BLOCK_SIZE);
	sample_expect(sample, false, "corrupt zone", "where its data ends");
	sample_expect(sample, false, "corrupt zone", "the device's write pointer has");
}

static void an_extent_in_a_zone_of_nodes(void **state)
{
	struct sample *sample = *state;
	struct zf_key key;

	first_extent(sample, sample->other, &key);
	forge_field(&sample->forge, ZF_TREE_FS, key, FIELD(struct zf_disk_extent, address),
		    sample->forge.super.root.address[0]);
	sample_expect(sample, false, "corrupt zone", "bytes of data");
}

/* ---- the summary ---- */

static struct zf_key summary_key(struct sample *sample, uint64_t ino)
{
	struct zf_key key = ZF_KEY(first_address(sample, ino), ZF_KEY_SUMMARY, 0);

	assert_true(forge_find(&sample->forge, ZF_TREE_SUMMARY, &key));
	assert_int_equal(key.objectid, first_address(sample, ino));
	return key;
}

static void an_extent_that_the_summary_lacks(void **state)
{
	struct sample *sample = *state;

	forge_delete(&sample->forge, ZF_TREE_SUMMARY, summary_key(sample, sample->other));
	sample_expect(sample, false, "corrupt extent of inode", "a summary entry that covers it");
}

static void a_summary_entry_of_another_inode(void **state)
{
	struct sample *sample = *state;

	forge_field(&sample->forge, ZF_TREE_SUMMARY, summary_key(sample, sample->other),
		    FIELD(struct zf_disk_summary, ino), sample->file);
	sample_expect(sample, false, "corrupt summary of address", "owner has inode");
}

static void a_summary_entry_of_another_offset(void **state)
{
	struct sample *sample = *state;

	forge_field(&sample->forge, ZF_TREE_SUMMARY, summary_key(sample, sample->other),
		    FIELD(struct zf_disk_summary, offset), 1u << 20);
	sample_expect(sample, false, "corrupt summary of address", "offset 1048576");
}

static void a_wrong_checksum_in_the_summary(void **state)
{
	struct sample *sample = *state;

	forge_field(&sample->forge, ZF_TREE_SUMMARY, summary_key(sample, sample->other),
		    sizeof(struct zf_disk_summary), 8, 1);
	sample_expect(sample, true, "corrupt data", "expected 0000000000000001");
}

static void summary_entries_that_overlap(void **state)
{
	struct sample *sample = *state;
	struct zf_key key = summary_key(sample, sample->file);
	uint8_t value[sizeof(struct zf_disk_summary) + sizeof(struct zf_le64)];
	struct zf_disk_summary summary;

	forge_get(&sample->forge, ZF_TREE_SUMMARY, key, value, sizeof(value));
	memcpy(&summary, value, sizeof(summary));
	summary.count = zf_le16_from(1);
	memcpy(value, &summary, sizeof(summary));
	key.objectid += ZF_BLOCK_SIZE;
	forge_insert(&sample->forge, ZF_TREE_SUMMARY, key, value, sizeof(value));
	sample_expect(sample, false, "corrupt summary of address", "where the entry before ends");
}

/* The summary may have more entries than extents need: that is no error. */
static void a_summary_entry_that_no_extent_needs(void **state)
{
	struct sample *sample = *state;
	struct zf_check_counts counts;
	uint8_t value[sizeof(struct zf_disk_summary) + sizeof(struct zf_le64)] = {0};
	const struct zf_disk_summary summary = {
		.ino = zf_le64_from(sample->file),
		.tree = zf_le32_from(ZF_TREE_FS),
		.count = zf_le16_from(1),
	};

	memcpy(value, &summary, sizeof(summary));
	forge_insert(&sample->forge, ZF_TREE_SUMMARY, ZF_KEY(100u << 20, ZF_KEY_SUMMARY, 0), value,
		     sizeof(value));
	sample_check(sample, true, &counts);
	assert_int_equal(counts.errors, 0);
}

/* ---- shares ---- */

static void insert_share(struct sample *sample, uint64_t address, uint64_t ino, uint64_t len)
{
	const struct zf_disk_share share = {
		.tree = zf_le64_from(ZF_TREE_FS),
		.ino = zf_le64_from(ino),
		.len = zf_le64_from(len),
	};

	struct zf_key key = ZF_KEY(address, ZF_KEY_SHARE, 0);

	key.offset = zf_item_hash_share(sample->forge.super.dir_hash_seed, ino, 0);
	forge_insert(&sample->forge, ZF_TREE_SHARE, key, &share, sizeof(share));
}

static void share_extent(struct sample *sample, uint64_t ino)
{
	struct zf_key key;

	first_extent(sample, ino, &key);
	forge_field(&sample->forge, ZF_TREE_FS, key, FIELD(struct zf_disk_extent, flags),
		    ZF_EXTENT_SHARED);
}

static void a_shared_extent_that_the_share_tree_lacks(void **state)
{
	struct sample *sample = *state;

	share_extent(sample, sample->other);
	sample_expect(sample, false, "corrupt extent of inode", "an item of the share tree");
}

static void a_shared_extent_that_the_share_tree_has(void **state)
{
	struct sample *sample = *state;
	struct zf_check_counts counts;

	share_extent(sample, sample->other);
	insert_share(sample, first_address(sample, sample->other), sample->other,
		     3 * ZF_BLOCK_SIZE);
	sample_check(sample, true, &counts);
	assert_int_equal(counts.errors, 0);
}

static void a_share_that_no_extent_has(void **state)
{
	struct sample *sample = *state;

	insert_share(sample, 100u << 20, sample->other, ZF_BLOCK_SIZE);
	sample_expect(sample, false, "corrupt share of address", "expected a shared extent");
}

static void a_share_of_another_length(void **state)
{
	struct sample *sample = *state;

	share_extent(sample, sample->other);
	insert_share(sample, first_address(sample, sample->other), sample->other,
		     2 * ZF_BLOCK_SIZE);
	sample_expect(sample, false, "corrupt extent of inode", "an item of the share tree");
}

static void a_share_that_stands_twice(void **state)
{
	struct sample *sample = *state;
	const struct zf_disk_share share = {
		.tree = zf_le64_from(ZF_TREE_FS),
		.ino = zf_le64_from(sample->other),
		.len = zf_le64_from(3 * ZF_BLOCK_SIZE),
	};
	const struct zf_disk_share twice[] = {share, share};
	struct zf_key key = ZF_KEY(first_address(sample, sample->other), ZF_KEY_SHARE, 0);

	share_extent(sample, sample->other);
	key.offset = zf_item_hash_share(sample->forge.super.dir_hash_seed, sample->other, 0);
	forge_insert(&sample->forge, ZF_TREE_SHARE, key, twice, sizeof(twice));
	sample_expect(sample, false, "corrupt share of address", "expected a shared extent");
}

/* Both extents must be marked as shared, or freeing one would free the other's bytes. */
static void an_overlap_of_which_one_knows_nothing(void **state)
{
	struct sample *sample = *state;
	struct zf_key key;

	first_extent(sample, sample->file, &key);
	forge_field(&sample->forge, ZF_TREE_FS, key, FIELD(struct zf_disk_extent, address),
		    first_address(sample, sample->other));
	share_extent(sample, sample->other);
	insert_share(sample, first_address(sample, sample->other), sample->other,
		     3 * ZF_BLOCK_SIZE);
	sample_expect(sample, false, "corrupt extent of inode", "that no other extent names");
}

/* ---- zones ---- */

static uint32_t data_zone(struct sample *sample)
{
	return (uint32_t)(first_address(sample, sample->other) / (4u << 20));
}

static void set_zone(struct sample *sample, uint32_t zone_no, size_t offset, size_t size,
		     uint64_t value)
{
	forge_field(&sample->forge, ZF_TREE_ZONE, ZF_KEY(zone_no, ZF_KEY_ZONE, 0), offset, size,
		    value);
}

static void live_bytes_that_are_too_few(void **state)
{
	struct sample *sample = *state;

	set_zone(sample, data_zone(sample), FIELD(struct zf_disk_zone, live), ZF_BLOCK_SIZE);
	sample_expect(sample, false, "live has 4096", "by recount");
}

static void live_bytes_of_nodes_that_are_too_many(void **state)
{
	struct sample *sample = *state;

	set_zone(sample, sample->forge.super.meta_zone[0], FIELD(struct zf_disk_zone, live),
		 1u << 20);
	sample_expect(sample, false, "live has 1048576", "by recount");
}

static void a_pointer_below_the_data(void **state)
{
	struct sample *sample = *state;

	set_zone(sample, data_zone(sample), FIELD(struct zf_disk_zone, pointer), 2 * ZF_BLOCK_SIZE);
	sample_expect(sample, false, "pointer has 8192", "where its data ends");
}

static void a_pointer_behind_the_capacity(void **state)
{
	struct sample *sample = *state;

	set_zone(sample, data_zone(sample), FIELD(struct zf_disk_zone, pointer), 4u << 20);
	sample_expect(sample, false, "pointer has 4194304", "expected whole blocks up to");
}

static void a_role_that_does_not_fit_the_data(void **state)
{
	struct sample *sample = *state;

	set_zone(sample, data_zone(sample), FIELD(struct zf_disk_zone, role), ZF_ROLE_META);
	sample_expect(sample, false, "role has 2 (meta)", "bytes of data");
}

static void a_role_that_does_not_fit_the_nodes(void **state)
{
	struct sample *sample = *state;

	set_zone(sample, sample->forge.super.meta_zone[0], FIELD(struct zf_disk_zone, role),
		 ZF_ROLE_HOT);
	sample_expect(sample, false, "role has 4 (hot)", "bytes of nodes");
}

static void a_role_that_there_is_not(void **state)
{
	struct sample *sample = *state;

	set_zone(sample, 20, FIELD(struct zf_disk_zone, role), 9);
	sample_expect(sample, false, "corrupt zone at 20: role has 9", "expected");
}

static void a_zone_without_an_item(void **state)
{
	struct sample *sample = *state;

	forge_delete(&sample->forge, ZF_TREE_ZONE, ZF_KEY(20, ZF_KEY_ZONE, 0));
	sample_expect(sample, false, "corrupt zone at 20", "item is missing");
}

static void an_item_of_a_zone_that_there_is_not(void **state)
{
	struct sample *sample = *state;
	const struct zf_disk_zone zone = {0};

	forge_insert(&sample->forge, ZF_TREE_ZONE, ZF_KEY(32, ZF_KEY_ZONE, 0), &zone, sizeof(zone));
	sample_expect(sample, false, "corrupt zone tree item at 32", "key has");
}

static void a_zone_emptied_though_something_is_live(void **state)
{
	struct sample *sample = *state;

	set_zone(sample, data_zone(sample), FIELD(struct zf_disk_zone, emptied_generation), 1);
	sample_expect(sample, false, "emptied_generation has 1", "bytes are live");
}

static void a_zone_written_in_the_future(void **state)
{
	struct sample *sample = *state;

	set_zone(sample, data_zone(sample), FIELD(struct zf_disk_zone, write_generation), 1u << 30);
	sample_expect(sample, false, "write_generation has 1073741824", "expected at most");
}

static void a_zone_that_was_reset_since(void **state)
{
	struct sample *sample = *state;
	const struct zf_memory_options options = {0};
	struct zf_dev *dev;

	assert_int_equal(zf_memory_open(sample->memory, &options, NULL, &dev), 0);
	assert_int_equal(zf_dev_reset(dev, data_zone(sample)), 0);
	zf_dev_close(dev);
	sample_expect(sample, false, "the device's write pointer has 0", "expected at least");
}

static void a_zone_with_another_reset_count(void **state)
{
	struct sample *sample = *state;

	set_zone(sample, data_zone(sample), FIELD(struct zf_disk_zone, reset_count), 7);
	sample_expect(sample, false, "reset_count has 7", "the device's");
}

static void a_reset_count_that_no_zone_reaches(void **state)
{
	struct sample *sample = *state;

	set_zone(sample, 20, FIELD(struct zf_disk_zone, reset_count), UINT64_C(1) << 62);
	sample_expect(sample, false, "reset_count has 4611686018427387904",
		      "expected at most 2305843009213693952");
}

static void reserved_bytes_of_a_zone_item(void **state)
{
	struct sample *sample = *state;

	set_zone(sample, 20, FIELD(struct zf_disk_zone, reserved_b), 1);
	sample_expect(sample, false, "reserved_b has bits set", "expected 0");
}

/* ---- the log's zones ---- */

/* Makes the data zone the only log zone, as if a freeze had found it to be the log's. */
static uint32_t name_log_zone(struct sample *sample)
{
	struct zf_super *super = &sample->forge.super;
	uint32_t zone_no = data_zone(sample);
	struct zf_disk_zone zone;

	for (unsigned int i = 0; i < 2; i++) {
		if (super->log_zone[i] != ZF_SUPER_NO_ZONE)
			set_zone(sample, super->log_zone[i], FIELD(struct zf_disk_zone, role),
				 ZF_ROLE_HOT);
		super->log_zone[i] = ZF_SUPER_NO_ZONE;
	}
	forge_get(&sample->forge, ZF_TREE_ZONE, ZF_KEY(zone_no, ZF_KEY_ZONE, 0), &zone,
		  sizeof(zone));
	set_zone(sample, zone_no, FIELD(struct zf_disk_zone, role), ZF_ROLE_LOG);
	super->log_zone[0] = zone_no;
	super->log_zone_resets[0] = zf_le64_get(zone.reset_count);
	super->log_pointer[0] = zf_le64_get(zone.pointer);
	return zone_no;
}

static void a_log_zone_that_is_right(void **state)
{
	struct sample *sample = *state;
	struct zf_check_counts counts;

	name_log_zone(sample);
	sample_check(sample, true, &counts);
	assert_int_equal(counts.errors, 0);
}

static void a_log_zone_of_another_role(void **state)
{
	struct sample *sample = *state;

	set_zone(sample, name_log_zone(sample), FIELD(struct zf_disk_zone, role), ZF_ROLE_HOT);
	sample_expect(sample, false, "role has 4 (hot)", "expected 3 (log) for log_zone[0]");
}

static void a_zone_of_the_logs_role_that_is_not_named(void **state)
{
	struct sample *sample = *state;

	name_log_zone(sample);
	sample->forge.super.log_zone[0] = ZF_SUPER_NO_ZONE;
	sample_expect(sample, false, "role has 3 (log)", "the superblock does not name it");
}

static void a_log_pointer_above_the_devices(void **state)
{
	struct sample *sample = *state;

	name_log_zone(sample);
	sample->forge.super.log_pointer[0] = 3u << 20;
	sample_expect(sample, false, "log_pointer[0] has 3145728", "expected at most");
}

static void a_log_zone_that_was_reset_since(void **state)
{
	struct sample *sample = *state;

	name_log_zone(sample);
	sample->forge.super.log_zone_resets[0] += 3;
	sample_expect(sample, false, "log_zone_resets[0] has", "those of zone");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_damaged_block_is_found_only_when_data_is_read),
		TEST(two_extents_that_name_the_same_bytes),
		TEST(an_extent_above_the_pointer_of_its_zone),
		TEST(an_extent_in_a_zone_of_nodes),
		TEST(an_extent_that_the_summary_lacks),
		TEST(a_summary_entry_of_another_inode),
		TEST(a_summary_entry_of_another_offset),
		TEST(a_wrong_checksum_in_the_summary),
		TEST(summary_entries_that_overlap),
		TEST(a_summary_entry_that_no_extent_needs),
		TEST(a_shared_extent_that_the_share_tree_lacks),
		TEST(a_shared_extent_that_the_share_tree_has),
		TEST(a_share_that_no_extent_has),
		TEST(a_share_of_another_length),
		TEST(a_share_that_stands_twice),
		TEST(an_overlap_of_which_one_knows_nothing),
		TEST(live_bytes_that_are_too_few),
		TEST(live_bytes_of_nodes_that_are_too_many),
		TEST(a_pointer_below_the_data),
		TEST(a_pointer_behind_the_capacity),
		TEST(a_role_that_does_not_fit_the_data),
		TEST(a_role_that_does_not_fit_the_nodes),
		TEST(a_role_that_there_is_not),
		TEST(a_zone_without_an_item),
		TEST(an_item_of_a_zone_that_there_is_not),
		TEST(a_zone_emptied_though_something_is_live),
		TEST(a_zone_written_in_the_future),
		TEST(a_zone_that_was_reset_since),
		TEST(a_zone_with_another_reset_count),
		TEST(a_reset_count_that_no_zone_reaches),
		TEST(reserved_bytes_of_a_zone_item),
		TEST(a_log_zone_that_is_right),
		TEST(a_log_zone_of_another_role),
		TEST(a_zone_of_the_logs_role_that_is_not_named),
		TEST(a_log_pointer_above_the_devices),
		TEST(a_log_zone_that_was_reset_since),
	};

	return cmocka_run_group_tests_name("check_space", tests, NULL, NULL);
}
