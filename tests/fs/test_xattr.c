/* SPDX-License-Identifier: MIT */
/* Extended attributes of every size, and access control lists. */
#include "fs/names_rig.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "alloc/reserve.h"
#include "fs/collide.h"
#include "fs/ops/attr/xattr.h"
#include "sim/rng.h"

#define ROOT ZF_INO_ROOT

static int set(struct names_rig *rig, uint64_t ino, const char *name, const void *value, size_t len,
	       int flags)
{
	return zf_fs_setxattr(rig->fs, &rig->ctx, ino, name, value, len, flags);
}

static ssize_t get(struct names_rig *rig, uint64_t ino, const char *name, void *value, size_t size)
{
	return zf_fs_getxattr(rig->fs, &rig->ctx, ino, name, value, size);
}

static int drop(struct names_rig *rig, uint64_t ino, const char *name)
{
	return zf_fs_removexattr(rig->fs, &rig->ctx, ino, name);
}

static void assert_holds(struct names_rig *rig, uint64_t ino, const char *name, const void *value,
			 size_t len)
{
	static char read[ZF_XATTR_VALUE_MAX];

	assert_int_equal(get(rig, ino, name, NULL, 0), len);
	assert_int_equal(get(rig, ino, name, read, sizeof(read)), len);
	assert_memory_equal(read, value, len);
}

/* ---- values ---- */

static void values_of_every_size_come_back(void **state)
{
	static const size_t sizes[] = {0,   1,	 400,  470,  471,  472,	  900,	 981,
				       982, 983, 1964, 1965, 4096, 20000, 65535, 65536};
	static char value[ZF_XATTR_VALUE_MAX];
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	char name[32];
	struct zf_rng rng;

	zf_rng_seed(&rng, 1);
	zf_rng_fill(&rng, value, sizeof(value));
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(name, sizeof(name), "user.%zu", sizes[i]);
		assert_int_equal(set(rig, file, name, value, sizes[i], 0), 0);
	}
	names_rig_remount(rig);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(name, sizeof(name), "user.%zu", sizes[i]);
		assert_holds(rig, file, name, value, sizes[i]);
		if (sizes[i] > 1)
			assert_int_equal(get(rig, file, name, value, sizes[i] - 1), -ERANGE);
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		snprintf(name, sizeof(name), "user.%zu", sizes[i]);
		assert_int_equal(drop(rig, file, name), 0);
		assert_int_equal(get(rig, file, name, NULL, 0), -ENODATA);
	}
	/* Only the items of the inode and of its name are left. */
	assert_int_equal(rig_count_items(rig, file), 2);
}

static void a_value_replaced_leaves_nothing_behind(void **state)
{
	static char value[ZF_XATTR_VALUE_MAX];
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	struct zf_rng rng;

	zf_rng_seed(&rng, 2);
	zf_rng_fill(&rng, value, sizeof(value));
	assert_int_equal(set(rig, file, "user.other", value, 5000, 0), 0);
	for (int i = 0; i < 100; i++) {
		size_t len =
			zf_rng_below(&rng, 2) ? zf_rng_below(&rng, 65537) : zf_rng_below(&rng, 700);

		assert_int_equal(set(rig, file, "user.a", value + 65536 - len, len, 0), 0);
		assert_holds(rig, file, "user.a", value + 65536 - len, len);
		assert_holds(rig, file, "user.other", value, 5000);
	}
	assert_int_equal(drop(rig, file, "user.other"), 0);
	assert_int_equal(drop(rig, file, "user.a"), 0);
	assert_int_equal(rig_count_items(rig, file), 2);
	/* With attributes the inode still goes as a whole. */
	assert_int_equal(set(rig, file, "user.a", value, 65536, 0), 0);
	assert_int_equal(zf_fs_unlink(rig->fs, &rig->ctx, ROOT, "file"), 0);
	assert_holds(rig, file, "user.a", value, 65536);
	zf_fs_forget(rig->fs, file, 1);
	assert_int_equal(rig_count_items(rig, file), 0);
}

static void errors_are_those_of_setxattr(void **state)
{
	static char value[ZF_XATTR_VALUE_MAX + 1];
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	char name[300];

	memset(name, 'n', sizeof(name));
	name[256] = '\0';
	assert_int_equal(set(rig, file, "", "", 0, 0), -ERANGE);
	assert_int_equal(set(rig, file, name, "", 0, 0), -ERANGE);
	name[255] = '\0';
	assert_int_equal(set(rig, file, name, "v", 1, 0), 0);
	assert_int_equal(get(rig, file, name, NULL, 0), 1);
	assert_int_equal(drop(rig, file, "system.posix_acl_access"), 0);
	assert_int_equal(set(rig, file, "user.a", value, sizeof(value), 0), -E2BIG);
	assert_int_equal(set(rig, file, "user.a", "", 0, 8), -EINVAL);
	assert_int_equal(set(rig, file, "user.a", "1", 1, XATTR_REPLACE), -ENODATA);
	assert_int_equal(set(rig, file, "user.a", "1", 1, XATTR_CREATE), 0);
	assert_int_equal(set(rig, file, "user.a", "2", 1, XATTR_CREATE), -EEXIST);
	assert_holds(rig, file, "user.a", "1", 1);
	assert_int_equal(set(rig, file, "user.a", "2", 1, XATTR_REPLACE), 0);
	assert_holds(rig, file, "user.a", "2", 1);
	assert_int_equal(drop(rig, file, "user.none"), -ENODATA);
	assert_int_equal(get(rig, file, "user.none", NULL, 0), -ENODATA);
	assert_int_equal(set(rig, 9999, "user.a", "", 0, 0), -ESTALE);
}

static void the_list_has_every_name(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	static char list[8192];
	char name[32];
	ssize_t len;
	bool seen[300] = {false};
	size_t expected = 0;

	assert_int_equal(zf_fs_listxattr(rig->fs, &rig->ctx, file, NULL, 0), 0);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "user.%d", i);
		assert_int_equal(set(rig, file, name, name, strlen(name), 0), 0);
		expected += strlen(name) + 1;
	}
	len = zf_fs_listxattr(rig->fs, &rig->ctx, file, list, sizeof(list));
	assert_int_equal(len, expected);
	assert_int_equal(zf_fs_listxattr(rig->fs, &rig->ctx, file, NULL, 0), expected);
	assert_int_equal(zf_fs_listxattr(rig->fs, &rig->ctx, file, list, expected), expected);
	assert_int_equal(zf_fs_listxattr(rig->fs, &rig->ctx, file, list, expected - 1), -ERANGE);
	len = zf_fs_listxattr(rig->fs, &rig->ctx, file, list, sizeof(list));
	for (const char *p = list; p < list + len; p += strlen(p) + 1) {
		assert_false(seen[atoi(p + 5)]);
		seen[atoi(p + 5)] = true;
	}
	for (int i = 0; i < 300; i++)
		assert_true(seen[i]);
}

static void only_root_sees_trusted_names(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	char list[64];

	assert_int_equal(set(rig, file, "trusted.a", "1", 1, 0), 0);
	assert_int_equal(set(rig, file, "user.a", "1", 1, 0), 0);
	assert_int_equal(zf_fs_listxattr(rig->fs, &rig->ctx, file, list, sizeof(list)), 10 + 7);
	rig->ctx.uid = 1000;
	assert_int_equal(zf_fs_listxattr(rig->fs, &rig->ctx, file, NULL, 0), 7);
	assert_int_equal(zf_fs_listxattr(rig->fs, &rig->ctx, file, list, sizeof(list)), 7);
	assert_string_equal(list, "user.a");
}

static void names_of_one_hash_share_an_item(void **state)
{
	static char value[800];
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	char a[32], b[32];

	for (unsigned int i = 0;; i++) {
		snprintf(a, sizeof(a), "user.%u", i);
		if (collide_8(rig->fs->super.dir_hash_seed, a, b))
			break;
	}
	memset(value, 'v', sizeof(value));
	/* Each of the values fits into an entry, but both do not fit into one item. */
	assert_int_equal(set(rig, file, a, value, 450, 0), 0);
	assert_int_equal(set(rig, file, b, value, 460, 0), 0);
	assert_holds(rig, file, a, value, 450);
	assert_holds(rig, file, b, value, 460);
	assert_int_equal(set(rig, file, a, value, 470, 0), 0);
	assert_holds(rig, file, a, value, 470);
	assert_holds(rig, file, b, value, 460);
	assert_int_equal(zf_fs_listxattr(rig->fs, &rig->ctx, file, NULL, 0),
			 strlen(a) + strlen(b) + 2);
	assert_int_equal(drop(rig, file, a), 0);
	assert_holds(rig, file, b, value, 460);
	assert_int_equal(drop(rig, file, b), 0);
	assert_int_equal(rig_count_items(rig, file), 2);
}

/* An item that only a damaged filesystem has takes the last id. A free id must be found. */
static void ids_of_values_do_not_run_out(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	struct zf_key key = ZF_KEY(file, ZF_KEY_XATTR_VALUE, (uint64_t)UINT32_MAX << 16);
	static char value[3000];
	struct zf_trans trans;

	assert_int_equal(set(rig, file, "user.first", value, 3000, 0), 0);
	assert_int_equal(zf_trans_join(rig->fs->txn, ZF_RESERVE_NORMAL, 1, true, &trans), 0);
	assert_int_equal(zf_tree_insert(rig->fs->forest, trans.writer, ZF_TREE_FS, &key, "x", 1),
			 0);
	zf_trans_leave(&trans);
	memset(value, 'v', sizeof(value));
	assert_int_equal(set(rig, file, "user.second", value, 3000, 0), 0);
	assert_holds(rig, file, "user.second", value, 3000);
	memset(value, 0, sizeof(value));
	assert_holds(rig, file, "user.first", value, 3000);
}

static void attributes_change_only_ctime(void **state)
{
	struct names_rig *rig = *state;
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755);

	rig->now_ns = 4000000000;
	assert_int_equal(set(rig, dir, "user.a", "1", 1, 0), 0);
	assert_int_equal(rig_attr(rig, dir).ctime.seconds, 4);
	rig->now_ns = 5000000000;
	assert_int_equal(drop(rig, dir, "user.a"), 0);
	assert_int_equal(rig_attr(rig, dir).ctime.seconds, 5);
	assert_int_equal(rig_attr(rig, dir).mtime.seconds, 2);
}

static void a_write_takes_capabilities_away(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	struct zf_setattr chown = {.valid = ZF_SET_UID, .uid = 4};
	struct zf_inode *inode;
	struct zf_attr attr;

	assert_int_equal(zf_inode_get(rig->fs, file, &inode), 0);
	assert_int_equal(zf_xattr_drop_capability(inode, &rig->ctx), 0);
	assert_true(inode->absent & ZF_ABSENT_CAPABILITY);
	assert_int_equal(set(rig, file, "security.capability", "cap", 3, 0), 0);
	assert_false(inode->absent & ZF_ABSENT_CAPABILITY);
	assert_int_equal(zf_xattr_drop_capability(inode, &rig->ctx), 0);
	assert_int_equal(get(rig, file, "security.capability", NULL, 0), -ENODATA);
	assert_int_equal(set(rig, file, "security.capability", "cap", 3, 0), 0);
	assert_int_equal(zf_fs_setattr(rig->fs, &rig->ctx, file, &chown, &attr), 0);
	assert_int_equal(get(rig, file, "security.capability", NULL, 0), -ENODATA);
	zf_inode_put(inode);
}

/* ---- access control lists ---- */

#define ACCESS	   "system.posix_acl_access"
#define BY_DEFAULT "system.posix_acl_default"

struct acl {
	uint8_t bytes[4 + 8 * 8];
	size_t len;
};

static struct acl acl_new(void)
{
	return (struct acl){.bytes = {2, 0, 0, 0}, .len = 4};
}

static void acl_add(struct acl *acl, unsigned int tag, unsigned int permissions, uint32_t id)
{
	uint8_t entry[8] = {(uint8_t)tag, 0, (uint8_t)permissions, 0};

	memcpy(entry + 4, &id, 4); /* the tests run on little-endian machines only */
	memcpy(acl->bytes + acl->len, entry, 8);
	acl->len += 8;
}

/* user::u, user:7:rw-, group::g, mask::m, other::o */
static struct acl acl_of(unsigned int u, unsigned int g, unsigned int m, unsigned int o)
{
	struct acl acl = acl_new();

	acl_add(&acl, 0x01, u, UINT32_MAX);
	acl_add(&acl, 0x02, 6, 7);
	acl_add(&acl, 0x04, g, UINT32_MAX);
	acl_add(&acl, 0x10, m, UINT32_MAX);
	acl_add(&acl, 0x20, o, UINT32_MAX);
	return acl;
}

static struct acl acl_plain(unsigned int u, unsigned int g, unsigned int o)
{
	struct acl acl = acl_new();

	acl_add(&acl, 0x01, u, UINT32_MAX);
	acl_add(&acl, 0x04, g, UINT32_MAX);
	acl_add(&acl, 0x20, o, UINT32_MAX);
	return acl;
}

static void an_access_list_sets_the_mode(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 02644);
	struct acl acl = acl_of(7, 5, 6, 1);

	assert_int_equal(set(rig, file, ACCESS, acl.bytes, acl.len, 0), 0);
	assert_int_equal(rig_attr(rig, file).mode, S_IFREG | 02761);
	assert_holds(rig, file, ACCESS, acl.bytes, acl.len);
	/* A list that says no more than the mode is not stored. */
	acl = acl_plain(6, 4, 0);
	assert_int_equal(set(rig, file, ACCESS, acl.bytes, acl.len, 0), 0);
	assert_int_equal(rig_attr(rig, file).mode, S_IFREG | 02640);
	assert_int_equal(get(rig, file, ACCESS, NULL, 0), -ENODATA);
	/* A caller that is not in the file's group loses the setgid bit. Only the kernel's flag
	 * tells, because the group may be a supplementary group. */
	rig->ctx.uid = 1;
	rig->ctx.gid = 1;
	acl = acl_of(7, 5, 6, 1);
	assert_int_equal(set(rig, file, ACCESS, acl.bytes, acl.len, 0), 0);
	assert_int_equal(rig_attr(rig, file).mode, S_IFREG | 02761);
	assert_int_equal(set(rig, file, "user.a", "1", 1, ZF_XATTR_KILL_SGID), 0);
	assert_int_equal(rig_attr(rig, file).mode, S_IFREG | 02761);
	assert_int_equal(set(rig, file, ACCESS, acl.bytes, acl.len, ZF_XATTR_KILL_SGID), 0);
	assert_int_equal(rig_attr(rig, file).mode, S_IFREG | 0761);
}

static void chmod_changes_the_access_list(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	struct acl acl = acl_of(7, 5, 6, 1), after = acl_of(6, 5, 4, 0);
	struct zf_setattr chmod = {.valid = ZF_SET_MODE, .mode = 0640};
	struct zf_attr attr;

	assert_int_equal(set(rig, file, ACCESS, acl.bytes, acl.len, 0), 0);
	assert_int_equal(zf_fs_setattr(rig->fs, &rig->ctx, file, &chmod, &attr), 0);
	assert_int_equal(attr.mode, S_IFREG | 0640);
	assert_holds(rig, file, ACCESS, after.bytes, after.len);
	assert_int_equal(drop(rig, file, ACCESS), 0);
	/* The removal of a list that does not exist is no error. */
	assert_int_equal(drop(rig, file, ACCESS), 0);
	assert_int_equal(drop(rig, file, BY_DEFAULT), 0);
	assert_int_equal(rig_attr(rig, file).mode, S_IFREG | 0640);
}

static void what_is_made_inherits_the_default_list(void **state)
{
	struct names_rig *rig = *state;
	uint64_t dir = rig_make(rig, ROOT, "dir", S_IFDIR | 0755), made;
	struct acl acl = acl_of(7, 5, 7, 5), file_acl = acl_of(6, 5, 6, 0);
	struct acl plain = acl_plain(7, 5, 0);

	rig->ctx.umask = 077; /* which a default list takes the place of */
	assert_int_equal(set(rig, dir, BY_DEFAULT, acl.bytes, acl.len, 0), 0);
	assert_int_equal(rig_attr(rig, dir).mode, S_IFDIR | 0755);
	made = rig_make(rig, dir, "file", S_IFREG | 0660);
	assert_int_equal(rig_attr(rig, made).mode, S_IFREG | 0660);
	assert_holds(rig, made, ACCESS, file_acl.bytes, file_acl.len);
	assert_int_equal(get(rig, made, BY_DEFAULT, NULL, 0), -ENODATA);
	made = rig_make(rig, dir, "sub", S_IFDIR | 0777);
	assert_int_equal(rig_attr(rig, made).mode, S_IFDIR | 0775);
	assert_holds(rig, made, ACCESS, acl.bytes, acl.len);
	assert_holds(rig, made, BY_DEFAULT, acl.bytes, acl.len);
	made = rig_make(rig, dir, "link", S_IFLNK | 0777);
	assert_int_equal(rig_attr(rig, made).mode, S_IFLNK | 0777);
	assert_int_equal(get(rig, made, ACCESS, NULL, 0), -ENODATA);
	assert_int_equal(set(rig, dir, BY_DEFAULT, plain.bytes, plain.len, 0), 0);
	made = rig_make(rig, dir, "plain", S_IFREG | 0666);
	assert_int_equal(rig_attr(rig, made).mode, S_IFREG | 0640);
	assert_int_equal(get(rig, made, ACCESS, NULL, 0), -ENODATA);
	assert_int_equal(set(rig, dir, BY_DEFAULT, "", 0, 0), 0);
	assert_int_equal(get(rig, dir, BY_DEFAULT, NULL, 0), -ENODATA);
	made = rig_make(rig, dir, "without", S_IFREG | 0666);
	assert_int_equal(rig_attr(rig, made).mode, S_IFREG | 0600);
}

static void lists_that_are_none_are_refused(void **state)
{
	struct names_rig *rig = *state;
	uint64_t file = rig_make(rig, ROOT, "file", S_IFREG | 0644);
	uint64_t link = rig_make(rig, ROOT, "link", S_IFLNK | 0777);
	struct acl acl = acl_of(7, 5, 7, 5);

	assert_int_equal(set(rig, file, BY_DEFAULT, acl.bytes, acl.len, 0), -EACCES);
	assert_int_equal(set(rig, file, BY_DEFAULT, "", 0, 0), 0);
	assert_int_equal(set(rig, link, ACCESS, acl.bytes, acl.len, 0), -EOPNOTSUPP);
	assert_int_equal(set(rig, file, ACCESS, acl.bytes, acl.len - 1, 0), -EINVAL);
	assert_int_equal(set(rig, file, ACCESS, acl.bytes, acl.len - 8, 0), -EINVAL);
	assert_int_equal(set(rig, file, ACCESS, acl.bytes, 3, 0), -EINVAL);
	assert_int_equal(drop(rig, link, ACCESS), -EOPNOTSUPP);
	acl.bytes[0] = 1;
	assert_int_equal(set(rig, file, ACCESS, acl.bytes, acl.len, 0), -EOPNOTSUPP);
	acl = acl_of(7, 5, 7, 5);
	memset(acl.bytes + 4 + 8 + 4, 0xff, 4); /* nobody is user -1 */
	assert_int_equal(set(rig, file, ACCESS, acl.bytes, acl.len, 0), -EINVAL);
	acl = acl_of(7, 5, 8, 5);
	assert_int_equal(set(rig, file, ACCESS, acl.bytes, acl.len, 0), -EINVAL);
	acl = acl_plain(7, 5, 5);
	acl_add(&acl, 0x01, 7, UINT32_MAX);
	assert_int_equal(set(rig, file, ACCESS, acl.bytes, acl.len, 0), -EINVAL);
	acl = acl_of(7, 5, 7, 5);
	acl.bytes[4 + 3 * 8] = 0x08; /* a group, where the mask was */
	assert_int_equal(set(rig, file, ACCESS, acl.bytes, acl.len, 0), -EINVAL);
	assert_int_equal(get(rig, file, ACCESS, NULL, 0), -ENODATA);
	assert_int_equal(rig_attr(rig, file).mode, S_IFREG | 0644);
}

#define TEST(t) cmocka_unit_test_setup_teardown(t, names_rig_setup, names_rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(values_of_every_size_come_back),  TEST(a_value_replaced_leaves_nothing_behind),
		TEST(errors_are_those_of_setxattr),    TEST(the_list_has_every_name),
		TEST(only_root_sees_trusted_names),    TEST(names_of_one_hash_share_an_item),
		TEST(ids_of_values_do_not_run_out),    TEST(attributes_change_only_ctime),
		TEST(a_write_takes_capabilities_away), TEST(an_access_list_sets_the_mode),
		TEST(chmod_changes_the_access_list),   TEST(what_is_made_inherits_the_default_list),
		TEST(lists_that_are_none_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
