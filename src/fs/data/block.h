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
 * Functions ending in _locked want data->lock. Each moves the counters of struct zf_data along.
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
	ZF_BLOCK_GONE, /* only its append still has it */
};

struct zf_block {
	RB_ENTRY(zf_block) link;
	TAILQ_ENTRY(zf_block) age_link;
	struct zf_block *next; /* in the pool, and in chains taken from it */
	uint8_t *bytes;	       /* ZF_BLOCK_SIZE, aligned to it */
	uint64_t index;	       /* in the file */
	/* Where it is written in place; then it has reserved nothing. 0: it goes with an append. */
	uint64_t address;
	uint64_t seq;	  /* data->next_seq when it became dirty */
	uint64_t born_ms; /* monotonic; when it became dirty */
	/*
	 * How much of the block is right on the device: bytes from its start (fs/data/frontier.h). And what
	 * it will be when the version in flight below this one lands.
	 */
	uint32_t landed_end, landed_end_next;
	enum zf_block_state state;
	bool blocked; /* a version in flight is to land first */
	bool lent;    /* has reserved the block that a ZERO extent keeps here: zf_alloc_lend() */
};

RB_PROTOTYPE(zf_block_tree, zf_block, link, zf_block_compare)

/* ---- the pool ---- */

/* A chain of `count` blocks, or NULL. */
struct zf_block *zf_block_pool_take(struct zf_flush *flush, unsigned int count);
void zf_block_pool_give(struct zf_flush *flush, struct zf_block *chain); /* takes NULL */
/* Gives the memory of all blocks back to the system, unless somebody has taken one. */
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
 * block->index and bytes are set. `size` is the file's before the write that made it; stored bytes
 * up to there are taken to be right.
 */
void zf_block_make_dirty_locked(struct zf_data *data, struct zf_block *block, uint64_t size);
/* A block that has just become dirty is written in place. */
void zf_block_set_address_locked(struct zf_data *data, struct zf_block *block, uint64_t address);
void zf_block_take_off_locked(struct zf_data *data, struct zf_block *block); /* DIRTY -> FLIGHT */
/* FLIGHT -> DIRTY, without a version above it: its append has it no longer. */
void zf_block_put_back_locked(struct zf_data *data, struct zf_block *block);
/* FLIGHT -> GONE; `landed`: into the tree. A version above it becomes ready. */
void zf_block_leave_flight_locked(struct zf_data *data, struct zf_block *block, bool landed);
/* The same, not landed: whoever waits for the block waits for the version above it now. */
void zf_block_give_way_locked(struct zf_data *data, struct zf_block *block);
/*
 * The extent that keeps its space is about to go: what was lent counts as kept again. Before the
 * extent changes, or others could take it meanwhile. (A block that lands ends its loan with that:
 * land.c.)
 */
void zf_block_take_back_locked(struct zf_data *data, struct zf_block *block);
/* The same for all blocks in memory of [index, end). How many of them were in flight is returned. */
uint64_t zf_block_take_back_range(struct zf_data *data, uint64_t index, uint64_t end);
/* Takes a dirty block out: it is the caller's. */
void zf_block_remove_dirty_locked(struct zf_data *data, struct zf_block *block);

#endif
