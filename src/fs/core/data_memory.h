/* SPDX-License-Identifier: MIT */
/*
 * The state of file data in memory: what every inode has of its own, and what all inodes share.
 * fs/data/data.h tells what is done with both, and in which order the locks are taken.
 */
#ifndef ZF_FS_DATA_MEMORY_H
#define ZF_FS_DATA_MEMORY_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "fs/core/changes.h"
#include "fs/core/write_error.h"

struct zf_fs;
struct zf_inode;

struct zf_block;  /* one dirty or in-flight block; fs/data/block.h */
struct zf_append; /* one append; fs/data/append.h */
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
	_Atomic uint64_t begun, ended; /* appends since the mount; of these, gone again */
	uint32_t limit_blocks;	       /* of one append */
	atomic_bool wanted;	       /* the flusher is to start everything */
	atomic_uint writers_waiting;   /* for others' blocks to land */
	atomic_uint zone_no;	       /* where data went last ... */
	atomic_uint zones_begun;       /* ... and how many zones it has begun */

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

void zf_data_init(struct zf_data *data);
void zf_data_deinit(struct zf_data *data); /* with the inode; the blocks stay the flush's */

/* Is anything of this inode not in the trees yet? (rename over a file, P2) */
bool zf_data_is_dirty(struct zf_inode *inode);
/*
 * How many bytes have no place on the device yet, in whole blocks. *ret_settling: the number of the
 * file's blocks may still become other than what it has plus those in memory. It will not while
 * nothing of it has a place on the device: then all in memory are new. Inode locked.
 */
uint64_t zf_data_memory_bytes(struct zf_inode *inode, bool *ret_settling);

/* Read before looking at what is waited for: fs/data/append.h. */
uint64_t zf_flush_events(struct zf_fs *fs);
void zf_flush_event(struct zf_fs *fs);
/* Wakes the flusher, to start all there is. */
void zf_flush_want_all(struct zf_fs *fs);

#endif
