/* SPDX-License-Identifier: MIT */
/* Damage that matters only if several places are wrong, or if one place contradicts many. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "alloc/zone_format.h"
#include "damaged.h"
#include "fs/core/fs.h"
#include "fs/core/fs_format.h"
#include "io/zone_rules.h"
#include "salvage/salvage.h"
#include "sample.h"
#include "txn/root_format.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static void set_type(struct sample *sample, uint64_t ino, uint32_t type)
{
	forge_field(&sample->forge, ZF_TREE_FS, ZF_KEY(ino, ZF_KEY_INODE, 0),
		    FIELD(struct zf_disk_inode, mode), type | 0644);
}

/* Writes a zero byte into the middle of the inode's inline content. */
static void set_zero_byte(struct sample *sample, uint64_t ino)
{
	const struct zf_key key = sample_key(sample, ino, ZF_KEY_EXTENT);
	uint8_t item[sizeof(struct zf_disk_extent) + 256];
	size_t len = forge_get(&sample->forge, ZF_TREE_FS, key, item, sizeof(item));

	assert_true(len > sizeof(struct zf_disk_extent));
	item[(sizeof(struct zf_disk_extent) + len) / 2] = 0;
	forge_set(&sample->forge, ZF_TREE_FS, key, item, len);
}

/* Repairs without a try, because a second pass would find errors that the first one leaves. */
static void mend_at_once(struct damaged *damaged)
{
	const struct zf_repair_options options = {.try_bytes = 2 * ZF_BLOCK_SIZE};

	assert_int_equal(zf_memory_open(damaged->forge->memory, NULL, NULL, &damaged->dev), 0);
	assert_int_equal(fixture_repair_with(damaged->dev, &options, &damaged->counts), 0);
}

/* The names show that the inode is a link, and no target may have a zero byte. */
static void a_link_of_another_type_whose_target_has_a_zero_byte(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);

	set_type(sample, sample->sym, S_IFREG);
	set_zero_byte(sample, sample->sym);
	mend_at_once(&damaged);
	damaged_expect("is lost", "its target cannot be read");
	assert_int_equal(damaged_lost(&damaged), 1);
	assert_null(listing_find(&damaged.after, "/sym"));
	damaged_end(&damaged);
}

/* The names show that the inode is a file, so zero bytes in it are in order. */
static void a_file_with_zero_bytes_that_says_it_is_a_link(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged;

	set_zero_byte(sample, sample->small);
	damaged = damaged_begin(&sample->forge);
	set_type(sample, sample->small, S_IFLNK);
	mend_at_once(&damaged);
	damaged_expect("its type was corrected", "inode");
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
}

/* The root tree has the root of another tree as that of the tree of files. */
static void the_root_of_another_tree(void **state)
{
	static const enum zf_tree_id others[] = {ZF_TREE_SHARE, ZF_TREE_SUMMARY, ZF_TREE_ZONE};

	(void)state;
	for (size_t i = 0; i < ZF_ARRAY_SIZE(others); i++) {
		struct sample sample;
		struct damaged damaged;
		struct zf_disk_root root;
		size_t len;

		sample_make(&sample, &(struct sample_options){.node_size = 4096});
		damaged = damaged_begin(&sample.forge);
		len = forge_get(&sample.forge, ZF_TREE_ROOT, ZF_KEY(others[i], ZF_KEY_ROOT, 0),
				&root, sizeof(root));
		assert_int_equal(len, sizeof(root));
		forge_set(&sample.forge, ZF_TREE_ROOT, ZF_KEY(ZF_TREE_FS, ZF_KEY_ROOT, 0), &root,
			  sizeof(root));
		damaged_mend(&damaged);
		assert_int_equal(damaged_lost(&damaged), 0);
		damaged_end(&damaged);
		sample_free(&sample);
	}
}

/*
 * The zone tree says that the zones with nodes have data, and the root of the tree of files cannot
 * be read: the repair looks for leaves in these zones all the same.
 */
static void zones_with_nodes_that_are_said_to_have_data(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);

	for (uint64_t z = ZF_SUPER_ZONES; z < 32; z++) {
		const struct zf_key key = ZF_KEY(z, ZF_KEY_ZONE, 0);
		struct zf_disk_zone item;

		forge_get(&sample->forge, ZF_TREE_ZONE, key, &item, sizeof(item));
		if (item.role == ZF_ROLE_META)
			forge_field(&sample->forge, ZF_TREE_ZONE, key,
				    FIELD(struct zf_disk_zone, role), ZF_ROLE_HOT);
	}
	damaged_node(&sample->forge, ZF_TREE_FS, ZF_KEY_MIN, 1)[200] ^= 4;
	damaged_mend(&damaged);
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
}

/* The newest superblock has the fsid of another filesystem, and the root node that has the right
 * fsid is gone. */
static void another_fsid_and_no_root(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);

	sample->forge.super.fsid[3] ^= 1;
	forge_write_super(&sample->forge);
	damaged_node(&sample->forge, ZF_TREE_ROOT, ZF_KEY_MIN, 0)[200] ^= 4;
	damaged_mend(&damaged);
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
}

static struct zf_disk_item *first_item(struct sample *sample, const struct zf_key *of_leaf)
{
	uint8_t *node = damaged_node(&sample->forge, ZF_TREE_FS, *of_leaf, 0);

	return (void *)(node + sizeof(struct zf_disk_node_header));
}

/* Deletes the items of [from, end). */
static void delete_items(struct sample *sample, struct zf_key from, const struct zf_key *end)
{
	while (forge_find(&sample->forge, ZF_TREE_FS, &from) && zf_key_cmp(&from, end) < 0)
		forge_delete(&sample->forge, ZF_TREE_FS, from);
}

/*
 * A leaf begins with a key that belongs into an earlier leaf. The inode number before its former
 * first key is made unused, so that a search for the next inode comes from the leaf before.
 */
static void make_a_leaf_of_lower_keys(struct sample *sample)
{
	const struct zf_key in_leaf = ZF_KEY(sample->many + 200, ZF_KEY_INODE, 0);
	const struct zf_key low = ZF_KEY(sample->file, ZF_KEY_INODE, 0);
	struct zf_disk_item *item = first_item(sample, &in_leaf);
	struct zf_key first;

	first = zf_disk_key_get(&item->key);
	delete_items(sample, ZF_KEY(first.objectid - 1, 0, 0), &first);
	zf_disk_key_put(&item->key, &low);
	forge_seal(&sample->forge, ZF_TREE_FS, in_leaf, 0);
}

/* Returns the highest inode number that can be read; asserts that the numbers ascend. */
static uint64_t walk_inodes(struct sample *sample)
{
	const struct zf_salvage_options options = {0};
	struct zf_salvage *salvage;
	uint64_t ino = 0, next;
	struct zf_dev *dev;

	assert_int_equal(zf_memory_open(sample->memory, NULL, NULL, &dev), 0);
	assert_int_equal(zf_salvage_open(dev, &options, NULL, &salvage), 0);
	for (; (next = zf_salvage_next_inode(salvage, ino + 1)) != 0; ino = next)
		assert_true(next > ino);
	zf_salvage_close(salvage);
	zf_dev_close(dev);
	return ino;
}

static void inodes_that_are_out_of_order(void **state)
{
	const struct sample_options small_nodes = {.node_size = 4096};
	struct sample sample;

	(void)state;
	sample_make(&sample, &small_nodes);
	make_a_leaf_of_lower_keys(&sample);
	assert_true(walk_inodes(&sample) >= sample.many + 200);
	sample_free(&sample);
}

/* The search must not wrap around: the number after UINT64_MAX is 0. */
static void an_inode_of_the_highest_number(void **state)
{
	const struct zf_key key = ZF_KEY(UINT64_MAX, ZF_KEY_INODE, 0);
	const struct sample_options options = {0};
	const struct zf_disk_inode item = {0};
	struct sample sample;
	uint64_t before;

	(void)state;
	sample_make(&sample, &options);
	before = walk_inodes(&sample);
	forge_insert(&sample.forge, ZF_TREE_FS, key, &item, sizeof(item));
	assert_int_equal(walk_inodes(&sample), before);
	sample_free(&sample);
}

static const struct zf_ctx ctx = {.may_wait = true};

/* The power fails, without an unmount. */
static void cut(struct sample *sample, struct zf_fs *fs)
{
	struct zf_dev *dev = zf_fs_dev(fs);

	zf_fs_abandon(fs);
	zf_dev_close(dev);
	forge_open(&sample->forge, sample->memory);
}

/* Makes a commit that removes half of the files, and erases its superblock, as if torn. */
static void leave_leaves_of_no_record(struct sample *sample)
{
	struct zf_fs *fs = sample_mount(sample);
	char name[16];

	for (unsigned int i = 0; i < 300; i += 2) {
		snprintf(name, sizeof(name), "%u", i);
		assert_int_equal(zf_fs_unlink(fs, &ctx, sample->many, name), 0);
	}
	assert_int_equal(zf_fs_syncfs(fs, &ctx), 0);
	cut(sample, fs);
	memset(forge_bytes(&sample->forge, sample->forge.super.address), 0, ZF_BLOCK_SIZE);
}

/*
 * The tree of files is older than the superblock, and between the two there are leaves of a commit
 * that never became durable. A repair without the root takes the leaves of the tree.
 */
static void leaves_of_a_commit_that_was_cut(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);

	leave_leaves_of_no_record(sample);
	sample_unmount(sample, sample_mount(sample));
	damaged_node(&sample->forge, ZF_TREE_FS, ZF_KEY_MIN, 1)[200] ^= 4;
	damaged_mend(&damaged);
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
}

/* Gives one child of the root of files an invalid address: the root is unusable, but sealed. */
static void spoil_root(struct sample *sample, uint64_t generation)
{
	uint8_t *root = damaged_node(&sample->forge, ZF_TREE_FS, ZF_KEY_MIN, 1);
	struct zf_disk_node_header *header = (void *)root;
	struct zf_disk_child *child = (void *)(header + 1);

	child->ptr.address[0] = zf_le64_from(12);
	if (generation)
		header->generation = zf_le64_from(generation);
	forge_seal(&sample->forge, ZF_TREE_FS, ZF_KEY_MIN, 1);
}

/* The root tree gives the root of files the generation of mkfs; the root node has the right one. */
static void a_root_that_is_said_to_be_older(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);

	spoil_root(sample, 0);
	forge_field(&sample->forge, ZF_TREE_ROOT, ZF_KEY(ZF_TREE_FS, ZF_KEY_ROOT, 0),
		    FIELD(struct zf_disk_root, ptr.generation), 1);
	damaged_mend(&damaged);
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
}

/* The other way round: the root node has the wrong generation. */
static void a_root_that_says_it_is_older(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);

	spoil_root(sample, 1);
	damaged_mend(&damaged);
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
}

static void lose_inode(struct sample *sample, uint64_t ino)
{
	const struct zf_key end = ZF_KEY(ino + 1, 0, 0);

	delete_items(sample, ZF_KEY(ino, 0, 0), &end);
}

/* /dir/sub/new gets data and then the name /other, both in the log. Returns its inode number. */
static uint64_t leave_a_log(struct sample *sample)
{
	struct zf_fs *fs = sample_mount(sample);
	static uint8_t data[20480];
	struct zf_attr attr;

	assert_int_equal(zf_fs_make(fs, &ctx, sample->sub, "new", S_IFREG | 0644, 0, NULL, &attr),
			 0);
	assert_int_equal(zf_fs_syncfs(fs, &ctx), 0);
	assert_int_equal(zf_fs_write(fs, &ctx, attr.ino, 0, data, sizeof(data), 0), sizeof(data));
	assert_int_equal(zf_fs_fsync(fs, &ctx, attr.ino, false), 0);
	assert_int_equal(zf_fs_rename(fs, &ctx, sample->sub, "new", ZF_INO_ROOT, "other", 0, NULL),
			 0);
	assert_int_equal(zf_fs_fsync(fs, &ctx, ZF_INO_ROOT, false), 0);
	cut(sample, fs);
	return attr.ino;
}

/*
 * The log is replayed as a whole or given up. If replay left out only the data of a lost file, its
 * rename would replace a sound file by an empty one.
 */
static void a_log_that_names_a_lost_inode(void **state)
{
	struct sample *sample = *state;
	uint64_t lost = leave_a_log(sample);
	struct zf_repair_counts counts;
	struct zf_attr attr;
	struct zf_dev *dev;
	struct zf_fs *fs;

	lose_inode(sample, lost);
	lose_inode(sample, sample->sub);
	assert_int_equal(zf_memory_open(sample->memory, NULL, NULL, &dev), 0);
	assert_int_equal(fixture_repair(dev, &counts), 0);
	damaged_expect("the log is discarded", "are lost");
	assert_true(counts.log_dropped);
	assert_int_equal(fixture_errors(dev), 0);
	zf_dev_close(dev);
	fs = sample_mount(sample);
	assert_int_equal(zf_fs_lookup(fs, &ctx, ZF_INO_ROOT, "other", &attr), 0);
	assert_int_equal(attr.ino, sample->other);
	assert_int_equal(attr.size, 12288);
	zf_fs_forget(fs, attr.ino, 1);
	sample_unmount(sample, fs);
}

/* Real disks do not count resets: then only the zones' items have reset counts. */
static bool device_counts = true;

void __real_zf_zone_rules_report(const struct zf_zone_rules *rules, uint32_t zone_no,
				 struct zf_zone_info *ret_info);
void __wrap_zf_zone_rules_report(const struct zf_zone_rules *rules, uint32_t zone_no,
				 struct zf_zone_info *ret_info);

void __wrap_zf_zone_rules_report(const struct zf_zone_rules *rules, uint32_t zone_no,
				 struct zf_zone_info *ret_info)
{
	__real_zf_zone_rules_report(rules, zone_no, ret_info);
	if (!device_counts)
		ret_info->reset_count = 0;
}

static void a_reset_count_that_no_zone_reaches(void **state)
{
	struct damaged damaged;
	struct sample sample;

	(void)state;
	device_counts = false;
	sample_make(&sample, &(struct sample_options){0});
	damaged = damaged_begin(&sample.forge);
	forge_field(&sample.forge, ZF_TREE_ZONE, ZF_KEY(20, ZF_KEY_ZONE, 0),
		    FIELD(struct zf_disk_zone, reset_count), UINT64_C(1) << 62);
	damaged_mend(&damaged);
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
	sample_free(&sample);
	device_counts = true;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_link_of_another_type_whose_target_has_a_zero_byte),
		TEST(a_file_with_zero_bytes_that_says_it_is_a_link),
		cmocka_unit_test(a_reset_count_that_no_zone_reaches),
		TEST(another_fsid_and_no_root),
		TEST(zones_with_nodes_that_are_said_to_have_data),
		TEST(a_root_that_is_said_to_be_older),
		TEST(a_root_that_says_it_is_older),
		TEST(leaves_of_a_commit_that_was_cut),
		TEST(a_log_that_names_a_lost_inode),
		cmocka_unit_test(the_root_of_another_tree),
		cmocka_unit_test(inodes_that_are_out_of_order),
		cmocka_unit_test(an_inode_of_the_highest_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
