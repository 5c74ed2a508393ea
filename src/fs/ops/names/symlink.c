/* SPDX-License-Identifier: MIT */
#include "fs/ops/names/symlink.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "fs/core/item_check.h"

static size_t chunk_size(const struct zf_fs *fs)
{
	return zf_node_value_max(fs->super.node_size) - sizeof(struct zf_disk_extent);
}

unsigned int zf_symlink_edits(const struct zf_fs *fs, size_t len)
{
	return (unsigned int)((len + chunk_size(fs) - 1) / chunk_size(fs));
}

int zf_symlink_write(struct zf_op *op, const struct zf_inode *inode, const char *target, size_t len)
{
	struct {
		struct zf_disk_extent extent;
		char bytes[ZF_SYMLINK_MAX];
	} item;

	for (size_t at = 0, n; at < len; at += n) {
		struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_EXTENT, at);
		int r;

		n = zf_min_u64(chunk_size(op->fs), len - at);
		item.extent = (struct zf_disk_extent){
			.type = ZF_EXTENT_INLINE,
			.count = zf_le32_from((uint32_t)n),
			.generation = zf_le64_from(op->trans.generation),
		};
		memcpy(item.bytes, target + at, n);
		r = zf_op_insert(op, &key, &item, sizeof(item.extent) + n);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Returns the chunk's length. */
static ssize_t read_chunk(const struct zf_inode *inode, size_t at, char *ret_target)
{
	struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_EXTENT, at);
	uint8_t item[ZF_NODE_SIZE_MAX / 4];
	const struct zf_disk_extent *extent = (const struct zf_disk_extent *)item;
	uint64_t left = inode->item.size - at, expected = zf_min_u64(chunk_size(inode->fs), left);
	size_t len;
	int r;

	r = zf_tree_lookup(inode->fs->forest, ZF_TREE_FS, &key, item, sizeof(item), &len);
	if (r == -ENOENT)
		return zf_report_corrupt(&inode->fs->report, "symbolic link", inode->ino,
					 "its target ends at %zu, expected %" PRIu64, at,
					 inode->item.size);
	if (r == 0)
		r = zf_fs_check_item(inode->fs, &key, item, len);
	if (r < 0)
		return r;
	if (extent->type != ZF_EXTENT_INLINE || zf_le32_get(extent->count) != expected)
		return zf_report_corrupt(
			&inode->fs->report, "symbolic link", inode->ino,
			"extent has type %u and count %u, expected %u and %" PRIu64, extent->type,
			zf_le32_get(extent->count), ZF_EXTENT_INLINE, expected);
	memcpy(ret_target, item + sizeof(*extent), expected);
	return (ssize_t)expected;
}

ssize_t zf_symlink_read(const struct zf_inode *inode, char *buf, size_t size)
{
	char target[ZF_SYMLINK_MAX];
	size_t at = 0;

	while (at < inode->item.size) {
		ssize_t r = read_chunk(inode, at, target + at);

		if (r < 0)
			return r;
		at += (size_t)r;
	}
	if (memchr(target, '\0', at))
		return zf_report_corrupt(&inode->fs->report, "symbolic link", inode->ino,
					 "its target has a zero byte");
	size = zf_min_u64(size, at);
	memcpy(buf, target, size);
	return (ssize_t)size;
}
