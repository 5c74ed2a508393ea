/* SPDX-License-Identifier: MIT */
/*
 * The extent map of one inode: its extents in the fs tree, decoded and checked.
 *
 * Extents do not overlap. An INLINE extent holds block 0, however many bytes it has; other extents
 * have whole blocks. A range that no extent covers is a hole. The caller holds inode->lock,
 * exclusively for edits.
 */
#ifndef ZF_FS_EXTENT_H
#define ZF_FS_EXTENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "alloc/reserve.h"
#include "base/bits.h"
#include "fs/core/fs_format.h"
#include "fs/core/item_check.h"

struct zf_inode;
struct zf_trans;

struct zf_extent {
	uint64_t offset, len; /* in the file, bytes */
	uint64_t address;     /* DATA */
	uint64_t generation;
	enum zf_extent_type type;
	uint8_t flags;
};

/* The file offset behind the extent; of an INLINE extent, behind block 0. */
static inline uint64_t zf_extent_end(const struct zf_extent *extent)
{
	uint64_t end = extent->offset + extent->len;

	return extent->type == ZF_EXTENT_INLINE ? zf_align_up(end, ZF_BLOCK_SIZE) : end;
}

/* Returns whether its blocks are kept space, without a place on the device (alloc/reserve.h). */
static inline bool zf_extent_is_kept(const struct zf_extent *extent)
{
	return extent->type == ZF_EXTENT_ZERO;
}

static inline bool zf_extent_is_guaranteed(const struct zf_extent *extent)
{
	return extent->flags & ZF_EXTENT_GUARANTEED;
}

/* The part in [from, to), which are whole blocks; len 0: there is none. Not for INLINE. */
struct zf_extent zf_extent_part(const struct zf_extent *extent, uint64_t from, uint64_t to);

/* ---- looking ---- */

/*
 * For reading a map. It is initialised before any tree lock is taken, and used for one operation.
 */
struct zf_extent_reader {
	struct zf_inode *inode;
	struct zf_item_check check;
};
void zf_extent_reader_init(struct zf_extent_reader *reader, struct zf_inode *inode);

/* The extent that covers `offset`, or else the first one behind it. -ENOENT. */
int zf_extent_find(struct zf_extent_reader *reader, uint64_t offset, struct zf_extent *ret_extent);

/*
 * Calls fn for each extent that begins in [from, to], in order; `bytes` is the content of an INLINE
 * extent. fn has to follow the rules for the callback of zf_tree_scan().
 */
typedef int zf_extent_scan_fn(void *arg, const struct zf_extent *extent, const uint8_t *bytes);
int zf_extent_scan(struct zf_extent_reader *reader, uint64_t from, uint64_t to,
		   zf_extent_scan_fn *fn, void *arg);
/* The same, but it begins with the last extent that begins at or before `from`, if there is one. */
int zf_extent_scan_le(struct zf_extent_reader *reader, uint64_t from, uint64_t to,
		      zf_extent_scan_fn *fn, void *arg);

/* ---- editing ---- */

/*
 * The edits of one inode's map in one transaction. The edits also keep item.bytes, the live bytes
 * of zones and the share tree (fs/map/share.h) up to date.
 */
struct zf_extent_editor {
	struct zf_extent_reader reader;
	struct zf_trans *trans;
	unsigned int edits; /* tree edits made so far */
	unsigned int began; /* the value of `edits` when the current change began */
	bool torn;	    /* an edit failed after another of the same change: abort */
	/*
	 * Reclaim moves data: the extents that are put have the same content as the range had. So
	 * the log need not describe the change (fs/core/changes.h). The new bytes of a SHARED
	 * extent are not counted as live yet.
	 */
	bool moves;
	uint64_t reserved_blocks;   /* reserved by the caller; new ZERO extents use them up */
	struct zf_kept_change kept; /* of the current change */
	/*
	 * Returns how many of the blocks in the first `len` bytes of the put were lent kept blocks,
	 * and ends these loans. NULL: none were.
	 */
	uint64_t (*take_lent)(void *arg, uint64_t len);
	void *take_lent_arg;
};
void zf_extent_editor_init(struct zf_extent_editor *editor, struct zf_inode *inode,
			   struct zf_trans *trans);
/* Passes on the result of a tree edit and counts it. */
int zf_extent_editor_count(struct zf_extent_editor *editor, int result);

/* The most tree edits of one zf_extent_put(). */
#define ZF_EXTENT_PUT_EDITS 8u

/*
 * Puts a DATA or ZERO extent in the place of all that its range held, or puts only its head,
 * because edits are bounded: *ret_len bytes. A GUARANTEED range stays so. As an extent is
 * GUARANTEED as a whole or not at all, the head ends where the old range changes in that. The new
 * extent is merged with a neighbour in the file of the same type and flags, up to ZF_EXTENT_MAX
 * bytes (ZERO: ZF_EXTENT_ZERO_MAX). DATA extents must also be adjacent on the device, within one
 * zone. SHARED and OVERWRITE extents are never merged, because their entries in the other trees
 * have their lengths.
 */
int zf_extent_put(struct zf_extent_editor *editor, const struct zf_extent *extent,
		  uint64_t *ret_len);
/*
 * Puts `len` bytes of content as the INLINE extent in the place of all that block 0 held. At most 8
 * edits.
 */
int zf_extent_put_inline(struct zf_extent_editor *editor, const uint8_t *bytes, size_t len);
/* Shortens an INLINE extent to `len` bytes, if there is one and it is longer. One edit. */
int zf_extent_trim_inline(struct zf_extent_editor *editor, uint64_t len);
/* The most tree edits of one zf_extent_share(). */
#define ZF_EXTENT_SHARE_EDITS 4u

/*
 * Makes the part of an unshared DATA extent that lies in [from, to), at most ZF_SHARE_MAX bytes, an
 * extent of its own that is SHARED.
 */
int zf_extent_share(struct zf_extent_editor *editor, const struct zf_extent *extent, uint64_t from,
		    uint64_t to);
/*
 * Edits that one call of zf_extent_drop_range() needs at least: for an extent of which a middle
 * part goes, and for its entry in the share or summary tree.
 */
#define ZF_EXTENT_DROP_EDITS 6u

/*
 * Drops extents of [from, to), block multiples, in one transaction, with at most `max_items` (>= 6)
 * tree edits: 0 all gone, 1 more to do. The call updates item.bytes; the caller stores the item.
 * Inode locked exclusively.
 */
int zf_extent_drop_range(struct zf_inode *inode, struct zf_trans *trans, uint64_t from, uint64_t to,
			 unsigned int max_items);
/* The same with an editor. Extents are dropped from the front of the range. */
int zf_extent_drop(struct zf_extent_editor *editor, uint64_t from, uint64_t to,
		   unsigned int max_edits);

#endif
