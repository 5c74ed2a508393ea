/* SPDX-License-Identifier: MIT */
/* Makes a range of the extent map a hole. */
#include <assert.h>
#include <errno.h>

#include "fs/map/extent.h"
#include "fs/map/extent_edit.h"

/* The most extents that one drop collects: a few leaves. */
#define DROPPED_MAX 128u
/* The fewest nodes for which drop_range() is called. */
#define DROP_NODES_MIN 2u

static int drop_range(struct zf_extent_editor *editor, uint64_t from, uint64_t to,
		      unsigned int max_edits)
{
	struct zf_inode *inode = zf_extent_editor_inode(editor);
	struct zf_key first = ZF_KEY(inode->ino, ZF_KEY_EXTENT, from);
	struct zf_key last = ZF_KEY(inode->ino, ZF_KEY_EXTENT, to);
	int r = zf_tree_delete_range(inode->fs->forest, editor->trans->writer, ZF_TREE_FS, &first,
				     &last, max_edits);

	zf_extent_editor_count(editor, r < 0 ? r : 0);
	return r;
}

/* Gives up an extent whose item has been deleted: its name, and its counts. */
static int forget(struct zf_extent_editor *editor, const struct zf_extent *extent)
{
	uint64_t dead;
	int r = zf_extent_give_up(editor, extent, 0, UINT64_MAX, &dead);

	if (r == 0) {
		ZF_TRACE(extent_removed, .inode = zf_extent_editor_inode(editor)->ino,
			 .offset = extent->offset);
		zf_extent_count_removed(editor, extent, dead);
		zf_extent_count_kept(editor, 0);
	}
	return r;
}

/* Forgets the planned extents that were dropped. Those that are still in the tree stay. */
static int forget_dropped(struct zf_extent_editor *editor, const struct zf_extents *planned)
{
	struct zf_extent left[DROPPED_MAX];
	struct zf_extents still = {.max = DROPPED_MAX, .at = left};
	unsigned int next = 0;
	int r = zf_extent_collect(editor, planned->at[0].offset,
				  planned->at[planned->count - 1].offset, &still);

	for (unsigned int i = 0; r == 0 && i < planned->count; i++) {
		if (next < still.count && left[next].offset == planned->at[i].offset)
			next++;
		else
			r = forget(editor, &planned->at[i]);
	}
	return r;
}

/* Cuts the list so that its extents have at most `names` names. Returns how many they have. */
static unsigned int bound_names(struct zf_extents *extents, unsigned int names)
{
	unsigned int named = 0;

	for (unsigned int i = 0; i < extents->count; i++) {
		if (zf_extent_has_name(&extents->at[i]) && named++ == names) {
			extents->count = i;
			return names;
		}
	}
	return named;
}

/* Drops whole extents, in one sweep over at most `nodes` nodes. 1: some are left. */
static int drop_whole(struct zf_extent_editor *editor, struct zf_extents *extents,
		      unsigned int nodes)
{
	int more, r = 0;

	for (unsigned int i = 0; r == 0 && i < extents->count; i++)
		r = zf_extent_check_name(editor, &extents->at[i]);
	if (r < 0 || extents->count == 0)
		return r;
	more = drop_range(editor, extents->at[0].offset, extents->at[extents->count - 1].offset,
			  nodes);
	if (more < 0)
		return more;
	if (more)
		r = forget_dropped(editor, extents);
	else
		for (unsigned int i = 0; r == 0 && i < extents->count; i++)
			r = forget(editor, &extents->at[i]);
	return r < 0 ? r : more;
}

/* The tree edits of drop_part(). */
static unsigned int part_edits(const struct zf_extent *extent)
{
	return 2 * zf_extent_edits(extent);
}

/* Drops the part of an extent that lies in [from, to), and keeps the parts on either side. */
static int drop_part(struct zf_extent_editor *editor, const struct zf_extent *extent, uint64_t from,
		     uint64_t to)
{
	struct zf_extent left = zf_extent_part(extent, 0, from);
	struct zf_extent gone = zf_extent_part(extent, from, to);
	struct zf_extent right = zf_extent_part(extent, to, UINT64_MAX);
	uint64_t dead;
	int r = zf_extent_check_name(editor, extent);

	if (r == 0)
		r = left.len > 0 ? zf_extent_set(editor, &left)
				 : zf_extent_delete(editor, extent->offset);
	if (r == 0 && right.len > 0)
		r = zf_extent_set(editor, &right);
	if (r == 0)
		r = zf_extent_give_up(editor, extent, from, to, &dead);
	if (r == 0) {
		zf_extent_count_removed(editor, &gone, dead);
		zf_extent_count_kept(editor, 0);
	}
	return r;
}

/*
 * Drops the extents that begin in the range: first whole ones, then, of the last one, the part that
 * lies in the range.
 */
static int drop_beginning(struct zf_extent_editor *editor, uint64_t from, uint64_t to,
			  unsigned int max_edits)
{
	unsigned int left = max_edits - editor->edits, names;
	struct zf_extent at[DROPPED_MAX], last = {0};
	struct zf_extents extents = {.max = DROPPED_MAX, .at = at};
	int r = zf_extent_collect(editor, from, to - 1, &extents);
	bool more = extents.count == DROPPED_MAX;

	if (r < 0 || extents.count == 0)
		return r;
	last = at[extents.count - 1];
	if (last.type == ZF_EXTENT_INLINE || zf_extent_end(&last) <= to)
		last.len = 0;
	else
		extents.count--;
	if (extents.count > 0) {
		unsigned int planned = extents.count;

		if (left < DROP_NODES_MIN)
			return 1;
		names = bound_names(&extents, left - DROP_NODES_MIN);
		more |= extents.count < planned;
		left -= names;
		if (last.len > 0 && !more && left >= DROP_NODES_MIN + part_edits(&last))
			left -= part_edits(&last);
		else if (last.len > 0)
			more = true;
		r = drop_whole(editor, &extents, left);
	} else if (left < part_edits(&last)) {
		more = true;
	}
	if (r != 0 || more)
		return r < 0 ? r : 1;
	return last.len > 0 ? drop_part(editor, &last, from, to) : 0;
}

int zf_extent_drop(struct zf_extent_editor *editor, uint64_t from, uint64_t to,
		   unsigned int max_edits)
{
	struct zf_extent before;
	int r;

	if (from >= to)
		return 0;
	assert(max_edits >= editor->edits + ZF_EXTENT_DROP_EDITS);
	editor->began = editor->edits;
	r = zf_extent_find_before(editor, from, &before);
	if (r < 0 && r != -ENOENT)
		return r;
	if (r == 0 && zf_extent_end(&before) > from && before.type != ZF_EXTENT_INLINE) {
		r = drop_part(editor, &before, from, to);
		if (r < 0)
			return zf_extent_end_change(editor, r);
	}
	r = drop_beginning(editor, from, to, max_edits);
	assert(editor->edits <= max_edits);
	return zf_extent_end_change(editor, r);
}

int zf_extent_drop_range(struct zf_inode *inode, struct zf_trans *trans, uint64_t from, uint64_t to,
			 unsigned int max_items)
{
	struct zf_extent_editor editor;
	int r;

	zf_extent_editor_init(&editor, inode, trans);
	r = zf_extent_drop(&editor, from, to, max_items);
	if (editor.torn)
		zf_trans_abort(trans, r, "dropping extents");
	return r;
}
