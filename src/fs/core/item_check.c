/* SPDX-License-Identifier: MIT */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "fs/core/inode.h"
#include "fs/core/inode_flags.h"
#include "fs/core/item.h"
#include "fs/core/item_check_internal.h"

int zf_item_out_of_range(const struct zf_seen_item *item, const char *field, uint64_t has,
			 uint64_t min, uint64_t max)
{
	return zf_report_corrupt(item->check->report, item->what, item->key->objectid,
				 "%s has %" PRIu64 ", expected %" PRIu64 "..%" PRIu64
				 " (key offset %" PRIu64 ")",
				 field, has, min, max, item->key->offset);
}

int zf_item_check_range(const struct zf_seen_item *item, const char *field, uint64_t has,
			uint64_t min, uint64_t max)
{
	return has < min || has > max ? zf_item_out_of_range(item, field, has, min, max) : 0;
}

int zf_item_check_equal(const struct zf_seen_item *item, const char *field, uint64_t has,
			uint64_t expected)
{
	return zf_item_check_range(item, field, has, expected, expected);
}

uint64_t zf_item_field_get(const struct zf_seen_field *field, const uint8_t *base)
{
	const uint8_t *p = base + field->offset;
	uint64_t v = 0;

	for (size_t i = field->width; i > 0; i--)
		v = v << 8 | p[i - 1];
	return v;
}

int zf_item_check_fields(const struct zf_seen_item *item, const uint8_t *base,
			 const struct zf_seen_field *fields, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int r = zf_item_check_range(item, fields[i].name,
					    zf_item_field_get(&fields[i], base), fields[i].min,
					    fields[i].max);

		if (r < 0)
			return r;
	}
	return 0;
}

int zf_item_check_zero(const struct zf_seen_item *item, const char *field, const uint8_t *bytes,
		       size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] != 0)
			return zf_item_out_of_range(item, field, bytes[i], 0, 0);
	}
	return 0;
}

int zf_item_check_aligned(const struct zf_seen_item *item, const char *field, uint64_t has)
{
	if (zf_is_aligned(has, ZF_BLOCK_SIZE))
		return 0;
	return zf_report_corrupt(item->check->report, item->what, item->key->objectid,
				 "%s has %" PRIu64
				 ", expected a multiple of %u (key offset %" PRIu64 ")",
				 field, has, ZF_BLOCK_SIZE, item->key->offset);
}

int zf_item_check_owner(const struct zf_seen_item *item)
{
	if (item->key->objectid == ZF_INO_ROOT)
		return 0;
	return zf_item_check_range(item, "objectid", item->key->objectid, ZF_INO_FIRST, UINT64_MAX);
}

/* ---- inodes ---- */

bool zf_item_has_type(uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		return true;
	}
	return false;
}

static int check_mode(const struct zf_seen_item *item, uint32_t mode)
{
	if (zf_item_has_type(mode))
		return zf_item_check_range(item, "mode", mode, 0, S_IFMT | 07777);
	return zf_report_corrupt(item->check->report, item->what, item->key->objectid,
				 "mode has %#o, expected a known type of file", mode);
}

static int check_directory(const struct zf_seen_item *item, const struct zf_inode_item *inode)
{
	int r = zf_item_check_equal(item, "bytes", inode->bytes, 0);

	if (r == 0)
		r = zf_item_check_equal(item, "rdev", inode->rdev, 0);
	if (r < 0)
		return r;
	if (inode->nlink == 1)
		return zf_item_out_of_range(item, "nlink", inode->nlink, 2, UINT32_MAX);
	return zf_item_check_range(item, "next_cookie", inode->next_cookie, ZF_COOKIE_FIRST,
				   INT64_MAX);
}

static int check_inode_by_type(const struct zf_seen_item *item, const struct zf_inode_item *inode)
{
	bool is_device = S_ISCHR(inode->mode) || S_ISBLK(inode->mode);
	int r;

	if (S_ISDIR(inode->mode))
		return check_directory(item, inode);
	if (item->key->objectid == ZF_INO_ROOT)
		return zf_item_out_of_range(item, "mode", inode->mode, S_IFDIR, S_IFDIR | 07777);
	r = zf_item_check_equal(item, "next_cookie", inode->next_cookie, 0);
	if (r < 0)
		return r;
	r = zf_item_check_range(item, "nlink", inode->nlink, 0, ZF_LINK_MAX);
	if (r < 0)
		return r;
	if (!is_device) {
		r = zf_item_check_equal(item, "rdev", inode->rdev, 0);
		if (r < 0)
			return r;
	}
	if (S_ISREG(inode->mode))
		return 0;
	r = zf_item_check_equal(item, "bytes", inode->bytes, 0);
	if (r < 0)
		return r;
	return S_ISLNK(inode->mode)
		       ? zf_item_check_range(item, "size", inode->size, 1, ZF_SYMLINK_MAX)
		       : zf_item_check_equal(item, "size", inode->size, 0);
}

static int check_flags(const struct zf_seen_item *item, const struct zf_inode_item *inode)
{
	uint32_t known = zf_inode_flags_of_type(inode->mode);

	if ((inode->flags & ~known) == 0)
		return 0;
	return zf_report_corrupt(item->check->report, item->what, item->key->objectid,
				 "flags has %#x, expected bits of %#x", inode->flags, known);
}

static int check_inode(const struct zf_seen_item *item)
{
	const struct zf_seen_field fields[] = {
		ZF_SEEN_FIELD(struct zf_disk_inode, generation, 1, item->check->generation_max),
		ZF_SEEN_FIELD(struct zf_disk_inode, change, 1, item->check->generation_max),
		ZF_SEEN_FIELD(struct zf_disk_inode, size, 0, ZF_FILE_SIZE_MAX),
		ZF_SEEN_FIELD(struct zf_disk_inode, bytes, 0, ZF_FILE_END_MAX),
		ZF_SEEN_FIELD(struct zf_disk_inode, uid, 0, UINT32_MAX - 1),
		ZF_SEEN_FIELD(struct zf_disk_inode, gid, 0, UINT32_MAX - 1),
		ZF_SEEN_FIELD(struct zf_disk_inode, project, 0, UINT32_MAX - 1),
		ZF_SEEN_FIELD(struct zf_disk_inode, atime.nanoseconds, 0, 999999999),
		ZF_SEEN_FIELD(struct zf_disk_inode, mtime.nanoseconds, 0, 999999999),
		ZF_SEEN_FIELD(struct zf_disk_inode, ctime.nanoseconds, 0, 999999999),
		ZF_SEEN_FIELD(struct zf_disk_inode, btime.nanoseconds, 0, 999999999),
		ZF_SEEN_FIELD(struct zf_disk_inode, tree, ZF_TREE_FS, ZF_TREE_FS),
	};
	struct zf_inode_item inode;
	int r;

	r = zf_item_check_equal(item, "length", item->len, sizeof(struct zf_disk_inode));
	if (r < 0)
		return r;
	r = zf_item_check_equal(item, "key offset", item->key->offset, 0);
	if (r < 0)
		return r;
	r = zf_item_check_fields(item, item->value, fields, ZF_ARRAY_SIZE(fields));
	if (r < 0)
		return r;
	r = ZF_SEEN_ZERO(item, item->value, struct zf_disk_inode, reserved);
	if (r < 0)
		return r;
	zf_item_decode_inode((const struct zf_disk_inode *)item->value, &inode);
	r = check_mode(item, inode.mode);
	if (r == 0)
		r = check_flags(item, &inode);
	return r < 0 ? r : check_inode_by_type(item, &inode);
}

/* ---- the rest of the fs tree ---- */

static int check_orphan(const struct zf_seen_item *item)
{
	int r = zf_item_check_equal(item, "objectid", item->key->objectid, ZF_INO_ORPHANS);

	if (r < 0)
		return r;
	r = zf_item_check_range(item, "ino", item->key->offset, ZF_INO_FIRST, UINT64_MAX);
	return r < 0 ? r : zf_item_check_equal(item, "length", item->len, 0);
}

static int check_intent(const struct zf_seen_item *item)
{
	static const struct zf_seen_field fields[] = {
		ZF_SEEN_FIELD(struct zf_disk_intent, type, ZF_INTENT_TRUNCATE, ZF_INTENT_TRUNCATE),
		ZF_SEEN_FIELD(struct zf_disk_intent, ino, ZF_INO_FIRST, UINT64_MAX),
		ZF_SEEN_FIELD(struct zf_disk_intent, to, 0, ZF_FILE_END_MAX),
	};
	static const struct zf_seen_field no_source[] = {
		ZF_SEEN_FIELD(struct zf_disk_intent, source_ino, 0, 0),
		ZF_SEEN_FIELD(struct zf_disk_intent, source_from, 0, 0),
	};
	const struct zf_disk_intent *intent = (const struct zf_disk_intent *)item->value;
	int r;

	r = zf_item_check_equal(item, "objectid", item->key->objectid, ZF_INO_INTENTS);
	if (r < 0)
		return r;
	r = zf_item_check_equal(item, "length", item->len, sizeof(*intent));
	if (r < 0)
		return r;
	r = zf_item_check_fields(item, item->value, fields, ZF_ARRAY_SIZE(fields));
	if (r < 0)
		return r;
	if (intent->type == ZF_INTENT_TRUNCATE) {
		r = zf_item_check_fields(item, item->value, no_source, ZF_ARRAY_SIZE(no_source));
		if (r < 0)
			return r;
	}
	r = zf_item_check_range(item, "from", zf_le64_get(intent->from), 0,
				zf_le64_get(intent->to));
	if (r == 0)
		r = zf_item_check_aligned(item, "from", zf_le64_get(intent->from));
	if (r == 0)
		r = zf_item_check_aligned(item, "to", zf_le64_get(intent->to));
	if (r < 0)
		return r;
	r = ZF_SEEN_ZERO(item, item->value, struct zf_disk_intent, reserved_a);
	return r < 0 ? r : ZF_SEEN_ZERO(item, item->value, struct zf_disk_intent, reserved_b);
}

/* ---- which is which ---- */

static const struct {
	enum zf_tree_id tree;
	enum zf_fs_key key_type;
	const char *what;
	int (*check)(const struct zf_seen_item *item);
} item_types[] = {
	{ZF_TREE_FS, ZF_KEY_INODE, "inode", check_inode},
	{ZF_TREE_FS, ZF_KEY_REF, "name of inode", zf_item_check_ref},
	{ZF_TREE_FS, ZF_KEY_XATTR, "attribute of inode", zf_item_check_xattr},
	{ZF_TREE_FS, ZF_KEY_XATTR_VALUE, "attribute value of inode", zf_item_check_xattr_value},
	{ZF_TREE_FS, ZF_KEY_DIR_NAME, "entry of directory", zf_item_check_dir_name},
	{ZF_TREE_FS, ZF_KEY_DIR_COOKIE, "entry by cookie of directory", zf_item_check_dir_cookie},
	{ZF_TREE_FS, ZF_KEY_EXTENT, "extent of inode", zf_item_check_extent},
	{ZF_TREE_FS, ZF_KEY_ORPHAN, "orphan", check_orphan},
	{ZF_TREE_FS, ZF_KEY_INTENT, "intent", check_intent},
	{ZF_TREE_SUMMARY, ZF_KEY_SUMMARY, "summary of address", zf_item_check_summary},
	{ZF_TREE_SHARE, ZF_KEY_SHARE, "share of address", zf_item_check_share},
};

int zf_item_check(const struct zf_item_check *check, enum zf_tree_id tree, const struct zf_key *key,
		  const void *value, size_t len)
{
	struct zf_seen_item item = {
		.check = check, .what = "item of", .key = key, .value = value, .len = len};
	int r;

	assert(tree == ZF_TREE_FS || tree == ZF_TREE_SUMMARY || tree == ZF_TREE_SHARE);
	for (size_t i = 0; i < ZF_ARRAY_SIZE(item_types); i++) {
		if (item_types[i].tree != tree || item_types[i].key_type != key->type)
			continue;
		item.what = item_types[i].what;
		r = key->type == ZF_KEY_INODE ? zf_item_check_owner(&item) : 0;
		return r < 0 ? r : item_types[i].check(&item);
	}
	return zf_report_corrupt(check->report, item.what, key->objectid,
				 "type has %u, expected one that tree %u has", key->type, tree);
}

void zf_fs_get_item_check(struct zf_fs *fs, struct zf_item_check *ret_check)
{
	const struct zf_geometry *geometry = zf_dev_geometry(fs->dev);

	*ret_check = (struct zf_item_check){
		.report = &fs->report,
		.value_max = zf_node_value_max(fs->super.node_size),
		.dir_hash_seed = fs->super.dir_hash_seed,
		.generation_max = zf_txn_running(fs->txn),
		.device_bytes = geometry->zone_size * geometry->zone_count,
	};
}

int zf_fs_check_item(struct zf_fs *fs, const struct zf_key *key, const void *value, size_t len)
{
	struct zf_item_check check;

	zf_fs_get_item_check(fs, &check);
	return zf_item_check(&check, ZF_TREE_FS, key, value, len);
}
