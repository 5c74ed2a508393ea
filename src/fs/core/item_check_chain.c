/* SPDX-License-Identifier: MIT */
/* Checks items that are chains of entries with names, and the values of attributes. */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>

#include "base/bits.h"
#include "fs/core/item.h"
#include "fs/core/item_check_internal.h"

/* One entry of a chain. Its fixed part lies within the item. */
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
	int (*check)(const struct zf_seen_item *item, struct entry *entry);
	uint64_t (*hash)(const struct zf_seen_item *item, const struct entry *entry);
	bool is_path; /* names are path components */
};

static bool name_is_component(const char *name, size_t len)
{
	if (memchr(name, '/', len))
		return false;
	return !(name[0] == '.' && (len == 1 || (len == 2 && name[1] == '.')));
}

static int check_name(const struct zf_seen_item *item, const struct chain_type *type,
		      const struct entry *entry)
{
	bool is_root_ref = type->is_path && item->key->objectid == ZF_INO_ROOT &&
			   item->key->type == ZF_KEY_REF;
	uint64_t hash;
	int r;

	r = zf_item_check_range(item, "name_len", entry->name_len, is_root_ref ? 0 : 1,
				is_root_ref ? 0 : ZF_NAME_MAX);
	if (r < 0)
		return r;
	if (memchr(entry->name, '\0', entry->name_len) ||
	    (type->is_path && !is_root_ref && !name_is_component(entry->name, entry->name_len)))
		return zf_report_corrupt(item->check->report, item->what, item->key->objectid,
					 "name is invalid: it contains NUL or '/', or is '.' or "
					 "'..' (key offset %" PRIu64 ")",
					 item->key->offset);
	hash = type->hash && !item->check->any_seed ? type->hash(item, entry) : item->key->offset;
	return hash == item->key->offset
		       ? 0
		       : zf_item_check_equal(item, "hash", hash, item->key->offset);
}

/* Checks the entry at `at`. *ret_next: where the next entry begins. */
static int check_entry(const struct zf_seen_item *item, const struct chain_type *type, size_t at,
		       struct entry *ret_entry, size_t *ret_next)
{
	const struct zf_seen_field name_len = {.offset = type->name_len_offset, .width = 2};
	size_t left = item->len - at;
	struct entry entry = {.fixed = item->value + at};
	int r;

	if (left < type->fixed_size)
		return zf_item_out_of_range(item, "length", item->len, at + type->fixed_size,
					    item->check->value_max);
	entry.name = (const char *)entry.fixed + type->fixed_size;
	entry.name_len = (size_t)zf_item_field_get(&name_len, entry.fixed);
	left -= type->fixed_size;
	if (entry.name_len > left)
		return zf_item_out_of_range(item, "name_len", entry.name_len, 0, left);
	left -= entry.name_len;
	r = type->check(item, &entry);
	if (r < 0)
		return r;
	if (entry.tail_len > left)
		return zf_item_out_of_range(item, "value_len", entry.tail_len, 0, left);
	r = check_name(item, type, &entry);
	if (r < 0)
		return r;
	*ret_entry = entry;
	*ret_next = item->len - left + entry.tail_len;
	return 0;
}

static bool entries_are_same(const struct zf_seen_item *item, const struct entry *a,
			     const struct entry *b)
{
	if (a->name_len != b->name_len || memcmp(a->name, b->name, a->name_len) != 0)
		return false;
	/* An inode may have one name in several directories. */
	return item->key->type != ZF_KEY_REF ||
	       memcmp(a->fixed, b->fixed, sizeof(struct zf_le64)) == 0;
}

static int check_chain(const struct zf_seen_item *item, const struct chain_type *type)
{
	struct entry entry = {0}, other = {0};
	size_t at = 0, next = 0, other_next = 0;
	int r;

	r = zf_item_check_owner(item);
	if (r < 0)
		return r;
	r = zf_item_check_range(item, "length", item->len, type->fixed_size,
				item->check->value_max);
	for (; r == 0 && at < item->len; at = next) {
		r = check_entry(item, type, at, &entry, &next);
		/* A chain has one entry, unless 64-bit hashes collide, so this may be quadratic. */
		for (size_t i = 0; r == 0 && i < at; i = other_next) {
			r = check_entry(item, type, i, &other, &other_next);
			if (r == 0 && entries_are_same(item, &entry, &other))
				r = zf_report_corrupt(
					item->check->report, item->what, item->key->objectid,
					"the same name occurs twice (key offset %" PRIu64 ")",
					item->key->offset);
		}
	}
	return r;
}

static int check_ref_entry(const struct zf_seen_item *item, struct entry *entry)
{
	const struct zf_disk_ref *ref = (const struct zf_disk_ref *)entry->fixed;
	uint64_t parent = zf_le64_get(ref->parent);
	uint64_t cookie = zf_le64_get(ref->cookie);
	int r;

	if (item->key->objectid == ZF_INO_ROOT) {
		r = zf_item_check_equal(item, "parent", parent, ZF_INO_ROOT);
		return r < 0 ? r : zf_item_check_equal(item, "cookie", cookie, 0);
	}
	if (parent != ZF_INO_ROOT) {
		r = zf_item_check_range(item, "parent", parent, ZF_INO_FIRST, UINT64_MAX);
		if (r < 0)
			return r;
	}
	return zf_item_check_range(item, "cookie", cookie, ZF_COOKIE_FIRST, INT64_MAX);
}

static uint64_t hash_ref_entry(const struct zf_seen_item *item, const struct entry *entry)
{
	const struct zf_disk_ref *ref = (const struct zf_disk_ref *)entry->fixed;

	return zf_item_hash_ref(item->check->dir_hash_seed, zf_le64_get(ref->parent), entry->name,
				entry->name_len);
}

static int check_dirent_entry(const struct zf_seen_item *item, struct entry *entry)
{
	static const struct zf_seen_field fields[] = {
		ZF_SEEN_FIELD(struct zf_disk_dirent, ino, ZF_INO_FIRST, UINT64_MAX),
		ZF_SEEN_FIELD(struct zf_disk_dirent, tree, ZF_TREE_FS, ZF_TREE_FS),
		ZF_SEEN_FIELD(struct zf_disk_dirent, cookie, ZF_COOKIE_FIRST, INT64_MAX),
		ZF_SEEN_FIELD(struct zf_disk_dirent, reserved, 0, 0),
	};
	const struct zf_disk_dirent *dirent = (const struct zf_disk_dirent *)entry->fixed;
	int r = zf_item_check_fields(item, entry->fixed, fields, ZF_ARRAY_SIZE(fields));

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

static uint64_t hash_entry(const struct zf_seen_item *item, const struct entry *entry)
{
	return zf_item_hash_name(item->check->dir_hash_seed, entry->name, entry->name_len);
}

static int check_xattr_entry(const struct zf_seen_item *item, struct entry *entry)
{
	const struct zf_disk_xattr *xattr = (const struct zf_disk_xattr *)entry->fixed;
	uint32_t value_len = zf_le32_get(xattr->value_len);
	bool is_inline = zf_le32_get(xattr->value_id) == 0;
	int r;

	r = zf_item_check_range(item, "value_len", value_len, is_inline ? 0 : 1,
				ZF_XATTR_VALUE_MAX);
	if (r < 0)
		return r;
	entry->tail_len = is_inline ? value_len : 0;
	return ZF_SEEN_ZERO(item, entry->fixed, struct zf_disk_xattr, reserved);
}

int zf_item_check_ref(const struct zf_seen_item *item)
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

int zf_item_check_xattr(const struct zf_seen_item *item)
{
	static const struct chain_type type = {
		.fixed_size = sizeof(struct zf_disk_xattr),
		.name_len_offset = offsetof(struct zf_disk_xattr, name_len),
		.check = check_xattr_entry,
		.hash = hash_entry,
	};

	return check_chain(item, &type);
}

int zf_item_check_dir_name(const struct zf_seen_item *item)
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

int zf_item_check_dir_cookie(const struct zf_seen_item *item)
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
	r = zf_item_check_equal(item, "length", item->len,
				sizeof(*dirent) + zf_le16_get(dirent->name_len));
	return r < 0 ? r
		     : zf_item_check_equal(item, "cookie", zf_le64_get(dirent->cookie),
					   item->key->offset);
}

int zf_item_check_xattr_value(const struct zf_seen_item *item)
{
	uint64_t chunk = item->key->offset & 0xffff;
	int r = zf_item_check_owner(item);

	if (r < 0)
		return r;
	r = zf_item_check_range(item, "value id", item->key->offset >> 16, 1, UINT32_MAX);
	if (r < 0)
		return r;
	r = zf_item_check_range(item, "length", item->len, 1, item->check->value_max);
	if (r < 0)
		return r;
	return zf_item_check_range(item, "chunk", chunk, 0,
				   (ZF_XATTR_VALUE_MAX - 1) / item->check->value_max);
}
