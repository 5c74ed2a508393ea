/* SPDX-License-Identifier: MIT */
/*
 * Files that are overwritten in place: extents flagged ZF_EXTENT_OVERWRITE, in conventional zones.
 *
 * What they promise. FALLOC_FL_WRITE_ZEROES makes them, where the device has such zones: the range
 * reads as zeroes, no later write to it can fail for space, and each costs one write to the device,
 * with FUA when it is to be durable, and nothing in the trees. What they do not have: checksums
 * (bytes that change in place cannot be checked against a tree that does not), and atomic blocks: a
 * write that a power cut interrupts may be there in part, in units of 512 bytes.
 *
 *      zf_overwrite_allocate: taken --zeroed, flushed--> extents, in one transaction with the size
 *      write --copy--> dirty block with an address --in_place.c: write there--> landed
 *
 * Each of them has exactly one entry in the summary tree, as long as it is, without checksums: so
 * the tree is the map of what these zones hold (alloc/overwrite.h). They are never shared, never
 * merged with others, never moved.
 *
 * Where a block is to be written is settled when it becomes dirty, with the inode locked
 * exclusively (block->address). It stays right, because whoever takes the extent away discards the
 * blocks in memory before he unlocks the inode. Such a block holds no reservation.
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

/* Is the extent's entry there? -EUCLEAN. Stays so as long as the inode is locked. */
int zf_overwrite_check(struct zf_extent_editor *editor, const struct zf_extent *extent);
/* The extent was made. One edit. */
int zf_overwrite_add(struct zf_extent_editor *editor, const struct zf_extent *extent);
/* The part of it in [from, to) goes. At most 2 edits. */
int zf_overwrite_cut(struct zf_extent_editor *editor, const struct zf_extent *extent, uint64_t from,
		     uint64_t to);
/* The mount: tells alloc what is taken. */
int zf_overwrite_load(struct zf_fs *fs);

/* ---- allocating (overwrite.c) ---- */

/*
 * Makes what it can of [from, to), whole blocks, a part of the file that reads as zeroes and is
 * overwritten in place, whatever was there; from the front. The file grows to `size` at most, as
 * far as that comes. *ret_to: what lies behind it there was no room for, and nothing has happened
 * to it. No lock and no join held; ctx->may_wait is set, or -EAGAIN.
 */
int zf_overwrite_allocate(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t from,
			  uint64_t to, uint64_t size, uint64_t *ret_to);

#endif
