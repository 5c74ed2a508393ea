/* SPDX-License-Identifier: MIT */
/*
 * Reservations: room that is asked for before it is used, and the statistics of space.
 *
 * Before a write is answered, its data blocks are reserved, and the worst-case metadata for
 * recording them. So accepted data always finds room (promise P5). There are reservations of data
 * blocks and tree items (until the trees record the data), and of nodes (for the changes of one
 * join).
 *
 * *Kept* blocks are blocks that are set aside permanently for one owner: the blocks of ZERO extents
 * (fs/core/fs_format.h), which `fallocate` has allocated and which have no place on the device yet.
 *
 * *Guaranteed* blocks are those of GUARANTEED extents, ZERO or DATA: overwriting them never fails
 * for want of space. The first write to a ZERO one takes its kept block. Each further write takes a
 * free block, and leaves one block of garbage. So what is live and kept stays the same, and reclaim
 * can always restore the room. The blocks that are written and not yet restored come out of a
 * bounded *slack*, which the whole filesystem has once, and which NORMAL reservations leave alone.
 * Nothing about the slack has to be stored for the next mount.
 *
 * Invariants.
 *   - Data never takes the empty zones that metadata, the log and reclaim need.
 *   - NORMAL reservations leave alone the kept blocks, the slack, and the room for recording each
 *     kept and each guaranteed block by itself. OVERWRITE reservations leave alone the same, except
 *     the slack and the room for recording guaranteed blocks. Metadata leaves alone the empty zones
 *     that reserved and kept blocks need.
 *   - Room for the nodes of joins, and for the longest tail of their commit, is not given to data.
 *
 * Locking: alloc.h. No call does I/O or waits.
 */
#ifndef ZF_ALLOC_RESERVE_H
#define ZF_ALLOC_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

struct zf_alloc;

/*
 * What one new item may take in its leaf, in bytes. The value must be at least twice the largest
 * item that a data block needs, because a leaf may be half empty after a split; the rest is for the
 * levels above the leaf. The layer that defines the items asserts this (fs/core/fs_fields.c).
 */
#define ZF_RESERVE_ITEM_BYTES 128u
/*
 * What the items of one kept block may take in the end, in bytes, by the same rule: an extent of
 * one block and the summary entry of one block. Asserted in the same place.
 */
#define ZF_RESERVE_KEPT_BYTES 240u

/* ---- data blocks and items (reserve.c) ---- */

enum zf_reserve_class {
	ZF_RESERVE_NORMAL,
	/* Data that replaces guaranteed blocks, which no other extent shares. */
	ZF_RESERVE_OVERWRITE,
	/* unlink, truncate, punch: may use zones that NORMAL may not, to work on a full device. */
	ZF_RESERVE_FREEING,
	ZF_RESERVE_SYSTEM, /* commits and reclaim */
};

/* Returns whether a caller of this class may be refused for good, because the device is full. */
static inline bool zf_reserve_is_of_user(enum zf_reserve_class class)
{
	return class == ZF_RESERVE_NORMAL || class == ZF_RESERVE_OVERWRITE;
}

/*
 * Reserves `data_blocks` blocks of data and room for `items` new tree items (each with the
 * worst-case share of its leaf) until the trees record them. A reservation of data also leaves room
 * for `nodes` nodes besides those that are promised. -ENOSPC: there is too little room now. A
 * commit might free some, so the caller (txn) commits and tries again before a user sees the error.
 */
int zf_alloc_reserve(struct zf_alloc *alloc, enum zf_reserve_class class, uint64_t data_blocks,
		     uint64_t items, uint64_t nodes);
void zf_alloc_unreserve(struct zf_alloc *alloc, uint64_t data_blocks, uint64_t items);

/*
 * Returns whether a caller that got -ENOSPC should wait for reclaim; otherwise the device is full.
 * It should wait if, with all garbage reclaimed, a caller of class NORMAL or OVERWRITE could
 * reserve `data_blocks` and room for `items`, or the owner of kept blocks could borrow those that
 * are short now.
 */
bool zf_alloc_could_reserve(struct zf_alloc *alloc, enum zf_reserve_class class,
			    uint64_t data_blocks, uint64_t items);

/* ---- nodes (reserve.c) ---- */

/*
 * Promises an operation of the running transaction room for `nodes` nodes, if room for `keep` more
 * and for the longest tail remains; to class NORMAL only if the slack remains, too. Until
 * zf_alloc_promise_over() neither data nor another promise takes that room. -ENOSPC: there is too
 * little room. -EBUSY: there is enough once other promises are over.
 */
int zf_alloc_promise_nodes(struct zf_alloc *alloc, enum zf_reserve_class class, uint64_t nodes,
			   uint64_t keep);
void zf_alloc_promise_over(struct zf_alloc *alloc, uint64_t nodes);

/* The values from which the room for nodes is computed, at one moment. */
struct zf_node_counts {
	uint64_t live;	      /* of all trees but the root and zone trees */
	uint64_t kept;	      /* nodes that recording the kept blocks may need */
	uint64_t overwrites;  /* nodes left for overwriting guaranteed blocks, and as slack */
	uint64_t garbage_min; /* dead nodes that make a zone worth emptying */
};
struct zf_node_counts zf_alloc_count_nodes(struct zf_alloc *alloc);
/* Returns whether there is room for the longest tail. */
bool zf_alloc_can_freeze(struct zf_alloc *alloc);
/*
 * Sets the longest tail that a commit can need: every node of the zone and root trees. Called
 * before any join.
 */
void zf_alloc_set_tail_max(struct zf_alloc *alloc, unsigned int nodes);
/*
 * Sets how many nodes, besides the tail, removals may need. Neither the log nor reclaim takes an
 * empty zone that these nodes need.
 */
void zf_alloc_set_nodes_kept(struct zf_alloc *alloc, uint64_t nodes);

/* ---- kept and guaranteed blocks (kept.c) ---- */

/*
 * On a full filesystem the owner of a kept block reserves it by *borrowing*: the block moves from
 * the kept blocks to the reserved ones, so no free block has to be found. It is *lent* until the
 * data is written or dropped. If the data replaces a ZERO extent, one block fewer is kept from then
 * on.
 *
 * A kept block is *short* if garbage, a crash or a failed zone has taken its place, or metadata has
 * (zf_alloc_kept_give_way()). It cannot be lent until zones come back.
 */
struct zf_kept_counts {
	uint64_t kept, guaranteed, both; /* blocks */
};
struct zf_kept_change {
	struct zf_kept_counts added, removed;
	uint64_t reserved; /* by the caller: newly kept blocks are taken from these first */
	uint64_t lent;	   /* blocks lent to the data that the new extents name */
};

/* Applies the change in one step, within a transaction. Returns how many `reserved` are left. */
uint64_t zf_alloc_kept_change(struct zf_alloc *alloc, const struct zf_kept_change *change);
/*
 * A caller that wants blocks kept or guaranteed, or both, reserves this many items with each block.
 * Together they are at least ZF_RESERVE_KEPT_BYTES.
 */
#define ZF_KEPT_ITEMS 2u
_Static_assert(ZF_KEPT_ITEMS *ZF_RESERVE_ITEM_BYTES >= ZF_RESERVE_KEPT_BYTES, "see above");
/* Reserves `blocks` kept blocks, and `items`. -ENOSPC: too few kept blocks can be lent now. */
int zf_alloc_lend(struct zf_alloc *alloc, uint64_t blocks, uint64_t items);
/* After zf_alloc_unreserve() gave the reservation back: the blocks are no longer lent. */
void zf_alloc_take_back(struct zf_alloc *alloc, uint64_t blocks);
/* Of the blocks that were taken back, `blocks` had been written to: they are short. */
void zf_alloc_kept_used(struct zf_alloc *alloc, uint64_t blocks);
/* Returns whether any block is kept or guaranteed. */
bool zf_alloc_keeps_any(struct zf_alloc *alloc);
/*
 * Returns how many blocks the slack grows by when the first block becomes guaranteed; 0: some block
 * is guaranteed already. The caller reserves these blocks before that, and gives them back after
 * it.
 */
uint64_t zf_alloc_slack_missing(struct zf_alloc *alloc);
/*
 * After a mount has replayed the log: checks how many of the kept blocks are short, because nothing
 * was reserved for the ZERO extents of the records.
 */
void zf_alloc_kept_recount(struct zf_alloc *alloc);
/*
 * Makes one zone of kept blocks short and gives the zone to metadata, which found no room even to
 * free something. This happens only after a crash or with a failing device: data that was written
 * and not committed then fills zones that cannot be reset, because they hold live data too. Returns
 * false if no kept block was left to give.
 */
bool zf_alloc_kept_give_way(struct zf_alloc *alloc);

/* ---- statistics (space.c) ---- */

/*
 * Bytes. Two sums hold:
 *
 *      total              = live + in_place + unusable + reclaimable + free
 *      free + reclaimable = reserved + available
 */
struct zf_space {
	uint64_t total;	      /* of the zones that can hold data or metadata */
	uint64_t live;	      /* named by extents and nodes */
	uint64_t in_place;    /* not live, in OVERWRITE zones: only for data written in place */
	uint64_t unusable;    /* garbage that stays for now: the log's, metadata's, the streams' */
	uint64_t reclaimable; /* garbage that commits and reclaim give back */
	uint64_t free;	      /* not written yet */
	uint64_t reserved;    /* of free and reclaimable: reserved, kept, or set aside */
	uint64_t kept;	      /* of reserved: kept blocks */
	uint64_t available;   /* what a user can still write, after waiting for reclaim */
	uint64_t allocatable; /* of available: what can become kept blocks, with their items */
	uint64_t retired;     /* in no other count: bytes of retired zones that are not live */
};
void zf_alloc_get_space(struct zf_alloc *alloc, struct zf_space *ret_space);

#endif
