/* SPDX-License-Identifier: MIT */
/* What the files of src/salvage share. */
#ifndef ZF_SALVAGE_STATE_H
#define ZF_SALVAGE_STATE_H

#include "fs/core/item_check.h"
#include "salvage/leaves.h"
#include "salvage/salvage.h"
#include "superblock/ring.h"
#include "txn/health.h"
#include "txn/roots.h"

struct zf_salvage {
	struct zf_dev *dev;
	const struct zf_report *report;
	const struct zf_progress *progress, *walk_progress;
	struct zf_super super;	    /* see zf_salvage_get_super() */
	bool has_super;		    /* a record names the state */
	uint64_t record_generation; /* of the newest record; 0: there is none */
	bool has_seed;		    /* super.dir_hash_seed is known */
	struct zf_node_shape shape;
	struct zf_leaf_source source;

	struct {
		bool known;
		struct zf_root root;
	} roots[ZF_TREE_COUNT];	   /* from the root tree, or guessed from the nodes found */
	uint64_t files_generation; /* this and files_guessed: see struct zf_salvage_state */
	bool files_guessed;
	struct zf_health health; /* from the root tree; zeroes if it has none */
	struct zf_vector
		leaves[ZF_TREE_COUNT]; /* of the fs and summary trees; others when walked */

	bool searched;
	struct zf_vector found;	  /* struct zf_found, if searched */
	struct zf_vector by_csum; /* struct zf_found *: all of `found`, by checksum */

	/* Both keep the leaf read last: the next inode, or the next block, is mostly in it. */
	struct zf_leaf_cursor files;
	struct zf_leaf_cursor summary;
};

/* state.c: decides which state is read, and reads its root tree. Errors: see zf_salvage_open(). */
int zf_salvage_choose_state(struct zf_salvage *salvage, const struct zf_salvage_options *options);

/* salvage.c: lists the leaves of a tree. */
int zf_salvage_collect(struct zf_salvage *salvage, enum zf_tree_id tree);

/* salvage.c: finds the nodes of all metadata zones. This is zf_leaf_source.get_found(). */
int zf_salvage_search(void *salvage, const struct zf_vector **ret_found);

const struct zf_found *zf_salvage_find_csum(void *salvage, uint64_t csum);

/* salvage.c: is the item valid for its tree (zf_item_check())? */
bool zf_salvage_is_sound(const struct zf_salvage *salvage, enum zf_tree_id tree,
			 const struct zf_key *key, const void *value, size_t len);

#endif
