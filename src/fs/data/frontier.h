/* SPDX-License-Identifier: MIT */
/*
 * inode->disk_size: the size up to which the file in the trees is complete.
 *
 * The frontier is the first block in memory, at or behind disk_size, that is not right as a whole
 * in the trees. (A hole below the file's size counts as right.) As blocks land, disk_size grows up
 * to the frontier, and into that block as far as its stored version is right (block->landed_end).
 * Blocks behind the frontier may not enter the tree yet: after a crash the size would cover a gap
 * that is no hole, or extents would lie behind the end. A lost block is no frontier, because fsync
 * reports the loss. But if only a part of its stored version is right, the rest may be bytes that
 * had been truncated, so the file then ends behind that part again (zf_land_lose()).
 *
 * Callers hold inode->lock exclusively, and data->lock for what ends in _locked.
 */
#ifndef ZF_FS_FRONTIER_H
#define ZF_FS_FRONTIER_H

#include <stdbool.h>
#include <stdint.h>

struct zf_block;
struct zf_inode;

void zf_frontier_advance_locked(struct zf_inode *inode);
/* The same if no landing stores the item: if disk_size moved, the next flush stores the item. */
void zf_frontier_advance(struct zf_inode *inode);
bool zf_frontier_may_land_locked(struct zf_inode *inode, uint64_t index);
/*
 * Returns whether, from disk_size on, a block is in memory whose stored version is right only in
 * its first part. The rest of that version may be truncated bytes.
 */
bool zf_frontier_has_partial_locked(struct zf_inode *inode);
/*
 * Called when a block in flight is about to be lost. Returns where the file then ends, if only the
 * first part of the block's stored version is right. UINT64_MAX: the end stays, because the stored
 * version is right, or there is none, or a newer version is in memory.
 */
uint64_t zf_frontier_without_locked(struct zf_inode *inode, const struct zf_block *block);
/* Lowers size and disk_size to `size`. The stored bytes behind it no longer count as right. */
void zf_frontier_shrink_locked(struct zf_inode *inode, uint64_t size);
/*
 * Raises size and disk_size to `size`, after zf_truncate_before_size(). The stored bytes behind the
 * old end are zeroes then, so the file keeps its size even if a newer version of its old last block
 * is lost.
 */
void zf_frontier_grow_locked(struct zf_inode *inode, uint64_t size);

#endif
