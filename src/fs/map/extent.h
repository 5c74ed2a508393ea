/* SPDX-License-Identifier: MIT */
/*
 * The extent map of one inode: extents as they are in the fs tree, decoded and checked.
 *
 * Extents do not overlap. INLINE stands for block 0, however many bytes it has; the others are
 * whole blocks. What no extent covers is a hole. Callers hold inode->lock, exclusively for edits.
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

/* Behind the last byte of the file that the extent stands for. */
static inline uint64_t zf_extent_end(const struct zf_extent *extent)
{
	uint64_t end = extent->offset + extent->len;

	return extent->type == ZF_EXTENT_INLINE ? zf_align_up(end, ZF_BLOCK_SIZE) : end;
}

/* Are its blocks kept, because they have no place on the device yet (alloc/reserve.h)? */
static inline bool zf_extent_is_kept(const struct zf_extent *extent)
{
	return extent->type == ZF_EXTENT_ZERO;
}

static inline bool zf_extent_is_guaranteed(const struct zf_extent *extent)
{
	return extent->flags & ZF_EXTENT_GUARANTEED;
}

/* The part that lies in [from, to); whole blocks, and len 0 where there is none. Not INLINE. */
struct zf_extent zf_extent_part(const struct zf_extent *extent, uint64_t from, uint64_t to);

/* ---- looking ---- */

/* Filled before any lock of the trees is held; good for one operation. */
struct zf_extent_reader {
	struct zf_inode *inode;
	struct zf_item_check check;
};
void zf_extent_reader_init(struct zf_extent_reader *reader, struct zf_inode *inode);

/* The extent that covers `offset`, or else the first one behind it. -ENOENT. */
int zf_extent_find(struct zf_extent_reader *reader, uint64_t offset, struct zf_extent *ret_extent);

/*
 * Calls fn for each extent that begins in [from, to], in order; `bytes` is an INLINE one's content.
 * As zf_tree_scan(): what holds for its callback holds for this one.
 */
typedef int zf_extent_scan_fn(void *arg, const struct zf_extent *extent, const uint8_t *bytes);
int zf_extent_scan(struct zf_extent_reader *reader, uint64_t from, uint64_t to,
		   zf_extent_scan_fn *fn, void *arg);
/* The same, but first comes the last one that begins at or before `from`, if there is one. */
int zf_extent_scan_le(struct zf_extent_reader *reader, uint64_t from, uint64_t to,
		      zf_extent_scan_fn *fn, void *arg);

/* ---- editing ---- */

/*
 * One transaction's edits of one inode's map; item.bytes, the zones' live counts and the names in
 * the share tree (fs/map/share.h) follow them.
 */
struct zf_extent_editor {
	struct zf_extent_reader reader;
	struct zf_trans *trans;
	unsigned int edits; /* tree edits made so far ... */
	unsigned int began; /* ... and when the change that is being made began */
	bool torn;	    /* an edit failed after another of the same change: abort */
	/*
	 * What is put are the bytes that the range has, moved: no change that the log has to
	 * describe (fs/core/changes.h), and where it is SHARED nobody counts them as live yet.
	 */
	bool moves;
	uint64_t reserved_blocks;   /* of the caller's, that extents which keep space use up */
	struct zf_kept_change kept; /* of the change that is being made */
	/*
	 * Of the first `len` bytes of the put, how many blocks had lent what is kept: they have it
	 * no longer. NULL: none.
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
 * Puts a DATA or ZERO extent in the place of whatever its range held, or as much of its head as the
 * bound on edits allows: *ret_len bytes. Where the range was GUARANTEED it is so
 * afterwards; as that is the new extent's flag, the head ends where this changes. Merges it with
 * its neighbours (DATA where they are adjacent on the device too), but for a SHARED one: that is as
 * long as its name says, and its bytes are live already.
 */
int zf_extent_put(struct zf_extent_editor *editor, const struct zf_extent *extent,
		  uint64_t *ret_len);
/* `len` bytes of content as the INLINE extent, in the place of what block 0 held. At most 8 edits.
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
/* What an extent costs that goes in part from both ends, with its name; and a bit of a sweep. */
#define ZF_EXTENT_DROP_EDITS 6u

/*
 * Drops extents of [from, to), block multiples, in one transaction, with at most `max_items` (>= 6)
 * tree edits: 0 all gone, 1 more to do. item.bytes follows; storing it is the caller's. Inode
 * locked exclusively.
 */
int zf_extent_drop_range(struct zf_inode *inode, struct zf_trans *trans, uint64_t from, uint64_t to,
			 unsigned int max_items);
/* The same with an editor. What goes goes from the front. */
int zf_extent_drop(struct zf_extent_editor *editor, uint64_t from, uint64_t to,
		   unsigned int max_edits);

#endif
