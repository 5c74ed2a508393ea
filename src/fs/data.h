/* SPDX-License-Identifier: MIT */
/*
 * File data: from a write in memory to extents in the tree, and back.
 *
 *      write --copy--> dirty block --flush: append--> in flight --completion: address known-->
 *      landed --zf_data_land: extents, summary and size inserted in one transaction--> in the tree
 *
 * A dirty block is one block of one inode in a buffer of its own. A flush takes runs of dirty blocks, makes
 * appends of up to the append limit, and computes checksums while they are in flight. At most one
 * append is in flight per block: a rewrite meanwhile makes a new dirty buffer, which waits until the first has
 * landed. Each block in flight carries the ticket of its append; landing inserts only the blocks that
 * still hold it; truncate, punch and the like revoke tickets. Nothing in flight belongs to a transaction.
 *
 * Where the device splits or reorders appends, extents are made from the addresses in the completions. Extents
 * adjacent both in the file and on the device are merged into one (up to ZF_EXTENT_MAX).
 *
 * Small files. A file of at most zf_data_inline_max() bytes lives inline in its extent item; it is written by
 * the flush's transaction, without an append.
 *
 * A failed append is retried once in another zone; if that fails too the error is kept and reported once by the
 * next fsync of the file, and the data stays readable from memory until then.
 *
 * Reading takes dirty and in-flight blocks from memory, everything else from the device, each block verified
 * against its checksum in the summary tree (P4).
 *
 * Space. A write reserves its data blocks and the tree items that will record them before it copies anything; the
 * reservation lives with the dirty block. So a write that was answered cannot fail later for space (P5).
 *
 * Locking. data->lock (ZF_RANK_BLOCKS) protects the blocks of one inode; it is taken inside inode->lock, which
 * protects the extents. flush->lock (ZF_RANK_FS) protects the shared counters and lists. Completions (on the device's
 * thread) only put the append on flush->done and signal; landing happens on a thread that may wait
 * for a commit: the flusher's, or one that waits in fsync.
 */
#ifndef ZF_FS_DATA_H
#define ZF_FS_DATA_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/lock.h"
#include "txn/txn.h"

struct zf_ctx;
struct zf_fs;
struct zf_inode;
struct zf_extent_info;

struct zf_block;  /* one dirty or in-flight block; data.c */
struct zf_append; /* one append in flight; flush.c */

RB_HEAD(zf_block_tree, zf_block);
STAILQ_HEAD(zf_append_list, zf_append);

/* Embedded in every inode. */
struct zf_data {
	struct zf_mutex lock; /* ZF_RANK_BLOCKS */
	struct zf_block_tree blocks; /* by block index */
	uint64_t dirty_blocks, flight_blocks;
	int error; /* of a failed append: reported by the next fsync, once */
};

/* Embedded in struct zf_fs. */
struct zf_flush {
	struct zf_mutex lock; /* ZF_RANK_FS */
	struct zf_cond progress; /* something landed, or room for dirty data came free */
	uint64_t dirty_bytes, flight_bytes; /* of all inodes; dirty_bytes is bounded by the mount options */
	struct zf_append_list done; /* completed, not landed */
	struct zf_block *free_blocks; /* pool of buffers */
	uint64_t pool_blocks;
};

int zf_flush_init(struct zf_fs *fs);
void zf_flush_deinit(struct zf_fs *fs); /* drops whatever is dirty */
void zf_data_init(struct zf_data *data);
void zf_data_deinit(struct zf_data *data);

uint32_t zf_data_inline_max(struct zf_fs *fs);

/* The bodies of zf_fs_read() and zf_fs_write(): the inode's lock is taken inside. */
ssize_t zf_data_read(struct zf_inode *inode, uint64_t offset, void *buf, size_t len);
ssize_t zf_data_write(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t offset, const void *buf,
		      size_t len, unsigned int flags);

/*
 * Sets the size: inode locked exclusively by the caller (item.size and disk_size are set here). Shrinking drops dirty
 * blocks, revokes tickets, zeroes the rest of the last block, and drops extents in as many transactions as it takes, behind a
 * persistent intent when it takes more than one: so the caller holds no join. The item is stored here.
 */
int zf_data_set_size(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t size);

/* Drops extents of [from, to) in one transaction, at most about `max_items`: 0 all gone, 1 more to do. */
int zf_data_drop_extents(struct zf_inode *inode, struct zf_trans *trans, uint64_t from, uint64_t to,
			 unsigned int max_items);

/* Forgets everything dirty or in flight (the inode is being deleted). */
void zf_data_discard(struct zf_inode *inode);

/*
 * Starts appends for the inode's dirty blocks (inline data: stores it). With `wait`, returns when all
 * that was dirty at the call has landed, with its error if one failed (cleared). No lock held.
 */
int zf_data_flush(struct zf_inode *inode, bool wait);

/* Starts appends for every dirty inode, and with `wait` lands all of them. */
int zf_data_flush_all(struct zf_fs *fs, bool wait);

/* Inserts the extents of what has completed. Returns how many appends it landed. */
unsigned int zf_data_land(struct zf_fs *fs);

/* Is anything of this inode not in the trees yet? (rename over a file, P2) */
bool zf_data_is_dirty(struct zf_inode *inode);

int zf_data_seek(struct zf_inode *inode, uint64_t offset, int whence, uint64_t *ret_offset);
int zf_data_extents(struct zf_inode *inode, uint64_t offset, struct zf_extent_info *extents,
		    unsigned int max);

#endif
