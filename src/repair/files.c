/* SPDX-License-Identifier: MIT */
/*
 * Writes the fs tree in a second pass over the old one. As the tables decide, an old item is
 * copied, copied with other values, or left out.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/escape.h"
#include "repair/mend.h"
#include "repair/pieces.h"
#include "repair/state.h"
#include "txn/txn.h"

struct files {
	struct zf_repair *repair;
	uint64_t ino;
	const struct zf_repair_inode *inode; /* NULL: the table has no inode of this number */
	struct zf_repair_extents extents;
	size_t next_claim;
};

/* ---- inodes ---- */

/* Does an intent cover the offset? Then a mount still has to cut off the bytes there. */
static bool intent_covers(const struct zf_repair *repair, uint64_t ino, uint64_t offset)
{
	ZF_VECTOR_FOREACH (&repair->intents, struct zf_disk_intent, intent)
		if (zf_le64_get(intent->ino) == ino && offset >= zf_le64_get(intent->from) &&
		    offset < zf_le64_get(intent->to))
			return true;
	return false;
}

static uint64_t file_size(struct zf_repair *repair, const struct zf_repair_inode *inode,
			  uint64_t size)
{
	bool ends_too_soon =
		inode->data_end > zf_align_up(size, ZF_BLOCK_SIZE) && !inode->is_orphan;

	size = zf_max_u64(size, inode->inline_bytes);
	if (ends_too_soon && !intent_covers(repair, inode->ino, inode->data_end - 1))
		size = zf_min_u64(inode->data_end, ZF_FILE_SIZE_MAX);
	return size;
}

/* Sets the fields that are derived from the inode's names, entries and extents. */
static void set_counts(struct zf_repair *repair, const struct zf_repair_inode *inode,
		       struct zf_inode_item *item)
{
	item->mode = inode->mode;
	item->nlink = inode->nlink;
	item->change = zf_max_u64(item->change, item->generation);
	if (S_ISDIR(inode->mode)) {
		item->size = inode->entry_bytes;
		item->next_cookie = inode->next_cookie;
	} else if (S_ISREG(inode->mode)) {
		item->size = file_size(repair, inode, item->size);
		item->bytes = inode->bytes;
	} else if (S_ISLNK(inode->mode)) {
		item->size = inode->inline_bytes;
	}
	zf_repair_fit_type(item);
}

static void tell_counts(struct zf_repair *repair, uint64_t ino, const struct zf_inode_item *before,
			const struct zf_inode_item *after)
{
	if (before->size != after->size)
		zf_repair_tell_of(repair, ino, "size %" PRIu64 " set to %" PRIu64, before->size,
				  after->size);
	if (before->bytes != after->bytes)
		zf_repair_tell_of(repair, ino, "bytes %" PRIu64 " set to %" PRIu64, before->bytes,
				  after->bytes);
	if (before->next_cookie != after->next_cookie)
		zf_repair_tell_of(repair, ino, "next cookie %" PRIu64 " set to %" PRIu64,
				  before->next_cookie, after->next_cookie);
}

static int put_inode(struct zf_repair *repair, const struct zf_repair_inode *inode,
		     struct zf_inode_item *item)
{
	const struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_INODE, 0);
	struct zf_disk_inode disk;

	set_counts(repair, inode, item);
	zf_item_encode_inode(item, &disk);
	return zf_repair_put(repair, ZF_TREE_FS, &key, &disk, sizeof(disk));
}

static int take_inode(struct files *files, const struct zf_key *key, const void *value, size_t len,
		      bool is_sound)
{
	struct zf_inode_item before, item;
	struct zf_disk_inode mended;
	int r;

	if (!is_sound) {
		if (!zf_repair_mend_inode(files->repair, key, value, len, &mended))
			return 0;
		value = &mended;
		zf_repair_tell_of(files->repair, key->objectid, "impossible values were corrected");
	}
	zf_item_decode_inode(value, &item);
	before = item;
	r = put_inode(files->repair, files->inode, &item);
	tell_counts(files->repair, key->objectid, &before, &item);
	return r;
}

static int write_made_inodes(struct zf_repair *repair)
{
	int r = 0;

	ZF_VECTOR_FOREACH (&repair->inodes, struct zf_repair_inode, inode) {
		struct zf_inode_item item = {.generation = inode->generation,
					     .change = repair->super.generation};

		if (r == 0 && inode->kept && !inode->has_item)
			r = put_inode(repair, inode, &item);
	}
	return r;
}

static int write_orphans(struct zf_repair *repair)
{
	int r = 0;

	ZF_VECTOR_FOREACH (&repair->inodes, struct zf_repair_inode, inode) {
		const struct zf_key key = ZF_KEY(ZF_INO_ORPHANS, ZF_KEY_ORPHAN, inode->ino);

		if (r == 0 && inode->kept && inode->is_orphan)
			r = zf_repair_put(repair, ZF_TREE_FS, &key, NULL, 0);
	}
	return r;
}

/* The root's only reference is to itself. */
static int write_root_ref(struct zf_repair *repair)
{
	const struct zf_disk_ref disk = {.parent = zf_le64_from(ZF_INO_ROOT)};
	const struct zf_key key =
		ZF_KEY(ZF_INO_ROOT, ZF_KEY_REF,
		       zf_item_hash_ref(repair->super.dir_hash_seed, ZF_INO_ROOT, "", 0));

	return zf_repair_put(repair, ZF_TREE_FS, &key, &disk, sizeof(disk));
}

/* ---- attributes ---- */

static int cmp_xattr(const void *a, const void *b)
{
	const struct zf_repair_xattr *x = a, *y = b;

	if (x->ino != y->ino)
		return x->ino < y->ino ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static bool is_broken(struct zf_repair *repair, uint64_t ino, uint32_t id)
{
	const struct zf_repair_xattr key = {.ino = ino, .id = id};

	return id != 0 && zf_vector_find(&repair->xattrs, &key, cmp_xattr) != NULL;
}

static void tell_broken(struct files *files, const char *name, size_t len)
{
	char text[ZF_ESCAPE_SIZE(ZF_NAME_MAX)];

	zf_escape(name, zf_min_u64(len, ZF_NAME_MAX), text);
	zf_repair_tell_of(files->repair, files->ino,
			  "attribute '%s' is lost: its value is incomplete", text);
}

static int take_xattrs(struct files *files, const char *value, size_t len)
{
	struct zf_disk_xattr disk;
	size_t entry_len;
	int r = 0;

	for (size_t at = 0; at < len && r == 0; at += entry_len) {
		const char *name = value + at + sizeof(disk);
		uint32_t id;
		struct zf_key key;

		memcpy(&disk, value + at, sizeof(disk));
		id = zf_le32_get(disk.value_id);
		entry_len = sizeof(disk) + zf_le16_get(disk.name_len) +
			    (id ? 0 : zf_le32_get(disk.value_len));
		key = ZF_KEY(files->ino, ZF_KEY_XATTR,
			     zf_item_hash_name(files->repair->super.dir_hash_seed, name,
					       zf_le16_get(disk.name_len)));
		if (is_broken(files->repair, files->ino, id))
			tell_broken(files, name, zf_le16_get(disk.name_len));
		else
			r = zf_repair_put_entry(files->repair, ZF_TREE_FS, &key, value + at,
						entry_len);
	}
	return r;
}

/* ---- extents ---- */

static int put_extent(struct zf_repair *repair, uint64_t ino, uint64_t offset,
		      const struct zf_disk_extent *disk, const void *value, size_t len)
{
	const struct zf_key key = ZF_KEY(ino, ZF_KEY_EXTENT, offset);
	uint64_t blocks = zf_item_extent_len(disk) >> ZF_BLOCK_SHIFT;
	bool guaranteed = disk->flags & ZF_EXTENT_GUARANTEED;

	repair->counts.extents++;
	if (disk->type != ZF_EXTENT_INLINE && guaranteed)
		repair->guaranteed_blocks += blocks;
	if (disk->type == ZF_EXTENT_ZERO) {
		repair->kept_blocks += blocks;
		repair->kept_guaranteed_blocks += guaranteed ? blocks : 0;
	}
	return zf_repair_put(repair, ZF_TREE_FS, &key, value, len);
}

struct piece {
	struct zf_repair *repair;
	struct zf_disk_extent disk;
};

static int put_piece(void *arg, const struct zf_repair_claim *claim)
{
	struct piece *piece = arg;

	piece->disk.flags = claim->flags;
	piece->disk.count = zf_le32_from(claim->blocks);
	piece->disk.address = zf_le64_from(claim->address);
	return put_extent(piece->repair, claim->ino, claim->offset, &piece->disk, &piece->disk,
			  sizeof(piece->disk));
}

/* Both passes meet the extents in the same order, so one index advances through the table. */
static const struct zf_repair_claim *next_claim(struct files *files, uint64_t offset)
{
	const struct zf_vector *claims = &files->repair->claims;

	for (; files->next_claim < claims->count; files->next_claim++) {
		const struct zf_repair_claim *claim = zf_vector_at(claims, files->next_claim);

		if (claim->ino > files->ino || (claim->ino == files->ino && claim->offset > offset))
			break;
		if (claim->ino == files->ino && claim->offset == offset)
			return claim;
	}
	return NULL;
}

static bool type_allows(const struct zf_repair_inode *inode, const struct zf_disk_extent *disk)
{
	return S_ISREG(inode->mode) || (S_ISLNK(inode->mode) && disk->type == ZF_EXTENT_INLINE);
}

static int take_extent(struct files *files, uint64_t offset, const void *value, size_t len)
{
	const struct zf_repair_inode *inode = files->inode;
	struct piece piece = {.repair = files->repair};
	const struct zf_repair_claim *claim;
	bool fits;

	memcpy(&piece.disk, value, sizeof(piece.disk));
	fits = zf_repair_extent_fits(files->repair, &files->extents, offset, &piece.disk,
				     (const uint8_t *)value + sizeof(piece.disk));
	if (!inode || !inode->kept)
		return 0;
	if (!fits || !type_allows(inode, &piece.disk)) {
		zf_repair_tell_of(files->repair, files->ino,
				  "%" PRIu64 " bytes at offset %" PRIu64
				  " are lost: their extent is impossible",
				  zf_item_extent_len(&piece.disk), offset);
		return 0;
	}
	if (zf_le64_get(piece.disk.generation) < inode->generation)
		piece.disk.generation = zf_le64_from(inode->generation);
	if (piece.disk.type != ZF_EXTENT_DATA) {
		uint8_t item[sizeof(piece.disk) + ZF_SYMLINK_MAX];

		memcpy(item, value, len);
		memcpy(item, &piece.disk, sizeof(piece.disk));
		return put_extent(files->repair, files->ino, offset, &piece.disk, item, len);
	}
	claim = next_claim(files, offset);
	return claim && !claim->dropped ? zf_repair_pieces(claim, put_piece, &piece) : 0;
}

/* ---- intents ---- */

static int take_intent(struct zf_repair *repair, const struct zf_key *key, const void *value,
		       size_t len)
{
	const struct zf_disk_intent *intent = value;
	const struct zf_repair_inode *inode =
		zf_repair_find_inode(repair, zf_le64_get(intent->ino));
	struct zf_counters *counters;

	if (!inode || !inode->kept || !S_ISREG(inode->mode) ||
	    key->offset >= ZF_REPAIR_NUMBER_MAX) {
		zf_repair_tell_of(repair, zf_le64_get(intent->ino),
				  "dropped an unfinished truncation: no such regular file");
		return 0;
	}
	counters = zf_txn_counters(repair->txn);
	if (counters->next_intent <= key->offset)
		counters->next_intent = key->offset + 1;
	return zf_repair_put(repair, ZF_TREE_FS, key, value, len);
}

/* ---- the pass ---- */

static int take_of_inode(struct files *files, const struct zf_key *key, const void *value,
			 size_t len)
{
	switch (key->type) {
	case ZF_KEY_REF:
		return files->ino == ZF_INO_ROOT
			       ? 0
			       : zf_repair_take_refs(files->repair, files->ino, value, len);
	case ZF_KEY_XATTR:
		return take_xattrs(files, value, len);
	case ZF_KEY_XATTR_VALUE:
		return is_broken(files->repair, files->ino, (uint32_t)(key->offset >> 16))
			       ? 0
			       : zf_repair_put(files->repair, ZF_TREE_FS, key, value, len);
	case ZF_KEY_DIR_NAME:
	case ZF_KEY_DIR_COOKIE:
		return zf_repair_take_entries(files->repair, files->ino, value, len);
	}
	return 0;
}

static int take_item(void *arg, const struct zf_key *key, const void *value, size_t len,
		     bool is_sound)
{
	struct files *files = arg;

	if (key->objectid != files->ino) {
		files->ino = key->objectid;
		files->inode = zf_repair_find_inode(files->repair, key->objectid);
		zf_repair_extents_begin(&files->extents);
	}
	if (key->type == ZF_KEY_INTENT && is_sound)
		return take_intent(files->repair, key, value, len);
	if (key->type == ZF_KEY_EXTENT && is_sound)
		return take_extent(files, key->offset, value, len);
	if (!files->inode || !files->inode->kept)
		return 0;
	if (key->type == ZF_KEY_INODE)
		return take_inode(files, key, value, len, is_sound);
	return is_sound ? take_of_inode(files, key, value, len) : 0;
}

int zf_repair_write_files(struct zf_repair *repair)
{
	struct files files = {.repair = repair};
	bool lost;
	int r;

	zf_vector_sort(&repair->xattrs, 0, cmp_xattr);
	r = write_made_inodes(repair);
	if (r == 0)
		r = write_root_ref(repair);
	if (r == 0)
		r = write_orphans(repair);
	zf_repair_meter_enter(repair->meter, ZF_REPAIR_FILES);
	if (r == 0)
		r = zf_salvage_walk(repair->salvage, ZF_TREE_FS, take_item, &files, &lost);
	zf_repair_meter_enter(repair->meter, ZF_REPAIR_NO_STAGE);
	if (r == 0)
		r = zf_repair_write_made_names(repair);
	if (r == 0)
		zf_repair_tell_waiting(repair);
	return r;
}
