/* SPDX-License-Identifier: MIT */
/* Things that have lost their place: files without names, trees without roots. */
#include <dirent.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "damaged.h"
#include "fs/core/fs_format.h"
#include "fs/core/item.h"
#include "lies/image.h"
#include "sample.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static const struct zf_ctx ctx = {.may_wait = true};

/* ---- names ---- */

/* Deletes both items of the name in the directory. */
static void delete_name(struct forge *forge, uint64_t dir, const char *name)
{
	const uint64_t seed = forge->super.dir_hash_seed;
	const struct zf_key key =
		ZF_KEY(dir, ZF_KEY_DIR_NAME, zf_item_hash_name(seed, name, strlen(name)));
	struct zf_disk_dirent entry;

	forge_get(forge, ZF_TREE_FS, key, &entry, sizeof(entry));
	forge_delete(forge, ZF_TREE_FS, ZF_KEY(dir, ZF_KEY_DIR_COOKIE, zf_le64_get(entry.cookie)));
	forge_delete(forge, ZF_TREE_FS, key);
}

static void delete_all_names(struct forge *forge, uint64_t dir, const char *name, uint64_t ino)
{
	delete_name(forge, dir, name);
	damaged_delete_first(forge, ino, ZF_KEY_REF);
}

static void expect_in(const struct damaged *damaged, const char *folder, uint64_t ino,
		      const char *below)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/#%ju%s", folder, (uintmax_t)ino, below);
	if (listing_find(&damaged->after, path))
		return;
	print_error("there is no %s\n", path);
	fixture_print_messages();
	fail();
}

/* Files in the directory stay there. */
static void a_directory_that_nothing_names(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);

	delete_all_names(&sample->forge, ZF_INO_ROOT, "dir", sample->dir);
	damaged_mend(&damaged);
	assert_int_equal(damaged.counts.lost_and_found, 1);
	damaged_lost(&damaged);
	expect_in(&damaged, "/lost+found", sample->dir, "/hard");
	expect_in(&damaged, "/lost+found", sample->dir, "/sub/deep");
	damaged_end(&damaged);
}

static void rename_other(struct sample *sample, const char *name)
{
	struct zf_fs *fs = sample_mount(sample);
	uint64_t moved[2];

	assert_int_equal(zf_fs_rename(fs, &ctx, ZF_INO_ROOT, "other", ZF_INO_ROOT, name, 0, moved),
			 0);
	sample_unmount(sample, fs);
	forge_open(&sample->forge, sample->memory);
}

/* A file has the name lost+found: it stays, and the folder gets another name. */
static void a_file_that_is_called_lost_and_found(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged;

	rename_other(sample, "lost+found");
	damaged = damaged_begin(&sample->forge);
	delete_all_names(&sample->forge, sample->sub, "deep", sample->deep);
	damaged_mend(&damaged);
	assert_int_equal(damaged_lost(&damaged), 1);
	expect_in(&damaged, "/lost+found.1", sample->deep, "");
	damaged_end(&damaged);
}

/* Files that an earlier repair has put there stay, too. */
static void a_folder_that_is_there_already(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);

	delete_all_names(&sample->forge, sample->sub, "deep", sample->deep);
	damaged_mend(&damaged);
	assert_int_equal(damaged_lost(&damaged), 1);
	damaged_end(&damaged);
	forge_open(&sample->forge, sample->memory);
	damaged = damaged_begin(&sample->forge);
	delete_all_names(&sample->forge, ZF_INO_ROOT, "fifo", sample->fifo);
	damaged_mend(&damaged);
	assert_int_equal(damaged_lost(&damaged), 1);
	expect_in(&damaged, "/lost+found", sample->deep, "");
	expect_in(&damaged, "/lost+found", sample->fifo, "");
	damaged_end(&damaged);
}

/* Inserts all three items of a name. */
static void add_name(struct forge *forge, uint64_t dir, uint64_t ino, const char *name)
{
	const uint64_t seed = forge->super.dir_hash_seed, cookie = 1000;
	const size_t len = strlen(name);
	uint8_t entry[sizeof(struct zf_disk_dirent) + 16], ref[sizeof(struct zf_disk_ref) + 16];
	const struct zf_disk_dirent dirent = {
		.ino = zf_le64_from(ino),
		.tree = zf_le64_from(ZF_TREE_FS),
		.cookie = zf_le64_from(cookie),
		.type = DT_DIR,
		.name_len = zf_le16_from((uint16_t)len),
	};
	const struct zf_disk_ref disk_ref = {
		.parent = zf_le64_from(dir),
		.cookie = zf_le64_from(cookie),
		.name_len = zf_le16_from((uint16_t)len),
	};

	memcpy(entry, &dirent, sizeof(dirent));
	memcpy(entry + sizeof(dirent), name, len);
	memcpy(ref, &disk_ref, sizeof(disk_ref));
	memcpy(ref + sizeof(disk_ref), name, len);
	forge_insert(forge, ZF_TREE_FS,
		     ZF_KEY(dir, ZF_KEY_DIR_NAME, zf_item_hash_name(seed, name, len)), entry,
		     sizeof(dirent) + len);
	forge_insert(forge, ZF_TREE_FS, ZF_KEY(dir, ZF_KEY_DIR_COOKIE, cookie), entry,
		     sizeof(dirent) + len);
	forge_insert(forge, ZF_TREE_FS,
		     ZF_KEY(ino, ZF_KEY_REF, zf_item_hash_ref(seed, dir, name, len)), ref,
		     sizeof(disk_ref) + len);
}

/* A directory has one parent: one of its two names goes. */
static void a_directory_with_two_names(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);

	add_name(&sample->forge, ZF_INO_ROOT, sample->sub, "twin");
	damaged_mend(&damaged);
	damaged_lost(&damaged);
	assert_true(!listing_find(&damaged.after, "/dir/sub/deep") !=
		    !listing_find(&damaged.after, "/twin/deep"));
	damaged_end(&damaged);
}

/* The directories of the cycle are found in lost+found. */
static void a_cycle_of_directories(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);
	char a[64], b[64];

	delete_all_names(&sample->forge, ZF_INO_ROOT, "dir", sample->dir);
	add_name(&sample->forge, sample->sub, sample->dir, "loop");
	damaged_mend(&damaged);
	damaged_expect("(/lost+found/", "a cycle of directories");
	damaged_lost(&damaged);
	snprintf(a, sizeof(a), "/lost+found/#%ju/sub/deep", (uintmax_t)sample->dir);
	snprintf(b, sizeof(b), "/lost+found/#%ju/loop/hard", (uintmax_t)sample->sub);
	assert_true(!listing_find(&damaged.after, a) != !listing_find(&damaged.after, b));
	damaged_end(&damaged);
}

/* The orphan's item shows that the file was deleted, so it is not restored, despite its count. */
static void an_orphan_whose_count_is_wrong(void **state)
{
	struct zf_key key = ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, 0);
	struct damaged damaged;
	struct forge forge;

	(void)state;
	image_make(IMAGE_SEQUENTIAL, &forge);
	assert_true(forge_find(&forge, ZF_TREE_FS, &key));
	assert_int_equal(key.type, ZF_KEY_ORPHAN);
	damaged = damaged_begin(&forge);
	forge_field(&forge, ZF_TREE_FS, ZF_KEY(key.offset, ZF_KEY_INODE, 0),
		    offsetof(struct zf_disk_inode, nlink), sizeof(struct zf_le32), 1);
	damaged_mend(&damaged);
	damaged_expect("link count 1", "set to 0");
	assert_int_equal(damaged.counts.lost_and_found, 0);
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
	image_free(&forge);
}

/* ---- inodes ---- */

static void look_up(struct damaged *damaged, uint64_t ino, struct zf_attr *ret_attr)
{
	const struct zf_mount_options options = {0};
	struct zf_fs *fs;

	assert_int_equal(zf_fs_mount(damaged->dev, &options, NULL, &fs), 0);
	assert_int_equal(zf_fs_getattr(fs, &ctx, ino, ret_attr), 0);
	assert_int_equal(zf_fs_unmount(fs), 0);
}

/* The owner is unknown, so only root may read the file. */
static void a_file_without_its_item(void **state)
{
	struct sample *sample = *state;
	struct damaged damaged = damaged_begin(&sample->forge);
	struct zf_attr attr;

	forge_delete(&sample->forge, ZF_TREE_FS, ZF_KEY(sample->file, ZF_KEY_INODE, 0));
	damaged_mend(&damaged);
	damaged_expect("(/file)", "it belongs to root now, with mode 0100600");
	look_up(&damaged, sample->file, &attr);
	assert_int_equal(attr.mode, S_IFREG | 0600);
	assert_int_equal(attr.uid, 0);
	assert_int_equal(attr.nlink, 2);
	assert_int_equal(attr.size, SAMPLE_FILE_BLOCKS * ZF_BLOCK_SIZE);
	damaged_end(&damaged);
}

/* ---- checksums ---- */

/* A block that was packed into a log record is stored in another form than it is checked. */
static void checksums_of_what_a_record_carries(void **state)
{
	struct sample *sample = *state;
	struct zf_fs *fs = sample_mount(sample);
	uint8_t block[ZF_BLOCK_SIZE];
	struct damaged damaged;
	struct zf_attr attr;

	memset(block, 'c', sizeof(block));
	assert_int_equal(
		zf_fs_make(fs, &ctx, ZF_INO_ROOT, "carried", S_IFREG | 0600, 0, NULL, &attr), 0);
	assert_int_equal(zf_fs_write(fs, &ctx, attr.ino, 0, block, sizeof(block), 0),
			 sizeof(block));
	assert_int_equal(zf_fs_fsync(fs, &ctx, attr.ino, false), 0);
	zf_fs_forget(fs, attr.ino, 1);
	sample_unmount(sample, fs);
	damaged = damaged_begin(&sample->forge);
	damaged_node(&sample->forge, ZF_TREE_SUMMARY, ZF_KEY_MIN, 0)[200] ^= 4;
	damaged_mend(&damaged);
	damaged_expect("(/carried)", "unverified");
	assert_int_equal(damaged_lost(&damaged), 0);
	damaged_end(&damaged);
}

/* ---- roots ---- */

/* Flips a bit of each node that `choose` selects, of all commits. */
static void spoil_nodes(struct sample *sample, bool (*choose)(const struct zf_disk_node_header *))
{
	const uint64_t blocks_a_zone = sample->forge.zone_size / ZF_BLOCK_SIZE;
	unsigned int spoiled = 0;

	for (uint64_t block = 2 * blocks_a_zone; block < 32 * blocks_a_zone; block++) {
		uint8_t *bytes = forge_bytes(&sample->forge, block * ZF_BLOCK_SIZE);
		const struct zf_disk_node_header *header = (const void *)bytes;

		if (memcmp(header->magic, ZF_NODE_MAGIC, sizeof(header->magic)) != 0 ||
		    !choose(header))
			continue;
		bytes[200] ^= 4;
		spoiled++;
	}
	assert_true(spoiled > 0);
}

static bool is_root_tree(const struct zf_disk_node_header *header)
{
	return zf_le64_get(header->owner) == ZF_TREE_ROOT;
}

static bool is_above_leaves(const struct zf_disk_node_header *header)
{
	return header->level > 0 || is_root_tree(header);
}

static void clear_superblocks(struct sample *sample)
{
	for (uint32_t zone_no = 0; zone_no < 2; zone_no++)
		memset(zf_memory_zone(sample->memory, zone_no), 0, sample->forge.zone_size);
}

static void nothing_is_lost(struct sample *sample,
			    bool (*choose)(const struct zf_disk_node_header *),
			    bool has_superblocks)
{
	struct damaged damaged = damaged_begin(&sample->forge);

	spoil_nodes(sample, choose);
	if (!has_superblocks)
		clear_superblocks(sample);
	damaged_mend(&damaged);
	assert_int_equal(damaged_lost(&damaged), 0);
	assert_int_equal(damaged.after.count, damaged.before.count);
	damaged_end(&damaged);
}

static void all_root_trees(void **state)
{
	nothing_is_lost(*state, is_root_tree, true);
}

static void all_nodes_above_the_leaves(void **state)
{
	nothing_is_lost(*state, is_above_leaves, true);
}

static void neither_superblocks_nor_root_trees(void **state)
{
	nothing_is_lost(*state, is_root_tree, false);
}

/* Only leaves are left; the newest ones are taken. */
static void nothing_but_leaves(void **state)
{
	nothing_is_lost(*state, is_above_leaves, false);
}

static bool is_high(const struct zf_disk_node_header *header)
{
	return header->level > 1 || is_root_tree(header);
}

/* A node that is left below the upper ones must not be taken for the whole tree. */
static void the_upper_ones_of_three_levels(void **state)
{
	const struct sample_options options = {.node_size = 4096};
	struct sample sample;
	struct zf_fs *fs;

	(void)state;
	sample_make(&sample, &options);
	fs = sample_mount(&sample);
	for (unsigned int i = 0; i < 3000; i++) {
		struct zf_attr attr;
		char name[16];

		snprintf(name, sizeof(name), "more-%u", i);
		assert_int_equal(
			zf_fs_make(fs, &ctx, sample.many, name, S_IFREG | 0600, 0, NULL, &attr), 0);
		zf_fs_forget(fs, attr.ino, 1);
	}
	sample_unmount(&sample, fs);
	forge_open(&sample.forge, sample.memory);
	nothing_is_lost(&sample, is_high, true);
	sample_free(&sample);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_directory_that_nothing_names),
		TEST(a_file_that_is_called_lost_and_found),
		TEST(a_folder_that_is_there_already),
		TEST(a_directory_with_two_names),
		TEST(a_cycle_of_directories),
		cmocka_unit_test(an_orphan_whose_count_is_wrong),
		TEST(a_file_without_its_item),
		TEST(checksums_of_what_a_record_carries),
		TEST(all_root_trees),
		TEST(all_nodes_above_the_leaves),
		TEST(neither_superblocks_nor_root_trees),
		TEST(nothing_but_leaves),
		cmocka_unit_test(the_upper_ones_of_three_levels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
