/* SPDX-License-Identifier: MIT */
/* Kinds of damage, one at a time: what a repair leaves, and its messages. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc/zone_format.h"
#include "damaged.h"
#include "fs/core/fs_format.h"
#include "fs/core/item.h"
#include "lies/image.h"
#include "salvage/salvage.h"
#include "sample.h"
#include "txn/root_format.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

/* ---- nodes ---- */

/* Bits of one node are flipped, and nothing may be lost. */
static void nothing_is_lost(struct sample *sample, enum zf_tree_id tree, struct zf_key key,
			    unsigned int level)
{
	struct damaged damaged = damaged_begin(&sample->forge);

	damaged_node(&sample->forge, tree, key, level)[200] ^= 4;
	damaged_mend(&damaged);
	assert_int_equal(damaged_lost(&damaged), 0);
	assert_int_equal(damaged.after.count, damaged.before.count);
	assert_int_equal(damaged.counts.unverified_blocks > 0, tree == ZF_TREE_SUMMARY);
	damaged_end(&damaged);
}

static void the_root_tree(void **state)
{
	nothing_is_lost(*state, ZF_TREE_ROOT, ZF_KEY_MIN, 0);
}

static void an_inner_node(void **state)
{
	struct sample *sample = *state;

	nothing_is_lost(sample, ZF_TREE_FS, ZF_KEY(sample->file, ZF_KEY_INODE, 0), 1);
}

static void the_zone_tree(void **state)
{
	nothing_is_lost(*state, ZF_TREE_ZONE, ZF_KEY_MIN, 0);
}

static void the_summary_tree(void **state)
{
	struct sample *sample = *state;

	nothing_is_lost(sample, ZF_TREE_SUMMARY, ZF_KEY_MIN, 0);
}

/* Counters of faults and the place of a scrub are in the new root tree, too. */
static void the_counters_of_faults_stay(void **state)
{
	struct sample *sample = *state;
	struct zf_disk_faults faults = {.damaged_nodes = zf_le64_from(7), .since = zf_le64_from(5)};
	const struct zf_salvage_options options = {0};
	struct zf_salvage *salvage;
	struct damaged damaged;

	forge_insert(&sample->forge, ZF_TREE_ROOT, ZF_KEY(ZF_TREE_ROOT, ZF_KEY_FAULTS, 0), &faults,
		     sizeof(faults));
	sample->forge.super.compat |= ZF_COMPAT_HEALTH;
	forge_write_super(&sample->forge);
	damaged = damaged_begin(&sample->forge);
	damaged_node(&sample->forge, ZF_TREE_ZONE, ZF_KEY_MIN, 0)[200] ^= 4;
	damaged_mend(&damaged);
	assert_int_equal(zf_salvage_open(damaged.dev, &options, NULL, &salvage), 0);
	assert_int_equal(zf_salvage_get_health(salvage)->faults.damaged_nodes, 7);
	assert_int_equal(zf_salvage_get_health(salvage)->faults.since, 5);
	zf_salvage_close(salvage);
	damaged_end(&damaged);
}

/* The data without checksums stays readable, and the repair names its files. */
static void lost_checksums(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);
	char inode[32];

	damaged_node(&sample->forge, ZF_TREE_SUMMARY, ZF_KEY_MIN, 0)[200] ^= 4;
	damaged_mend(&damaged);
	snprintf(inode, sizeof(inode), "inode %ju (/file):", (uintmax_t)sample->file);
	damaged_expect(inode, "unverified");
	assert_int_equal(damaged.counts.unverified_blocks, SAMPLE_FILE_BLOCKS + 3);
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
}

/* Flips a bit in both copies of the tree's first leaf. */
static void spoil_copies(struct forge *forge, enum zf_tree_id tree)
{
	uint8_t *node = damaged_node(forge, tree, ZF_KEY_MIN, 0);
	const struct zf_disk_node_header *header = (const void *)node;

	node[200] ^= 4;
	forge_bytes(forge, zf_le64_get(header->address[1]))[200] ^= 4;
}

/* The repair names each of the files that share the bytes. */
static void lost_checksums_of_shared_bytes(void **state)
{
	struct damaged damaged;
	struct forge forge;

	(void)state;
	image_make(IMAGE_SEQUENTIAL, &forge);
	damaged = damaged_begin(&forge);
	spoil_copies(&forge, ZF_TREE_SUMMARY);
	damaged_mend(&damaged);
	damaged_expect("(/clone)", "unverified: it shares them with");
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
	image_free(&forge);
}

static void the_share_tree(void **state)
{
	struct damaged damaged;
	struct forge forge;

	(void)state;
	image_make(IMAGE_SEQUENTIAL, &forge);
	damaged = damaged_begin(&forge);
	spoil_copies(&forge, ZF_TREE_SHARE);
	damaged_mend(&damaged);
	assert_int_equal(damaged_lost(&damaged), 0);
	assert_int_equal(damaged.after.count, damaged.before.count);
	damaged_end(&damaged);
	image_free(&forge);
}

/* The items of the leaf are lost, but not names that items of other leaves repeat. */
static void a_leaf_of_files(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);
	const struct zf_key key = ZF_KEY(sample->many, ZF_KEY_DIR_NAME, 0);

	damaged_node(&sample->forge, ZF_TREE_FS, key, 0)[200] ^= 4;
	damaged_mend(&damaged);
	damaged_expect("part of the tree of files", "lost");
	damaged_expect("(/): dropped its entry 'other'", "nothing left of inode");
	assert_true(damaged_lost(&damaged) < damaged.before.count / 2);
	damaged_end(&damaged);
}

/* Address and checksum of a pointer are wrong: its generation and keys identify the leaf. */
static void a_pointer_that_is_wrong_twice(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);
	uint8_t *node = damaged_node(&sample->forge, ZF_TREE_FS, ZF_KEY_MIN, 1);
	struct zf_disk_child *child =
		(struct zf_disk_child *)(node + sizeof(struct zf_disk_node_header));

	assert_true(zf_node_level(node) == 1 && zf_node_count(node) > 1);
	for (unsigned int i = 1; i < zf_node_count(node); i++) {
		child[i].ptr.address[0] = child[0].ptr.address[0];
		child[i].ptr.csum = zf_le64_from(i);
	}
	forge_seal(&sample->forge, ZF_TREE_FS, ZF_KEY_MIN, 1);
	damaged_mend(&damaged);
	assert_int_equal(damaged_lost(&damaged), 0);
	assert_int_equal(damaged.after.count, damaged.before.count);
	damaged_end(&damaged);
}

/*
 * The next leaf has the same generation, and was deleted: the repair may take it in place of the
 * damaged one, but must report that.
 */
static void a_leaf_before_a_deleted_one(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);
	uint8_t *node = damaged_node(&sample->forge, ZF_TREE_FS, ZF_KEY_MIN, 1);
	struct zf_disk_node_header *header = (struct zf_disk_node_header *)node;
	struct zf_disk_child *child = (struct zf_disk_child *)(header + 1);
	unsigned int count = zf_node_count(node);

	assert_true(zf_node_level(node) == 1 && count > 3);
	assert_int_equal(zf_le64_get(child[1].ptr.generation),
			 zf_le64_get(child[2].ptr.generation));
	forge_bytes(&sample->forge, zf_le64_get(child[1].ptr.address[0]))[200] ^= 4;
	memmove(&child[2], &child[3], (count - 3) * sizeof(*child));
	memset(&child[count - 1], 0, sizeof(*child));
	header->count = zf_le32_from(count - 1);
	forge_seal(&sample->forge, ZF_TREE_FS, ZF_KEY_MIN, 1);
	damaged_mend(&damaged);
	damaged_expect("part of the tree of files", "lost");
	damaged_end(&damaged);
}

static void a_leaf_that_has_copies(void **state)
{
	const struct sample_options options = {.copies = 2, .node_size = 4096};

	(void)state;
	for (enum zf_tree_id tree = ZF_TREE_ROOT; tree < ZF_TREE_COUNT; tree++) {
		struct sample sample;
		struct damaged damaged;
		struct zf_key key = ZF_KEY_MIN;

		sample_make(&sample, &options);
		if (tree == ZF_TREE_FS)
			key = ZF_KEY(sample.many, ZF_KEY_DIR_NAME, 0);
		damaged = damaged_begin(&sample.forge);
		damaged_node(&sample.forge, tree, key, 0)[200] ^= 4;
		damaged_mend(&damaged);
		assert_int_equal(damaged.counts.changes, 0);
		assert_int_equal(damaged_lost(&damaged), 0);
		assert_int_equal(damaged.counts.unverified_blocks, 0);
		damaged_end(&damaged);
		sample_free(&sample);
	}
}

/* ---- items ---- */

static void a_wrong_link_count(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);

	forge_field(&sample->forge, ZF_TREE_FS, ZF_KEY(sample->file, ZF_KEY_INODE, 0),
		    FIELD(struct zf_disk_inode, nlink), 7);
	damaged_mend(&damaged);
	damaged_expect("(/file): link count 7", "set to 2");
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
}

static void wrong_counts_of_a_file(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);
	const struct zf_key key = ZF_KEY(sample->other, ZF_KEY_INODE, 0);

	forge_field(&sample->forge, ZF_TREE_FS, key, FIELD(struct zf_disk_inode, bytes), 4096);
	forge_field(&sample->forge, ZF_TREE_FS, key, FIELD(struct zf_disk_inode, size), 1);
	damaged_mend(&damaged);
	damaged_expect("(/other): bytes 4096", "set to 12288");
	damaged_expect("(/other): size 1", "set to 12288");
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
}

/* The kernel refuses writes to a directory of such an owner; the sample's files are root's. */
static void an_owner_that_is_no_user(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);
	const struct zf_key key = ZF_KEY(ZF_INO_ROOT, ZF_KEY_INODE, 0);

	forge_field(&sample->forge, ZF_TREE_FS, key, FIELD(struct zf_disk_inode, uid), UINT32_MAX);
	forge_field(&sample->forge, ZF_TREE_FS, key, FIELD(struct zf_disk_inode, gid), UINT32_MAX);
	sample_expect(sample, false, "corrupt inode at 1", "uid has 4294967295");
	damaged_mend(&damaged);
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
}

/* A file's name may contain any bytes: a message stays one line. */
static void a_name_that_is_no_text(void **state)
{
	struct sample *sample = *state;
	const struct zf_ctx ctx = {.may_wait = true};
	struct zf_fs *fs = sample_mount(sample);
	struct damaged damaged;
	uint64_t moved[2];

	assert_int_equal(
		zf_fs_rename(fs, &ctx, ZF_INO_ROOT, "other", ZF_INO_ROOT, "a\nb\\c\xff", 0, moved),
		0);
	sample_unmount(sample, fs);
	forge_open(&sample->forge, sample->memory);
	damaged = damaged_begin(&sample->forge);
	forge_field(&sample->forge, ZF_TREE_FS, ZF_KEY(sample->other, ZF_KEY_INODE, 0),
		    FIELD(struct zf_disk_inode, nlink), 7);
	damaged_mend(&damaged);
	damaged_expect("(/a\\x0ab\\x5cc\\xff): link count 7", "set to 1");
	damaged_end(&damaged);
}

/* All three items of its name are gone. */
static void an_inode_that_nothing_names(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);
	const struct listed *found;
	char path[64];

	/* The directory `sub` has one entry. */
	damaged_delete_first(&sample->forge, sample->sub, ZF_KEY_DIR_NAME);
	damaged_delete_first(&sample->forge, sample->sub, ZF_KEY_DIR_COOKIE);
	damaged_delete_first(&sample->forge, sample->deep, ZF_KEY_REF);
	damaged_mend(&damaged);
	assert_int_equal(damaged.counts.lost_and_found, 1);
	snprintf(path, sizeof(path), "/lost+found/#%ju", (uintmax_t)sample->deep);
	damaged_expect("it has no name any more", path);
	assert_int_equal(damaged_lost(&damaged), 1);
	found = listing_find(&damaged.after, path);
	assert_non_null(found);
	assert_int_equal(found->digest, listing_find(&damaged.before, "/dir/sub/deep")->digest);
	damaged_end(&damaged);
}

/* Each of the three items of a name is enough to restore it. */
static void a_name_that_one_item_tells(void **state)
{
	static const uint8_t types[] = {ZF_KEY_REF, ZF_KEY_DIR_NAME, ZF_KEY_DIR_COOKIE};

	(void)state;
	for (unsigned int kept = 0; kept < 3; kept++) {
		struct sample sample;
		struct damaged damaged;

		sample_make(&sample, &(struct sample_options){0});
		damaged = damaged_begin(&sample.forge);
		for (unsigned int i = 0; i < 3; i++)
			if (i != kept)
				damaged_delete_first(&sample.forge,
						     i == 0 ? sample.deep : sample.sub, types[i]);
		damaged_mend(&damaged);
		damaged_expect("(/dir/sub/deep): its name", "was rebuilt from its remaining items");
		assert_int_equal(damaged_lost(&damaged), 0);
		assert_int_equal(damaged.counts.lost_and_found, 0);
		damaged_end(&damaged);
		sample_free(&sample);
	}
}

static void a_directory_without_its_item(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);

	forge_delete(&sample->forge, ZF_TREE_FS, ZF_KEY(sample->many, ZF_KEY_INODE, 0));
	damaged_mend(&damaged);
	damaged_expect("(/many): its owner, mode and times are lost", "inode");
	assert_int_equal(damaged_lost(&damaged), 1); /* the directory: its owner and mode differ */
	assert_non_null(listing_find(&damaged.after, "/many/299"));
	damaged_end(&damaged);
}

/* One file's extent has the address of another file's: the other file keeps the bytes. */
static void bytes_that_two_files_have(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);
	const struct zf_key of_file = sample_key(sample, sample->file, ZF_KEY_EXTENT);
	const struct zf_key of_other = sample_key(sample, sample->other, ZF_KEY_EXTENT);
	struct zf_disk_extent extent;

	forge_get(&sample->forge, ZF_TREE_FS, of_file, &extent, sizeof(extent));
	forge_field(&sample->forge, ZF_TREE_FS, of_other, FIELD(struct zf_disk_extent, address),
		    zf_le64_get(extent.address));
	damaged_mend(&damaged);
	damaged_expect("(/other)", "are lost: another extent owns these bytes");
	assert_int_equal(damaged_lost(&damaged), 1);
	assert_int_equal(listing_find(&damaged.after, "/file")->digest,
			 listing_find(&damaged.before, "/file")->digest);
	damaged_end(&damaged);
}

/* Two items of a name have another inode than the third. */
static void a_name_of_two_inodes(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);
	const uint64_t seed = sample->forge.super.dir_hash_seed;
	const struct zf_key key =
		ZF_KEY(ZF_INO_ROOT, ZF_KEY_DIR_NAME, zf_item_hash_name(seed, "other", 5));

	forge_field(&sample->forge, ZF_TREE_FS, key, FIELD(struct zf_disk_dirent, ino),
		    sample->file);
	damaged_mend(&damaged);
	damaged_expect("(/): dropped its entry 'other'", "contradict");
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
}

/* The share tree has the bytes of an extent whose flags do not mark it as shared. */
static void an_extent_that_does_not_say_that_it_shares(void **state)
{
	struct damaged damaged;
	struct forge forge;
	struct zf_key key;

	(void)state;
	image_make(IMAGE_SEQUENTIAL, &forge);
	damaged = damaged_begin(&forge);
	key = ZF_KEY(listing_find(&damaged.before, "/clone")->ino, ZF_KEY_EXTENT, 0);
	assert_true(forge_find(&forge, ZF_TREE_FS, &key));
	forge_field(&forge, ZF_TREE_FS, key, FIELD(struct zf_disk_extent, flags), 0);
	damaged_mend(&damaged);
	damaged_expect("is marked as shared", "(/clone)");
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
	image_free(&forge);
}

/* The zone tree says that zones with nodes are empty: the repair does not reset them. */
static void zones_that_are_said_to_be_empty(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);

	for (uint64_t z = 2; z < 32; z++) {
		const struct zf_key key = ZF_KEY(z, ZF_KEY_ZONE, 0);
		struct zf_disk_zone item;

		forge_get(&sample->forge, ZF_TREE_ZONE, key, &item, sizeof(item));
		if (item.role != ZF_ROLE_META)
			continue;
		item = (struct zf_disk_zone){.reset_count = item.reset_count};
		forge_set(&sample->forge, ZF_TREE_ZONE, key, &item, sizeof(item));
	}
	damaged_mend(&damaged);
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
}

/* The attribute whose value lacks a part is gone, the other one is not. */
static void an_attribute_that_is_not_whole(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);

	damaged_delete_first(&sample->forge, sample->file, ZF_KEY_XATTR_VALUE);
	damaged_mend(&damaged);
	damaged_expect("attribute 'user.long' is lost", "inode");
	assert_int_equal(damaged_lost(&damaged), 2); /* the file has two names */
	damaged_end(&damaged);
}

/* ---- superblocks ---- */

static void both_zones_of_superblocks(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);

	for (uint32_t zone_no = 0; zone_no < 2; zone_no++)
		memset(zf_memory_zone(sample->memory, zone_no), 0, 1 << 20);
	damaged_mend(&damaged);
	damaged_expect("no superblock can be read", "lost");
	assert_int_equal(damaged_lost(&damaged), 0);
	assert_int_equal(damaged.after.count, damaged.before.count);
	damaged_end(&damaged);
}

/* A generation that commits cannot have reached must not stay the newest. */
static void a_generation_near_the_end(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);

	sample->forge.super.generation = ZF_SUPER_COUNTER_MAX - 1;
	forge_write_super(&sample->forge);
	damaged_mend(&damaged);
	assert_int_equal(damaged_lost(&damaged), 0);
	assert_true(damaged.counts.generation < 1000);
	damaged_end(&damaged);
}

/* ---- no room ---- */

static void fill_empty_zones(struct zf_dev *dev)
{
	const struct zf_geometry *geometry = zf_dev_geometry(dev);
	uint64_t len = 64 << 10;
	uint8_t *bytes = aligned_alloc(ZF_BLOCK_SIZE, len);

	assert_non_null(bytes);
	memset(bytes, 0x77, len);
	for (uint32_t z = 2; z < geometry->zone_count; z++) {
		struct zf_zone_info info;

		assert_int_equal(zf_dev_report(dev, z, 1, &info), 0);
		if (info.wp != info.start)
			continue;
		assert_int_equal(zf_dev_write_sync(dev, info.start, bytes, len, false), 0);
		assert_int_equal(zf_dev_finish(dev, z), 0);
	}
	free(bytes);
}

/* No zone is empty: all are full of foreign bytes, and the zone tree cannot be read. */
static void no_empty_zone(void **state)
{
	struct sample *sample = *state;
	struct zf_repair_counts counts;
	struct zf_dev *dev;

	damaged_node(&sample->forge, ZF_TREE_ZONE, ZF_KEY_MIN, 0)[200] ^= 4;
	assert_int_equal(zf_memory_open(sample->memory, NULL, NULL, &dev), 0);
	fill_empty_zones(dev);
	assert_int_equal(fixture_repair(dev, &counts), -ENOSPC);
	damaged_expect("there is no room for the repair", "Nothing was changed");
	zf_dev_close(dev);
}

/* A repair that needs more memory than a try may use runs without a try. */
static void without_a_try(void **state)
{
	const struct zf_repair_options options = {.try_bytes = ZF_BLOCK_SIZE};
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);
	struct zf_dev *dev;

	damaged_node(&sample->forge, ZF_TREE_ROOT, ZF_KEY_MIN, 0)[200] ^= 4;
	assert_int_equal(zf_memory_open(sample->memory, NULL, NULL, &dev), 0);
	assert_int_equal(fixture_repair_with(dev, &options, &damaged.counts), 0);
	damaged.dev = dev;
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_root_tree),
		TEST(an_inner_node),
		TEST(the_zone_tree),
		TEST(the_summary_tree),
		TEST(lost_checksums),
		TEST(the_counters_of_faults_stay),
		cmocka_unit_test(lost_checksums_of_shared_bytes),
		cmocka_unit_test(the_share_tree),
		TEST(a_leaf_of_files),
		TEST(a_pointer_that_is_wrong_twice),
		TEST(a_leaf_before_a_deleted_one),
		cmocka_unit_test(a_leaf_that_has_copies),
		TEST(a_wrong_link_count),
		TEST(wrong_counts_of_a_file),
		TEST(an_owner_that_is_no_user),
		TEST(a_name_that_is_no_text),
		TEST(an_inode_that_nothing_names),
		cmocka_unit_test(a_name_that_one_item_tells),
		TEST(a_directory_without_its_item),
		TEST(bytes_that_two_files_have),
		TEST(a_name_of_two_inodes),
		cmocka_unit_test(an_extent_that_does_not_say_that_it_shares),
		TEST(zones_that_are_said_to_be_empty),
		TEST(an_attribute_that_is_not_whole),
		TEST(both_zones_of_superblocks),
		TEST(a_generation_near_the_end),
		TEST(no_empty_zone),
		TEST(without_a_try),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
