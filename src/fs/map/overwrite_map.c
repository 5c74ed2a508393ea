/* SPDX-License-Identifier: MIT */
/* The summary tree as the allocation map of the zones that are written in place. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "alloc/overwrite.h"
#include "fs/map/extent_edit.h"
#include "fs/map/overwrite.h"

static struct zf_fs *fs_of(const struct zf_extent_editor *editor)
{
	return zf_extent_editor_inode(editor)->fs;
}

static struct zf_key key_of(const struct zf_extent *extent)
{
	return (struct zf_key)ZF_KEY(extent->address, ZF_KEY_SUMMARY, 0);
}

static struct zf_disk_summary entry_of(const struct zf_extent_editor *editor,
				       const struct zf_extent *extent)
{
	return (struct zf_disk_summary){
		.ino = zf_le64_from(zf_extent_editor_inode(editor)->ino),
		.offset = zf_le64_from(extent->offset),
		.tree = zf_le32_from(ZF_TREE_FS),
		.count = zf_le16_from((uint16_t)(extent->len >> ZF_BLOCK_SHIFT)),
		.flags = zf_le16_from(ZF_SUMMARY_OVERWRITE),
	};
}

int zf_overwrite_check(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	struct zf_disk_summary has, wanted = entry_of(editor, extent);
	struct zf_key key = key_of(extent);
	size_t len;
	int r = zf_tree_lookup(fs_of(editor)->forest, ZF_TREE_SUMMARY, &key, &has, sizeof(has),
			       &len);

	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0 && len == sizeof(has) && memcmp(&has, &wanted, sizeof(has)) == 0)
		return 0;
	return zf_report_corrupt(
		editor->reader.check.report, "extent of inode", zf_extent_editor_inode(editor)->ino,
		"address has %" PRIu64 ", expected one with a summary entry of its "
		"own (key offset %" PRIu64 ")",
		extent->address, extent->offset);
}

static int set(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	struct zf_disk_summary entry = entry_of(editor, extent);
	struct zf_key key = key_of(extent);

	return zf_extent_editor_count(editor,
				      zf_tree_set(fs_of(editor)->forest, editor->trans->writer,
						  ZF_TREE_SUMMARY, &key, &entry, sizeof(entry)));
}

int zf_overwrite_add(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	return set(editor, extent);
}

int zf_overwrite_cut(struct zf_extent_editor *editor, const struct zf_extent *extent, uint64_t from,
		     uint64_t to)
{
	struct zf_extent left = zf_extent_part(extent, 0, from);
	struct zf_extent right = zf_extent_part(extent, to, UINT64_MAX);
	struct zf_key key = key_of(extent);
	int r;

	if (left.len > 0)
		r = set(editor, &left);
	else
		r = zf_extent_editor_count(editor, zf_tree_delete(fs_of(editor)->forest,
								  editor->trans->writer,
								  ZF_TREE_SUMMARY, &key));
	return r == 0 && right.len > 0 ? set(editor, &right) : r;
}

/* ---- the mount ---- */

struct load {
	struct zf_fs *fs;
	struct zf_item_check check;
};

static int load_entry(void *arg, const struct zf_key *key, const void *value, size_t len)
{
	struct load *load = arg;
	const struct zf_disk_summary *entry = value;
	int r = zf_item_check(&load->check, ZF_TREE_SUMMARY, key, value, len);

	if (r < 0 || !(zf_le16_get(entry->flags) & ZF_SUMMARY_OVERWRITE))
		return r;
	return zf_alloc_overwrite_load(load->fs->alloc, key->objectid,
				       (uint64_t)zf_le16_get(entry->count) << ZF_BLOCK_SHIFT);
}

int zf_overwrite_load(struct zf_fs *fs)
{
	const struct zf_geometry *geometry = zf_dev_geometry(fs->dev);
	struct zf_key from = ZF_KEY_MIN;
	struct zf_key to = ZF_KEY(geometry->conventional * geometry->zone_size, 0, 0);
	struct load load = {.fs = fs};
	int r;

	if (!zf_alloc_has_overwrite(fs->alloc))
		return 0;
	zf_fs_get_item_check(fs, &load.check);
	r = zf_tree_scan(fs->forest, ZF_TREE_SUMMARY, &from, &to, load_entry, &load);
	if (r != -EUCLEAN && r != -EIO)
		return r;
	zf_report(&fs->report, ZF_REPORT_WARNING,
		  "the free space in the zones that are written in place is unknown: nothing is "
		  "allocated there until `fsck.zfuse -y` has repaired the filesystem");
	zf_alloc_overwrite_distrust(fs->alloc);
	return 0;
}
