/* SPDX-License-Identifier: MIT */
/* Reading the extent map. */
#include "fs/map/extent.h"

#include <errno.h>
#include <inttypes.h>

#include "alloc/zone.h"
#include "fs/core/inode.h"
#include "fs/core/item.h"

struct zf_extent zf_extent_part(const struct zf_extent *extent, uint64_t from, uint64_t to)
{
	struct zf_extent part = *extent;
	uint64_t end = zf_min_u64(to, extent->offset + extent->len);

	part.offset = zf_max_u64(from, extent->offset);
	part.len = end > part.offset ? end - part.offset : 0;
	if (part.type == ZF_EXTENT_DATA)
		part.address += part.offset - extent->offset;
	return part;
}

void zf_extent_reader_init(struct zf_extent_reader *reader, struct zf_inode *inode)
{
	reader->inode = inode;
	zf_fs_get_item_check(inode->fs, &reader->check);
}

/* `value` holds at least the fixed part of an item of `len` bytes. */
static int decode(struct zf_extent_reader *reader, const struct zf_key *key, const void *value,
		  size_t len, struct zf_extent *ret_extent)
{
	const struct zf_disk_extent *disk = value;
	int r = zf_item_check(&reader->check, ZF_TREE_FS, key, value, len);

	if (r < 0)
		return r;
	*ret_extent = (struct zf_extent){
		.offset = key->offset,
		.len = zf_item_extent_len(disk),
		.address = zf_le64_get(disk->address),
		.generation = zf_le64_get(disk->generation),
		.type = disk->type,
		.flags = disk->flags,
	};
	if (ret_extent->type != ZF_EXTENT_DATA)
		return 0;
	return zf_alloc_check_extent(reader->inode->fs->alloc, ret_extent->address, ret_extent->len,
				     disk->flags & ZF_EXTENT_OVERWRITE);
}

static bool is_extent_of(const struct zf_key *key, const struct zf_inode *inode)
{
	return key->objectid == inode->ino && key->type == ZF_KEY_EXTENT;
}

int zf_extent_find(struct zf_extent_reader *reader, uint64_t offset, struct zf_extent *ret_extent)
{
	struct zf_inode *inode = reader->inode;
	struct zf_forest *forest = inode->fs->forest;
	struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_EXTENT, offset);
	struct zf_disk_extent disk;
	struct zf_extent extent;
	size_t len;
	int r = zf_tree_lookup_le(forest, ZF_TREE_FS, &key, &disk, sizeof(disk), &len);

	if (r == 0 && is_extent_of(&key, inode)) {
		r = decode(reader, &key, &disk, len, &extent);
		if (r < 0)
			return r;
		if (zf_extent_end(&extent) > offset) {
			*ret_extent = extent;
			return 0;
		}
	} else if (r < 0 && r != -ENOENT) {
		return r;
	}
	key = ZF_KEY(inode->ino, ZF_KEY_EXTENT, offset);
	r = zf_tree_lookup_ge(forest, ZF_TREE_FS, &key, &disk, sizeof(disk), &len);
	if (r < 0)
		return r;
	if (!is_extent_of(&key, inode))
		return -ENOENT;
	return decode(reader, &key, &disk, len, ret_extent);
}

struct scan {
	struct zf_extent_reader *reader;
	zf_extent_scan_fn *fn;
	void *arg;
};

static int scan_item(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	const struct scan *scan = arg;
	struct zf_extent extent;
	int r;

	/* zf_tree_scan_le() may begin with an item before the inode's first extent. */
	if (!is_extent_of(key, scan->reader->inode))
		return 0;
	r = decode(scan->reader, key, value, len, &extent);

	if (r < 0)
		return r;
	return scan->fn(scan->arg, &extent, (const uint8_t *)value + sizeof(struct zf_disk_extent));
}

int zf_extent_scan(struct zf_extent_reader *reader, uint64_t from, uint64_t to,
		   zf_extent_scan_fn *fn, void *arg)
{
	struct scan scan = {.reader = reader, .fn = fn, .arg = arg};
	struct zf_key first = ZF_KEY(reader->inode->ino, ZF_KEY_EXTENT, from);
	struct zf_key last = ZF_KEY(reader->inode->ino, ZF_KEY_EXTENT, to);

	return zf_tree_scan(reader->inode->fs->forest, ZF_TREE_FS, &first, &last, scan_item, &scan);
}

int zf_extent_scan_le(struct zf_extent_reader *reader, uint64_t from, uint64_t to,
		      zf_extent_scan_fn *fn, void *arg)
{
	struct scan scan = {.reader = reader, .fn = fn, .arg = arg};
	struct zf_key first = ZF_KEY(reader->inode->ino, ZF_KEY_EXTENT, from);
	struct zf_key last = ZF_KEY(reader->inode->ino, ZF_KEY_EXTENT, to);

	return zf_tree_scan_le(reader->inode->fs->forest, ZF_TREE_FS, &first, &last, scan_item,
			       &scan);
}
