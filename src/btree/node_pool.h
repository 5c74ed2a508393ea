/* SPDX-License-Identifier: MIT */
/*
 * The allocator of nodes in memory: mapped regions of many nodes each, unmapped when the forest is
 * freed.
 *
 * Nodes are allocated and freed by the thousand. They are large and block-aligned, and the thread
 * that frees a node is not the one that made it. A general allocator keeps a heap for each thread,
 * cuts every node out of a larger piece, and ends with heaps full of holes: half as much again as
 * the nodes themselves. Here the next allocation, by any thread, reuses a freed node, whose pages
 * are already mapped.
 *
 * So a pool never shrinks; the bound of the cache (btree/cache.h) bounds it.
 *
 * Locking. One mutex (ZF_RANK_DEV), held for a few instructions, but for the mapping of a region.
 */
#ifndef ZF_BTREE_NODE_POOL_H
#define ZF_BTREE_NODE_POOL_H

#include <stdint.h>

#include "base/lock.h"

struct zf_cnode;
struct zf_node_region;

struct zf_node_pool {
	uint32_t node_size;

	struct zf_mutex lock; /* protects the fields below */
	struct zf_node_region *regions;
	struct zf_cnode *free; /* linked by next_free */
};

void zf_node_pool_init(struct zf_node_pool *pool, uint32_t node_size);
void zf_node_pool_deinit(struct zf_node_pool *pool); /* every node was given back */

/* All fields of the node but `data` and `pool` are zero; its bytes are not set. NULL: no memory. */
struct zf_cnode *zf_node_pool_take(struct zf_node_pool *pool);
void zf_node_pool_give(struct zf_cnode *node);

#endif
