/* SPDX-License-Identifier: MIT */
/*
 * Writes names to the new fs tree. The second pass writes all three items of a name when it meets
 * the first old item that has the name's text.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/escape.h"
#include "base/hash.h"
#include "repair/state.h"

/* The content that all three items of a name share. */
struct entry {
	uint64_t dir, ino, cookie;
	uint8_t type;
	const char *name;
	size_t len;
};

static int put_dirents(struct zf_repair *repair, const struct entry *entry)
{
	uint8_t value[sizeof(struct zf_disk_dirent) + ZF_NAME_MAX];
	const struct zf_disk_dirent disk = {
		.ino = zf_le64_from(entry->ino),
		.tree = zf_le64_from(ZF_TREE_FS),
		.cookie = zf_le64_from(entry->cookie),
		.type = entry->type,
		.name_len = zf_le16_from((uint16_t)entry->len),
	};
	struct zf_key key =
		ZF_KEY(entry->dir, ZF_KEY_DIR_NAME,
		       zf_item_hash_name(repair->super.dir_hash_seed, entry->name, entry->len));
	int r;

	memcpy(value, &disk, sizeof(disk));
	memcpy(value + sizeof(disk), entry->name, entry->len);
	r = zf_repair_put_entry(repair, ZF_TREE_FS, &key, value, sizeof(disk) + entry->len);
	if (r < 0)
		return r;
	key = ZF_KEY(entry->dir, ZF_KEY_DIR_COOKIE, entry->cookie);
	return zf_repair_put(repair, ZF_TREE_FS, &key, value, sizeof(disk) + entry->len);
}

static int put_ref(struct zf_repair *repair, const struct entry *entry)
{
	uint8_t value[sizeof(struct zf_disk_ref) + ZF_NAME_MAX];
	const struct zf_disk_ref disk = {
		.parent = zf_le64_from(entry->dir),
		.cookie = zf_le64_from(entry->cookie),
		.name_len = zf_le16_from((uint16_t)entry->len),
	};
	const struct zf_key key = ZF_KEY(
		entry->ino, ZF_KEY_REF,
		zf_item_hash_ref(repair->super.dir_hash_seed, entry->dir, entry->name, entry->len));

	memcpy(value, &disk, sizeof(disk));
	memcpy(value + sizeof(disk), entry->name, entry->len);
	return zf_repair_put_entry(repair, ZF_TREE_FS, &key, value, sizeof(disk) + entry->len);
}

static int put_name(struct zf_repair *repair, struct entry *entry)
{
	int r;

	entry->type = (uint8_t)IFTODT(zf_repair_find_inode(repair, entry->ino)->mode);
	r = put_dirents(repair, entry);
	return r < 0 ? r : put_ref(repair, entry);
}

/* Reports a name that other items contradict, or whose inode is lost. */
static void tell_dropped(struct zf_repair *repair, const struct zf_repair_name *name,
			 const struct entry *entry)
{
	const struct zf_repair_inode *inode = zf_repair_find_inode(repair, name->ino);
	char text[ZF_ESCAPE_SIZE(ZF_NAME_MAX)];

	/* No lookup finds a name that has only its entry by cookie, so its loss is not reported. */
	if (inode && inode->kept && name->sources == ZF_REPAIR_BY_COOKIE)
		return;
	zf_escape(entry->name, entry->len, text);
	zf_repair_tell_of(repair, name->dir, "dropped its entry '%s': %s inode %" PRIu64, text,
			  inode && inode->kept ? "other items contradict that it is"
					       : "there is nothing left of",
			  name->ino);
}

/* Writes the name of an item, or reports that it is dropped. Each name once. */
static int take_name(struct zf_repair *repair, struct entry *entry)
{
	struct zf_repair_name *name = zf_repair_find_name(
		repair, entry->dir, zf_hash64(entry->name, entry->len), entry->ino, entry->cookie);

	if (!name || name->seen)
		return 0;
	name->seen = true;
	if (!name->kept) {
		tell_dropped(repair, name, entry);
		return 0;
	}
	entry->cookie = name->new_cookie;
	return put_name(repair, entry);
}

int zf_repair_take_refs(struct zf_repair *repair, uint64_t ino, const char *value, size_t len)
{
	struct zf_disk_ref disk;
	int r = 0;

	for (size_t at = 0; at < len && r == 0; at += sizeof(disk) + zf_le16_get(disk.name_len)) {
		struct entry entry = {.ino = ino};

		memcpy(&disk, value + at, sizeof(disk));
		entry.dir = zf_le64_get(disk.parent);
		entry.cookie = zf_le64_get(disk.cookie);
		entry.name = value + at + sizeof(disk);
		entry.len = zf_le16_get(disk.name_len);
		r = take_name(repair, &entry);
	}
	return r;
}

int zf_repair_take_entries(struct zf_repair *repair, uint64_t dir, const char *value, size_t len)
{
	struct zf_disk_dirent disk;
	int r = 0;

	for (size_t at = 0; at < len && r == 0; at += sizeof(disk) + zf_le16_get(disk.name_len)) {
		struct entry entry = {.dir = dir};

		memcpy(&disk, value + at, sizeof(disk));
		entry.ino = zf_le64_get(disk.ino);
		entry.cookie = zf_le64_get(disk.cookie);
		entry.name = value + at + sizeof(disk);
		entry.len = zf_le16_get(disk.name_len);
		r = take_name(repair, &entry);
	}
	return r;
}

int zf_repair_write_made_names(struct zf_repair *repair)
{
	int r = 0;

	ZF_VECTOR_FOREACH (&repair->made_names, struct zf_repair_made_name, name) {
		struct entry entry = {
			.dir = name->dir,
			.ino = name->ino,
			.cookie = name->cookie,
			.name = name->text,
			.len = strlen(name->text),
		};

		if (r == 0)
			r = put_name(repair, &entry);
	}
	return r;
}
