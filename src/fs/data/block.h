/* SPDX-License-Identifier: MIT */
/*
 * Blocks of file data in memory, and the pool that they come from.
 *
 *                 write                flush            landed, revoked, lost
 *      (pool) -----------> DIRTY ----------------> FLIGHT ------------------------> GONE --> (pool)
 *                            ^    no memory to land   |           its append ends
 *                            +------------------------+
 *
 * While a block is in FLIGHT, a newer version of it may be DIRTY: both stand in their trees, and
 * the dirty one is `blocked` until the other has landed.
 *
 * Functions ending in _locked need data->lock, and keep the counters of struct zf_data up to date.
 */
#ifndef ZF_FS_BLOCK_H
#define ZF_FS_BLOCK_H

#include "base/bits.h"
#include "fs/core/data_memory.h"

/*
 * What one dirty block may add to the trees: a new extent, the rest of a split one with its name in
 * the share tree, a summary.
 */
#define ZF_BLOCK_ITEMS 4u

enum zf_block_state {
	ZF_BLOCK_POOL,
	ZF_BLOCK_DIRTY,
	ZF_BLOCK_FLIGHT,
	ZF_BLOCK_GONE, /* in no tree; only its append points to it */
};

struct zf_block {
	RB_ENTRY(zf_block) link;
	TAILQ_ENTRY(zf_block) age_link;
	struct zf_block *next; /* in the pool, and in chains taken from it */
	uint8_t *bytes;	       /* ZF_BLOCK_SIZE, aligned to it */
	uint64_t index;	       /* in the file */
	/* Not 0: the block is written in place here and holds no reservation. 0: an append. */
	uint64_t address;
	uint64_t seq;	  /* data->next_seq when it became dirty */
	uint64_t born_ms; /* monotonic; when it became dirty */
	/*
	 * landed_end: how many bytes, from the start of the block, are right in the version that
	 * the trees have (fs/data/frontier.h). landed_end_next: its value after the version in
	 * flight below this one has landed.
	 */
	uint32_t landed_end, landed_end_next;
	enum zf_block_state state;
	bool blocked; /* a version in flight has to land first */
	/*
	 * Its last write did not cover it, so a copy is kept when it lands (recent.h). That is so for
	 * each block of a file that is written in small pieces, also if a later piece has filled the
	 * block: a database writes over its log from the start again.
	 */
	bool partial;
	bool lent; /* it has reserved the block that a ZERO extent keeps here: zf_alloc_lend() */
};

RB_PROTOTYPE(zf_block_tree, zf_block, link, zf_block_compare)

/* ---- the pool ---- */

/* A chain of `count` blocks, or NULL. */
struct zf_block *zf_block_pool_take(struct zf_flush *flush, unsigned int count);
void zf_block_pool_give(struct zf_flush *flush, struct zf_block *chain); /* takes NULL */
/* Gives the memory of all blocks back to the system, if all blocks are in the pool. */
void zf_block_pool_trim(struct zf_flush *flush);
void zf_block_pool_deinit(struct zf_flush *flush);

/* ---- one inode's blocks ---- */

struct zf_block *zf_block_dirty_locked(struct zf_data *data, uint64_t index);
struct zf_block *zf_block_flight_locked(struct zf_data *data, uint64_t index);
/* The version that a reader sees, or NULL. */
struct zf_block *zf_block_newest_locked(struct zf_data *data, uint64_t index);
/* The first block at or behind `index`, of the newest versions. */
struct zf_block *zf_block_next_locked(struct zf_data *data, uint64_t index);

/*
 * The caller has set block->index and bytes. `size` is the file's size before the write that made
 * the block; stored bytes up to `size` count as right.
 */
void zf_block_make_dirty_locked(struct zf_data *data, struct zf_block *block, uint64_t size);
/* Notes that a block that has just become dirty is written in place, at `address`. */
void zf_block_set_address_locked(struct zf_data *data, struct zf_block *block, uint64_t address);
void zf_block_take_off_locked(struct zf_data *data, struct zf_block *block); /* DIRTY -> FLIGHT */
/* FLIGHT -> DIRTY; there is no dirty version of it. Its append no longer has the block. */
void zf_block_put_back_locked(struct zf_data *data, struct zf_block *block);
/* FLIGHT -> GONE; `landed`: the tree has it now. A dirty version of the block becomes ready. */
void zf_block_leave_flight_locked(struct zf_data *data, struct zf_block *block, bool landed);
/* The same, not landed: the dirty version takes its place in data->age, so waiters wait for it. */
void zf_block_give_way_locked(struct zf_data *data, struct zf_block *block);
/*
 * Ends the loan of a block, because the ZERO extent that keeps its space is about to go: the lent
 * space counts as kept again. This must come before the extent changes, or other data could take
 * the space in between. (Landing ends the loan of a block itself: land.c.)
 */
void zf_block_take_back_locked(struct zf_data *data, struct zf_block *block);
/* The same for all blocks in memory of [index, end). Returns how many lent ones were in flight. */
uint64_t zf_block_take_back_range(struct zf_data *data, uint64_t index, uint64_t end);
/* Removes a dirty block; the caller owns it then. */
void zf_block_remove_dirty_locked(struct zf_data *data, struct zf_block *block);

#endif
