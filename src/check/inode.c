/* SPDX-License-Identifier: MIT */
/*
 * Checks the fs tree in key order. All items of one inode are neighbours, so most of the inode is
 * checked after its last item. Checks that need other inodes are made later, from tables (names.c,
 * space.c).
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "check/file.h"
#include "fs/core/item.h"

static int cmp_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int cmp_inode(const void *a, const void *b)
{
	const struct zf_check_inode *x = a, *y = b;

	return cmp_u64(&x->ino, &y->ino);
}

struct zf_check_inode *zf_check_find_inode(struct zf_check *check, uint64_t ino)
{
	const struct zf_check_inode key = {.ino = ino};

	return zf_vector_find(&check->inodes, &key, cmp_inode);
}

/* ---- one item ---- */

static void take_inode(struct zf_check *check, struct zf_check_file *file, const void *value)
{
	struct zf_disk_inode disk;
	uint64_t change;

	memcpy(&disk, value, sizeof(disk));
	change = zf_le64_get(disk.change);
	file->has_inode = true;
	file->generation = zf_le64_get(disk.generation);
	file->size = zf_le64_get(disk.size);
	file->bytes = zf_le64_get(disk.bytes);
	file->next_cookie = zf_le64_get(disk.next_cookie);
	file->mode = zf_le32_get(disk.mode);
	file->nlink = zf_le32_get(disk.nlink);
	check->counts.inodes++;
	if (file->ino >= check->super->next_ino)
		zf_check_corrupt(check, "inode", file->ino,
				 "ino has %" PRIu64 ", expected below %" PRIu64
				 ", the superblock's next_ino",
				 file->ino, check->super->next_ino);
	if (change < file->generation)
		zf_check_corrupt(check, "inode", file->ino,
				 "change has %" PRIu64 ", expected at least %" PRIu64
				 ", the generation that made it",
				 change, file->generation);
}

static int take_refs(struct zf_check *check, struct zf_check_file *file, const char *value,
		     size_t len)
{
	struct zf_disk_ref disk;

	for (size_t at = 0; at < len; at += sizeof(disk) + zf_le16_get(disk.name_len)) {
		struct zf_check_name ref = {.ino = file->ino};
		int r;

		memcpy(&disk, value + at, sizeof(disk));
		ref.parent = zf_le64_get(disk.parent);
		ref.cookie = zf_le64_get(disk.cookie);
		ref.name_hash =
			zf_check_name_hash(value + at + sizeof(disk), zf_le16_get(disk.name_len));
		file->parent = ref.parent;
		file->refs++;
		/* The root's only reference is to itself, and has no entry. */
		r = file->ino == ZF_INO_ROOT ? 0 : zf_vector_push(&check->refs, &ref);
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_xattrs(struct zf_check *check, struct zf_check_file *file, const char *value,
		       size_t len)
{
	struct zf_disk_xattr disk;
	size_t at = 0;

	while (at < len) {
		int r;

		memcpy(&disk, value + at, sizeof(disk));
		at += sizeof(disk) + zf_le16_get(disk.name_len);
		if (zf_le32_get(disk.value_id) == 0) {
			at += zf_le32_get(disk.value_len);
			continue;
		}
		r = zf_check_xattr_entry(check, &file->xattrs, zf_le32_get(disk.value_id),
					 zf_le32_get(disk.value_len));
		if (r < 0)
			return r;
	}
	return 0;
}

static int claim_extent(struct zf_check *check, const struct zf_check_file *file, uint64_t offset,
			const struct zf_disk_extent *disk)
{
	struct zf_check_claim claim = {
		.address = zf_le64_get(disk->address),
		.ino = file->ino,
		.offset = offset,
		.blocks = zf_le32_get(disk->count),
		.flags = disk->flags,
	};

	if (zf_check_place(check, claim.address, zf_item_extent_len(disk)) != 0) {
		zf_check_corrupt(check, "extent of inode", file->ino,
				 "address has %" PRIu64
				 ", expected a place within one zone for %" PRIu64
				 " bytes (key offset %" PRIu64 ")",
				 claim.address, zf_item_extent_len(disk), offset);
		return 0;
	}
	return zf_vector_push(&check->claims, &claim);
}

/* Checks one extent by itself, without its neighbours. */
static void check_extent(struct zf_check *check, const struct zf_check_file *file, uint64_t offset,
			 const struct zf_disk_extent *disk, const void *bytes)
{
	uint64_t generation = zf_le64_get(disk->generation);

	if (generation < file->generation)
		zf_check_corrupt(check, "extent of inode", file->ino,
				 "generation has %" PRIu64 ", expected at least %" PRIu64
				 ", the inode's (key offset %" PRIu64 ")",
				 generation, file->generation, offset);
	if (disk->type == ZF_EXTENT_INLINE && S_ISLNK(file->mode) &&
	    memchr(bytes, '\0', zf_le32_get(disk->count)))
		zf_check_corrupt(check, "symbolic link", file->ino,
				 "target has a zero byte, expected none (key offset %" PRIu64 ")",
				 offset);
}

static int take_extent(struct zf_check *check, struct zf_check_file *file, uint64_t offset,
		       const void *value)
{
	struct zf_disk_extent disk;
	uint64_t len;

	memcpy(&disk, value, sizeof(disk));
	len = zf_item_extent_len(&disk);
	check->counts.extents++;
	check_extent(check, file, offset, &disk, (const uint8_t *)value + sizeof(disk));
	if (offset < file->extents_end)
		zf_check_corrupt(check, "extent of inode", file->ino,
				 "key offset has %" PRIu64 ", expected at least %" PRIu64
				 ", where the extent before ends",
				 offset, file->extents_end);
	file->extents_end = offset + len;
	if (disk.type == ZF_EXTENT_INLINE) {
		if (offset != file->inline_bytes)
			zf_check_corrupt(check, "extent of inode", file->ino,
					 "key offset has %" PRIu64 ", expected %" PRIu64
					 " for inline bytes",
					 offset, file->inline_bytes);
		file->inline_bytes = offset + len;
		return 0;
	}
	file->has_blocks = true;
	if (file->inline_bytes && offset < ZF_BLOCK_SIZE)
		zf_check_corrupt(check, "extent of inode", file->ino,
				 "key offset has %" PRIu64
				 ", expected at least %u behind inline bytes",
				 offset, ZF_BLOCK_SIZE);
	file->extent_bytes += len;
	if (disk.flags & ZF_EXTENT_GUARANTEED)
		check->guaranteed_bytes += len;
	if (disk.type != ZF_EXTENT_DATA) {
		check->kept_bytes += len;
		check->kept_guaranteed_bytes += disk.flags & ZF_EXTENT_GUARANTEED ? len : 0;
		return 0;
	}
	file->last_data = offset;
	file->data_end = offset + len;
	return claim_extent(check, file, offset, &disk);
}

/* ---- the end of an inode ---- */

static bool intent_covers(struct zf_check *check, uint64_t ino, uint64_t offset)
{
	ZF_VECTOR_FOREACH (&check->intents, struct zf_check_intent, intent)
		if (intent->ino == ino && offset >= intent->from && offset < intent->to)
			return true;
	return false;
}

static void end_extents(struct zf_check *check, const struct zf_check_file *file)
{
	if (!S_ISREG(file->mode) && !S_ISLNK(file->mode) && file->extents_end)
		zf_check_corrupt(check, "inode", file->ino,
				 "mode has %#o, expected a file or symbolic link for its extents",
				 file->mode);
	if (S_ISLNK(file->mode) && file->has_blocks)
		zf_check_corrupt(check, "inode", file->ino,
				 "extents have blocks, expected a link's target in inline bytes");
	if (file->inline_bytes > file->size)
		zf_check_corrupt(check, "inode", file->ino,
				 "size has %" PRIu64 ", expected at least %" PRIu64
				 ", its inline bytes",
				 file->size, file->inline_bytes);
	if (S_ISLNK(file->mode) && file->inline_bytes != file->size)
		zf_check_corrupt(check, "inode", file->ino,
				 "size has %" PRIu64 ", expected %" PRIu64 ", its target's",
				 file->size, file->inline_bytes);
	if (file->data_end > zf_align_up(file->size, ZF_BLOCK_SIZE) && file->nlink > 0 &&
	    !intent_covers(check, file->ino, file->data_end - 1))
		zf_check_corrupt(check, "inode", file->ino,
				 "size has %" PRIu64 ", expected at least %" PRIu64
				 " for the extent at %" PRIu64,
				 file->size, file->data_end - ZF_BLOCK_SIZE + 1, file->last_data);
	if (S_ISREG(file->mode) && file->bytes != file->extent_bytes)
		zf_check_corrupt(check, "inode", file->ino,
				 "bytes has %" PRIu64 ", expected %" PRIu64 " by its extents",
				 file->bytes, file->extent_bytes);
}

static void end_links(struct zf_check *check, const struct zf_check_file *file)
{
	bool orphan = zf_vector_find(&check->orphans, &file->ino, cmp_u64) != NULL;

	if (!S_ISDIR(file->mode) && file->nlink != file->refs)
		zf_check_corrupt(check, "inode", file->ino,
				 "nlink has %u, expected %u by its names", file->nlink, file->refs);
	if (file->nlink == 0 && !orphan)
		zf_check_corrupt(check, "inode", file->ino,
				 "nlink has 0, expected an orphan's item");
	if (file->nlink > 0 && orphan)
		zf_check_corrupt(check, "inode", file->ino, "nlink has %u, expected 0 of an orphan",
				 file->nlink);
}

static int end_file(struct zf_check *check, struct zf_check_file *file)
{
	const struct zf_check_inode inode = {
		.ino = file->ino,
		.parent = file->parent,
		.mode = file->mode,
		.nlink = file->nlink,
	};

	if (file->ino == 0 || !file->has_items)
		return 0;
	if (!zf_check_file_is_whole(check, file))
		return file->has_inode ? zf_vector_push(&check->inodes, &inode) : 0;
	zf_check_xattr_end(check, &file->xattrs);
	if (!file->has_inode) {
		zf_check_corrupt(check, "inode", file->ino,
				 "it has items, but no inode item, expected one");
		return 0;
	}
	end_extents(check, file);
	zf_check_dir_end(check, file);
	end_links(check, file);
	return zf_vector_push(&check->inodes, &inode);
}

static void begin_file(struct zf_check *check, struct zf_check_file *file, uint64_t ino)
{
	struct zf_vector values = file->xattrs.values;

	values.count = 0;
	*file = (struct zf_check_file){
		.item_check = file->item_check,
		.gaps_at_last = file->gaps_at_last,
		.ino = ino,
		.gaps_before = file->gaps_at_last,
		.first_entry = check->entries.count,
		.next_entry = check->entries.count,
		.xattrs = {.ino = ino, .values = values},
	};
}

/* ---- orphans and intents: their objectids precede all inodes except the root ---- */

static int take_intent(struct zf_check *check, uint64_t number, const void *value)
{
	struct zf_disk_intent disk;
	struct zf_check_intent intent;

	memcpy(&disk, value, sizeof(disk));
	intent.ino = zf_le64_get(disk.ino);
	intent.from = zf_le64_get(disk.from);
	intent.to = zf_le64_get(disk.to);
	if (number >= check->super->next_intent)
		zf_check_corrupt(check, "intent", number,
				 "number has %" PRIu64 ", expected below %" PRIu64
				 ", the superblock's next_intent",
				 number, check->super->next_intent);
	return zf_vector_push(&check->intents, &intent);
}

static int take_item(struct zf_check *check, void *arg, const struct zf_key *key, const void *value,
		     size_t len)
{
	struct zf_check_file *file = arg;
	int r = 0;

	if (key->objectid != file->ino) {
		r = end_file(check, file);
		if (r < 0)
			return r;
		begin_file(check, file, key->objectid);
	}
	file->gaps_at_last = check->gaps;
	if (zf_item_check(&file->item_check, ZF_TREE_FS, key, value, len) < 0) {
		check->gaps++;
		return 0;
	}
	file->has_items |= key->type != ZF_KEY_ORPHAN && key->type != ZF_KEY_INTENT;
	switch (key->type) {
	case ZF_KEY_INODE:
		take_inode(check, file, value);
		return 0;
	case ZF_KEY_REF:
		return take_refs(check, file, value, len);
	case ZF_KEY_XATTR:
		return take_xattrs(check, file, value, len);
	case ZF_KEY_XATTR_VALUE:
		if (zf_check_file_is_whole(check, file))
			zf_check_xattr_chunk(check, &file->xattrs, key->offset, len);
		return 0;
	case ZF_KEY_DIR_NAME:
		return zf_check_dir_names(check, file, value, len);
	case ZF_KEY_DIR_COOKIE:
		zf_check_dir_cookie(check, file, value);
		return 0;
	case ZF_KEY_EXTENT:
		return take_extent(check, file, key->offset, value);
	case ZF_KEY_ORPHAN:
		return zf_vector_push(&check->orphans, &key->offset);
	case ZF_KEY_INTENT:
		return take_intent(check, key->offset, value);
	}
	return 0;
}

/* ---- the whole ---- */

/*
 * Versions without ZF_INCOMPAT_GUARANTEE count guaranteed extents as kept space, and do not count
 * them separately.
 */
static void check_kept(struct zf_check *check)
{
	bool counts = check->super->incompat & ZF_INCOMPAT_GUARANTEE;
	uint64_t kept = check->kept_bytes + (counts ? 0 : check->guaranteed_bytes);

	if (check->super->kept_bytes != kept)
		zf_check_corrupt(check, "superblock", check->super->address,
				 "kept_bytes has %" PRIu64 ", expected %" PRIu64 " by recount",
				 check->super->kept_bytes, kept);
	if (counts && check->super->guaranteed_bytes != check->guaranteed_bytes)
		zf_check_corrupt(check, "superblock", check->super->address,
				 "guaranteed_bytes has %" PRIu64 ", expected %" PRIu64
				 " by recount",
				 check->super->guaranteed_bytes, check->guaranteed_bytes);
	if (check->super->kept_guaranteed_bytes != (counts ? check->kept_guaranteed_bytes : 0))
		zf_check_corrupt(check, "superblock", check->super->address,
				 "kept_guaranteed_bytes has %" PRIu64 ", expected %" PRIu64
				 " by recount",
				 check->super->kept_guaranteed_bytes,
				 counts ? check->kept_guaranteed_bytes : 0);
}

static void check_owners(struct zf_check *check)
{
	ZF_VECTOR_FOREACH (&check->orphans, uint64_t, ino)
		if (!zf_check_find_inode(check, *ino))
			zf_check_corrupt(check, "orphan", *ino,
					 "ino has %" PRIu64 ", expected an inode that exists",
					 *ino);
	ZF_VECTOR_FOREACH (&check->intents, struct zf_check_intent, intent) {
		const struct zf_check_inode *inode = zf_check_find_inode(check, intent->ino);

		if (!inode || !S_ISREG(inode->mode))
			zf_check_corrupt(check, "intent", intent->ino,
					 "ino has %" PRIu64 ", expected a file that exists",
					 intent->ino);
	}
	if (check->super->inode_count != check->inodes.count)
		zf_check_corrupt(check, "superblock", check->super->address,
				 "inode_count has %" PRIu64 ", expected %zu by recount",
				 check->super->inode_count, check->inodes.count);
	check_kept(check);
	if (!zf_check_find_inode(check, ZF_INO_ROOT))
		zf_check_corrupt(check, "inode", ZF_INO_ROOT,
				 "item is missing, expected the root "
				 "directory's");
}

int zf_check_inodes(struct zf_check *check)
{
	struct zf_check_file file = {
		.item_check = zf_check_item_limits(check),
		.xattrs = {.values = ZF_VECTOR(struct zf_check_xattr_value)},
	};
	int r = zf_check_walk_tree(check, ZF_TREE_FS, take_item, &file);

	if (r == 0)
		r = end_file(check, &file);
	zf_vector_deinit(&file.xattrs.values);
	if (r < 0)
		return r;
	if (check->trees[ZF_TREE_FS].lost)
		zf_report(&check->report, ZF_REPORT_WARNING,
			  "names and link counts were not compared: part of the fs tree cannot be "
			  "read");
	else
		check_owners(check);
	return 0;
}
