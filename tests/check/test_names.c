/* SPDX-License-Identifier: MIT */
/* Names: references, entries by name and entries by cookie, and the tree that directories make. */
#include <dirent.h>
#include <stddef.h>
#include <string.h>

#include "fs/core/item.h"
#include "sample.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

#define FIELD(type, member) offsetof(type, member), sizeof(((type *)NULL)->member)

static uint64_t seed(struct sample *sample)
{
	return sample->forge.super.dir_hash_seed;
}

static struct zf_key entry_key(struct sample *sample, uint64_t dir, const char *name)
{
	return ZF_KEY(dir, ZF_KEY_DIR_NAME, zf_item_hash_name(seed(sample), name, strlen(name)));
}

static struct zf_key ref_key(struct sample *sample, uint64_t ino, uint64_t parent, const char *name)
{
	return ZF_KEY(ino, ZF_KEY_REF, zf_item_hash_ref(seed(sample), parent, name, strlen(name)));
}

static size_t ref_value(uint8_t *value, uint64_t parent, uint64_t cookie, const char *name)
{
	struct zf_disk_ref ref = {
		.parent = zf_le64_from(parent),
		.cookie = zf_le64_from(cookie),
		.name_len = zf_le16_from((uint16_t)strlen(name)),
	};

	memcpy(value, &ref, sizeof(ref));
	memcpy(value + sizeof(ref), name, strlen(name));
	return sizeof(ref) + strlen(name);
}

/* ---- the three that belong together ---- */

static void an_entry_that_lacks_its_entry_by_age(void **state)
{
	struct sample *sample = *state;

	forge_delete(&sample->forge, ZF_TREE_FS,
		     sample_key(sample, sample->dir, ZF_KEY_DIR_COOKIE));
	sample_expect(sample, false, "corrupt directory", "has no entry by cookie");
}

static void the_last_entry_that_lacks_its_entry_by_age(void **state)
{
	struct sample *sample = *state;

	forge_delete(&sample->forge, ZF_TREE_FS,
		     sample_key(sample, sample->sub, ZF_KEY_DIR_COOKIE));
	sample_expect(sample, false, "corrupt directory", "has no entry by cookie");
}

static void an_entry_by_age_without_a_name(void **state)
{
	struct sample *sample = *state;

	forge_delete(&sample->forge, ZF_TREE_FS, entry_key(sample, sample->sub, "deep"));
	sample_expect(sample, false, "entry by cookie",
		      "expected an entry by name with this cookie");
	sample_expect(sample, false, "reference has cookie",
		      "expected an entry with its name there");
}

static void an_entry_by_age_that_names_another_inode(void **state)
{
	struct sample *sample = *state;

	forge_field(&sample->forge, ZF_TREE_FS, sample_key(sample, sample->sub, ZF_KEY_DIR_COOKIE),
		    FIELD(struct zf_disk_dirent, ino), sample->file);
	sample_expect(sample, false, "entry by cookie", "expected inode, type and name");
}

static void an_entry_without_a_reference(void **state)
{
	struct sample *sample = *state;

	forge_delete(&sample->forge, ZF_TREE_FS,
		     ref_key(sample, sample->file, sample->dir, "hard"));
	sample_expect(sample, false, "references lack the entry", "expected a reference to it");
	sample_expect(sample, false, "nlink has 2", "expected 1 by its names");
}

static void a_reference_with_another_cookie(void **state)
{
	struct sample *sample = *state;

	forge_field(&sample->forge, ZF_TREE_FS, ref_key(sample, sample->file, sample->dir, "hard"),
		    FIELD(struct zf_disk_ref, cookie), 4000);
	sample_expect(sample, false, "reference has cookie 4000", "expected an entry");
}

static void an_entry_for_an_inode_that_does_not_exist(void **state)
{
	struct sample *sample = *state;

	forge_field(&sample->forge, ZF_TREE_FS, entry_key(sample, sample->sub, "deep"),
		    FIELD(struct zf_disk_dirent, ino), 999999);
	sample_expect(sample, false, "has inode 999999", "expected one that exists");
}

static void an_entry_of_the_wrong_type(void **state)
{
	struct sample *sample = *state;

	forge_field(&sample->forge, ZF_TREE_FS, entry_key(sample, sample->sub, "deep"),
		    FIELD(struct zf_disk_dirent, type), DT_FIFO);
	sample_expect(sample, false, "has type 1", "expected 8");
}

static void a_name_under_a_wrong_hash(void **state)
{
	struct sample *sample = *state;
	struct zf_key key = entry_key(sample, sample->sub, "deep");
	uint8_t value[64];
	size_t len = forge_get(&sample->forge, ZF_TREE_FS, key, value, sizeof(value));

	forge_delete(&sample->forge, ZF_TREE_FS, key);
	key.offset++;
	forge_insert(&sample->forge, ZF_TREE_FS, key, value, len);
	sample_expect(sample, false, "corrupt entry of directory", "hash has");
}

static void a_cookie_that_will_be_given_again(void **state)
{
	struct sample *sample = *state;

	forge_field(&sample->forge, ZF_TREE_FS, ZF_KEY(sample->dir, ZF_KEY_INODE, 0),
		    FIELD(struct zf_disk_inode, next_cookie), 3);
	sample_expect(sample, false, "corrupt directory", "next_cookie has 3");
}

static void entries_of_a_file(void **state)
{
	struct sample *sample = *state;
	struct zf_key key = entry_key(sample, sample->sub, "deep");
	uint8_t value[64];
	size_t len = forge_get(&sample->forge, ZF_TREE_FS, key, value, sizeof(value));

	key.objectid = sample->small;
	forge_insert(&sample->forge, ZF_TREE_FS, key, value, len);
	sample_expect(sample, false, "corrupt inode", "expected a directory for its 1 entries");
}

/* ---- the tree of directories ---- */

static void a_directory_with_two_names(void **state)
{
	struct sample *sample = *state;
	uint8_t value[64];
	size_t len = ref_value(value, ZF_INO_ROOT, 900, "again");

	forge_insert(&sample->forge, ZF_TREE_FS, ref_key(sample, sample->sub, ZF_INO_ROOT, "again"),
		     value, len);
	sample_expect(sample, false, "corrupt directory", "it has 2 names, expected 1");
}

static void a_directory_that_is_below_itself(void **state)
{
	struct sample *sample = *state;
	uint8_t value[64];
	size_t len = ref_value(value, sample->sub, 900, "dir");

	forge_delete(&sample->forge, ZF_TREE_FS, ref_key(sample, sample->dir, ZF_INO_ROOT, "dir"));
	forge_insert(&sample->forge, ZF_TREE_FS, ref_key(sample, sample->dir, sample->sub, "dir"),
		     value, len);
	sample_expect(sample, false, "parents have a cycle", "expected a way to the root");
}

static void a_directory_whose_parent_does_not_exist(void **state)
{
	struct sample *sample = *state;
	uint8_t value[64];
	size_t len = ref_value(value, 999999, 900, "dir");

	forge_delete(&sample->forge, ZF_TREE_FS, ref_key(sample, sample->dir, ZF_INO_ROOT, "dir"));
	forge_insert(&sample->forge, ZF_TREE_FS, ref_key(sample, sample->dir, 999999, "dir"), value,
		     len);
	sample_expect(sample, false, "parent has 999999", "expected a directory that exists");
}

static void a_directory_whose_parent_is_a_file(void **state)
{
	struct sample *sample = *state;
	uint8_t value[64];
	size_t len = ref_value(value, sample->small, 900, "dir");

	forge_delete(&sample->forge, ZF_TREE_FS, ref_key(sample, sample->dir, ZF_INO_ROOT, "dir"));
	forge_insert(&sample->forge, ZF_TREE_FS, ref_key(sample, sample->dir, sample->small, "dir"),
		     value, len);
	sample_expect(sample, false, "corrupt directory", "expected a directory that exists");
}

static void an_orphan_directory_with_entries(void **state)
{
	struct sample *sample = *state;

	forge_field(&sample->forge, ZF_TREE_FS, ZF_KEY(sample->sub, ZF_KEY_INODE, 0),
		    FIELD(struct zf_disk_inode, nlink), 0);
	sample_expect(sample, false, "corrupt directory", "nlink has 0, expected at least 2");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, sample_setup, sample_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_entry_that_lacks_its_entry_by_age),
		TEST(the_last_entry_that_lacks_its_entry_by_age),
		TEST(an_entry_by_age_without_a_name),
		TEST(an_entry_by_age_that_names_another_inode),
		TEST(an_entry_without_a_reference),
		TEST(a_reference_with_another_cookie),
		TEST(an_entry_for_an_inode_that_does_not_exist),
		TEST(an_entry_of_the_wrong_type),
		TEST(a_name_under_a_wrong_hash),
		TEST(a_cookie_that_will_be_given_again),
		TEST(entries_of_a_file),
		TEST(a_directory_with_two_names),
		TEST(a_directory_that_is_below_itself),
		TEST(a_directory_whose_parent_does_not_exist),
		TEST(a_directory_whose_parent_is_a_file),
		TEST(an_orphan_directory_with_entries),
	};

	return cmocka_run_group_tests_name("check_names", tests, NULL, NULL);
}
