/* SPDX-License-Identifier: MIT */
/* P7: which items the checker accepts, and that it rejects all others. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/bits.h"
#include "fs/core/fs_format.h"
#include "fs/core/item.h"
#include "fs/core/item_check.h"
#include "sim/rng.h"

#define SEED	  UINT64_C(0xfeedface)
#define VALUE_MAX 982u
#define DEVICE	  (UINT64_C(64) << 20)
#define DIR	  300u

static char message[512];

static void note(void *arg, enum zf_report_level level, const char *text)
{
	snprintf(message, sizeof(message), "%s", text);
}

static const struct zf_report report = {.fn = note};
static const struct zf_item_check check = {
	.report = &report,
	.value_max = VALUE_MAX,
	.dir_hash_seed = SEED,
	.generation_max = 50,
	.device_bytes = DEVICE,
};

struct sample {
	enum zf_tree_id tree;
	struct zf_key key;
	uint8_t value[VALUE_MAX + 1];
	size_t len;
};

/* Checks the item in memory of exactly its length, so that a sanitizer sees a read past its end. */
static int check_sample(const struct sample *sample)
{
	uint8_t *value = malloc(sample->len);
	int r;

	assert_true(value || sample->len == 0);
	memcpy(value, sample->value, sample->len);
	message[0] = '\0';
	r = zf_item_check(&check, sample->tree, &sample->key, value, sample->len);
	free(value);
	assert_true(r == 0 || r == -EUCLEAN);
	assert_int_equal(r == 0, message[0] == '\0');
	return r;
}

static void put(struct sample *sample, const void *bytes, size_t len)
{
	memcpy(sample->value + sample->len, bytes, len);
	sample->len += len;
}

/* ---- samples ---- */

static struct sample inode_of(mode_t mode)
{
	struct zf_inode_item item = {
		.generation = 5,
		.change = 50,
		.size = S_ISREG(mode) || S_ISDIR(mode) ? 12345
			: S_ISLNK(mode)		       ? 10
						       : 0,
		.bytes = S_ISREG(mode) ? 16384 : 0,
		.rdev = S_ISCHR(mode) ? 7 : 0,
		.next_cookie = S_ISDIR(mode) ? 9 : 0,
		.mode = mode,
		.nlink = S_ISDIR(mode) ? 2 : 1,
		.uid = 1,
		.gid = 2,
		.atime = {-1, 999999999},
		.btime = {1, 0},
	};
	struct sample sample = {.tree = ZF_TREE_FS, .key = ZF_KEY(DIR, ZF_KEY_INODE, 0)};
	struct zf_disk_inode disk;

	zf_item_encode_inode(&item, &disk);
	put(&sample, &disk, sizeof(disk));
	return sample;
}

static struct sample inode_sample(void)
{
	return inode_of(S_IFREG | 04755);
}

static struct sample dir_sample(void)
{
	return inode_of(S_IFDIR | 01777);
}

static struct sample ref_sample(void)
{
	struct zf_disk_ref ref = {.parent = zf_le64_from(ZF_INO_ROOT),
				  .cookie = zf_le64_from(3),
				  .name_len = zf_le16_from(4)};
	struct sample sample = {
		.tree = ZF_TREE_FS,
		.key = ZF_KEY(DIR, ZF_KEY_REF, zf_item_hash_ref(SEED, ZF_INO_ROOT, "name", 4))};

	put(&sample, &ref, sizeof(ref));
	put(&sample, "name", 4);
	return sample;
}

static struct sample dirent_sample(uint8_t key_type)
{
	struct zf_disk_dirent dirent = {.ino = zf_le64_from(400),
					.tree = zf_le64_from(ZF_TREE_FS),
					.cookie = zf_le64_from(8),
					.type = DT_REG,
					.name_len = zf_le16_from(4)};
	struct sample sample = {.tree = ZF_TREE_FS,
				.key = ZF_KEY(DIR, key_type,
					      key_type == ZF_KEY_DIR_COOKIE
						      ? 8
						      : zf_item_hash_name(SEED, "name", 4))};

	put(&sample, &dirent, sizeof(dirent));
	put(&sample, "name", 4);
	return sample;
}

static struct sample name_sample(void)
{
	return dirent_sample(ZF_KEY_DIR_NAME);
}

static struct sample cookie_sample(void)
{
	return dirent_sample(ZF_KEY_DIR_COOKIE);
}

static struct sample xattr_of(uint32_t value_id)
{
	struct zf_disk_xattr xattr = {.value_len = zf_le32_from(5),
				      .value_id = zf_le32_from(value_id),
				      .name_len = zf_le16_from(6)};
	struct sample sample = {
		.tree = ZF_TREE_FS,
		.key = ZF_KEY(DIR, ZF_KEY_XATTR, zf_item_hash_name(SEED, "user.a", 6))};

	put(&sample, &xattr, sizeof(xattr));
	put(&sample, "user.a", 6);
	if (value_id == 0)
		put(&sample, "value", 5);
	return sample;
}

static struct sample xattr_sample(void)
{
	return xattr_of(0);
}

static struct sample long_xattr_sample(void)
{
	return xattr_of(UINT32_MAX);
}

static struct sample xattr_value_sample(void)
{
	struct sample sample = {.tree = ZF_TREE_FS,
				.key = ZF_KEY(DIR, ZF_KEY_XATTR_VALUE, 7 << 16 | 2)};

	put(&sample, "bytes", 5);
	return sample;
}

static struct sample extent_of(enum zf_extent_type type)
{
	bool is_inline = type == ZF_EXTENT_INLINE;
	struct zf_disk_extent extent = {
		.type = (uint8_t)type,
		.count = zf_le32_from(is_inline ? 3 : 2),
		.generation = zf_le64_from(50),
		.address = zf_le64_from(type == ZF_EXTENT_DATA ? DEVICE - 8192 : 0),
	};
	struct sample sample = {.tree = ZF_TREE_FS,
				.key = ZF_KEY(DIR, ZF_KEY_EXTENT, is_inline ? 0 : 40960)};

	put(&sample, &extent, sizeof(extent));
	if (is_inline)
		put(&sample, "abc", 3);
	return sample;
}

static struct sample inline_sample(void)
{
	return extent_of(ZF_EXTENT_INLINE);
}

static struct sample data_sample(void)
{
	return extent_of(ZF_EXTENT_DATA);
}

static struct sample zero_sample(void)
{
	return extent_of(ZF_EXTENT_ZERO);
}

static struct sample orphan_sample(void)
{
	return (struct sample){.tree = ZF_TREE_FS,
			       .key = ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, DIR)};
}

static struct sample intent_sample(void)
{
	struct zf_disk_intent intent = {.type = ZF_INTENT_TRUNCATE,
					.ino = zf_le64_from(DIR),
					.from = zf_le64_from(4096),
					.to = zf_le64_from(ZF_FILE_END_MAX)};
	struct sample sample = {.tree = ZF_TREE_FS,
				.key = ZF_KEY(ZF_INO_INTENTS, ZF_KEY_INTENT, 1)};

	put(&sample, &intent, sizeof(intent));
	return sample;
}

static struct sample summary_sample(void)
{
	struct zf_disk_summary summary = {.ino = zf_le64_from(DIR),
					  .offset = zf_le64_from(8192),
					  .tree = zf_le32_from(ZF_TREE_FS),
					  .count = zf_le16_from(3)};
	struct sample sample = {.tree = ZF_TREE_SUMMARY,
				.key = ZF_KEY(DEVICE - 3 * 4096, ZF_KEY_SUMMARY, 0)};

	put(&sample, &summary, sizeof(summary));
	sample.len += 24; /* any checksums */
	return sample;
}

static struct sample share_sample(void)
{
	struct zf_disk_share share = {.tree = zf_le64_from(ZF_TREE_FS),
				      .ino = zf_le64_from(DIR),
				      .offset = zf_le64_from(8192),
				      .len = zf_le64_from(4096)};
	struct sample sample = {
		.tree = ZF_TREE_SHARE,
		.key = ZF_KEY(4096, ZF_KEY_SHARE, zf_item_hash_share(SEED, DIR, 8192))};

	put(&sample, &share, sizeof(share));
	put(&sample, &share, sizeof(share));
	return sample;
}

static struct sample (*const samples[])(void) = {
	inode_sample,  dir_sample,    xattr_value_sample, ref_sample,	  name_sample,
	cookie_sample, xattr_sample,  long_xattr_sample,  inline_sample,  data_sample,
	zero_sample,   orphan_sample, intent_sample,	  summary_sample, share_sample,
};

/* ---- tests ---- */

static void every_kind_of_item_passes_as_it_is_made(void **state)
{
	static const mode_t modes[] = {S_IFREG, S_IFDIR, S_IFLNK, S_IFCHR,
				       S_IFBLK, S_IFIFO, S_IFSOCK};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(samples); i++) {
		struct sample sample = samples[i]();

		assert_int_equal(check_sample(&sample), 0);
	}
	for (size_t i = 0; i < ZF_ARRAY_SIZE(modes); i++) {
		struct sample sample = inode_of(modes[i] | 07777);

		assert_int_equal(check_sample(&sample), 0);
	}
}

static void chains_pass_with_several_entries_but_not_with_one_twice(void **state)
{
	struct sample sample = cookie_sample(), twice = name_sample();
	size_t len = twice.len;

	put(&sample, sample.value, sample.len);
	assert_int_equal(check_sample(&sample), -EUCLEAN);
	put(&twice, twice.value, len);
	assert_int_equal(check_sample(&twice), -EUCLEAN);
	assert_non_null(strstr(message, "the same name occurs twice"));
}

/* Where a field stands, and a value that it must not have. */
struct wrong {
	struct sample (*sample)(void);
	size_t offset, width;
	uint64_t value;
	const char *says;
};

#define WRONG(s, type, member, v)                                                                  \
	{s, offsetof(type, member), sizeof(((type *)NULL)->member), v, #member}
#define INODE(m, v)   WRONG(inode_sample, struct zf_disk_inode, m, v)
#define IN_DIR(m, v)  WRONG(dir_sample, struct zf_disk_inode, m, v)
#define REF(m, v)     WRONG(ref_sample, struct zf_disk_ref, m, v)
#define DIRENT(m, v)  WRONG(name_sample, struct zf_disk_dirent, m, v)
#define COOKIE(m, v)  WRONG(cookie_sample, struct zf_disk_dirent, m, v)
#define XATTR(m, v)   WRONG(xattr_sample, struct zf_disk_xattr, m, v)
#define INLINE(m, v)  WRONG(inline_sample, struct zf_disk_extent, m, v)
#define DATA(m, v)    WRONG(data_sample, struct zf_disk_extent, m, v)
#define ZERO(m, v)    WRONG(zero_sample, struct zf_disk_extent, m, v)
#define INTENT(m, v)  WRONG(intent_sample, struct zf_disk_intent, m, v)
#define SUMMARY(m, v) WRONG(summary_sample, struct zf_disk_summary, m, v)
#define SHARE(m, v)   WRONG(share_sample, struct zf_disk_share, m, v)

static const struct wrong wrongs[] = {
	INODE(generation, 0),
	INODE(generation, 51),
	INODE(change, 51),
	INODE(size, UINT64_C(1) << 63),
	INODE(bytes, UINT64_MAX),
	INODE(rdev, 1),
	INODE(mode, 0755),
	INODE(mode, 0110755),
	INODE(mode, 0200000 | 0100644),
	INODE(nlink, 65001),
	INODE(uid, UINT32_MAX),
	INODE(gid, UINT32_MAX),
	INODE(project, UINT32_MAX),
	INODE(flags, 0x1),
	INODE(flags, ZF_INODE_DIRSYNC),
	INODE(flags, ZF_INODE_PROJINHERIT),
	IN_DIR(flags, 0x40000000),
	INODE(atime.nanoseconds, 1000000000),
	INODE(mtime.nanoseconds, UINT32_MAX),
	INODE(ctime.nanoseconds, 1000000000),
	INODE(btime.nanoseconds, 1000000000),
	INODE(next_cookie, 3),
	INODE(tree, 3),
	IN_DIR(nlink, 1),
	IN_DIR(next_cookie, 2),
	IN_DIR(next_cookie, UINT64_C(1) << 63),
	REF(parent, 0),
	REF(parent, 255),
	REF(cookie, 2),
	REF(name_len, 0),
	REF(name_len, 5),
	DIRENT(ino, 1),
	DIRENT(ino, 255),
	DIRENT(ino, DIR),
	DIRENT(tree, 0),
	DIRENT(cookie, 0),
	DIRENT(cookie, UINT64_C(1) << 63),
	DIRENT(type, 0),
	DIRENT(type, 3),
	DIRENT(reserved, 1),
	DIRENT(name_len, 0),
	DIRENT(name_len, 65535),
	COOKIE(cookie, 9),
	XATTR(value_len, 6),
	XATTR(value_len, UINT32_MAX),
	XATTR(name_len, 0),
	XATTR(name_len, 256),
	WRONG(long_xattr_sample, struct zf_disk_xattr, value_len, 0),
	WRONG(long_xattr_sample, struct zf_disk_xattr, value_len, 65537),
	INLINE(type, 0),
	INLINE(type, 4),
	INLINE(flags, 1),
	INLINE(compression, 1),
	INLINE(encryption, 1),
	INLINE(address, 4096),
	INLINE(count, 0),
	INLINE(count, 2),
	INLINE(count, 4),
	INLINE(count, UINT32_MAX),
	DATA(flags, 4),
	DATA(generation, 0),
	DATA(generation, 51),
	DATA(compression, 1),
	DATA(encryption, 1),
	DATA(address, 0),
	DATA(address, 4097),
	DATA(address, DEVICE - 4096),
	DATA(address, UINT64_MAX - 4095),
	DATA(count, 0),
	DATA(count, 3), /* behind the device's end */
	ZERO(address, 4096),
	ZERO(compression, 1),
	ZERO(encryption, 1),
	ZERO(count, 0),
	ZERO(count, (ZF_EXTENT_ZERO_MAX >> 12) + 1),
	ZERO(flags, ZF_EXTENT_SHARED),
	ZERO(flags, ZF_EXTENT_OVERWRITE),
	ZERO(flags, ZF_EXTENT_GUARANTEED << 1),
	DATA(flags, ZF_EXTENT_UNWRITTEN),
	DATA(flags, 0x80), /* a second part follows */
	DATA(flags, ZF_EXTENT_OVERWRITE | ZF_EXTENT_SHARED),
	DATA(flags, ZF_EXTENT_OVERWRITE | ZF_EXTENT_GUARANTEED),
	INTENT(type, 0),
	INTENT(type, 3),
	INTENT(ino, 1),
	INTENT(from, 1),
	INTENT(to, 0),
	INTENT(to, UINT64_MAX),
	INTENT(source_ino, 300),
	INTENT(source_from, 4096),
	SUMMARY(tree, 1),
	SUMMARY(ino, 1),
	SUMMARY(offset, 1),
	SUMMARY(offset, UINT64_C(1) << 63),
	SUMMARY(count, 0),
	SUMMARY(count, 4),
	SUMMARY(count, UINT16_MAX),
	SUMMARY(flags, ZF_SUMMARY_OVERWRITE), /* then there are no checksums */
	SUMMARY(flags, 2),
	SHARE(tree, 1),
	SHARE(ino, 1),
	SHARE(offset, 5),
	SHARE(len, 0),
	SHARE(len, 4097),
	SHARE(len, ZF_SHARE_MAX + 4096),
	SHARE(ino, DIR + 1),
	SHARE(offset, 4096),
};

static void each_field_has_values_that_do_not_pass(void **state)
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(wrongs); i++) {
		const struct wrong *wrong = &wrongs[i];
		struct sample sample = wrong->sample();

		for (size_t b = 0; b < wrong->width; b++)
			sample.value[wrong->offset + b] = (uint8_t)(wrong->value >> 8 * b);
		if (check_sample(&sample) == 0)
			fail_msg("%s of sample %zu passes with %llu", wrong->says, i,
				 (unsigned long long)wrong->value);
		assert_non_null(strstr(message, "corrupt "));
		assert_non_null(strstr(message, ", expected "));
	}
}

static void keys_are_checked_too(void **state)
{
	static const struct {
		struct sample (*sample)(void);
		struct zf_key key;
	} keys[] = {
		{inode_sample, ZF_KEY(2, ZF_KEY_INODE, 0)},
		{inode_sample, ZF_KEY(DIR, ZF_KEY_INODE, 1)},
		{inode_sample, ZF_KEY(ZF_INO_ROOT, ZF_KEY_INODE, 0)}, /* not a directory */
		{ref_sample, ZF_KEY(DIR, ZF_KEY_REF, 1)},
		{ref_sample, ZF_KEY(3, ZF_KEY_REF, 1)},
		{name_sample, ZF_KEY(DIR, ZF_KEY_DIR_NAME, 1)},
		{cookie_sample, ZF_KEY(DIR, ZF_KEY_DIR_COOKIE, 7)},
		{xattr_sample, ZF_KEY(DIR, ZF_KEY_XATTR, 1)},
		{xattr_value_sample, ZF_KEY(DIR, ZF_KEY_XATTR_VALUE, 2)},
		{xattr_value_sample, ZF_KEY(DIR, ZF_KEY_XATTR_VALUE, UINT64_C(1) << 48)},
		{xattr_value_sample, ZF_KEY(DIR, ZF_KEY_XATTR_VALUE, 1 << 16 | 67)},
		{inline_sample, ZF_KEY(DIR, ZF_KEY_EXTENT, 4093)},
		{data_sample, ZF_KEY(DIR, ZF_KEY_EXTENT, 1)},
		{data_sample, ZF_KEY(DIR, ZF_KEY_EXTENT, (UINT64_C(1) << 63) - 4096)},
		{data_sample, ZF_KEY(ZF_INO_ROOT, ZF_KEY_EXTENT, 0)},
		{orphan_sample, ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, 255)},
		{orphan_sample, ZF_KEY(DIR, ZF_KEY_ORPHAN, DIR)},
		{intent_sample, ZF_KEY(DIR, ZF_KEY_INTENT, 1)},
		{summary_sample, ZF_KEY(DEVICE, ZF_KEY_SUMMARY, 0)},
		{summary_sample, ZF_KEY(4095, ZF_KEY_SUMMARY, 0)},
		{summary_sample, ZF_KEY(4096, ZF_KEY_SUMMARY, 1)},
		{share_sample, ZF_KEY(4095, ZF_KEY_SHARE, 0)},
		{share_sample, ZF_KEY(4096, ZF_KEY_SHARE, 0)},
		{orphan_sample, ZF_KEY(DIR, 0, 0)},
		{orphan_sample, ZF_KEY(DIR, ZF_KEY_SUMMARY, 0)},
		{orphan_sample, ZF_KEY(DIR, UINT8_MAX, 0)},
	};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(keys); i++) {
		struct sample sample = keys[i].sample();

		sample.key = keys[i].key;
		if (check_sample(&sample) == 0)
			fail_msg("key %zu passes", i);
	}
}

static void names_that_no_name_is_do_not_pass(void **state)
{
	static const char *const names[] = {"a/bc", "a\0bc", "/...", "\0\0\0\0"};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(names); i++) {
		struct sample sample = name_sample();

		memcpy(sample.value + sizeof(struct zf_disk_dirent), names[i], 4);
		sample.key.offset = zf_item_hash_name(SEED, names[i], 4);
		assert_int_equal(check_sample(&sample), -EUCLEAN);
	}
	for (size_t len = 1; len <= 2; len++) {
		struct sample sample = name_sample();

		memcpy(sample.value + sizeof(struct zf_disk_dirent), "..", 2);
		sample.value[offsetof(struct zf_disk_dirent, name_len)] = (uint8_t)len;
		sample.len = sizeof(struct zf_disk_dirent) + len;
		sample.key.offset = zf_item_hash_name(SEED, "..", len);
		assert_int_equal(check_sample(&sample), -EUCLEAN);
	}
}

static void no_part_of_an_item_passes_for_the_whole(void **state)
{
	for (size_t i = 0; i < ZF_ARRAY_SIZE(samples); i++) {
		struct sample sample = samples[i]();
		size_t len = sample.len;

		/* A chunk of bytes and half of two shares are whole items. */
		for (sample.len = 0; sample.len < len; sample.len++) {
			if (samples[i] == xattr_value_sample && sample.len > 0)
				continue;
			if (samples[i] == share_sample && 2 * sample.len == len)
				continue;
			assert_int_equal(check_sample(&sample), -EUCLEAN);
		}
		if (samples[i] == xattr_value_sample)
			continue;
		sample.len = len + 1;
		assert_int_equal(check_sample(&sample), -EUCLEAN);
	}
}

static void random_bytes_do_no_harm(void **state)
{
	struct zf_rng rng;

	zf_rng_seed(&rng, 1);
	for (int i = 0; i < 200000; i++) {
		struct sample sample = samples[zf_rng_below(&rng, ZF_ARRAY_SIZE(samples))]();
		size_t changes = 1 + zf_rng_below(&rng, 4);

		for (size_t c = 0; c < changes && sample.len > 0; c++)
			sample.value[zf_rng_below(&rng, sample.len)] = (uint8_t)zf_rng_next(&rng);
		if (zf_rng_chance(&rng, 20))
			sample.len = zf_rng_below(&rng, VALUE_MAX + 1);
		if (zf_rng_chance(&rng, 10))
			sample.key.type = (uint8_t)zf_rng_next(&rng);
		check_sample(&sample);
	}
}

/* The length of shared extents is bounded, so that it is known where an extent that overlaps a
 * range can begin. */
static void extents_are_only_so_long(void **state)
{
	static const struct {
		enum zf_extent_type type;
		uint8_t flags;
		uint64_t len;
		int result;
	} cases[] = {
		{ZF_EXTENT_DATA, ZF_EXTENT_SHARED, ZF_SHARE_MAX, 0},
		{ZF_EXTENT_DATA, ZF_EXTENT_SHARED, ZF_SHARE_MAX + 4096, -EUCLEAN},
		{ZF_EXTENT_DATA, 0, ZF_SHARE_MAX + 4096, 0},
		{ZF_EXTENT_DATA, 0, ZF_EXTENT_MAX, 0},
		{ZF_EXTENT_DATA, 0, ZF_EXTENT_MAX + 4096, -EUCLEAN},
		{ZF_EXTENT_ZERO, 0, ZF_EXTENT_MAX + 4096, 0},
		{ZF_EXTENT_ZERO, 0, ZF_EXTENT_ZERO_MAX, 0},
		{ZF_EXTENT_ZERO, 0, ZF_EXTENT_ZERO_MAX + 4096, -EUCLEAN},
	};

	for (size_t i = 0; i < ZF_ARRAY_SIZE(cases); i++) {
		struct sample sample = extent_of(cases[i].type);
		struct zf_disk_extent *extent = (struct zf_disk_extent *)sample.value;

		extent->flags = cases[i].flags;
		if (cases[i].type == ZF_EXTENT_DATA)
			extent->address = zf_le64_from(DEVICE / 2);
		extent->count = zf_le32_from((uint32_t)(cases[i].len >> 12));
		assert_int_equal(check_sample(&sample), cases[i].result);
	}
}

static void an_entry_in_place_is_not_longer_than_its_extent_can_be(void **state)
{
	struct sample sample = summary_sample();
	struct zf_disk_summary *summary = (struct zf_disk_summary *)sample.value;

	sample.key.objectid = DEVICE / 2;
	sample.len = sizeof(*summary);
	summary->flags = zf_le16_from(ZF_SUMMARY_OVERWRITE);
	summary->count = zf_le16_from(ZF_EXTENT_MAX >> 12);
	assert_int_equal(check_sample(&sample), 0);
	summary->count = zf_le16_from((ZF_EXTENT_MAX >> 12) + 1);
	assert_int_equal(check_sample(&sample), -EUCLEAN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_kind_of_item_passes_as_it_is_made),
		cmocka_unit_test(chains_pass_with_several_entries_but_not_with_one_twice),
		cmocka_unit_test(each_field_has_values_that_do_not_pass),
		cmocka_unit_test(keys_are_checked_too),
		cmocka_unit_test(names_that_no_name_is_do_not_pass),
		cmocka_unit_test(no_part_of_an_item_passes_for_the_whole),
		cmocka_unit_test(random_bytes_do_no_harm),
		cmocka_unit_test(extents_are_only_so_long),
		cmocka_unit_test(an_entry_in_place_is_not_longer_than_its_extent_can_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
