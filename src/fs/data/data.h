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
 * order of the file (fs/data/size.h): so the size in the tree never covers bytes that did not land,
 * and no extent lies behind it. Blocks that have to wait for an earlier one keep their append
 * unfinished ("held").
 *
 * Small files. A file of at most zf_data_inline_max() bytes is stored by the flush's transaction in
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

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/lock.h"
#include "fs/core/changes.h"
#include "fs/core/write_error.h"
#include "txn/txn.h"

struct zf_ctx;
struct zf_fs;
struct zf_inode;
struct zf_extent_info;

struct zf_block;  /* one dirty or in-flight block; block.h */
struct zf_append; /* one append; append.h */
struct zf_slab;

RB_HEAD(zf_block_tree, zf_block);
TAILQ_HEAD(zf_block_list, zf_block);
STAILQ_HEAD(zf_append_list, zf_append);
STAILQ_HEAD(zf_data_list, zf_data);

/* fs/data/close.h */
enum zf_closing {
	ZF_CLOSING_NOT,
	ZF_CLOSING_TRUNCATED, /* to nothing, and not closed since */
	ZF_CLOSING,	      /* closed, and its content is on its way */
};

/* Embedded in every inode. */
struct zf_data {
	struct zf_mutex lock;	     /* ZF_RANK_BLOCKS; the next group */
	struct zf_block_tree dirty;  /* by block index: the newest bytes of a block */
	struct zf_block_tree flight; /* by block index: on their way; older than a dirty block of
					the same index */
	struct zf_block_list age;    /* in the order in which they became dirty */
	uint64_t next_seq;
	uint32_t blocks;   /* in the two trees */
	uint32_t ready;	   /* dirty blocks that a flush may take */
	uint32_t in_place; /* of those in the two trees, what is written in place */
	uint32_t held;	   /* segments of appends that wait for an earlier block of this file */
	uint64_t put_back; /* counts when flight's blocks were, for want of memory */
	struct zf_write_error error;

	/* Under inode->lock. */
	struct zf_changes changes; /* fs/core/changes.h */
	uint64_t write_mark; /* zf_dev_write_mark() when data without FUA last landed; 0: none */
	enum zf_closing closing;
	bool tail_is_zero; /* what lies behind item.size in the last block does not matter:
			      fs/data/tail.h */
	bool dropping;	 /* extents of [drop_from, drop_to) are still to be dropped: nothing may be
			    written ... */
	uint64_t intent; /* ... and this intent says so: fs/data/drop.h */
	uint64_t drop_from, drop_to;
	uint64_t run_end; /* file offset behind the last write ... */
	uint64_t run_len; /* ... and how many bytes before it were written one behind the other */

	/* Under flush->lock. */
	bool eager; /* on flush->eager */
	STAILQ_ENTRY(zf_data) eager_link;
};

/* Embedded in struct zf_fs. */
struct zf_flush {
	_Atomic uint64_t
		used_bytes; /* of all inodes' blocks in memory: bounded by the mount options */
	_Atomic uint64_t flight_bytes; /* of those, what flushes have taken */
	uint32_t limit_blocks;	       /* of one append */
	atomic_bool wanted;	       /* the flusher is to start everything */
	atomic_uint writers_waiting;   /* for others' blocks to land */

	struct zf_mutex lock;	 /* ZF_RANK_DEV; the rest */
	struct zf_cond progress; /* goes with events */
	uint64_t
		events; /* counts all that somebody may be waiting for: completed, landed, wanted */
	unsigned int askers;	       /* who waits for one, but for the flusher */
	struct zf_append_list waiting; /* for room in a zone, in order */
	unsigned int submitted;	       /* appends on the device */
	struct zf_append_list done;    /* completed, to be landed */
	unsigned int landing;	       /* appends that some thread lands now */
	struct zf_append_list held;    /* landed in part */
	uint64_t let_go;	       /* counts when held ones were looked at again */
	struct zf_data_list
		eager; /* inodes with whole appends' worth of dirty blocks; hold a use */
	struct zf_slab *slabs;
	struct zf_block *free_blocks;
	uint64_t pool_blocks, pool_free; /* of all slabs; of these, on free_blocks */
};

int zf_flush_init(struct zf_fs *fs);
/* Waits for what the device is doing and drops whatever is dirty. The inodes may be gone already.
 */
void zf_flush_deinit(struct zf_fs *fs);
void zf_data_init(struct zf_data *data);
void zf_data_deinit(struct zf_data *data); /* with the inode; the blocks stay the flush's */

uint32_t zf_data_inline_max(struct zf_fs *fs);

/* The bodies of zf_fs_read() and zf_fs_write(): the inode's lock is taken inside. */
ssize_t zf_data_read(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t offset, void *buf,
		     size_t len);
ssize_t zf_data_write(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t offset,
		      const void *buf, size_t len, unsigned int flags);

/*
 * The body of zf_fs_copy_range(), for two files (or one) of which the caller has uses.
 * ctx->may_wait is set, no lock held.
 */
ssize_t zf_data_copy_range(struct zf_inode *in, struct zf_inode *out, const struct zf_ctx *ctx,
			   uint64_t offset_in, uint64_t offset_out, uint64_t len);

/*
 * Sets the size, mtime and ctime, and stores the item: inode locked exclusively by the caller, who
 * holds no join. Shrinking drops dirty blocks, revokes tickets and drops extents in as many
 * transactions as it takes, behind a persistent intent when it takes more than one. Growing makes
 * sure that what lies behind the old end reads as zeroes; where data has to land for that, the lock
 * is dropped and taken again. On an error nothing has changed, unless the filesystem is read-only
 * now.
 */
int zf_data_set_size(struct zf_inode *inode, const struct zf_ctx *ctx, uint64_t size);

/*
 * Drops extents of [from, to), block multiples, in one transaction, with at most `max_items` (>= 6)
 * tree edits: 0 all gone, 1 more to do. item.bytes follows; storing it is the caller's. Inode
 * locked exclusively.
 */
int zf_data_drop_extents(struct zf_inode *inode, struct zf_trans *trans, uint64_t from, uint64_t to,
			 unsigned int max_items);

/* Forgets everything dirty or in flight: the inode is being deleted. Locked exclusively, or the
 * only use. */
void zf_data_discard(struct zf_inode *inode);

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

/* Is anything of this inode not in the trees yet? (rename over a file, P2) */
bool zf_data_is_dirty(struct zf_inode *inode);
/*
 * How many bytes have no place on the device yet, in whole blocks. *ret_settling: the number of the
 * file's blocks may still become other than what it has plus those in memory. It will not while
 * nothing of it has a place on the device: then all in memory are new. Inode locked.
 */
uint64_t zf_data_memory_bytes(struct zf_inode *inode, bool *ret_settling);

int zf_data_seek(struct zf_inode *inode, uint64_t offset, int whence, uint64_t *ret_offset);
int zf_data_extents(struct zf_inode *inode, uint64_t offset, struct zf_extent_info *extents,
		    unsigned int max);

#endif
