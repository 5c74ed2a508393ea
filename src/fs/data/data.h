/* SPDX-License-Identifier: MIT */
/*
 * File data: from a write in memory to extents in the tree, and back.
 *
 *      write --copy--> dirty block --flush: append--> in flight --completion: address known-->
 *      landed --zf_data_land: extents, summary and size inserted in one transaction--> in the tree
 *
 * A dirty block is one block of one inode in a buffer of its own. A flush packs dirty blocks, of
 * one inode or of many, into appends of up to the append limit, and computes their checksums while
 * they are in flight. At most one append is in flight per block: a rewrite meanwhile makes a new
 * dirty buffer, which waits until the first has landed. Each block in flight is the ticket of its
 * append; landing inserts only those that still hold; truncate, punch and the like revoke tickets.
 * Nothing in flight belongs to a transaction.
 *
 * Extents are made from the address in the completion. Extents adjacent both in the file and on the
 * device are merged into one (up to ZF_EXTENT_MAX).
 *
 * What a crash shows. Blocks land in any order, but beyond disk_size they enter the tree in the
 * order of the file (fs/data/frontier.h): so the size in the tree never covers bytes that did not land,
 * and no extent lies behind it. Blocks that have to wait for an earlier one keep their append
 * unfinished ("held").
 *
 * Small files. A file of at most zf_inode_inline_max() bytes is stored by the flush's transaction in
 * its extent item, without an append. When it grows, that item goes on standing for block 0 until
 * the block is written again.
 *
 * A failed append is retried in another zone, once, or more often while zones fail for good; then
 * its blocks are dropped, and the error is kept for those whom it concerns (fs/core/write_error.h).
 *
 * Reading takes dirty and in-flight blocks from memory, everything else from the device, each block
 * verified against its checksum in the summary tree (P4).
 *
 * Space. A write reserves its data blocks and the tree items that will record them before it copies
 * anything; the reservation lives with the dirty block. So a write that was answered cannot fail
 * later for space (P5).
 *
 * Locking. data->lock (ZF_RANK_BLOCKS) protects the blocks of one inode; it is taken inside
 * inode->lock, which protects the extents. Blocks become dirty, land and are revoked with
 * inode->lock held exclusively (they may become dirty beside an fsync that keeps it); a flush,
 * which takes dirty blocks into flight, holds data->lock only. flush->lock is innermost
 * (ZF_RANK_DEV), so that completions (on the device's thread) can queue their append and signal;
 * landing happens on a thread that may wait for a commit: the flusher's, or one that waits in
 * fsync. What rides with a record of the log lands on the thread of its fsync, which waits for none
 * (fs/data/durable.h).
 *
 * Read next: fs/data/block.h, fs/data/append.h, fs/map/extent.h, fs/data/durable.h.
 */
#ifndef ZF_FS_DATA_H
#define ZF_FS_DATA_H

#include <stdbool.h>

#include "fs/core/data_memory.h"

int zf_data_flush_init(struct zf_fs *fs);
/* Waits for what the device is doing and drops whatever is dirty. The inodes may be gone already.
 */
void zf_data_flush_deinit(struct zf_fs *fs);

/*
 * Starts appends for the inode's dirty blocks (inline data, or an item without data: stores it).
 * With `wait`, returns when all that was dirty at the call is in the trees, the item included, or
 * is lost: fs/core/write_error.h says to whom that is told. No lock held.
 */
int zf_data_flush(struct zf_inode *inode, bool wait);

/* Starts appends for every dirty inode, and with `wait` lands all of them. */
int zf_data_flush_all(struct zf_fs *fs, bool wait);

/* Inserts the extents of what has completed. Returns how many appends made progress. No lock held.
 */
unsigned int zf_data_land(struct zf_fs *fs);

#endif
