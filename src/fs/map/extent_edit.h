/* SPDX-License-Identifier: MIT */
/*
 * Parts of the edits of the extent map, for extent_put.c, extent_drop.c and extent_inline.c only. A
 * change is planned first and then made; if planning fails, nothing has changed. The edits
 * themselves are declared in fs/map/extent.h.
 *
 * A change begins by setting editor->began, and ends with zf_extent_end_change().
 */
#ifndef ZF_FS_EXTENT_EDIT_H
#define ZF_FS_EXTENT_EDIT_H

#include "fs/map/extent.h"
#include "fs/core/inode.h"

static inline struct zf_inode *zf_extent_editor_inode(const struct zf_extent_editor *editor)
{
	return editor->reader.inode;
}

static inline bool zf_extent_is_shared(const struct zf_extent *extent)
{
	return extent->flags & ZF_EXTENT_SHARED;
}

/* ---- single edits of items ---- */

int zf_extent_set(struct zf_extent_editor *editor, const struct zf_extent *extent);
/* The same with a value that the caller has encoded: an INLINE extent with its bytes. */
int zf_extent_set_value(struct zf_extent_editor *editor, const struct zf_extent *extent,
			const void *value, size_t len);
int zf_extent_delete(struct zf_extent_editor *editor, uint64_t offset);
void zf_extent_encode(const struct zf_extent *extent, struct zf_disk_extent *ret_disk);
/*
 * Ends a change with result r: if r is an error and an edit of the change was made, the editor is
 * torn. Returns r.
 */
int zf_extent_end_change(struct zf_extent_editor *editor, int r);

/*
 * Returns whether the extent has a *name*, an entry in another tree: a SHARED one in the share
 * tree, an OVERWRITE one in the summary tree.
 */
static inline bool zf_extent_has_name(const struct zf_extent *extent)
{
	return extent->flags & (ZF_EXTENT_SHARED | ZF_EXTENT_OVERWRITE);
}

/* The number of tree edits for an extent: its item, and its name if it has one. */
static inline unsigned int zf_extent_edits(const struct zf_extent *extent)
{
	return 1u + zf_extent_has_name(extent);
}

/* ---- extents with names ---- */

/* Before the first edit of a change: checks that the extent's name is in the other tree. */
int zf_extent_check_name(struct zf_extent_editor *editor, const struct zf_extent *extent);
/* Adds the name of a new extent: one edit, or none if an extent of this kind has no name. */
int zf_extent_add_name(struct zf_extent_editor *editor, const struct zf_extent *extent);
/*
 * Gives up the part in [from, to). *ret_dead: how many of its bytes no extent names any more; the
 * caller counts them with the rest of the change. 0 for a SHARED extent, because zf_share_cut()
 * counts them. At most 2 edits.
 */
int zf_extent_give_up(struct zf_extent_editor *editor, const struct zf_extent *extent,
		      uint64_t from, uint64_t to, uint64_t *ret_dead);

/* ---- what the counts say ---- */

/*
 * Notes that [from, to) of the map has changed (fs/core/changes.h). The functions that count call
 * it; an edit that counts nothing must call it itself.
 */
void zf_extent_note_change(struct zf_extent_editor *editor, uint64_t from, uint64_t to);
/* Counts a part of an extent that was removed. No extent names `dead` bytes of it any more. */
void zf_extent_count_removed(struct zf_extent_editor *editor, const struct zf_extent *part,
			     uint64_t dead);
void zf_extent_count_added(struct zf_extent_editor *editor, const struct zf_extent *extent);
/*
 * Ends the counting of a change: applies its changes of kept blocks in one step, and ends the loan
 * of `lent` blocks.
 */
void zf_extent_count_kept(struct zf_extent_editor *editor, uint64_t lent);

/* ---- looking ---- */

/* The last extent that begins before `offset`. -ENOENT. */
int zf_extent_find_before(struct zf_extent_editor *editor, uint64_t offset,
			  struct zf_extent *ret_extent);

struct zf_extents {
	unsigned int count, max;
	struct zf_extent *at;
};

/* Collects the extents that begin in [from, to], at most extents->max. */
int zf_extent_collect(struct zf_extent_editor *editor, uint64_t from, uint64_t to,
		      struct zf_extents *extents);
/* Callback for zf_extent_scan(): adds the extent to a struct zf_extents, until that is full. */
int zf_extent_collect_one(void *arg, const struct zf_extent *extent, const uint8_t *bytes);

#endif
