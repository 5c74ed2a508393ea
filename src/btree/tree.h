/* SPDX-License-Identifier: MIT */
/*
 * Copy-on-write B-trees: search, modify, and what a commit needs of them.
 *
 * A forest is the set of trees of one filesystem with the node cache that they share. Operations
 * edit the trees directly, in memory. A node whose generation is older than the writer's is
 * copied to a new address before it is changed. So freezing a transaction only means starting a new
 * generation: from then on no operation changes the frozen nodes, and the commit writes them while
 * operations go on.
 *
 * Locking. Each tree has a reader-writer lock (ZF_RANK_TREE), taken inside these calls and never
 * held across I/O: when a node is missing from the cache the lock is dropped, the node read and
 * verified, and the search starts over. Every call is atomic with regard to the others on that
 * tree, but for zf_tree_scan() and zf_tree_delete_range(), which are sequences of atomic steps.
 * Values are copied out, so nothing is held when a call returns. The transaction makes an operation
 * of several calls atomic (txn/txn.h).
 *
 * Errors. -EUCLEAN, -EIO: a node could not be read or verified, in any copy. -ENOSPC: the writer
 * has no address left. A failed modification has changed nothing. A forged image never crashes or
 * hangs a call. But it may name a node twice, and then the node is freed twice, so a writer's
 * free() checks its arguments.
 *
 * Read next: btree/node_format.h, btree/node.h, btree/cache.h.
 */
#ifndef ZF_BTREE_TREE_H
#define ZF_BTREE_TREE_H

#include <stddef.h>

#include "btree/key.h"
#include "btree/node.h"
#include "io/dev.h"

struct zf_forest;

/*
 * A writer gives a transaction's edits their generation and the addresses of their new nodes. There
 * is one writer for the running transaction (addresses in the metadata stream) and one for the
 * commit's edits of the zone and root trees (addresses in the reserved tail). Its functions are
 * called with the tree's lock held, so they must not do I/O or wait.
 */
struct zf_writer {
	uint64_t generation;
	/* The next address of the stream, in each copy; -ENOSPC. */
	int (*alloc)(struct zf_writer *writer, uint64_t ret_address[ZF_COPIES_MAX]);
	/*
	 * Called when a node is no longer part of the running trees. If node_generation is the
	 * writer's own, the node was never written, and its place in the stream becomes a hole.
	 */
	void (*free)(struct zf_writer *writer, const uint64_t address[ZF_COPIES_MAX],
		     uint64_t node_generation, enum zf_tree_id owner);
};

struct zf_forest_options {
	struct zf_node_shape shape;
	uint64_t cache_bytes; /* of nodes in memory; exceeded only while much of it is dirty */
};

int zf_forest_new(struct zf_dev *dev, const struct zf_forest_options *options,
		  const struct zf_report *report, struct zf_forest **ret_forest);
void zf_forest_free(struct zf_forest *forest); /* drops everything, dirty or not; takes NULL */

const struct zf_node_shape *zf_forest_shape(const struct zf_forest *forest);

/* ---- roots ---- */

/* Makes a tree known to the forest, with its root on disk. */
void zf_tree_set_root(struct zf_forest *forest, enum zf_tree_id tree, const struct zf_node_ptr *ptr,
		      uint8_t level);
/* A new tree: one empty leaf. */
int zf_tree_create(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id tree);
/* The running root; the csum is valid only after zf_forest_seal(). */
void zf_tree_get_root(struct zf_forest *forest, enum zf_tree_id tree, struct zf_node_ptr *ret_ptr,
		      uint8_t *ret_level);

/* ---- search ---- */

/* Copies at most `size` bytes of the value; *ret_len (may be NULL) is its full length. -ENOENT. */
int zf_tree_lookup(struct zf_forest *forest, enum zf_tree_id tree, const struct zf_key *key,
		   void *buf, size_t size, size_t *ret_len);

/* The first item >= *key, or the last item <= *key: updates *key to the one found. -ENOENT. */
int zf_tree_lookup_ge(struct zf_forest *forest, enum zf_tree_id tree, struct zf_key *key, void *buf,
		      size_t size, size_t *ret_len);
int zf_tree_lookup_le(struct zf_forest *forest, enum zf_tree_id tree, struct zf_key *key, void *buf,
		      size_t size, size_t *ret_len);

/*
 * Calls fn for the items from <= key <= to, in order, straight from the leaves, with the tree's
 * read lock held: fn must not call into the forest, do I/O or take locks ranked before
 * ZF_RANK_TREE. A result of fn other than 0 ends the scan and is returned. Between leaves the lock
 * may be dropped: items are seen once each, in order, but not as one snapshot; a caller that needs
 * one holds what keeps writers out (the inode's lock).
 */
typedef int zf_tree_scan_fn(void *arg, const struct zf_key *key, const void *value, size_t len);
int zf_tree_scan(struct zf_forest *forest, enum zf_tree_id tree, const struct zf_key *from,
		 const struct zf_key *to, zf_tree_scan_fn *fn, void *arg);

/* The same, but it begins with the last item <= from, if there is one. */
int zf_tree_scan_le(struct zf_forest *forest, enum zf_tree_id tree, const struct zf_key *from,
		    const struct zf_key *to, zf_tree_scan_fn *fn, void *arg);

/* ---- modify ---- */

/* -EEXIST if the key is there; -EINVAL if len > zf_node_value_max(). */
int zf_tree_insert(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id tree,
		   const struct zf_key *key, const void *value, size_t len);
/* Sets the value, of any length, and inserts the key if it is missing. */
int zf_tree_set(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id tree,
		const struct zf_key *key, const void *value, size_t len);
/* Sets the value of a key that exists. -ENOENT. */
int zf_tree_update(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id tree,
		   const struct zf_key *key, const void *value, size_t len);
/* -ENOENT. Empty and nearly empty nodes are merged with their neighbours. */
int zf_tree_delete(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id tree,
		   const struct zf_key *key);
/*
 * Deletes the keys in [from, to]. Whole leaves are unlinked from their parents, and are not read if
 * the parent's keys suffice. The call stops once it has allocated or freed `max_nodes` nodes; it
 * allocates at most max_nodes + zf_forest_worst_nodes(). Returns 0 when all keys are deleted, 1
 * when there may be more: call again. If the call fails, it has deleted nothing.
 */
int zf_tree_delete_range(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id tree,
			 const struct zf_key *from, const struct zf_key *to,
			 unsigned int max_nodes);

/*
 * Copies the node (owner, level, first key) to the writer's stream if the node still lies at
 * `address`. This empties a metadata zone. 0: copied; 1: the node is not at `address` (not live, or
 * already copied).
 */
int zf_tree_relocate(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id tree,
		     uint8_t level, const struct zf_key *first_key, uint64_t address);

/*
 * The most nodes that one insert, set, update, delete or relocate can allocate, in any tree: now,
 * and still after some hundred other operations (the proof is at the definition).
 */
unsigned int zf_forest_worst_nodes(struct zf_forest *forest);

/* ---- commit ---- */

/* Bytes of nodes that are not on the device yet. */
uint64_t zf_forest_dirty_bytes(struct zf_forest *forest);
/* The part of these bytes that was changed since the last freeze. */
uint64_t zf_forest_running_bytes(struct zf_forest *forest);

/*
 * zf_forest_freeze() remembers the roots of all trees. It is called while no join is held.
 * zf_forest_seal() finishes the dirty nodes of `tree` whose generation is <= `generation`: it runs
 * the checker, and fills in the checksums bottom-up, also in running copies of the parents. It
 * returns the pointer to the root of that generation, which the caller writes into the root tree or
 * the superblock. The root and zone trees are sealed as they are now, because only the commit edits
 * them, after the freeze. The commit seals all trees before zf_forest_clean(), and cleans before
 * the next freeze.
 */
void zf_forest_freeze(struct zf_forest *forest, uint64_t generation);
int zf_forest_seal(struct zf_forest *forest, enum zf_tree_id tree, uint64_t generation,
		   struct zf_node_ptr *ret_root, uint8_t *ret_level);

/*
 * The bytes of the sealed dirty node that lies at `address` in copy `copy`; they do not change
 * until zf_forest_clean(). NULL: the stream has a hole there.
 */
const void *zf_forest_dirty_node(struct zf_forest *forest, uint64_t address, unsigned int copy,
				 uint64_t generation);

/* The transaction is durable: its nodes are clean and may leave the cache. */
void zf_forest_clean(struct zf_forest *forest, uint64_t generation);

/* ---- walk (check, tools) ---- */

/*
 * Calls fn for every node of the tree, parents first; node bytes are valid during the call only.
 * A node that cannot be read is reported to fn with node NULL and `error`, and the walk goes on.
 * The tree must not change meanwhile (unmounted, or the caller holds the commit lock and joins).
 */
typedef int zf_tree_walk_fn(void *arg, const struct zf_node_expect *expect, const void *node,
			    int error);
int zf_tree_walk(struct zf_forest *forest, enum zf_tree_id tree, zf_tree_walk_fn *fn, void *arg);

/* Reads and verifies one node (any copy) into buf of node_size bytes. */
int zf_forest_read_node(struct zf_forest *forest, const struct zf_node_expect *expect, void *buf);
/* The same of one copy. -EUCLEAN, -EIO: reported. */
int zf_forest_read_copy(struct zf_forest *forest, const struct zf_node_expect *expect,
			unsigned int copy, void *buf);

/*
 * Calls fn for the nodes of `level` that one parent names, with the tree's read lock held, as
 * zf_tree_scan() does. The tree may change between two calls. The parent is the one that has *from
 * in its range; *from then moves to the beginning of the next parent's range. For the root's level,
 * fn gets the root. A node that is not sealed yet has csum 0. An error of fn ends the call. 1:
 * there is a next parent; 0: that was the last one.
 */
typedef int zf_tree_child_fn(void *arg, const struct zf_node_expect *expect);
int zf_tree_children(struct zf_forest *forest, enum zf_tree_id tree, uint8_t level,
		     struct zf_key *from, zf_tree_child_fn *fn, void *arg);

/* Cache counters since the forest was made. */
struct zf_forest_stats {
	uint64_t cache_hits, cache_misses, nodes_cached, nodes_dirty, nodes_copied;
	uint64_t nodes_max; /* the bound of the cache */
	uint64_t splits, merges;
	uint64_t
		damaged; /* copies of nodes that could not be read, or were not what was expected */
	uint64_t shares; /* a full leaf gave items to a neighbour instead of splitting */
};
void zf_forest_get_stats(struct zf_forest *forest, struct zf_forest_stats *ret_stats);

#endif
