/* SPDX-License-Identifier: MIT */
#include "fs/item_check.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "base/bits.h"
#include "fs/inode.h"
#include "fs/item.h"

struct item {
	const struct zf_item_check *check;
	const char *what;
	const struct zf_key *key;
	const uint8_t *value;
	size_t len;
};

/* One integer of a struct on disk and the values that it may have. */
struct field {
	const char *name;
	size_t offset, width;
	uint64_t min, max;
};

#define FIELD(type, member, lo, hi)                                                                \
	{                                                                                          \
		.name = #member, .offset = offsetof(type, member),                                 \
		.width = sizeof(((type *)NULL)->member), .min = (lo), .max = (hi),                 \
	}
#define ZERO_BYTES(item, base, type, member)                                                       \
	check_zero(item, #member, (base) + offsetof(type, member), sizeof(((type *)NULL)->member))

static int out_of_range(const struct item *item, const char *field, uint64_t has, uint64_t min,
			uint64_t max)
{
	return zf_report_corrupt(item->check->report, item->what, item->key->objectid,
				 "%s has %" PRIu64 ", expected %" PRIu64 "..%" PRIu64
				 " (key offset %" PRIu64 ")",
				 field, has, min, max, item->key->offset);
}

static int check_range(const struct item *item, const char *field, uint64_t has, uint64_t min,
		       uint64_t max)
{
	return has < min || has > max ? out_of_range(item, field, has, min, max) : 0;
}

static int check_equal(const struct item *item, const char *field, uint64_t has, uint64_t expected)
{
	return check_range(item, field, has, expected, expected);
}

static uint64_t field_get(const struct field *field, const uint8_t *base)
{
	const uint8_t *p = base + field->offset;
	uint64_t v = 0;

	for (size_t i = field->width; i > 0; i--)
		v = v << 8 | p[i - 1];
	return v;
}

static int check_fields(const struct item *item, const uint8_t *base, const struct field *fields,
			size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int r = check_range(item, fields[i].name, field_get(&fields[i], base),
				    fields[i].min, fields[i].max);

		if (r < 0)
			return r;
	}
	return 0;
}

static int check_zero(const struct item *item, const char *field, const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] != 0)
			return out_of_range(item, field, bytes[i], 0, 0);
	}
	return 0;
}

static int check_aligned(const struct item *item, const char *field, uint64_t has)
{
	if (zf_is_aligned(has, ZF_BLOCK_SIZE))
		return 0;
	return zf_report_corrupt(item->check->report, item->what, item->key->objectid,
				 "%s has %" PRIu64
				 ", expected a multiple of %u (key offset %" PRIu64 ")",
				 field, has, ZF_BLOCK_SIZE, item->key->offset);
}

static int check_owner(const struct item *item)
{
	if (item->key->objectid == ZF_INO_ROOT)
		return 0;
	return check_range(item, "objectid", item->key->objectid, ZF_INO_FIRST, UINT64_MAX);
}

/* ---- inodes ---- */

static int check_mode(const struct item *item, uint32_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
	case S_IFDIR:
	case S_IFLNK:
	case S_IFCHR:
	case S_IFBLK:
	case S_IFIFO:
	case S_IFSOCK:
		return check_range(item, "mode", mode, 0, S_IFMT | 07777);
	}
	return zf_report_corrupt(item->check->report, item->what, item->key->objectid,
				 "mode has %#o, expected a known type of file", mode);
}

static int check_inode_by_type(const struct item *item, const struct zf_inode_item *inode)
{
	bool is_device = S_ISCHR(inode->mode) || S_ISBLK(inode->mode);
	int r;

	if (S_ISDIR(inode->mode)) {
		if (inode->nlink == 1)
			return out_of_range(item, "nlink", inode->nlink, 2, UINT32_MAX);
		return check_range(item, "next_cookie", inode->next_cookie, ZF_COOKIE_FIRST,
				   INT64_MAX);
	}
	if (item->key->objectid == ZF_INO_ROOT)
		return out_of_range(item, "mode", inode->mode, S_IFDIR, S_IFDIR | 07777);
	r = check_equal(item, "next_cookie", inode->next_cookie, 0);
	if (r < 0)
		return r;
	r = check_range(item, "nlink", inode->nlink, 0, ZF_LINK_MAX);
	if (r < 0)
		return r;
	if (!is_device) {
		r = check_equal(item, "rdev", inode->rdev, 0);
		if (r < 0)
			return r;
	}
	if (S_ISREG(inode->mode))
		return 0;
	r = check_equal(item, "bytes", inode->bytes, 0);
	if (r < 0)
		return r;
	return S_ISLNK(inode->mode) ? check_range(item, "size", inode->size, 1, ZF_SYMLINK_MAX)
				    : check_equal(item, "size", inode->size, 0);
}

static int check_inode(const struct item *item)
{
	const struct field fields[] = {
		FIELD(struct zf_disk_inode, generation, 1, item->check->generation_max),
		FIELD(struct zf_disk_inode, change, 1, item->check->generation_max),
		FIELD(struct zf_disk_inode, size, 0, ZF_FILE_SIZE_MAX),
		FIELD(struct zf_disk_inode, bytes, 0, ZF_FILE_END_MAX),
		FIELD(struct zf_disk_inode, project, 0, 0),
		FIELD(struct zf_disk_inode, flags, 0, 0),
		FIELD(struct zf_disk_inode, atime.nanoseconds, 0, 999999999),
		FIELD(struct zf_disk_inode, mtime.nanoseconds, 0, 999999999),
		FIELD(struct zf_disk_inode, ctime.nanoseconds, 0, 999999999),
		FIELD(struct zf_disk_inode, btime.nanoseconds, 0, 999999999),
		FIELD(struct zf_disk_inode, tree, ZF_TREE_FS, ZF_TREE_FS),
	};
	struct zf_inode_item inode;
	int r;

	r = check_equal(item, "length", item->len, sizeof(struct zf_disk_inode));
	if (r < 0)
		return r;
	r = check_equal(item, "key offset", item->key->offset, 0);
	if (r < 0)
		return r;
	r = check_fields(item, item->value, fields, ZF_ARRAY_SIZE(fields));
	if (r < 0)
		return r;
	r = ZERO_BYTES(item, item->value, struct zf_disk_inode, reserved);
	if (r < 0)
		return r;
	zf_item_decode_inode((const struct zf_disk_inode *)item->value, &inode);
	r = check_mode(item, inode.mode);
	return r < 0 ? r : check_inode_by_type(item, &inode);
}

/* ---- chains of entries with names ---- */

/* One entry of a chain, its fixed part already known to lie within the item. */
struct entry {
	const uint8_t *fixed;
	const char *name;
	size_t name_len;
	size_t tail_len; /* what follows the name */
};

struct chain_type {
	size_t fixed_size;
	size_t name_len_offset;
	/* Checks the fixed part; sets entry->tail_len. */
	int (*check)(const struct item *item, struct entry *entry);
	uint64_t (*hash)(const struct item *item, const struct entry *entry);
	bool is_path; /* names are path components */
};

static bool name_is_component(const char *name, size_t len)
{
	if (memchr(name, '/', len))
		return false;
	return !(name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')));
}

static int check_name(const struct item *item, const struct chain_type *type,
		      const struct entry *entry)
{
	bool is_root_ref = type->is_path && item->key->objectid == ZF_INO_ROOT &&
			   item->key->type == ZF_KEY_REF;
	uint64_t hash;
	int r;

	r = check_range(item, "name_len", entry->name_len, is_root_ref ? 0 : 1,
			is_root_ref ? 0 : ZF_NAME_MAX);
	if (r < 0)
		return r;
	if (memchr(entry->name, '\0', entry->name_len) ||
	    (type->is_path && !is_root_ref && !name_is_component(entry->name, entry->name_len)))
		return zf_report_corrupt(
			item->check->report, item->what, item->key->objectid,
			"name has a character that no name has (key offset %" PRIu64 ")",
			item->key->offset);
	hash = type->hash ? type->hash(item, entry) : item->key->offset;
	return hash == item->key->offset ? 0 : check_equal(item, "hash", hash, item->key->offset);
}

/* The entry at `at`, checked; *ret_next is where the next one begins. */
static int check_entry(const struct item *item, const struct chain_type *type, size_t at,
		       struct entry *ret_entry, size_t *ret_next)
{
	const struct field name_len = {.offset = type->name_len_offset, .width = 2};
	size_t left = item->len - at;
	struct entry entry = {.fixed = item->value + at};
	int r;

	if (left < type->fixed_size)
		return out_of_range(item, "length", item->len, at + type->fixed_size,
				    item->check->value_max);
	entry.name = (const char *)entry.fixed + type->fixed_size;
	entry.name_len = (size_t)field_get(&name_len, entry.fixed);
	left -= type->fixed_size;
	if (entry.name_len > left)
		return out_of_range(item, "name_len", entry.name_len, 0, left);
	left -= entry.name_len;
	r = type->check(item, &entry);
	if (r < 0)
		return r;
	if (entry.tail_len > left)
		return out_of_range(item, "value_len", entry.tail_len, 0, left);
	r = check_name(item, type, &entry);
	if (r < 0)
		return r;
	*ret_entry = entry;
	*ret_next = item->len - left + entry.tail_len;
	return 0;
}

static bool entries_are_same(const struct item *item, const struct entry *a, const struct entry *b)
{
	if (a->name_len != b->name_len || memcmp(a->name, b->name, a->name_len) != 0)
		return false;
	/* An inode may have one name in several directories. */
	return item->key->type != ZF_KEY_REF ||
	       memcmp(a->fixed, b->fixed, sizeof(struct zf_le64)) == 0;
}

static int check_chain(const struct item *item, const struct chain_type *type)
{
	struct entry entry = {0}, other = {0};
	size_t at = 0, next = 0, other_next = 0;
	int r;

	r = check_owner(item);
	if (r < 0)
		return r;
	r = check_range(item, "length", item->len, type->fixed_size, item->check->value_max);
	for (; r == 0 && at < item->len; at = next) {
		r = check_entry(item, type, at, &entry, &next);
		/* Chains are one entry long but for collisions of 64 bits. */
		for (size_t i = 0; r == 0 && i < at; i = other_next) {
			r = check_entry(item, type, i, &other, &other_next);
			if (r == 0 && entries_are_same(item, &entry, &other))
				r = zf_report_corrupt(
					item->check->report, item->what, item->key->objectid,
					"a name is there twice (key offset %" PRIu64 ")",
					item->key->offset);
		}
	}
	return r;
}

static int check_ref_entry(const struct item *item, struct entry *entry)
{
	const struct zf_disk_ref *ref = (const struct zf_disk_ref *)entry->fixed;
	uint64_t parent = zf_le64_get(ref->parent);
	uint64_t cookie = zf_le64_get(ref->cookie);
	int r;

	if (item->key->objectid == ZF_INO_ROOT) {
		r = check_equal(item, "parent", parent, ZF_INO_ROOT);
		return r < 0 ? r : check_equal(item, "cookie", cookie, 0);
	}
	if (parent != ZF_INO_ROOT) {
		r = check_range(item, "parent", parent, ZF_INO_FIRST, UINT64_MAX);
		if (r < 0)
			return r;
	}
	return check_range(item, "cookie", cookie, ZF_COOKIE_FIRST, INT64_MAX);
}

static uint64_t hash_ref_entry(const struct item *item, const struct entry *entry)
{
	const struct zf_disk_ref *ref = (const struct zf_disk_ref *)entry->fixed;

	return zf_item_hash_ref(item->check->dir_hash_seed, zf_le64_get(ref->parent), entry->name,
				entry->name_len);
}

static int check_dirent_entry(const struct item *item, struct entry *entry)
{
	static const struct field fields[] = {
		FIELD(struct zf_disk_dirent, ino, ZF_INO_FIRST, UINT64_MAX),
		FIELD(struct zf_disk_dirent, tree, ZF_TREE_FS, ZF_TREE_FS),
		FIELD(struct zf_disk_dirent, cookie, ZF_COOKIE_FIRST, INT64_MAX),
		FIELD(struct zf_disk_dirent, reserved, 0, 0),
	};
	const struct zf_disk_dirent *dirent = (const struct zf_disk_dirent *)entry->fixed;
	int r = check_fields(item, entry->fixed, fields, ZF_ARRAY_SIZE(fields));

	if (r < 0)
		return r;
	if (zf_le64_get(dirent->ino) == item->key->objectid)
		return zf_report_corrupt(item->check->report, item->what, item->key->objectid,
					 "ino has the directory itself, expected another inode");
	switch (dirent->type) {
	case DT_REG:
	case DT_DIR:
	case DT_LNK:
	case DT_CHR:
	case DT_BLK:
	case DT_FIFO:
	case DT_SOCK:
		return 0;
	}
	return zf_report_corrupt(item->check->report, item->what, item->key->objectid,
				 "type has %u, expected a known type of file", dirent->type);
}

static uint64_t hash_entry(const struct item *item, const struct entry *entry)
{
	return zf_item_hash_name(item->check->dir_hash_seed, entry->name, entry->name_len);
}

static int check_xattr_entry(const struct item *item, struct entry *entry)
{
	const struct zf_disk_xattr *xattr = (const struct zf_disk_xattr *)entry->fixed;
	uint32_t value_len = zf_le32_get(xattr->value_len);
	bool is_inline = zf_le32_get(xattr->value_id) == 0;
	int r;

	r = check_range(item, "value_len", value_len, is_inline ? 0 : 1, ZF_XATTR_VALUE_MAX);
	if (r < 0)
		return r;
	entry->tail_len = is_inline ? value_len : 0;
	return ZERO_BYTES(item, entry->fixed, struct zf_disk_xattr, reserved);
}

static int check_ref(const struct item *item)
{
	static const struct chain_type type = {
		.fixed_size = sizeof(struct zf_disk_ref),
		.name_len_offset = offsetof(struct zf_disk_ref, name_len),
		.check = check_ref_entry,
		.hash = hash_ref_entry,
		.is_path = true,
	};

	return check_chain(item, &type);
}

static int check_xattr(const struct item *item)
{
	static const struct chain_type type = {
		.fixed_size = sizeof(struct zf_disk_xattr),
		.name_len_offset = offsetof(struct zf_disk_xattr, name_len),
		.check = check_xattr_entry,
		.hash = hash_entry,
	};

	return check_chain(item, &type);
}

static int check_dir_name(const struct item *item)
{
	static const struct chain_type type = {
		.fixed_size = sizeof(struct zf_disk_dirent),
		.name_len_offset = offsetof(struct zf_disk_dirent, name_len),
		.check = check_dirent_entry,
		.hash = hash_entry,
		.is_path = true,
	};

	return check_chain(item, &type);
}

static int check_dir_cookie(const struct item *item)
{
	static const struct chain_type type = {
		.fixed_size = sizeof(struct zf_disk_dirent),
		.name_len_offset = offsetof(struct zf_disk_dirent, name_len),
		.check = check_dirent_entry,
		.is_path = true,
	};
	const struct zf_disk_dirent *dirent = (const struct zf_disk_dirent *)item->value;
	int r = check_chain(item, &type);

	if (r < 0)
		return r;
	r = check_equal(item, "length", item->len, sizeof(*dirent) + zf_le16_get(dirent->name_len));
	return r < 0 ? r
		     : check_equal(item, "cookie", zf_le64_get(dirent->cookie), item->key->offset);
}

static int check_xattr_value(const struct item *item)
{
	uint64_t chunk = item->key->offset & 0xffff;
	int r = check_owner(item);

	if (r < 0)
		return r;
	r = check_range(item, "value id", item->key->offset >> 16, 1, UINT32_MAX);
	if (r < 0)
		return r;
	r = check_range(item, "length", item->len, 1, item->check->value_max);
	if (r < 0)
		return r;
	return check_range(item, "chunk", chunk, 0,
			   (ZF_XATTR_VALUE_MAX - 1) / item->check->value_max);
}

/* ---- extents ---- */

static int check_extent_place(const struct item *item, const struct zf_disk_extent *extent)
{
	uint64_t len = zf_le64_get(extent->len), address = zf_le64_get(extent->address);
	bool is_data = extent->type == ZF_EXTENT_DATA;
	int r;

	if (is_data) {
		r = check_aligned(item, "address", address);
		if (r < 0)
			return r;
		r = check_range(item, "address", address, ZF_BLOCK_SIZE,
				item->check->device_bytes -
					zf_min_u64(item->check->device_bytes, len));
	} else {
		r = check_equal(item, "address", address, 0);
	}
	if (r < 0)
		return r;
	r = check_equal(item, "disk_len", zf_le64_get(extent->disk_len),
			extent->type == ZF_EXTENT_ZERO ? 0 : len);
	if (r < 0)
		return r;
	r = check_range(item, "flags", extent->flags, 0,
			is_data ? ZF_EXTENT_SHARED | ZF_EXTENT_OVERWRITE : 0);
	return r < 0 ? r : check_equal(item, "memory_len", zf_le64_get(extent->memory_len), len);
}

static int check_extent_range(const struct item *item, const struct zf_disk_extent *extent)
{
	uint64_t from = item->key->offset, len = zf_le64_get(extent->len);
	int r;

	if (extent->type == ZF_EXTENT_INLINE) {
		r = check_range(item, "key offset", from, 0, ZF_SYMLINK_MAX - 1);
		if (r < 0)
			return r;
		r = check_range(item, "len", len, 1, ZF_SYMLINK_MAX - from);
		return r < 0 ? r : check_equal(item, "length", item->len, sizeof(*extent) + len);
	}
	r = check_aligned(item, "key offset", from);
	if (r < 0)
		return r;
	r = check_aligned(item, "len", len);
	if (r < 0)
		return r;
	r = check_range(item, "key offset", from, 0, ZF_FILE_END_MAX - ZF_BLOCK_SIZE);
	if (r < 0)
		return r;
	r = check_range(item, "len", len, ZF_BLOCK_SIZE,
			extent->type == ZF_EXTENT_DATA
				? zf_min_u64(ZF_EXTENT_MAX, ZF_FILE_END_MAX - from)
				: ZF_FILE_END_MAX - from);
	return r < 0 ? r : check_equal(item, "length", item->len, sizeof(*extent));
}

static int check_extent(const struct item *item)
{
	const struct field fields[] = {
		FIELD(struct zf_disk_extent, type, ZF_EXTENT_INLINE, ZF_EXTENT_ZERO),
		FIELD(struct zf_disk_extent, compression, 0, 0),
		FIELD(struct zf_disk_extent, encryption, 0, 0),
		FIELD(struct zf_disk_extent, generation, 1, item->check->generation_max),
		FIELD(struct zf_disk_extent, device, 0, 0),
		FIELD(struct zf_disk_extent, offset, 0, 0),
	};
	const struct zf_disk_extent *extent = (const struct zf_disk_extent *)item->value;
	int r;

	r = check_range(item, "objectid", item->key->objectid, ZF_INO_FIRST, UINT64_MAX);
	if (r < 0)
		return r;
	r = check_range(item, "length", item->len, sizeof(*extent), item->check->value_max);
	if (r < 0)
		return r;
	r = check_fields(item, item->value, fields, ZF_ARRAY_SIZE(fields));
	if (r < 0)
		return r;
	r = ZERO_BYTES(item, item->value, struct zf_disk_extent, reserved_a);
	if (r < 0)
		return r;
	r = check_extent_range(item, extent);
	return r < 0 ? r : check_extent_place(item, extent);
}

/* ---- the rest of the fs tree ---- */

static int check_orphan(const struct item *item)
{
	int r = check_equal(item, "objectid", item->key->objectid, ZF_INO_ORPHANS);

	if (r < 0)
		return r;
	r = check_range(item, "ino", item->key->offset, ZF_INO_FIRST, UINT64_MAX);
	return r < 0 ? r : check_equal(item, "length", item->len, 0);
}

static int check_intent(const struct item *item)
{
	static const struct field fields[] = {
		FIELD(struct zf_disk_intent, type, ZF_INTENT_TRUNCATE, ZF_INTENT_REFLINK),
		FIELD(struct zf_disk_intent, ino, ZF_INO_FIRST, UINT64_MAX),
		FIELD(struct zf_disk_intent, to, 0, ZF_FILE_END_MAX),
	};
	static const struct field no_source[] = {
		FIELD(struct zf_disk_intent, source_ino, 0, 0),
		FIELD(struct zf_disk_intent, source_from, 0, 0),
	};
	const struct zf_disk_intent *intent = (const struct zf_disk_intent *)item->value;
	int r;

	r = check_equal(item, "objectid", item->key->objectid, ZF_INO_INTENTS);
	if (r < 0)
		return r;
	r = check_equal(item, "length", item->len, sizeof(*intent));
	if (r < 0)
		return r;
	r = check_fields(item, item->value, fields, ZF_ARRAY_SIZE(fields));
	if (r < 0)
		return r;
	if (intent->type == ZF_INTENT_TRUNCATE) {
		r = check_fields(item, item->value, no_source, ZF_ARRAY_SIZE(no_source));
		if (r < 0)
			return r;
	}
	r = check_range(item, "from", zf_le64_get(intent->from), 0, zf_le64_get(intent->to));
	if (r == 0)
		r = check_aligned(item, "from", zf_le64_get(intent->from));
	if (r == 0)
		r = check_aligned(item, "to", zf_le64_get(intent->to));
	if (r < 0)
		return r;
	r = ZERO_BYTES(item, item->value, struct zf_disk_intent, reserved_a);
	return r < 0 ? r : ZERO_BYTES(item, item->value, struct zf_disk_intent, reserved_b);
}

/* ---- summary and share ---- */

static int check_device_address(const struct item *item)
{
	int r = check_aligned(item, "objectid", item->key->objectid);

	return r < 0 ? r
		     : check_range(item, "objectid", item->key->objectid, ZF_BLOCK_SIZE,
				   item->check->device_bytes - ZF_BLOCK_SIZE);
}

static int check_summary(const struct item *item)
{
	const struct field fields[] = {
		FIELD(struct zf_disk_summary, tree, ZF_TREE_FS, ZF_TREE_FS),
		FIELD(struct zf_disk_summary, ino, ZF_INO_FIRST, UINT64_MAX),
		FIELD(struct zf_disk_summary, offset, 0, ZF_FILE_END_MAX - ZF_BLOCK_SIZE),
		FIELD(struct zf_disk_summary, generation, 1, item->check->generation_max),
		FIELD(struct zf_disk_summary, count, 1,
		      (item->check->device_bytes - item->key->objectid) / ZF_BLOCK_SIZE),
	};
	const struct zf_disk_summary *summary = (const struct zf_disk_summary *)item->value;
	int r;

	r = check_device_address(item);
	if (r < 0)
		return r;
	r = check_equal(item, "key offset", item->key->offset, 0);
	if (r < 0)
		return r;
	r = check_range(item, "length", item->len, sizeof(*summary) + sizeof(struct zf_le64),
			item->check->value_max);
	if (r < 0)
		return r;
	r = check_fields(item, item->value, fields, ZF_ARRAY_SIZE(fields));
	if (r < 0)
		return r;
	r = check_aligned(item, "offset", zf_le64_get(summary->offset));
	if (r < 0)
		return r;
	r = check_equal(item, "length", item->len,
			sizeof(*summary) + sizeof(struct zf_le64) * zf_le32_get(summary->count));
	return r < 0 ? r : ZERO_BYTES(item, item->value, struct zf_disk_summary, reserved);
}

static int check_share(const struct item *item)
{
	static const struct field fields[] = {
		FIELD(struct zf_disk_share, tree, ZF_TREE_FS, ZF_TREE_FS),
		FIELD(struct zf_disk_share, ino, ZF_INO_FIRST, UINT64_MAX),
		FIELD(struct zf_disk_share, offset, 0, ZF_FILE_END_MAX - ZF_BLOCK_SIZE),
		FIELD(struct zf_disk_share, len, ZF_BLOCK_SIZE, ZF_EXTENT_MAX),
	};
	int r = check_device_address(item);

	if (r < 0)
		return r;
	r = check_range(item, "length", item->len, sizeof(struct zf_disk_share),
			item->check->value_max);
	if (r < 0)
		return r;
	r = check_equal(item, "length's rest", item->len % sizeof(struct zf_disk_share), 0);
	for (size_t at = 0; r == 0 && at < item->len; at += sizeof(struct zf_disk_share)) {
		const struct zf_disk_share *share = (const void *)(item->value + at);

		r = check_fields(item, item->value + at, fields, ZF_ARRAY_SIZE(fields));
		if (r == 0)
			r = check_aligned(item, "offset", zf_le64_get(share->offset));
		if (r == 0)
			r = check_aligned(item, "len", zf_le64_get(share->len));
	}
	return r;
}

/* ---- which is which ---- */

static const struct {
	enum zf_tree_id tree;
	enum zf_fs_key key_type;
	const char *what;
	int (*check)(const struct item *item);
} item_types[] = {
	{ZF_TREE_FS, ZF_KEY_INODE, "inode", check_inode},
	{ZF_TREE_FS, ZF_KEY_REF, "name of inode", check_ref},
	{ZF_TREE_FS, ZF_KEY_XATTR, "attribute of inode", check_xattr},
	{ZF_TREE_FS, ZF_KEY_XATTR_VALUE, "attribute value of inode", check_xattr_value},
	{ZF_TREE_FS, ZF_KEY_DIR_NAME, "entry of directory", check_dir_name},
	{ZF_TREE_FS, ZF_KEY_DIR_COOKIE, "entry by age of directory", check_dir_cookie},
	{ZF_TREE_FS, ZF_KEY_EXTENT, "extent of inode", check_extent},
	{ZF_TREE_FS, ZF_KEY_ORPHAN, "orphan", check_orphan},
	{ZF_TREE_FS, ZF_KEY_INTENT, "intent", check_intent},
	{ZF_TREE_SUMMARY, ZF_KEY_SUMMARY, "summary of address", check_summary},
	{ZF_TREE_SHARE, ZF_KEY_SHARE, "share of address", check_share},
};

int zf_item_check(const struct zf_item_check *check, enum zf_tree_id tree, const struct zf_key *key,
		  const void *value, size_t len)
{
	struct item item = {
		.check = check, .what = "item of", .key = key, .value = value, .len = len};
	int r;

	assert(tree == ZF_TREE_FS || tree == ZF_TREE_SUMMARY || tree == ZF_TREE_SHARE);
	for (size_t i = 0; i < ZF_ARRAY_SIZE(item_types); i++) {
		if (item_types[i].tree != tree || item_types[i].key_type != key->type)
			continue;
		item.what = item_types[i].what;
		r = key->type == ZF_KEY_INODE ? check_owner(&item) : 0;
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
