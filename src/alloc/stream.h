/* SPDX-License-Identifier: MIT */
/*
 * The streams of metadata: addresses for nodes, and the freeze that cuts them into transactions.
 *
 * A node gets its address when it is copied, long before it is written. Each copy of metadata has
 * one sequential stream. A transaction takes slots (places for one node) of it in ascending order,
 * and its commit writes them in the same order.
 *
 * A commit edits the root and zone trees after the freeze. Slots for those edits, the *tail*, are
 * reserved at the freeze.
 *
 * Invariants.
 *   - A slot is taken in every copy or in none.
 *   - Room for the longest tail is never given to anything else, so a commit cannot run out of it.
 *   - A `system` node is one of the root or zone tree; zone items do not count it as live.
 *
 * Locking: alloc.h. zf_alloc_freeze() is called while no join is held.
 */
#ifndef ZF_ALLOC_STREAM_H
#define ZF_ALLOC_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/zone_format.h"
#include "superblock/super.h"

struct zf_alloc;

/* Takes the next slot of the running transaction, in each copy. -ENOSPC. */
int zf_alloc_node(struct zf_alloc *alloc, bool system, uint64_t ret_address[ZF_COPIES_MAX]);
/* The trees no longer use the node. */
void zf_alloc_node_free(struct zf_alloc *alloc, const uint64_t address[ZF_COPIES_MAX], bool system);

/* One piece of a transaction's metadata in one copy, within one zone. */
struct zf_meta_run {
	uint32_t zone_no;
	bool failed; /* set by the thread that writes it */
	/*
	 * Addresses of the first byte and of the byte after the last. Where the run reaches the end
	 * of the zone, the bytes behind its last slot are written as zeroes.
	 */
	uint64_t from, to;
};

/* A zone item as of the freeze. */
struct zf_zone_snapshot {
	uint32_t zone_no;
	struct zf_disk_zone item;
};

/* What a freeze hands over to the commit. */
struct zf_alloc_frozen {
	uint64_t generation;
	unsigned int run_count[ZF_COPIES_MAX];
	struct zf_meta_run *runs[ZF_COPIES_MAX]; /* to be written in this order */
	uint32_t zone_count;
	struct zf_zone_snapshot *zones; /* the items that changed, by zone number; new ones last */
	uint32_t zones_total;		/* of the filesystem: for the superblock */
	unsigned int tail_used, tail_count;
	uint64_t (*tail)[ZF_COPIES_MAX];      /* the slots of the tail */
	uint32_t meta_zone[ZF_COPIES_MAX];    /* where the streams continue after this ... */
	uint64_t meta_pointer[ZF_COPIES_MAX]; /* ... transaction: for the superblock */
	uint64_t kept_bytes, guaranteed_bytes, kept_guaranteed_bytes; /* for the superblock */
};

/*
 * Freezes the running transaction: reserves the tail at the end of the stream (`path_nodes` for
 * each zone item that changed, but never more than the tail's maximum), takes the snapshot, and
 * begins transaction running+1 behind it. -ENOSPC, -ENOMEM: nothing is frozen.
 */
int zf_alloc_freeze(struct zf_alloc *alloc, unsigned int path_nodes,
		    struct zf_alloc_frozen **ret_frozen);
/* Takes a slot of the tail, for the commit. -ENOSPC: the tail was reserved too short. */
int zf_alloc_tail_node(struct zf_alloc *alloc, struct zf_alloc_frozen *frozen,
		       uint64_t ret_address[ZF_COPIES_MAX]);
/* The superblock of frozen->generation is durable. */
void zf_alloc_committed(struct zf_alloc *alloc, const struct zf_alloc_frozen *frozen);
void zf_alloc_frozen_free(struct zf_alloc_frozen *frozen); /* takes NULL */

/* A commit could not write its run in this zone: the zone gets no more nodes. */
void zf_alloc_stream_failed(struct zf_alloc *alloc, uint32_t zone_no);

#endif
