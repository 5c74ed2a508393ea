/* SPDX-License-Identifier: MIT */
/*
 * Redistribution: where the items of a full leaf go when one more is inserted.
 *
 * Splitting a full leaf in half would be enough, but after random insertions leaves would then be
 * 69 % full. So there are three cases:
 *
 *      share       a neighbour with room takes some: both are about equally full; no new leaf
 *      2 into 3    the neighbour is full too: three leaves, each two thirds full
 *      split       there is no such neighbour
 *
 * A neighbour counts only if it has the same parent, is in memory and belongs to the running
 * transaction, so that changing it costs no copy and no read. So no case needs more nodes than a
 * split, and none reads.
 *
 * Ascending insertions (a *stream*) fill leaves completely instead: the inserted items stay in the
 * left leaf, and the items behind them go to a new leaf.
 *
 * A packed leaf (packed.h) shares only with packed neighbours of its kind. A new item may be of
 * another kind, or differ in so many bytes that half of the leaf's items no longer fit one leaf
 * with it. Such an item goes to a new leaf together with as many items from the nearer end as fit.
 * If it is too far from both ends, the leaf is first split at the item's place. This is the only
 * case that needs two new leaves.
 *
 * Locking: the tree's write lock, held from plan to apply.
 */
#ifndef ZF_BTREE_REDISTRIBUTE_H
#define ZF_BTREE_REDISTRIBUTE_H

#include "btree/forest.h"

/*
 * Sharing must leave one part in ZF_SHARE_ROOM of both leaves free. Otherwise a nearly full
 * neighbour would take an item or two at each insertion.
 */
#define ZF_SHARE_ROOM 32u

/* An item on its way into a leaf. */
struct zf_put {
	const struct zf_key *key;
	const void *value;
	size_t len;
	unsigned int slot; /* the item's present or future slot in the leaf */
	bool found;	   /* the leaf has the key already, and gets a new value */
};

bool zf_put_fits(const struct zf_cnode *leaf, uint32_t node_size, const struct zf_put *put);
/* Requires that the item fits the leaf, and that the writer owns the leaf. */
void zf_put_item(struct zf_cnode *leaf, uint32_t node_size, const struct zf_put *put);

/*
 * Indices count the items of leaf[0] and leaf[1] as one sequence that includes the new item.
 */
struct zf_leaf_plan {
	struct zf_cnode *leaf[2]; /* by key: the path's leaf, and its neighbour if it takes part */
	unsigned int own;	  /* index of the path's leaf in leaf[] */
	unsigned int at;	  /* index of the new item */
	unsigned int cut[2];	  /* indices at which the second and the third leaf begin */
	bool adds_leaf;		  /* the last leaf is new */
	bool puts;		  /* false: the caller tries the item again afterwards */
};

/* Makes a plan for the path's leaf, into which the item does not fit. Changes nothing. */
int zf_leaf_plan_make_locked(struct zf_edit *edit, const struct zf_put *put,
			     struct zf_leaf_plan *ret_plan);
/*
 * Makes the plan for a packed leaf, which is the only leaf in *plan yet. If the neighbour takes
 * part, the plan takes over the caller's reference to it. neighbour NULL: there is none.
 */
void zf_leaf_plan_packed(struct zf_leaf_plan *plan, uint32_t node_size, const struct zf_put *put,
			 bool stream, struct zf_cnode *neighbour, bool is_left);
/* Adds the neighbour to the plan. */
void zf_leaf_plan_add(struct zf_leaf_plan *plan, struct zf_cnode *neighbour, bool is_left);
/*
 * Carries the plan out, and puts the item if plan->puts. The writer owns all nodes of the path by
 * now. Afterwards the path leads to the last of the old leaves. Returns the new leaf, which belongs
 * behind that one, with a reference; or NULL.
 */
struct zf_cnode *zf_leaf_plan_apply_locked(struct zf_edit *edit, const struct zf_put *put,
					   struct zf_leaf_plan *plan);
void zf_leaf_plan_release(struct zf_leaf_plan *plan);

#endif
