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
	struct zf_super super; /* has_super: as a record says; else as far as nodes tell */
	bool has_super;
	uint64_t record_generation; /* of the newest record; 0: there is none */
	bool has_seed;		    /* super.dir_hash_seed is known */
	struct zf_node_shape shape;
	struct zf_leaf_source source;

	struct {
		bool known;
		struct zf_root root;
	} roots[ZF_TREE_COUNT];	   /* as the root tree tells */
	uint64_t files_generation; /* these two: see struct zf_salvage_state */
	bool files_guessed;
	struct zf_health health; /* likewise; zeroes where it does not tell */
	struct zf_vector
		leaves[ZF_TREE_COUNT]; /* of the fs and summary trees; others when walked */

	bool searched;
	struct zf_vector found;	  /* struct zf_found, if searched */
	struct zf_vector by_csum; /* struct zf_found *: these */

	struct zf_leaf_cursor files;   /* one inode after the other: most are in the same leaf */
	struct zf_leaf_cursor summary; /* one block after the other, likewise */
};

/* state.c: decides which state is read, and reads its root tree. As zf_salvage_open(). */
int zf_salvage_choose_state(struct zf_salvage *salvage, const struct zf_salvage_options *options);

/* salvage.c: lists the leaves of a tree. */
int zf_salvage_collect(struct zf_salvage *salvage, enum zf_tree_id tree);

/* salvage.c: the nodes of all metadata zones. As zf_leaf_source.get_found(). */
int zf_salvage_search(void *salvage, const struct zf_vector **ret_found);

const struct zf_found *zf_salvage_find_csum(void *salvage, uint64_t csum);

/* salvage.c: is the item what an item of that tree can be? */
bool zf_salvage_is_sound(const struct zf_salvage *salvage, enum zf_tree_id tree,
			 const struct zf_key *key, const void *value, size_t len);

#endif
