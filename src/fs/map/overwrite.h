/* SPDX-License-Identifier: MIT */
/*
 * Extents that are overwritten in place: flagged ZF_EXTENT_OVERWRITE, in conventional zones.
 *
 * FALLOC_FL_WRITE_ZEROES makes them if the device has conventional zones. Such a range reads as
 * zeroes, and no later write to it can fail for space. Each later write is one write to the device,
 * with FUA if it must be durable, and changes no tree. Two things are missing. There are no
 * checksums, because the trees do not change with the data. And blocks are not atomic: after a
 * power cut an interrupted write may be there in part, in units of 512 bytes.
 *
 *      zf_overwrite_allocate: taken --zeroed, flushed--> extents, in one transaction with the size
 *      write --copy--> dirty block with an address --in_place.c: write there--> landed
 *
 * Each such extent has exactly one entry in the summary tree, of the same length, without
 * checksums. So the summary tree is the allocation map of these zones (alloc/overwrite.h). These
 * extents are never shared, merged or moved.
 *
 * A block gets its address when it becomes dirty, while the inode is locked exclusively
 * (block->address). The address stays right, because an operation that removes the extent discards
 * the blocks in memory before it unlocks the inode. Such a block holds no reservation.
 */
#ifndef ZF_FS_OVERWRITE_H
#define ZF_FS_OVERWRITE_H

#include <stdbool.h>
#include <stdint.h>

struct zf_ctx;
struct zf_extent;
struct zf_extent_editor;
struct zf_fs;
struct zf_inode;

/* ---- the extents' entries in the summary tree (overwrite_map.c) ---- */

/* Checks that the extent has its entry. -EUCLEAN: no. Valid while the inode is locked. */
int zf_overwrite_check(struct zf_extent_editor *editor, const struct zf_extent *extent);
/* Adds the entry of a new extent. One edit. */
int zf_overwrite_add(struct zf_extent_editor *editor, const struct zf_extent *extent);
/* Removes the part in [from, to) of the file from the extent's entry. At most 2 edits. */
int zf_overwrite_cut(struct zf_extent_editor *editor, const struct zf_extent *extent, uint64_t from,
		     uint64_t to);
/* For the mount: tells alloc which bytes are taken. */
int zf_overwrite_load(struct zf_fs *fs);

/* ---- allocating (overwrite.c) ---- */

/*
 * Allocates in-place extents for [from, to), whole blocks, from the front, as far as there is room.
 * The range reads as zeroes afterwards, whatever it held. The file grows accordingly, to `size` at
 * most. *ret_to: where the allocated part ends; the rest is unchanged. No lock and no join held.
 * -EAGAIN: ctx->may_wait is false.
 */
int zf_overwrite_allocate(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t from,
			  uint64_t to, uint64_t size, uint64_t *ret_to);

#endif
