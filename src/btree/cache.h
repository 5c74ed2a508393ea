/* SPDX-License-Identifier: MIT */
/*
 * The node cache of a forest: verified nodes by (address[0], generation), which no two nodes share.
 *
 * A node is dirty from the moment it gets its address until its transaction is durable. Dirty nodes
 * stay in the cache. The bound of the cache counts clean and dirty nodes. When there are more nodes
 * than the bound, clean nodes without a reference are evicted, chosen by CLOCK; but a quarter of
 * the bound is always left to clean nodes. Transactions bound the number of dirty nodes
 * (txn/txn.h).
 *
 * Lifetime. The cache itself holds one reference to each node in it; zf_cache_get() gives another.
 * The last zf_cnode_put() gives the node back to the pool. So a node that was evicted or removed
 * stays intact for every thread that still has a reference.
 *
 * Locking. Shards, each with a mutex (ZF_RANK_CACHE), held for a few instructions and never two at
 * once. Node bytes are protected by the tree's lock (btree/forest.h), not here.
 */
#ifndef ZF_BTREE_CACHE_H
#define ZF_BTREE_CACHE_H

#include <bsd/sys/queue.h>
#include <stdatomic.h>

#include "base/lock.h"
#include "btree/node.h"
#include "btree/node_pool.h"

struct zf_cnode {
	struct zf_node_pool *pool;  /* the pool that owns the node */
	void *data;		    /* node_size bytes, block-aligned; always the same */
	struct zf_cnode *next_free; /* in the pool */

	/* Constant while the node is in the cache. */
	uint64_t address[ZF_COPIES_MAX];
	uint64_t generation;
	enum zf_tree_id owner;
	uint8_t level;

	/*
	 * The lock of the shard of address[0]. A thread that may edit the node (its generation is
	 * the writer's, and the thread has the tree's write lock) may read `dirty` without that
	 * lock, because `dirty` changes only when the node's transaction, which is then not the
	 * running one, becomes durable.
	 */
	bool dirty;
	bool accessed;
	LIST_ENTRY(zf_cnode) by_address;
	TAILQ_ENTRY(zf_cnode) clock; /* clean nodes only */

	/* The lock of the shard of address[1]; dirty nodes with two copies only. */
	LIST_ENTRY(zf_cnode) by_second;

	/* The tree's write lock while the node is running; the committing thread's when it is
	 * frozen. */
	TAILQ_ENTRY(zf_cnode) dirty_link;
	uint64_t csum; /* 0 until sealed; of dirty nodes only */

	/*
	 * The tree's write lock. Leaves only: the key inserted last, and how many items were
	 * inserted in one run, each directly behind the one before (btree/redistribute.h). Only a
	 * guess, because other edits do not update it.
	 */
	struct zf_key run_end;
	uint32_t run;

	atomic_uint refs;
};

LIST_HEAD(zf_cnode_list, zf_cnode);
TAILQ_HEAD(zf_cnode_queue, zf_cnode);

struct zf_cache_shard {
	struct zf_mutex lock;
	struct zf_cnode_list *by_address, *by_second;
	struct zf_cnode_queue clock; /* the hand is at the head */
	size_t clean, dirty;	     /* nodes in by_address */
	uint64_t hits;
} __attribute__((aligned(64)));

struct zf_cache {
	uint32_t node_size;
	unsigned int shard_count; /* powers of two, both */
	size_t buckets;		  /* of each shard */
	size_t nodes_max;	  /* of each shard */
	struct zf_cache_shard *shards;
	_Atomic uint64_t nodes, nodes_dirty;
	struct zf_node_pool pool;
};

int zf_cache_init(struct zf_cache *cache, uint32_t node_size, uint64_t bytes);
void zf_cache_deinit(struct zf_cache *cache); /* only the cache itself holds references */

/* A node with bytes not yet set, outside the cache, with one reference. NULL: no memory. */
struct zf_cnode *zf_cnode_new(struct zf_cache *cache);
void zf_cnode_put(struct zf_cnode *node); /* takes NULL */
/*
 * Takes one more reference to a node. During this call there must be a reference other than the
 * cache's own. (A first reference is taken under the shard's lock: zf_cache_get().)
 */
struct zf_cnode *zf_cnode_ref(struct zf_cnode *node);

/* With a reference, or NULL. */
struct zf_cnode *zf_cache_get(struct zf_cache *cache, uint64_t address, uint64_t generation);

/*
 * Inserts a clean node and consumes the caller's reference. Returns, with a reference, the node
 * that is in the cache now: this one, or an equal one that another thread has inserted.
 */
struct zf_cnode *zf_cache_insert_clean(struct zf_cache *cache, struct zf_cnode *node);
/* The caller keeps its reference. */
void zf_cache_insert_dirty(struct zf_cache *cache, struct zf_cnode *node);
/* Removes a dirty node that will never be written. */
void zf_cache_remove_dirty(struct zf_cache *cache, struct zf_cnode *node);
void zf_cache_make_clean(struct zf_cache *cache, struct zf_cnode *node);
/* The dirty node of at most this generation at `address` in copy `copy`, without a reference. */
struct zf_cnode *zf_cache_find_dirty(struct zf_cache *cache, uint64_t address, unsigned int copy,
				     uint64_t generation);
uint64_t zf_cache_hits(struct zf_cache *cache);

#endif
