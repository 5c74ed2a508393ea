/* SPDX-License-Identifier: MIT */
/*
 * A tree as the ordered list of its leaves. Once it is made, no node above the leaves is needed.
 *
 *      root --- inner --- leaf  leaf  leaf          leaves:  | leaf | leaf | leaf |
 *           \-- inner (cannot be read)                       | found | found |
 *                     leaf  leaf                             | leaf | leaf |
 *           \-- inner --- leaf  leaf
 *
 * Where the tree can be walked, the pointers in its nodes name the leaves. If no copy of a node
 * above the leaves can be read, its leaves are chosen from those found in the metadata zones
 * (found.h). Such a leaf lies within the key range that the parent gives the node, and is not newer
 * than the node. Of leaves that overlap, the newest is chosen. Copy-on-write makes this choice
 * right with one exception: a leaf whose items were all deleted after it was written is chosen if
 * no newer leaf has keys in its range. So recently deleted items may come back.
 *
 * Hostile input. Each node above the leaves is entered once, however many pointers name it, so work
 * and memory are bounded by the nodes that are really on the device.
 *
 * Read next: salvage.h, which reads items by these lists.
 */
#ifndef ZF_SALVAGE_LEAVES_H
#define ZF_SALVAGE_LEAVES_H

#include "btree/node.h"
#include "base/vector.h"
#include "io/dev.h"

struct zf_found;

struct zf_leaf {
	struct zf_key first, end; /* its keys are in [first, end) */
	struct zf_node_ptr ptr;
	bool lost;    /* no leaf can be read for this range */
	bool guessed; /* the leaf read may not be the one that was here: items may be missing */
};

/* Where leaves come from. */
struct zf_leaf_source {
	struct zf_dev *dev;
	const struct zf_node_shape *shape;
	/*
	 * The found nodes (struct zf_found, as zf_found_scan() sorts them). The first call scans.
	 */
	int (*get_found)(void *arg, const struct zf_vector **ret_found);
	/* The found node that has this checksum, or NULL. The first call scans. */
	const struct zf_found *(*find_csum)(void *arg, uint64_t csum);
	void *arg;
};

/*
 * Fills `ret_leaves`, of struct zf_leaf, in the order of their keys. `root`: what the tree's root
 * must be. NULL: the root is unknown, and the leaves are chosen from those found. No found leaf
 * newer than `generation_max` is taken. 0, -ENOMEM or an error of get_found().
 */
int zf_leaves_collect(const struct zf_leaf_source *source, enum zf_tree_id tree,
		      const struct zf_node_expect *root, uint64_t generation_max,
		      struct zf_vector *ret_leaves);

/* Reads a node from the first copy that matches `expect`. 0 or -EUCLEAN. */
int zf_leaves_read_node(const struct zf_leaf_source *source, const struct zf_node_expect *expect,
			void *buf);

/*
 * Reads a leaf of a list. If the node at the leaf's address does not match, the leaf is looked for
 * among the nodes found: by its checksum, else by its generation and keys (`guessed`). False: no
 * leaf was found, and leaf->lost is set.
 */
bool zf_leaves_read(const struct zf_leaf_source *source, enum zf_tree_id tree, struct zf_leaf *leaf,
		    void *buf);

/* ---- reading items ---- */

/* One pass over the items of a list. Owned by one thread. */
struct zf_leaf_cursor {
	const struct zf_leaf_source *source;
	enum zf_tree_id tree;
	struct zf_vector *leaves;
	struct zf_key from; /* the key of the last seek */
	struct zf_key min;  /* lowest key of the next item: a damaged leaf may have lower ones */
	size_t at;	    /* index of the current leaf */
	unsigned int slot;  /* of the next item in that leaf */
	void *node;	    /* the content of leaf `loaded` */
	size_t loaded;	    /* index of a leaf; SIZE_MAX: none */
	bool lost;	    /* some of the items asked for may be missing; the caller clears it */
	uint8_t scratch[ZF_PACKED_VALUE_MAX];
};

/* 0 or -ENOMEM. The list and the source outlive the cursor. */
int zf_leaf_cursor_init(struct zf_leaf_cursor *cursor, const struct zf_leaf_source *source,
			enum zf_tree_id tree, struct zf_vector *leaves);
void zf_leaf_cursor_deinit(struct zf_leaf_cursor *cursor);

/* Seeks the first item whose key is >= `key`. */
void zf_leaf_cursor_seek(struct zf_leaf_cursor *cursor, const struct zf_key *key);
/* Seeks the last item whose key is <= `key`; if there is none, the first item of all. */
void zf_leaf_cursor_seek_back(struct zf_leaf_cursor *cursor, const struct zf_key *key);

/*
 * Returns the next item whose key is below `end`, and moves the cursor behind it; false: there is
 * none. Keys ascend from the item that was sought. The value is valid until the next call.
 */
bool zf_leaf_cursor_next(struct zf_leaf_cursor *cursor, const struct zf_key *end,
			 struct zf_key *ret_key, const void **ret_value, size_t *ret_len);

#endif
