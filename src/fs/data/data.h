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
 * dirty buffer, which waits until the first has landed. Each block in flight is a *ticket*: its
 * landing inserts the block's extent only if the ticket still holds. Truncating and punching revoke
 * the tickets of the blocks that they remove. Nothing in flight belongs to a transaction.
 *
 * Extents are made from the address in the completion. Extents adjacent both in the file and on the
 * device are merged into one (up to ZF_EXTENT_MAX).
 *
 * What a crash shows. Appends complete in any order. But blocks beyond disk_size enter the tree in
 * the order of the file (fs/data/frontier.h), so the size in the tree never covers bytes that did
 * not land, and no extent lies behind it. An append is *held* if one of its blocks has to wait for
 * an earlier block of the file.
 *
 * Small files. The flush stores a file of at most zf_inode_inline_max() bytes in its extent item,
 * without an append. When the file grows, that item still holds block 0 until block 0 is written
 * again.
 *
 * A failed append is retried once in another zone, and up to eight times if zones have turned
 * read-only or offline. If all tries fail, its blocks are dropped, and each open file of the inode
 * is told of the error once (fs/core/write_error.h).
 *
 * Reading takes dirty and in-flight blocks from memory, everything else from the device, each block
 * verified against its checksum in the summary tree (P4).
 *
 * Space. A write reserves its data blocks and the tree items that will record them before it copies
 * anything; the reservation lives with the dirty block. So a write that was answered cannot fail
 * later for space (P5).
 *
 * Locking. data->lock (ZF_RANK_BLOCKS) protects the blocks of one inode; it is taken inside
 * inode->lock, which protects the extents. Blocks become dirty, land and are revoked while
 * inode->lock is held exclusively. (Some writes may make blocks dirty while an fsync keeps the
 * lock: docs/locking.md.) A flush takes dirty blocks into flight with data->lock only. flush->lock
 * is innermost (ZF_RANK_DEV), so that a completion, on the device's thread, can queue its append
 * and signal. Landing may wait for a commit, so it runs on the flusher's thread or on one that
 * waits in fsync. Blocks that ride with a log record land on the thread of their fsync, without
 * waiting for a commit (fs/data/durable.h).
 *
 * Read next: fs/data/block.h, fs/data/append.h, fs/map/extent.h, fs/data/durable.h.
 */
#ifndef ZF_FS_DATA_H
#define ZF_FS_DATA_H

#include <stdbool.h>

#include "fs/core/data_memory.h"

int zf_data_flush_init(struct zf_fs *fs);
/*
 * Waits for the appends on the device, and drops all dirty blocks. The inodes may have been freed
 * already.
 */
void zf_data_flush_deinit(struct zf_fs *fs);

/*
 * Starts appends for the inode's dirty blocks, and stores inline data and a dirty item. With `wait`
 * it returns when all that was dirty at the call, the item included, is in the trees or is lost
 * (fs/core/write_error.h says who is told). No lock held.
 */
int zf_data_flush(struct zf_inode *inode, bool wait);

/* Starts appends for every dirty inode, and with `wait` lands all of them. */
int zf_data_flush_all(struct zf_fs *fs, bool wait);

/*
 * Inserts the extents of completed appends. Returns how many appends made progress. No lock held.
 */
unsigned int zf_data_land(struct zf_fs *fs);

#endif
