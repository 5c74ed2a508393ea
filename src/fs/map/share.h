/* SPDX-License-Identifier: MIT */
/*
 * The share tree: an index, by device address, of the extents that name shared bytes.
 *
 * An extent flagged ZF_EXTENT_SHARED has exactly one entry here, its *name*, under its device
 * address. The name has the inode, the file offset and the length; and every name has its extent.
 * An extent without the flag is the only one that names its bytes. When part of a shared extent is
 * given up, the tree tells which bytes no other extent names, so the live bytes of zones stay
 * exact.
 *
 *      unshared --the first copy: zf_share_add() for it and for the copy--> shared
 *      shared --overwritten, punched, truncated, deleted: zf_share_cut()--> smaller, or gone
 *
 * An extent stays flagged when all other extents that shared its bytes have gone.
 *
 * Names overlap in any way: two extents may share all of their bytes or part of them. A shared
 * extent has at most ZF_SHARE_MAX bytes. So a search for all names that overlap a range can begin
 * ZF_SHARE_MAX bytes before it.
 *
 * Locking. fs->share_lock (ZF_RANK_SHARE) makes looking and giving up one step. Without it, two
 * inodes that give up the same bytes at once would each see the other's name, and neither would
 * count the bytes as dead. These calls take the lock. The caller has locked the inode exclusively
 * and joined.
 */
#ifndef ZF_FS_SHARE_H
#define ZF_FS_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct zf_extent;
struct zf_extent_editor;

/* Checks that the shared extent has its name. -EUCLEAN: no. Valid while the inode is locked. */
int zf_share_check(struct zf_extent_editor *editor, const struct zf_extent *extent);

/* Adds the name of an extent that has become shared, or is new and shared. One edit. */
int zf_share_add(struct zf_extent_editor *editor, const struct zf_extent *extent);

/*
 * The same for an extent whose bytes reclaim has moved (fs/space/reclaim.h): bytes at the new
 * address that no other extent names become live. One edit.
 */
int zf_share_add_moved(struct zf_extent_editor *editor, const struct zf_extent *extent);

/*
 * Removes the part of a shared extent that lies in [from, to) of the file from its name. The bytes
 * that no other extent names cease to be live. The call counts that under share_lock, because a
 * name that is added between the look and the count would be counted wrongly. At most 2 edits.
 */
int zf_share_cut(struct zf_extent_editor *editor, const struct zf_extent *extent, uint64_t from,
		 uint64_t to);

/* Calls fn for each name whose bytes begin in [from, to), in order, as zf_tree_scan(). */
struct zf_share_name {
	uint64_t address, len;
	uint64_t ino, offset;
};
struct zf_fs;
typedef int zf_share_scan_fn(void *arg, const struct zf_share_name *name);
int zf_share_scan(struct zf_fs *fs, uint64_t from, uint64_t to, zf_share_scan_fn *fn, void *arg);

/*
 * For the mount. *ret_named: whether an extent names the byte at `address`. *ret_len: for how many
 * of the `len` bytes (whole blocks, at most ZF_SHARE_MAX, within a zone) the answer is the same.
 */
struct zf_extent_reader;
int zf_share_look(struct zf_extent_reader *reader, uint64_t address, uint64_t len, bool *ret_named,
		  uint64_t *ret_len);

#endif
