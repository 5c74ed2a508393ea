/* SPDX-License-Identifier: MIT */
/*
 * The internals of a forest, shared by the files of this directory.
 *
 * What one call does. Under the tree's lock it descends through cached nodes. When one is missing
 * it returns -EAGAIN with the node noted in a struct zf_fetch; the caller drops the lock, lets
 * zf_fetch_run() read the node, and starts over. Nodes read are held until the call ends, so every
 * round gets further. A call changes nothing before it has all nodes it needs: a modification is
 *
 *      find the path  ->  decide what changes  ->  reserve new nodes  ->  apply, which cannot fail
 *
 * under one hold of the write lock. So a failed or restarted call has changed nothing, and there is
 * no state between the old tree and the new one. (If a packed leaf must become three leaves, an
 * item needs two such changes. The first only moves items to a new leaf, and remains if the second
 * fails.)
 *
 * Hints. Most edits come near the last one: the next name of a directory, the next inode, the next
 * extent of a file. A tree remembers a few recently edited leaves, with the keys that bound them; a
 * later call for such a leaf need not descend from the root. `shape` counts all changes that may
 * move keys between nodes or nodes between addresses; such a change makes all hints invalid.
 * Inserting and removing items within a leaf does not count.
 *
 * Generations. A dirty node of the writer's own generation is edited in place. Any other node is
 * frozen or on the device, so it is copied first, and its bytes never change again. One exception:
 * zf_forest_seal() fills the checksums of children into frozen nodes, under the tree's write lock.
 */
#ifndef ZF_BTREE_FOREST_H
#define ZF_BTREE_FOREST_H

#include "btree/cache.h"
#include "btree/tree.h"

/* A leaf and the keys that separate it from its neighbours. */
struct zf_leaf {
	struct zf_cnode *node;
	struct zf_key first, next;
	bool has_first, has_next; /* false at the tree's ends */
};

#define ZF_TREE_HINTS 16u

struct zf_hint {
	struct zf_leaf leaf; /* node NULL: none; else with a reference */
	uint64_t shape;	     /* of the tree when it was set */
};

struct zf_tree {
	struct zf_rwlock lock; /* ZF_RANK_TREE */

	/* Protected by the lock. */
	struct zf_node_ptr root; /* address 0: unknown tree */
	uint8_t level;
	uint64_t changed; /* the generation whose writer changed the root last */
	struct zf_node_ptr frozen_root;
	uint8_t frozen_level;
	uint64_t frozen; /* generations up to this one are frozen */
	struct zf_cnode_queue running[ZF_TREE_LEVEL_MAX]; /* dirty nodes above `frozen` */
	uint64_t shape;
	struct zf_hint hints[ZF_TREE_HINTS]; /* by key */

	/* Private to the committing thread: dirty nodes of generations up to `frozen`. */
	struct zf_cnode_queue freezing[ZF_TREE_LEVEL_MAX];

	atomic_uchar height; /* level + 1, for readers without the lock */
};

struct zf_forest {
	struct zf_dev *dev;
	struct zf_node_shape shape;
	struct zf_report report;
	struct zf_cache cache;
	struct zf_tree trees[ZF_TREE_COUNT];
	_Atomic uint64_t misses, copied, splits, shares, merges, damaged;
	_Atomic uint64_t nodes_frozen; /* nodes dirty at the freeze; 0 when they are clean */
};

static inline struct zf_tree *zf_forest_tree(struct zf_forest *forest, enum zf_tree_id id)
{
	return &forest->trees[id];
}

static inline void zf_forest_count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* The tree's root changes on behalf of `generation`. With the write lock held. */
void zf_tree_replace_root_locked(struct zf_tree *tree, const struct zf_node_ptr *ptr, uint8_t level,
				 uint64_t generation);

/* ---- missing nodes ---- */

#define ZF_FETCH_HELD                                                                              \
	32 /* more than any one round of a call needs: a path and two siblings a level */

struct zf_fetch {
	struct zf_node_expect want;   /* set with -EAGAIN */
	struct zf_node_expect failed; /* what failed to read, if failures > 0 */
	unsigned int failures;
	int error;
	bool dispensable;	 /* with want: the call can do without this node */
	bool dispense;		 /* a dispensable node could not be read: do without it */
	unsigned int held_count; /* reads so far; the nodes of the last ZF_FETCH_HELD are held */
	struct zf_cnode *held[ZF_FETCH_HELD];
	char messages[ZF_COPIES_MAX][320]; /* of the last failure */
};

void zf_fetch_init(struct zf_fetch *fetch);
void zf_fetch_deinit(struct zf_fetch *fetch);

/*
 * Reads the wanted node; the caller holds no lock. 0: look again. If the node does not verify, the
 * pointer may be stale: its zone may have been reset since. It is an error (-EUCLEAN, -EIO,
 * reported) only if the same pointer is still wanted after two failures.
 */
int zf_fetch_run(struct zf_forest *forest, struct zf_fetch *fetch);

/*
 * Runs look() with the tree's lock held shared until it returns a result other than -EAGAIN, and
 * fetches the wanted node after each -EAGAIN. Returns that result, or the error of a fetch. The
 * caller holds no lock.
 */
typedef int zf_look_fn(struct zf_forest *forest, enum zf_tree_id id, struct zf_fetch *fetch,
		       void *arg);
int zf_fetch_look(struct zf_forest *forest, enum zf_tree_id id, zf_look_fn *look, void *arg);

/* ---- descending; with the tree's lock held ---- */

/* The tree's root, with a reference. -EAGAIN: missing. -EUCLEAN. */
int zf_forest_descend_root_locked(struct zf_forest *forest, enum zf_tree_id id,
				  struct zf_fetch *fetch, struct zf_cnode **ret_node);

/* The leaf that holds *key if any leaf does; the caller puts leaf.node. */
int zf_forest_descend_leaf_locked(struct zf_forest *forest, enum zf_tree_id id,
				  const struct zf_key *key, struct zf_fetch *fetch,
				  struct zf_leaf *ret_leaf);

/* The nodes from the root (level `top`) down to level `bottom`, and the child slots taken. */
struct zf_path {
	uint8_t top, bottom; /* levels of the root and of the lowest node; none while node[top] is
				NULL */
	struct zf_cnode *node[ZF_TREE_LEVEL_MAX];
	unsigned int slot[ZF_TREE_LEVEL_MAX];  /* where the path leaves the node; not at `bottom` */
	struct zf_key next[ZF_TREE_LEVEL_MAX]; /* every key of the node is below */
	bool has_next[ZF_TREE_LEVEL_MAX];
};

void zf_path_init(struct zf_path *path);
void zf_path_release(struct zf_path *path);

/*
 * Fills path from the root to `level` (or, if the tree is lower, to its root), and checks the
 * nodes' keys against those of their parents: nodes that will be edited must be sound even if two
 * pointers of a forged image lead to one node. A filled path may be extended downwards.
 */
int zf_path_find_locked(struct zf_forest *forest, enum zf_tree_id id, const struct zf_key *key,
			uint8_t level, struct zf_fetch *fetch, struct zf_path *path);

/*
 * The node in `slot` of the parent, a sibling of path->node[level], with a reference. -ENOENT: it
 * is not in the cache and !wait, or it cannot be read: callers only tidy up, and need not fail.
 */
int zf_path_sibling_locked(struct zf_forest *forest, enum zf_tree_id id, struct zf_path *path,
			   uint8_t level, unsigned int slot, bool wait, struct zf_fetch *fetch,
			   struct zf_cnode **ret_node);

/* ---- hints; with the tree's lock held ---- */

/* The leaf that holds *key if any leaf does; NULL: unknown. The caller takes a reference. */
const struct zf_leaf *zf_hint_find_locked(const struct zf_tree *tree, const struct zf_key *key);
/* Remembers that *key belongs into the path's leaf. Write lock. */
void zf_hint_set_locked(struct zf_tree *tree, const struct zf_key *key, const struct zf_path *path);
/* When the forest is freed; without the lock. */
void zf_hint_drop_all(struct zf_tree *tree);

/* ---- editing; with the tree's write lock held ---- */

struct zf_edit {
	struct zf_forest *forest;
	struct zf_writer *writer;
	enum zf_tree_id id;
	struct zf_tree *tree;
	struct zf_fetch *fetch;
	struct zf_path path;
	struct zf_cnode *spare[2 * ZF_TREE_LEVEL_MAX + 1]; /* reserved, with addresses */
	unsigned int spare_count, spare_next;
};

/*
 * Runs step(edit, arg) under the write lock until it returns a result other than -EAGAIN, and
 * fetches the wanted node after each -EAGAIN.
 */
typedef int zf_edit_step(struct zf_edit *edit, void *arg);
int zf_edit_run(struct zf_forest *forest, struct zf_writer *writer, enum zf_tree_id id,
		zf_edit_step *step, void *arg);

/* May the node be edited in place? */
bool zf_edit_owns(const struct zf_edit *edit, const struct zf_cnode *node);
/* How many nodes of the path, from the root down to `level`, have to be copied. */
unsigned int zf_edit_copies(const struct zf_edit *edit, uint8_t level);
/*
 * A leaf that may be edited in place, without looking at the nodes above it: an item may be
 * inserted or removed at *key, as long as this needs no split or merge. NULL: find the path.
 */
struct zf_cnode *zf_edit_hinted_leaf(const struct zf_edit *edit, const struct zf_key *key);
/* Takes n nodes from the writer. -ENOSPC, -ENOMEM: nothing is reserved. */
int zf_edit_reserve(struct zf_edit *edit, unsigned int n);
/* Makes a reserved node a dirty node of the tree: empty, or a copy of src. With a reference. */
struct zf_cnode *zf_edit_new_node(struct zf_edit *edit, uint8_t level, const struct zf_cnode *src);
/* Copies those nodes of the path, from the root down to `level`, that must be copied. */
void zf_edit_copy_path(struct zf_edit *edit, uint8_t level);
/*
 * Called when an owned node is edited; the path's node above it has it in `slot`. The node's
 * checksum becomes pending, even if it was sealed before, as nodes of the root and zone trees may
 * be.
 */
void zf_edit_touch_child(struct zf_edit *edit, struct zf_cnode *node, unsigned int slot);
/* The node left the running tree. */
void zf_edit_free_node(struct zf_edit *edit, const struct zf_node_ptr *ptr);

/* The pointer to a node that is not sealed: without a checksum. */
static inline struct zf_node_ptr zf_edit_pending_ptr(const struct zf_cnode *node)
{
	return (struct zf_node_ptr){
		.address = {node->address[0], node->address[1]},
		.generation = node->generation,
	};
}

#endif
