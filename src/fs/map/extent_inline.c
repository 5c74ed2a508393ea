/* SPDX-License-Identifier: MIT */
/* The INLINE extent: the bytes of a small file, in the item itself. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "fs/map/extent_edit.h"

/*
 * The extent gets the generation of the running transaction also when it is only shortened, because
 * the zeroes in the place of the removed bytes are new.
 */
static int set_inline(struct zf_extent_editor *editor, const uint8_t *bytes, uint64_t len)
{
	struct zf_extent extent = {
		.len = len, .generation = editor->trans->generation, .type = ZF_EXTENT_INLINE};
	uint8_t value[sizeof(struct zf_disk_extent) + ZF_INLINE_MAX];

	assert(len > 0 && len <= ZF_INLINE_MAX);
	zf_extent_note_change(editor, 0, ZF_BLOCK_SIZE);
	zf_extent_encode(&extent, (struct zf_disk_extent *)value);
	memcpy(value + sizeof(struct zf_disk_extent), bytes, len);
	return zf_extent_set_value(editor, &extent, value, sizeof(struct zf_disk_extent) + len);
}

int zf_extent_put_inline(struct zf_extent_editor *editor, const uint8_t *bytes, size_t len)
{
	int r = zf_extent_drop(editor, 0, ZF_BLOCK_SIZE, ZF_EXTENT_DROP_EDITS);

	/* One extent holds block 0. It is gone, even if the result is 1 (more to do). */
	if (r < 0)
		return r;
	return zf_extent_end_change(editor, set_inline(editor, bytes, len));
}

int zf_extent_trim_inline(struct zf_extent_editor *editor, uint64_t len)
{
	struct zf_inode *inode = zf_extent_editor_inode(editor);
	struct zf_key key = ZF_KEY(inode->ino, ZF_KEY_EXTENT, 0);
	uint8_t value[sizeof(struct zf_disk_extent) + ZF_INLINE_MAX];
	struct zf_extent extent;
	int r = zf_extent_find(&editor->reader, 0, &extent);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (extent.type != ZF_EXTENT_INLINE || extent.offset > 0 || extent.len <= len)
		return 0;
	if (len == 0) {
		zf_extent_note_change(editor, 0, ZF_BLOCK_SIZE);
		return zf_extent_delete(editor, 0);
	}
	r = zf_tree_lookup(inode->fs->forest, ZF_TREE_FS, &key, value, sizeof(value), NULL);
	if (r < 0)
		return r;
	return set_inline(editor, value + sizeof(struct zf_disk_extent), len);
}
