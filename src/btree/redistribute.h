/* SPDX-License-Identifier: MIT */
/*
 * Where the items of a full leaf go when one more comes.
 *
 * Cutting it in half would do, but under random insertions leaves are then 69 % full. So
 *
 *      share       a neighbour with room takes some: both are about equally full, no leaf more
 *      2 into 3    the neighbour is full too: three leaves, each two thirds full
 *      split       there is no such neighbour
 *
 * where a neighbour counts only if it has the same parent, is in memory and belongs to the running
 * transaction: what is free of charge. So no case needs more nodes than a split does, nor reads.
 *
 * A *stream* of ascending insertions fills leaves to the brim instead: what was inserted stays
 * on the left, what lies behind it goes to a leaf of its own.
 *
 * A packed leaf (packed.h) has neighbours that are packed only, and of its kind. An item of another
 * kind, or one that differs in so many columns that half of the leaf would be too large, goes with
 * as many of the items at an end of it as fit a leaf then. If it is too far from both ends the leaf
 * is split where it belongs, so that it is at one: two leaves more, the only case.
 *
 * Locking: the tree's write lock, held from plan to apply.
 */
#ifndef ZF_BTREE_REDISTRIBUTE_H
#define ZF_BTREE_REDISTRIBUTE_H

#include "btree/forest.h"

/*
 * Sharing has to leave so much of both leaves free, one part in ZF_SHARE_ROOM: or a nearly full
 * neighbour would be asked again and again, to move an item or two each time.
 */
#define ZF_SHARE_ROOM 32u

/* An item on its way into a leaf. */
struct zf_put {
	const struct zf_key *key;
	const void *value;
	size_t len;
	unsigned int slot; /* in the leaf: where it is, or will be */
	bool found;	   /* it is there, with another value */
};

bool zf_put_fits(const struct zf_cnode *leaf, uint32_t node_size, const struct zf_put *put);
/* The item fits the leaf, and may be put there: the leaf is the writer's. */
void zf_put_item(struct zf_cnode *leaf, uint32_t node_size, const struct zf_put *put);

/*
 * Indices count the items of leaf[0] and leaf[1] as one sequence, with the new one as if it were
 * there.
 */
struct zf_leaf_plan {
	struct zf_cnode *leaf[2]; /* by key: the path's and its neighbour, if one takes part */
	unsigned int own;	  /* which of them is the path's */
	unsigned int at;	  /* index of the new item */
	unsigned int cut[2];	  /* where the second leaf begins, and the third */
	bool adds_leaf;		  /* the last one is new */
	bool puts;		  /* false: the item is to be tried again afterwards */
};

/* For the path's leaf, into which the item does not fit. Changes nothing. */
int zf_leaf_plan_make_locked(struct zf_edit *edit, const struct zf_put *put,
			     struct zf_leaf_plan *ret_plan);
/*
 * The part of it for a packed leaf, alone in *plan. The neighbour, if it takes part, is the plan's;
 * NULL: there is none.
 */
void zf_leaf_plan_packed(struct zf_leaf_plan *plan, uint32_t node_size, const struct zf_put *put,
			 bool stream, struct zf_cnode *neighbour, bool is_left);
/* Makes the neighbour a part of the plan. */
void zf_leaf_plan_add(struct zf_leaf_plan *plan, struct zf_cnode *neighbour, bool is_left);
/*
 * Puts the item, if the plan says so. The path is the writer's by now. It leads to the last of the
 * old leaves afterwards; behind that belongs the new one, which is returned with a reference, or
 * NULL.
 */
struct zf_cnode *zf_leaf_plan_apply_locked(struct zf_edit *edit, const struct zf_put *put,
					   struct zf_leaf_plan *plan);
void zf_leaf_plan_release(struct zf_leaf_plan *plan);

#endif
