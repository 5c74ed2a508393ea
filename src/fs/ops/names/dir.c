/* SPDX-License-Identifier: MIT */
#include "fs/ops/names/dir.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "fs/core/item.h"
#include "fs/core/item_check.h"

int zf_name_check(const char *name, struct zf_name *ret_name)
{
	size_t len = strlen(name);

	if (len == 0)
		return -ENOENT;
	if (len > ZF_NAME_MAX)
		return -ENAMETOOLONG;
	if (memchr(name, '/', len))
		return -EINVAL;
	*ret_name = (struct zf_name){.bytes = name, .len = len};
	return 0;
}

bool zf_name_is_dots(const struct zf_name *name)
{
	return name->bytes[0] == '.' &&
	       (name->len == 1 || (name->len == 2 && name->bytes[1] == '.'));
}

/* ---- the entry on disk ---- */

static size_t dirent_name_len(const void *entry)
{
	const struct zf_disk_dirent *dirent = entry;

	return zf_le16_get(dirent->name_len);
}

static size_t dirent_len(const void *entry)
{
	return sizeof(struct zf_disk_dirent) + dirent_name_len(entry);
}

static const struct zf_chain_kind dirent_kind = {
	.fixed_size = sizeof(struct zf_disk_dirent),
	.name_len = dirent_name_len,
	.entry_len = dirent_len,
};

static size_t len_of(const struct zf_name *name)
{
	return sizeof(struct zf_disk_dirent) + name->len;
}

static void encode(const struct zf_dir_entry *entry, const struct zf_name *name, void *ret_bytes)
{
	struct zf_disk_dirent dirent = {
		.ino = zf_le64_from(entry->ino),
		.tree = zf_le64_from(ZF_TREE_FS),
		.cookie = zf_le64_from(entry->cookie),
		.type = entry->type,
		.name_len = zf_le16_from((uint16_t)name->len),
	};

	memcpy(ret_bytes, &dirent, sizeof(dirent));
	memcpy((uint8_t *)ret_bytes + sizeof(dirent), name->bytes, name->len);
}

static struct zf_dir_entry decode(const void *bytes)
{
	const struct zf_disk_dirent *dirent = bytes;

	return (struct zf_dir_entry){
		.ino = zf_le64_get(dirent->ino),
		.cookie = zf_le64_get(dirent->cookie),
		.type = dirent->type,
	};
}

/* ---- find ---- */

int zf_dir_find(struct zf_inode *dir, const struct zf_name *name, struct zf_dir_place *ret_place)
{
	struct zf_fs *fs = dir->fs;
	struct zf_key key =
		ZF_KEY(dir->ino, ZF_KEY_DIR_NAME,
		       zf_item_hash_name(fs->super.dir_hash_seed, name->bytes, name->len));
	int r;

	if (!S_ISDIR(dir->item.mode))
		return -ENOTDIR;
	r = zf_chain_load(fs, &key, &ret_place->chain);
	if (r < 0)
		return r;
	ret_place->dir = dir;
	ret_place->name = *name;
	r = zf_chain_find(&ret_place->chain, &dirent_kind, "", name->bytes, name->len,
			  &ret_place->at);
	ret_place->exists = r == 0;
	if (ret_place->exists)
		ret_place->entry = decode(ret_place->chain.bytes + ret_place->at);
	return 0;
}

int zf_dir_check_room(const struct zf_dir_place *place)
{
	if (place->dir->item.next_cookie >= INT64_MAX)
		return -ENOSPC;
	return zf_chain_has_room(place->dir->fs, &place->chain, len_of(&place->name)) ? 0 : -ENOSPC;
}

/* ---- edit ---- */

static struct zf_key cookie_key(const struct zf_inode *dir, uint64_t cookie)
{
	return ZF_KEY(dir->ino, ZF_KEY_DIR_COOKIE, cookie);
}

static int set_by_cookie(struct zf_op *op, const struct zf_dir_place *place)
{
	struct zf_key key = cookie_key(place->dir, place->entry.cookie);
	uint8_t bytes[sizeof(struct zf_disk_dirent) + ZF_NAME_MAX];

	encode(&place->entry, &place->name, bytes);
	return zf_op_set(op, &key, bytes, len_of(&place->name));
}

static int insert_by_cookie(struct zf_op *op, const struct zf_dir_place *place)
{
	struct zf_key key = cookie_key(place->dir, place->entry.cookie);
	uint8_t bytes[sizeof(struct zf_disk_dirent) + ZF_NAME_MAX];
	int r;

	encode(&place->entry, &place->name, bytes);
	r = zf_op_insert(op, &key, bytes, len_of(&place->name));
	if (r == -EEXIST)
		return zf_report_corrupt(
			&op->fs->report, "inode", place->dir->ino,
			"next_cookie is the cookie of an entry, expected a larger one");
	return r;
}

static int delete_by_cookie(struct zf_op *op, const struct zf_dir_place *place)
{
	struct zf_key key = cookie_key(place->dir, place->entry.cookie);
	int r = zf_op_delete(op, &key);

	if (r == -ENOENT)
		return zf_report_corrupt(&op->fs->report, "entry of directory", place->dir->ino,
					 "it has no entry by cookie, expected one");
	return r;
}

static int append_entry(struct zf_op *op, struct zf_dir_place *place)
{
	assert(!place->exists);
	place->at = place->chain.len;
	encode(&place->entry, &place->name, zf_chain_append(&place->chain, len_of(&place->name)));
	place->exists = true;
	place->dir->item.size += len_of(&place->name);
	return zf_chain_store(op, &place->chain);
}

static int remove_entry(struct zf_op *op, struct zf_dir_place *place)
{
	uint64_t len = len_of(&place->name);

	assert(place->exists);
	zf_chain_remove(&place->chain, place->at, len);
	place->exists = false;
	/* Only a damaged directory has a smaller size. */
	place->dir->item.size -= place->dir->item.size < len ? place->dir->item.size : len;
	return zf_chain_store(op, &place->chain);
}

int zf_dir_add(struct zf_op *op, struct zf_dir_place *place, uint64_t ino, uint8_t type)
{
	int r;

	place->entry = (struct zf_dir_entry){
		.ino = ino, .cookie = place->dir->item.next_cookie, .type = type};
	r = insert_by_cookie(op, place);
	if (r < 0)
		return r;
	place->dir->item.next_cookie++;
	return append_entry(op, place);
}

int zf_dir_remove(struct zf_op *op, struct zf_dir_place *place)
{
	int r = delete_by_cookie(op, place);

	return r < 0 ? r : remove_entry(op, place);
}

int zf_dir_replace(struct zf_op *op, struct zf_dir_place *place, uint64_t ino, uint8_t type)
{
	int r;

	assert(place->exists);
	place->entry.ino = ino;
	place->entry.type = type;
	encode(&place->entry, &place->name, place->chain.bytes + place->at);
	r = zf_chain_store(op, &place->chain);
	return r < 0 ? r : set_by_cookie(op, place);
}

int zf_dir_move(struct zf_op *op, struct zf_dir_place *from, struct zf_dir_place *to)
{
	int r;

	assert(from->dir == to->dir);
	r = remove_entry(op, from);
	/* The two names may stand in the same item. */
	if (r == 0 && zf_key_cmp(&from->chain.key, &to->chain.key) == 0)
		r = zf_dir_find(to->dir, &to->name, to);
	if (r < 0)
		return r;
	to->entry = from->entry;
	r = append_entry(op, to);
	return r < 0 ? r : set_by_cookie(op, to);
}

/* ---- list ---- */

int zf_dir_check_empty(struct zf_inode *dir)
{
	struct zf_key key = cookie_key(dir, 0);
	int r = zf_tree_lookup_ge(dir->fs->forest, ZF_TREE_FS, &key, NULL, 0, NULL);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	return key.objectid == dir->ino && key.type == ZF_KEY_DIR_COOKIE ? -ENOTEMPTY : 0;
}

struct listing {
	struct zf_item_check check;
	struct zf_dirent *entries;
	unsigned int count, max;
};

static int list_entry(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct listing *listing = arg;
	struct zf_dirent *dirent = &listing->entries[listing->count];
	struct zf_dir_entry entry;
	int r = zf_item_check(&listing->check, ZF_TREE_FS, key, value, len);

	if (r < 0)
		return r;
	entry = decode(value);
	dirent->ino = entry.ino;
	dirent->cookie = entry.cookie;
	dirent->type = entry.type;
	dirent->name_len = (uint8_t)dirent_name_len(value);
	memcpy(dirent->name, (const char *)value + sizeof(struct zf_disk_dirent), dirent->name_len);
	dirent->name[dirent->name_len] = '\0';
	return ++listing->count == listing->max ? 1 : 0;
}

int zf_dir_list(struct zf_inode *dir, uint64_t cookie, struct zf_dirent *entries, unsigned int max)
{
	struct listing listing = {.entries = entries, .max = max};
	struct zf_key from = cookie_key(dir, cookie + 1), to = cookie_key(dir, UINT64_MAX);
	int r;

	if (max == 0 || cookie >= INT64_MAX)
		return 0;
	zf_fs_get_item_check(dir->fs, &listing.check);
	r = zf_tree_scan(dir->fs->forest, ZF_TREE_FS, &from, &to, list_entry, &listing);
	return r < 0 ? r : (int)listing.count;
}
