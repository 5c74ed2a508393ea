/* SPDX-License-Identifier: MIT */
/*
 * The state of file data in memory: struct zf_data for each inode, and struct zf_flush for all.
 * fs/data/data.h describes the operations on both, and the order of the locks.
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
struct zf_recent; /* fs/data/recent.h */
struct zf_slab;

RB_HEAD(zf_block_tree, zf_block);
TAILQ_HEAD(zf_block_list, zf_block);
STAILQ_HEAD(zf_append_list, zf_append);
STAILQ_HEAD(zf_data_list, zf_data);

/* fs/data/close.h */
enum zf_closing {
	ZF_CLOSING_NOT,
	ZF_CLOSING_TRUNCATED, /* truncated to nothing, and not closed since */
	ZF_CLOSING,	      /* closed, and its content has not landed yet */
};

/* Embedded in every inode. */
struct zf_data {
	struct zf_mutex lock;	     /* ZF_RANK_BLOCKS; protects the fields up to `error` */
	struct zf_block_tree dirty;  /* by block index: the newest version of a block */
	struct zf_block_tree flight; /* by block index: blocks in flight; older than a dirty block
					of the same index */
	struct zf_block_list age;    /* in the order in which they became dirty */
	uint64_t next_seq;
	uint32_t blocks;   /* in the two trees */
	uint32_t ready;	   /* dirty blocks that a flush may take */
	uint32_t in_place; /* blocks in the two trees that are written in place */
	uint32_t held;	   /* segments of appends that wait for an earlier block of this file */
	uint64_t put_back; /* how often blocks in flight became dirty again for want of memory */
	struct zf_write_error error;

	/* Under inode->lock. */
	struct zf_changes changes; /* fs/core/changes.h */
	uint64_t write_mark; /* zf_dev_write_mark() when data without FUA last landed; 0: none */
	enum zf_closing closing;
	bool tail_is_zero; /* the bytes behind item.size in the last block need not be zeroed:
			      fs/data/tail.h */
	bool dropping;	 /* extents of [drop_from, drop_to) are still to be dropped, and nothing may
			    be written before that: fs/data/drop.h */
	uint64_t intent; /* if dropping: the number of the intent for the rest */
	uint64_t drop_from, drop_to;
	uint64_t run_end; /* file offset behind the last write */
	uint64_t run_len; /* bytes that consecutive writes have written up to run_end */

	/* Under flush->lock. */
	bool eager; /* on flush->eager */
	STAILQ_ENTRY(zf_data) eager_link;
};

/* Embedded in struct zf_fs. */
struct zf_flush {
	_Atomic uint64_t
		used_bytes; /* of all inodes' blocks in memory: bounded by the mount options */
	_Atomic uint64_t flight_bytes; /* the part of used_bytes that appends have taken */
	_Atomic uint64_t begun, ended; /* appends that were made, and freed, since the mount */
	uint32_t limit_blocks;	       /* the most blocks of one append */
	struct zf_recent *recent;      /* has locks of its own */
	atomic_bool wanted;	       /* the flusher is to start everything */
	atomic_uint writers_waiting;   /* threads that wait in zf_flush_admit() for room */
	atomic_uint zone_no;	       /* the zone of the last append */
	atomic_uint zones_begun;       /* how often zone_no has changed */

	struct zf_mutex lock;	 /* ZF_RANK_DEV; protects the fields below */
	struct zf_cond progress; /* goes with `events`; see zf_append_event_for_askers() */
	uint64_t
		events; /* counts all that a thread may wait for: completions, landings, requests */
	unsigned int askers;	       /* threads that wait for an event, without the flusher */
	struct zf_append_list waiting; /* appends that wait for room in a zone, in order */
	unsigned int submitted;	       /* appends on the device */
	struct zf_append_list done;    /* completed appends that have to land */
	unsigned int landing;	       /* appends that some thread lands now */
	struct zf_append_list held;    /* appends that have landed in part */
	uint64_t let_go;	       /* counts the calls of zf_append_retry_held() */
	struct zf_data_list
		eager; /* inodes with whole appends' worth of dirty blocks; hold a use */
	struct zf_slab *slabs;
	struct zf_block *free_blocks;
	uint64_t pool_blocks, pool_free; /* blocks of all slabs; blocks on free_blocks */
};

void zf_data_init(struct zf_data *data);
void zf_data_deinit(struct zf_data *data); /* with the inode; the blocks belong to the pool */

/* Returns whether the inode has data that is not in the trees yet. (rename over a file, P2) */
bool zf_data_is_dirty(struct zf_inode *inode);
/*
 * Returns how many bytes have no place on the device yet, in whole blocks. *ret_settling: whether
 * the file's number of blocks may still differ from its allocated blocks plus its blocks in memory.
 * It cannot while the file has nothing allocated and nothing in flight: all blocks in memory are
 * new then. Inode locked.
 */
uint64_t zf_data_memory_bytes(struct zf_inode *inode, bool *ret_settling);

/* For zf_append_wait() (fs/data/append.h). Read it before checking the condition to wait for. */
uint64_t zf_flush_events(struct zf_fs *fs);
void zf_flush_event(struct zf_fs *fs);
/*
 * Wakes the flusher to flush all dirty inodes: it starts writing their blocks, and stores the items
 * of inodes without blocks in memory, except lazy ones.
 */
void zf_flush_want_all(struct zf_fs *fs);

#endif
