/* SPDX-License-Identifier: MIT */
/* Data that is written in place: the checker reports extents, entries and zones that disagree. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/zone_format.h"
#include "fs/core/item.h"
#include "sample.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#define FIELD(type, member) offsetof(type, member), sizeof(((type *)NULL)->member)

#define BLOCKS		    20u

/* /other is written in place, from its first block on. */
static int setup(void **state)
{
	const struct sample_options options = {.conventional = 4};
	const struct zf_ctx root = {.may_wait = true};
	struct sample *sample = calloc(1, sizeof(*sample));
	struct zf_fs *fs;

	assert_non_null(sample);
	sample_make(sample, &options);
	fs = sample_mount(sample);
	assert_int_equal(zf_fs_fallocate(fs, &root, sample->other, ZF_FALLOC_WRITE_ZEROES, 0,
					 BLOCKS * ZF_BLOCK_SIZE),
			 0);
	sample_unmount(sample, fs);
	*state = sample;
	return 0;
}

static struct zf_key extent_key(struct sample *sample, struct zf_disk_extent *ret_extent)
{
	struct zf_key key = sample_key(sample, sample->other, ZF_KEY_EXTENT);

	forge_get(&sample->forge, ZF_TREE_FS, key, ret_extent, sizeof(*ret_extent));
	assert_int_equal(ret_extent->flags, ZF_EXTENT_OVERWRITE);
	return key;
}

static struct zf_key entry_key(struct sample *sample)
{
	struct zf_disk_extent extent;

	extent_key(sample, &extent);
	return ZF_KEY(zf_le64_get(extent.address), ZF_KEY_SUMMARY, 0);
}

static void it_is_right_whatever_the_bytes(void **state)
{
	struct sample *sample = *state;
	struct zf_check_counts counts;

	forge_bytes(&sample->forge, entry_key(sample).objectid)[77] ^= 1;
	sample_check(sample, true, &counts);
	assert_int_equal(counts.errors, 0);
}

static void an_extent_without_its_flag(void **state)
{
	struct sample *sample = *state;
	struct zf_disk_extent extent;
	struct zf_key key = extent_key(sample, &extent);

	forge_field(&sample->forge, ZF_TREE_FS, key, FIELD(struct zf_disk_extent, flags), 0);
	sample_expect(sample, true, "corrupt extent of inode", "expected OVERWRITE");
	sample_expect(sample, true, "corrupt summary of address", "flags has 1");
}

static void an_extent_without_an_entry(void **state)
{
	struct sample *sample = *state;

	forge_delete(&sample->forge, ZF_TREE_SUMMARY, entry_key(sample));
	sample_expect(sample, true, "corrupt extent of inode", "a summary entry that covers it");
}

static void an_entry_that_is_shorter_than_its_extent(void **state)
{
	struct sample *sample = *state;

	forge_field(&sample->forge, ZF_TREE_SUMMARY, entry_key(sample),
		    FIELD(struct zf_disk_summary, count), BLOCKS - 1);
	sample_expect(sample, true, "corrupt summary of address", "count 19, expected 1 and 20");
}

static void an_entry_that_no_extent_has(void **state)
{
	struct sample *sample = *state;
	struct zf_key key = entry_key(sample);
	struct zf_disk_summary entry;

	forge_get(&sample->forge, ZF_TREE_SUMMARY, key, &entry, sizeof(entry));
	key.objectid += BLOCKS * ZF_BLOCK_SIZE;
	forge_insert(&sample->forge, ZF_TREE_SUMMARY, key, &entry, sizeof(entry));
	sample_expect(sample, true, "corrupt summary of address",
		      "flags has OVERWRITE, expected an extent");
}

static void a_zone_of_another_role(void **state)
{
	struct sample *sample = *state;
	uint64_t zone_no = entry_key(sample).objectid / sample->forge.zone_size;

	forge_field(&sample->forge, ZF_TREE_ZONE, ZF_KEY(zone_no, ZF_KEY_ZONE, 0),
		    FIELD(struct zf_disk_zone, role), ZF_ROLE_HOT);
	sample_expect(sample, true, "corrupt extent of inode", "expected not OVERWRITE");
}

static void a_sequential_zone_of_this_role(void **state)
{
	struct sample *sample = *state;
	struct zf_disk_extent extent;
	struct zf_key key = sample_key(sample, sample->file, ZF_KEY_EXTENT);
	uint64_t zone_no;

	forge_get(&sample->forge, ZF_TREE_FS, key, &extent, sizeof(extent));
	zone_no = zf_le64_get(extent.address) / sample->forge.zone_size;
	forge_field(&sample->forge, ZF_TREE_ZONE, ZF_KEY(zone_no, ZF_KEY_ZONE, 0),
		    FIELD(struct zf_disk_zone, role), ZF_ROLE_OVERWRITE);
	sample_expect(sample, true, "corrupt zone", "of a sequential zone");
	sample_expect(sample, true, "corrupt extent of inode", "expected OVERWRITE");
}

static void two_extents_with_the_same_bytes(void **state)
{
	struct sample *sample = *state;
	struct zf_disk_extent extent;
	struct zf_key key = extent_key(sample, &extent);

	key.offset += zf_item_extent_len(&extent);
	forge_insert(&sample->forge, ZF_TREE_FS, key, &extent, sizeof(extent));
	sample_expect(sample, true, "corrupt extent of inode", "bytes that no other extent names");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, sample_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_is_right_whatever_the_bytes),
		TEST(an_extent_without_its_flag),
		TEST(an_extent_without_an_entry),
		TEST(an_entry_that_is_shorter_than_its_extent),
		TEST(an_entry_that_no_extent_has),
		TEST(a_zone_of_another_role),
		TEST(a_sequential_zone_of_this_role),
		TEST(two_extents_with_the_same_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
