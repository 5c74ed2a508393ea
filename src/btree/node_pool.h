/* SPDX-License-Identifier: MIT */
/*
 * Where nodes in memory come from: mapped regions of many nodes each, given back when the forest
 * goes.
 *
 * Nodes come and go by the thousand, are large, block-aligned, and are freed by another thread than
 * the one that made them. A general allocator keeps a heap for each thread, cuts every node out of
 * a larger piece, and is left with heaps full of holes: half as much again as the nodes themselves.
 * Here a freed node is the next one's, whoever frees or wants it, with its pages already mapped.
 *
 * So a pool never shrinks; what bounds it is the bound of the cache (btree/cache.h).
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

	struct zf_mutex lock; /* the rest */
	struct zf_node_region *regions;
	struct zf_cnode *free; /* linked by next_free */
};

void zf_node_pool_init(struct zf_node_pool *pool, uint32_t node_size);
void zf_node_pool_deinit(struct zf_node_pool *pool); /* every node was given back */

/* Everything but the data and its address is zero. NULL: no memory. */
struct zf_cnode *zf_node_pool_take(struct zf_node_pool *pool);
void zf_node_pool_give(struct zf_cnode *node);

#endif
