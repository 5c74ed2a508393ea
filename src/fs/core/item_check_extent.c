/* SPDX-License-Identifier: MIT */
/* Checks items that name bytes of files and of the device. */
#include <errno.h>

#include "base/bits.h"
#include "fs/core/item.h"
#include "fs/core/item_check_internal.h"

_Static_assert(ZF_EXTENT_ZERO_MAX >> ZF_BLOCK_SHIFT <= UINT32_MAX, "an extent counts its blocks");
_Static_assert(ZF_EXTENT_MAX >> ZF_BLOCK_SHIFT <= UINT16_MAX, "a summary entry counts its blocks");

/* ---- extents ---- */

static int check_extent_flags(const struct zf_seen_item *item, const struct zf_disk_extent *extent)
{
	static const uint8_t known[] = {
		[ZF_EXTENT_INLINE] = 0,
		[ZF_EXTENT_DATA] = ZF_EXTENT_SHARED | ZF_EXTENT_OVERWRITE | ZF_EXTENT_GUARANTEED,
		[ZF_EXTENT_ZERO] = ZF_EXTENT_UNWRITTEN | ZF_EXTENT_GUARANTEED,
	};

	/* An extent that is written in place is never shared, and needs no guarantee. */
	if ((extent->flags & ZF_EXTENT_OVERWRITE) && extent->type == ZF_EXTENT_DATA)
		return zf_item_check_equal(item, "flags", extent->flags, ZF_EXTENT_OVERWRITE);
	return zf_item_check_equal(item, "unknown flags",
				   extent->flags & (uint8_t)~known[extent->type], 0);
}

static int check_extent_place(const struct zf_seen_item *item, const struct zf_disk_extent *extent)
{
	uint64_t len = zf_item_extent_len(extent), address = zf_le64_get(extent->address);
	int r;

	if (extent->type != ZF_EXTENT_DATA)
		return zf_item_check_equal(item, "address", address, 0);
	r = zf_item_check_aligned(item, "address", address);
	return r < 0 ? r
		     : zf_item_check_range(item, "address", address, ZF_BLOCK_SIZE,
					   item->check->device_bytes -
						   zf_min_u64(item->check->device_bytes, len));
}

static uint64_t len_max(const struct zf_disk_extent *extent)
{
	if (extent->type != ZF_EXTENT_DATA)
		return ZF_EXTENT_ZERO_MAX;
	return extent->flags & ZF_EXTENT_SHARED ? ZF_SHARE_MAX : ZF_EXTENT_MAX;
}

static int check_extent_range(const struct zf_seen_item *item, const struct zf_disk_extent *extent)
{
	uint64_t from = item->key->offset, count = zf_le32_get(extent->count);
	int r;

	if (extent->type == ZF_EXTENT_INLINE) {
		r = zf_item_check_range(item, "key offset", from, 0, ZF_SYMLINK_MAX - 1);
		if (r < 0)
			return r;
		r = zf_item_check_range(item, "count", count, 1, ZF_SYMLINK_MAX - from);
		return r < 0 ? r
			     : zf_item_check_equal(item, "length", item->len,
						   sizeof(*extent) + count);
	}
	r = zf_item_check_aligned(item, "key offset", from);
	if (r < 0)
		return r;
	r = zf_item_check_range(item, "key offset", from, 0, ZF_FILE_END_MAX - ZF_BLOCK_SIZE);
	if (r < 0)
		return r;
	r = zf_item_check_range(item, "count", count, 1,
				zf_min_u64(len_max(extent), ZF_FILE_END_MAX - from) >>
					ZF_BLOCK_SHIFT);
	return r < 0 ? r : zf_item_check_equal(item, "length", item->len, sizeof(*extent));
}

int zf_item_check_extent(const struct zf_seen_item *item)
{
	const struct zf_seen_field fields[] = {
		ZF_SEEN_FIELD(struct zf_disk_extent, type, ZF_EXTENT_INLINE, ZF_EXTENT_ZERO),
		ZF_SEEN_FIELD(struct zf_disk_extent, compression, 0, 0),
		ZF_SEEN_FIELD(struct zf_disk_extent, encryption, 0, 0),
		ZF_SEEN_FIELD(struct zf_disk_extent, generation, 1, item->check->generation_max),
	};
	const struct zf_disk_extent *extent = (const struct zf_disk_extent *)item->value;
	int r;

	r = zf_item_check_range(item, "objectid", item->key->objectid, ZF_INO_FIRST, UINT64_MAX);
	if (r < 0)
		return r;
	r = zf_item_check_range(item, "length", item->len, sizeof(*extent), item->check->value_max);
	if (r < 0)
		return r;
	r = zf_item_check_fields(item, item->value, fields, ZF_ARRAY_SIZE(fields));
	if (r < 0)
		return r;
	r = check_extent_flags(item, extent);
	if (r < 0)
		return r;
	r = check_extent_range(item, extent);
	return r < 0 ? r : check_extent_place(item, extent);
}

/* ---- summary and share ---- */

static int check_device_address(const struct zf_seen_item *item)
{
	int r = zf_item_check_aligned(item, "objectid", item->key->objectid);

	return r < 0 ? r
		     : zf_item_check_range(item, "objectid", item->key->objectid, ZF_BLOCK_SIZE,
					   item->check->device_bytes - ZF_BLOCK_SIZE);
}

int zf_item_check_summary(const struct zf_seen_item *item)
{
	const struct zf_seen_field fields[] = {
		ZF_SEEN_FIELD(struct zf_disk_summary, ino, ZF_INO_FIRST, UINT64_MAX),
		ZF_SEEN_FIELD(struct zf_disk_summary, offset, 0, ZF_FILE_END_MAX - ZF_BLOCK_SIZE),
		ZF_SEEN_FIELD(struct zf_disk_summary, tree, ZF_TREE_FS, ZF_TREE_FS),
		ZF_SEEN_FIELD(struct zf_disk_summary, count, 1,
			      zf_min_u64(ZF_EXTENT_MAX,
					 item->check->device_bytes - item->key->objectid) >>
				      ZF_BLOCK_SHIFT),
		ZF_SEEN_FIELD(struct zf_disk_summary, flags, 0, ZF_SUMMARY_OVERWRITE),
	};
	const struct zf_disk_summary *summary = (const struct zf_disk_summary *)item->value;
	uint64_t csums;
	int r;

	r = check_device_address(item);
	if (r < 0)
		return r;
	r = zf_item_check_equal(item, "key offset", item->key->offset, 0);
	if (r < 0)
		return r;
	r = zf_item_check_range(item, "length", item->len, sizeof(*summary),
				item->check->value_max);
	if (r < 0)
		return r;
	r = zf_item_check_fields(item, item->value, fields, ZF_ARRAY_SIZE(fields));
	if (r < 0)
		return r;
	r = zf_item_check_aligned(item, "offset", zf_le64_get(summary->offset));
	if (r < 0)
		return r;
	csums = zf_le16_get(summary->flags) & ZF_SUMMARY_OVERWRITE ? 0
								   : zf_le16_get(summary->count);
	return zf_item_check_equal(item, "length", item->len,
				   sizeof(*summary) + sizeof(struct zf_le64) * csums);
}

int zf_item_check_share(const struct zf_seen_item *item)
{
	static const struct zf_seen_field fields[] = {
		ZF_SEEN_FIELD(struct zf_disk_share, tree, ZF_TREE_FS, ZF_TREE_FS),
		ZF_SEEN_FIELD(struct zf_disk_share, ino, ZF_INO_FIRST, UINT64_MAX),
		ZF_SEEN_FIELD(struct zf_disk_share, offset, 0, ZF_FILE_END_MAX - ZF_BLOCK_SIZE),
		ZF_SEEN_FIELD(struct zf_disk_share, len, ZF_BLOCK_SIZE, ZF_SHARE_MAX),
	};
	int r = check_device_address(item);

	if (r < 0)
		return r;
	r = zf_item_check_range(item, "length", item->len, sizeof(struct zf_disk_share),
				item->check->value_max);
	if (r < 0)
		return r;
	r = zf_item_check_equal(item, "length modulo entry size",
				item->len % sizeof(struct zf_disk_share), 0);
	for (size_t at = 0; r == 0 && at < item->len; at += sizeof(struct zf_disk_share)) {
		const struct zf_disk_share *share = (const void *)(item->value + at);

		r = zf_item_check_fields(item, item->value + at, fields, ZF_ARRAY_SIZE(fields));
		if (r == 0)
			r = zf_item_check_aligned(item, "offset", zf_le64_get(share->offset));
		if (r == 0)
			r = zf_item_check_aligned(item, "len", zf_le64_get(share->len));
		if (r == 0)
			r = zf_item_check_equal(item, "key offset", item->key->offset,
						zf_item_hash_share(item->check->dir_hash_seed,
								   zf_le64_get(share->ino),
								   zf_le64_get(share->offset)));
	}
	return r;
}
