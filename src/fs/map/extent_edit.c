/* SPDX-License-Identifier: MIT */
#include "fs/map/extent_edit.h"

#include <errno.h>

#include "alloc/reserve.h"
#include "alloc/zone.h"
#include "fs/map/overwrite.h"
#include "fs/map/share.h"

void zf_extent_editor_init(struct zf_extent_editor *editor, struct zf_inode *inode,
			   struct zf_trans *trans)
{
	*editor = (struct zf_extent_editor){.trans = trans};
	zf_extent_reader_init(&editor->reader, inode);
}

/* ---- single edits ---- */

int zf_extent_editor_count(struct zf_extent_editor *editor, int result)
{
	if (result == 0)
		editor->edits++;
	return result;
}

int zf_extent_end_change(struct zf_extent_editor *editor, int r)
{
	if (r < 0 && editor->edits > editor->began)
		editor->torn = true;
	return r;
}

void zf_extent_encode(const struct zf_extent *extent, struct zf_disk_extent *ret_disk)
{
	unsigned int shift = extent->type == ZF_EXTENT_INLINE ? 0 : ZF_BLOCK_SHIFT;

	*ret_disk = (struct zf_disk_extent){
		.type = (uint8_t)extent->type,
		.flags = extent->flags,
		.count = zf_le32_from((uint32_t)(extent->len >> shift)),
		.generation = zf_le64_from(extent->generation),
		.address = zf_le64_from(extent->address),
	};
}

int zf_extent_set(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	struct zf_disk_extent disk;

	zf_extent_encode(extent, &disk);
	return zf_extent_set_value(editor, extent, &disk, sizeof(disk));
}

int zf_extent_set_value(struct zf_extent_editor *editor, const struct zf_extent *extent,
			const void *value, size_t len)
{
	struct zf_inode *inode = zf_extent_editor_inode(editor);
	struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_EXTENT, extent->offset);
	int r = zf_tree_set(inode->fs->forest, editor->trans->writer, ZF_TREE_FS, &key, value, len);

	if (r == 0)
		ZF_TRACE(extent_set, .inode = inode->ino, .offset = extent->offset,
			 .bytes = extent->len, .address = extent->address,
			 .type = (uint8_t)extent->type);
	return zf_extent_editor_count(editor, r);
}

int zf_extent_delete(struct zf_extent_editor *editor, uint64_t offset)
{
	struct zf_inode *inode = zf_extent_editor_inode(editor);
	struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_EXTENT, offset);
	int r = zf_tree_delete(inode->fs->forest, editor->trans->writer, ZF_TREE_FS, &key);

	if (r == 0)
		ZF_TRACE(extent_removed, .inode = inode->ino, .offset = offset);
	return zf_extent_editor_count(editor, r);
}

/* ---- extents with names ---- */

int zf_extent_check_name(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	if (extent->flags & ZF_EXTENT_OVERWRITE)
		return zf_overwrite_check(editor, extent);
	return zf_extent_is_shared(extent) ? zf_share_check(editor, extent) : 0;
}

int zf_extent_add_name(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	if (extent->flags & ZF_EXTENT_OVERWRITE)
		return zf_overwrite_add(editor, extent);
	if (!zf_extent_is_shared(extent))
		return 0;
	return editor->moves ? zf_share_add_moved(editor, extent) : zf_share_add(editor, extent);
}

int zf_extent_give_up(struct zf_extent_editor *editor, const struct zf_extent *extent,
		      uint64_t from, uint64_t to, uint64_t *ret_dead)
{
	*ret_dead = 0;
	if (zf_extent_is_shared(extent))
		return zf_share_cut(editor, extent, from, to);
	*ret_dead = zf_extent_part(extent, from, to).len;
	if (extent->flags & ZF_EXTENT_OVERWRITE)
		return zf_overwrite_cut(editor, extent, from, to);
	return 0;
}

/* ---- what the counts say ---- */

void zf_extent_note_change(struct zf_extent_editor *editor, uint64_t from, uint64_t to)
{
	if (!editor->moves)
		zf_changes_add(&zf_extent_editor_inode(editor)->data.changes, from, to,
			       editor->trans->generation);
}

static void count_promises(struct zf_kept_counts *counts, const struct zf_extent *extent)
{
	bool kept = zf_extent_is_kept(extent), guaranteed = zf_extent_is_guaranteed(extent);
	uint64_t blocks = extent->len >> ZF_BLOCK_SHIFT;

	counts->kept += kept ? blocks : 0;
	counts->guaranteed += guaranteed ? blocks : 0;
	counts->both += kept && guaranteed ? blocks : 0;
}

void zf_extent_count_removed(struct zf_extent_editor *editor, const struct zf_extent *part,
			     uint64_t dead)
{
	struct zf_inode *inode = zf_extent_editor_inode(editor);

	if (part->len > 0)
		zf_extent_note_change(editor, part->offset, zf_extent_end(part));
	if (part->type == ZF_EXTENT_INLINE || part->len == 0)
		return;
	count_promises(&editor->kept.removed, part);
	if (part->type == ZF_EXTENT_DATA && dead > 0)
		zf_alloc_live_sub(inode->fs->alloc, part->address, dead);
	/* In a hostile image item.bytes may be too small. */
	inode->item.bytes -= zf_min_u64(inode->item.bytes, part->len);
}

void zf_extent_count_added(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	struct zf_inode *inode = zf_extent_editor_inode(editor);

	zf_extent_note_change(editor, extent->offset, extent->offset + extent->len);
	count_promises(&editor->kept.added, extent);
	if (extent->type == ZF_EXTENT_DATA && !zf_extent_is_shared(extent))
		zf_alloc_live_add(inode->fs->alloc, extent->address, extent->len);
	inode->item.bytes += extent->len;
}

void zf_extent_count_kept(struct zf_extent_editor *editor, uint64_t lent)
{
	struct zf_alloc *alloc = zf_extent_editor_inode(editor)->fs->alloc;

	editor->kept.reserved = editor->reserved_blocks;
	editor->kept.lent = lent;
	editor->reserved_blocks = zf_alloc_kept_change(alloc, &editor->kept);
	editor->kept = (struct zf_kept_change){0};
}

/* ---- looking ---- */

int zf_extent_find_before(struct zf_extent_editor *editor, uint64_t offset,
			  struct zf_extent *ret_extent)
{
	int r = offset == 0 ? -ENOENT : zf_extent_find(&editor->reader, offset - 1, ret_extent);

	return r == 0 && ret_extent->offset >= offset ? -ENOENT : r;
}

int zf_extent_collect_one(void *arg, const struct zf_extent *extent, const uint8_t *bytes)
{
	struct zf_extents *extents = arg;

	(void)bytes;
	extents->at[extents->count++] = *extent;
	return extents->count == extents->max;
}

int zf_extent_collect(struct zf_extent_editor *editor, uint64_t from, uint64_t to,
		      struct zf_extents *extents)
{
	int r = zf_extent_scan(&editor->reader, from, to, zf_extent_collect_one, extents);

	return r < 0 ? r : 0;
}
