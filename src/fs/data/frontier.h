/* SPDX-License-Identifier: MIT */
/*
 * inode->disk_size: how far the file in the trees is whole.
 *
 * The first block at or behind disk_size that is in memory and not right on the device is the
 * frontier. As blocks land, disk_size goes up to it (and into it, as far as the version that landed
 * last reaches); what lies behind it may not enter the tree yet, or a crash would show a size over
 * a gap that is no hole, or extents behind the end. Blocks that are lost are no frontier: that was,
 * or will be, told by fsync. But where only a part of the stored version counts, for the rest may
 * be bytes that had been cut off, the file ends behind that part again (zf_land_lose()).
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
/* The same where no landing stores the item: the next flush does, if that moved disk_size. */
void zf_frontier_advance(struct zf_inode *inode);
bool zf_frontier_may_land_locked(struct zf_inode *inode, uint64_t index);
/*
 * Is a block in memory whose stored version reaches only into it, as the frontier counts? Behind
 * that point it may hold bytes that were cut off.
 */
bool zf_frontier_has_partial_locked(struct zf_inode *inode);
/*
 * A block in flight is about to be lost: where does the file end without it, if its stored version
 * is not whole? UINT64_MAX: that version is whole, or there is none, or a newer one in memory.
 */
uint64_t zf_frontier_without_locked(struct zf_inode *inode, const struct zf_block *block);
/* Size and disk_size go down to `size`: stored bytes behind it no longer count as right. */
void zf_frontier_shrink_locked(struct zf_inode *inode, uint64_t size);
/*
 * Size and disk_size go up to `size`, after zf_truncate_before_size(): what is stored behind the
 * old end reads as zeroes. So the file keeps its size even if a newer version of its old last block
 * is lost.
 */
void zf_frontier_grow_locked(struct zf_inode *inode, uint64_t size);

#endif
