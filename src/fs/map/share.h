/* SPDX-License-Identifier: MIT */
/*
 * The share tree: who names bytes that several extents name.
 *
 * An extent flagged ZF_EXTENT_SHARED has exactly one name here, under its device address, that says
 * which inode has it, where, and how long it is; and every name has its extent. An extent without
 * the flag is the only one that names its bytes. So whoever gives up part of a shared extent learns
 * here whether the bytes die with it, and the zones' live counts stay exact.
 *
 *      unshared --the first copy: zf_share_add() for it and for the copy--> shared
 *      shared --overwritten, punched, truncated, deleted: zf_share_cut()--> smaller, or gone
 *
 * A shared extent whose other names have gone stays shared: nobody knows where the last one is.
 *
 * Names overlap in any way: two extents may share all of their bytes or part of them. To find all
 * that overlap a range, a shared extent has at most ZF_SHARE_MAX bytes: what begins farther in
 * front of the range does not reach it.
 *
 * Locking. fs->share_lock (ZF_RANK_SHARE) makes looking and giving up one step: else of two inodes
 * that give up the same bytes at once each would see the other's name, and nobody would count them
 * as dead. It is taken inside; the inode is locked exclusively, and joined.
 */
#ifndef ZF_FS_SHARE_H
#define ZF_FS_SHARE_H

#include <stdbool.h>
#include <stdint.h>

struct zf_extent;
struct zf_extent_editor;

/* Is the shared extent's name there? -EUCLEAN. Stays so as long as the inode is locked. */
int zf_share_check(struct zf_extent_editor *editor, const struct zf_extent *extent);

/* The extent has become a shared one, or a shared one was made. One edit. */
int zf_share_add(struct zf_extent_editor *editor, const struct zf_extent *extent);

/*
 * The same where its bytes were moved to (fs/space/reclaim.h): what nobody names there becomes
 * live. One edit.
 */
int zf_share_add_moved(struct zf_extent_editor *editor, const struct zf_extent *extent);

/*
 * The part of a shared extent that lies in [from, to) of the file goes, and with it its name. Those
 * of its bytes that nobody else names are live no longer: counted here, in one step with the look,
 * or a name that comes in between would count them twice. At most 2 edits.
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
 * Mount: is the byte at `address` named, and for how many of the `len` bytes (whole blocks, at most
 * ZF_SHARE_MAX, within a zone) is the answer the same?
 */
struct zf_extent_reader;
int zf_share_look(struct zf_extent_reader *reader, uint64_t address, uint64_t len, bool *ret_named,
		  uint64_t *ret_len);

#endif
