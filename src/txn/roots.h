/* SPDX-License-Identifier: MIT */
/* The items of the root tree: where the roots of the other trees are. */
#ifndef ZF_TXN_ROOTS_H
#define ZF_TXN_ROOTS_H

#include "btree/tree.h"
#include "txn/root_format.h"

struct zf_root {
	struct zf_node_ptr ptr;
	uint8_t level;
};

void zf_root_encode(const struct zf_root *root, struct zf_disk_root *ret_disk);

/* Checks every field of a tree's item, as a superblock of `generation` names it. -EUCLEAN. */
int zf_root_decode(const struct zf_node_shape *shape, uint64_t generation, enum zf_tree_id tree,
		   const void *value, size_t len, const struct zf_report *report,
		   struct zf_root *ret_root);

/*
 * Makes one tree known to a forest that has the root tree of a superblock of `generation`. Returns
 * 0, or the error of reading the root tree. -EUCLEAN: the item is missing or wrong.
 */
int zf_roots_load(struct zf_forest *forest, uint64_t generation, enum zf_tree_id tree,
		  const struct zf_report *report);

#endif
