/* SPDX-License-Identifier: MIT */
/*
 * Fills the tables from the items of the old trees: inodes, names, extents and zones. It decides
 * only what follows from the items of a single inode.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "repair/mend.h"
#include "repair/state.h"

#define REPORT_CHUNK 1024u

struct value {
	uint32_t id, len, seen, chunks;
	bool broken;
};

struct gather {
	struct zf_repair *repair;
	struct zf_repair_inode inode; /* the inode of the current item; ino 0: none yet */
	struct zf_repair_extents extents;
	struct zf_vector values; /* struct value: attribute values of `inode` stored in chunks */
	bool values_sorted;
	size_t unsound; /* items of `inode` that cannot be used */
};

static int cmp_inode(const void *a, const void *b)
{
	const struct zf_repair_inode *x = a, *y = b;

	return x->ino < y->ino ? -1 : x->ino > y->ino;
}

struct zf_repair_inode *zf_repair_find_inode(struct zf_repair *repair, uint64_t ino)
{
	const struct zf_repair_inode key = {.ino = ino};

	return zf_vector_find(&repair->inodes, &key, cmp_inode);
}

/* ---- names ---- */

static int take_refs(struct gather *gather, const char *value, size_t len)
{
	struct zf_disk_ref disk;

	if (gather->inode.ino == ZF_INO_ROOT)
		return 0;
	for (size_t at = 0; at < len; at += sizeof(disk) + zf_le16_get(disk.name_len)) {
		struct zf_repair_name name = {.ino = gather->inode.ino,
					      .sources = ZF_REPAIR_BY_REF};
		int r;

		memcpy(&disk, value + at, sizeof(disk));
		name.dir = zf_le64_get(disk.parent);
		name.cookie = zf_le64_get(disk.cookie);
		name.len = zf_le16_get(disk.name_len);
		name.hash = zf_hash64(value + at + sizeof(disk), name.len);
		r = zf_repair_add_name(gather->repair, &name);
		if (r < 0)
			return r;
	}
	return 0;
}

static int take_entries(struct gather *gather, uint8_t source, const char *value, size_t len)
{
	struct zf_disk_dirent disk;

	gather->inode.has_entries = true;
	for (size_t at = 0; at < len; at += sizeof(disk) + zf_le16_get(disk.name_len)) {
		struct zf_repair_name name = {.dir = gather->inode.ino, .sources = source};
		int r;

		memcpy(&disk, value + at, sizeof(disk));
		name.ino = zf_le64_get(disk.ino);
		name.cookie = zf_le64_get(disk.cookie);
		name.len = zf_le16_get(disk.name_len);
		name.hash = zf_hash64(value + at + sizeof(disk), name.len);
		name.type_by_name = source == ZF_REPAIR_BY_NAME ? disk.type : 0;
		name.type_by_cookie = source == ZF_REPAIR_BY_COOKIE ? disk.type : 0;
		r = zf_repair_add_name(gather->repair, &name);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- attributes ---- */

static int cmp_value(const void *a, const void *b)
{
	const struct value *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

static int take_xattrs(struct gather *gather, const char *bytes, size_t len)
{
	struct zf_disk_xattr disk;
	size_t at = 0;

	while (at < len) {
		struct value value = {0};
		int r;

		memcpy(&disk, bytes + at, sizeof(disk));
		value.id = zf_le32_get(disk.value_id);
		value.len = zf_le32_get(disk.value_len);
		at += sizeof(disk) + zf_le16_get(disk.name_len) + (value.id ? 0 : value.len);
		r = value.id ? zf_vector_push(&gather->values, &value) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int push_broken(struct gather *gather, uint32_t id)
{
	const struct zf_repair_xattr xattr = {.ino = gather->inode.ino, .id = id};

	return zf_vector_push(&gather->repair->xattrs, &xattr);
}

/* All attributes' names come before the first chunk, because the key's type orders them. */
static void sort_values(struct gather *gather)
{
	struct value *before = NULL;

	if (gather->values_sorted)
		return;
	gather->values_sorted = true;
	zf_vector_sort(&gather->values, 0, cmp_value);
	ZF_VECTOR_FOREACH (&gather->values, struct value, value) {
		if (before && before->id == value->id)
			before->broken = value->broken = true;
		before = value;
	}
}

static int take_chunk(struct gather *gather, uint64_t offset, size_t len)
{
	const struct value key = {.id = (uint32_t)(offset >> 16)};
	struct value *value;

	sort_values(gather);
	value = zf_vector_find(&gather->values, &key, cmp_value);
	if (!value)
		return push_broken(gather, key.id);
	value->broken |= value->chunks++ != (offset & 0xffff);
	value->seen += (uint32_t)len;
	return 0;
}

static int end_values(struct gather *gather)
{
	int r = 0;

	sort_values(gather);
	ZF_VECTOR_FOREACH (&gather->values, struct value, value)
		if (r == 0 && (value->broken || value->seen != value->len))
			r = push_broken(gather, value->id);
	gather->values.count = 0;
	gather->values_sorted = false;
	return r;
}

/* ---- the rest of an inode ---- */

static void take_inode(struct gather *gather, const void *value)
{
	struct zf_inode_item item;

	zf_item_decode_inode(value, &item);
	gather->inode.has_item = true;
	gather->inode.generation = item.generation;
	gather->inode.next_cookie = item.next_cookie;
	gather->inode.mode = item.mode;
	gather->inode.nlink = item.nlink;
}

static int take_extent(struct gather *gather, uint64_t offset, const void *value)
{
	struct zf_disk_extent disk;
	struct zf_repair_claim claim = {.ino = gather->inode.ino, .offset = offset};

	memcpy(&disk, value, sizeof(disk));
	gather->inode.has_extents = true;
	if (!zf_repair_extent_fits(gather->repair, &gather->extents, offset, &disk,
				   (const uint8_t *)value + sizeof(disk)))
		return 0;
	gather->inode.inline_bytes = gather->extents.inline_bytes;
	gather->inode.inline_has_zero = gather->extents.inline_has_zero;
	if (disk.type == ZF_EXTENT_ZERO)
		gather->inode.bytes += zf_item_extent_len(&disk);
	if (disk.type != ZF_EXTENT_DATA)
		return 0;
	claim.address = zf_le64_get(disk.address);
	claim.blocks = zf_le32_get(disk.count);
	claim.flags = disk.flags;
	return zf_vector_push(&gather->repair->claims, &claim);
}

static int end_inode(struct gather *gather)
{
	int r = end_values(gather);

	if (gather->unsound)
		zf_repair_tell_of(gather->repair, gather->inode.ino,
				  "dropped %zu items with impossible values", gather->unsound);
	gather->unsound = 0;
	if (r < 0 || gather->inode.ino == 0 || gather->inode.ino == ZF_INO_ORPHANS ||
	    gather->inode.ino == ZF_INO_INTENTS)
		return r;
	return zf_vector_push(&gather->repair->inodes, &gather->inode);
}

static int take_sound(struct gather *gather, const struct zf_key *key, const void *value,
		      size_t len)
{
	switch (key->type) {
	case ZF_KEY_INODE:
		take_inode(gather, value);
		return 0;
	case ZF_KEY_REF:
		return take_refs(gather, value, len);
	case ZF_KEY_XATTR:
		return take_xattrs(gather, value, len);
	case ZF_KEY_XATTR_VALUE:
		return take_chunk(gather, key->offset, len);
	case ZF_KEY_DIR_NAME:
		return take_entries(gather, ZF_REPAIR_BY_NAME, value, len);
	case ZF_KEY_DIR_COOKIE:
		return take_entries(gather, ZF_REPAIR_BY_COOKIE, value, len);
	case ZF_KEY_EXTENT:
		return take_extent(gather, key->offset, value);
	case ZF_KEY_ORPHAN:
		return zf_vector_push(&gather->repair->orphans, &key->offset);
	case ZF_KEY_INTENT:
		return zf_vector_push(&gather->repair->intents, value);
	}
	return 0;
}

static int take_item(void *arg, const struct zf_key *key, const void *value, size_t len,
		     bool is_sound)
{
	struct gather *gather = arg;
	struct zf_disk_inode mended;

	if (key->objectid != gather->inode.ino) {
		int r = end_inode(gather);

		if (r < 0)
			return r;
		gather->inode = (struct zf_repair_inode){.ino = key->objectid};
		zf_repair_extents_begin(&gather->extents);
	}
	if (is_sound)
		return take_sound(gather, key, value, len);
	if (key->type == ZF_KEY_INODE &&
	    zf_repair_mend_inode(gather->repair, key, value, len, &mended)) {
		take_inode(gather, &mended);
		return 0;
	}
	gather->unsound++;
	return 0;
}

static int gather_files(struct zf_repair *repair)
{
	struct gather gather = {.repair = repair, .values = ZF_VECTOR(struct value)};
	struct zf_salvage_state state;
	bool lost;
	int r;

	zf_repair_meter_enter(repair->meter, ZF_REPAIR_GATHER);
	r = zf_salvage_walk(repair->salvage, ZF_TREE_FS, take_item, &gather, &lost);
	zf_repair_meter_enter(repair->meter, ZF_REPAIR_NO_STAGE);
	if (r == 0)
		r = end_inode(&gather);
	zf_vector_deinit(&gather.values);
	if (r == 0 && lost)
		zf_repair_tell(repair,
			       "part of the tree of files cannot be read: what it held is lost");
	zf_salvage_get_state(repair->salvage, &state);
	if (r == 0 && state.files_generation > 0)
		zf_repair_tell(repair,
			       "the tree of files is that of generation %" PRIu64
			       ": what changed later is lost",
			       state.files_generation);
	return r;
}

/* ---- zones ---- */

static int push_zone(struct zf_repair *repair, const struct zf_zone_info *info)
{
	bool retired = info->cond == ZF_ZONE_READONLY || info->cond == ZF_ZONE_OFFLINE;
	const struct zf_repair_zone zone = {
		.pointer = retired || info->cond == ZF_ZONE_FULL ? info->capacity
								 : info->wp - info->start,
		.unwritable = retired,
		.capacity = info->capacity,
		.resets = info->reset_count,
		.conventional = info->type == ZF_ZONE_CONVENTIONAL,
		.lost = info->lost,
	};

	repair->counts_resets |= info->reset_count > 0;
	return zf_vector_push(&repair->zones, &zone);
}

static int gather_report(struct zf_repair *repair)
{
	_zf_free_ struct zf_zone_info *info = malloc(REPORT_CHUNK * sizeof(*info));
	uint32_t count = repair->super.zone_count;
	int r = info ? 0 : -ENOMEM;

	for (uint32_t first = 0; first < count && r == 0; first += REPORT_CHUNK) {
		uint32_t n = (uint32_t)zf_min_u64(REPORT_CHUNK, count - first);

		r = zf_dev_report(repair->dev, first, n, info);
		for (uint32_t i = 0; i < n && r == 0; i++)
			r = push_zone(repair, &info[i]);
	}
	return r;
}

static int take_zone(void *arg, const struct zf_key *key, const void *value, size_t len,
		     bool is_sound)
{
	struct zf_repair *repair = arg;
	struct zf_repair_zone *zone;

	(void)is_sound;
	if (key->type != ZF_KEY_ZONE || key->offset != 0 || key->objectid >= repair->zones.count ||
	    len != sizeof(zone->item))
		return 0;
	zone = zf_vector_at(&repair->zones, key->objectid);
	memcpy(&zone->item, value, len);
	zone->has_item = true;
	return 0;
}

int zf_repair_gather(struct zf_repair *repair)
{
	bool lost;
	int r = gather_report(repair);

	if (r == 0)
		r = zf_salvage_walk(repair->salvage, ZF_TREE_ZONE, take_zone, repair, &lost);
	return r < 0 ? r : gather_files(repair);
}
