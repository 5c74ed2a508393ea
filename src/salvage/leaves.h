/* SPDX-License-Identifier: MIT */
/*
 * A tree as the ordered list of its leaves, which needs none of the nodes above them any more.
 *
 *      root --- inner --- leaf  leaf  leaf          leaves:  | leaf | leaf | leaf |
 *           \-- inner (cannot be read)                       | found | found |
 *                     leaf  leaf                             | leaf | leaf |
 *           \-- inner --- leaf  leaf
 *
 * Where the tree can be walked, its pointers say which leaves there are. For a node above the
 * leaves of which no copy can be read, its leaves are chosen from those that were found in the
 * metadata zones (found.h): within the keys that its parent gives it, not newer than itself, and of
 * leaves that overlap the newest. Copy on write makes that right but for one thing: a leaf whose
 * items were all deleted after it was written is chosen too, if nothing newer has keys in its
 * place. So what was deleted last may come back.
 *
 * Hostile input. Each node above the leaves is entered once, wherever it is named, so the work and
 * the memory are bounded by the nodes that the device really has.
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
	bool lost; /* nothing there can be read */
	bool guessed; /* read, but the pointer does not prove that it is the one: items may be missing */
};

/* Where leaves come from. */
struct zf_leaf_source {
	struct zf_dev *dev;
	const struct zf_node_shape *shape;
	/* Of struct zf_found, in the order of zf_found_scan(); made when it is first asked for. */
	int (*get_found)(void *arg, const struct zf_vector **ret_found);
	/* The one of them that has this checksum, or NULL; makes them, too. */
	const struct zf_found *(*find_csum)(void *arg, uint64_t csum);
	void *arg;
};

/*
 * Fills `ret_leaves`, of struct zf_leaf, in the order of their keys. `root`: what the tree's root
 * must be; NULL: nobody knows, then only found leaves up to `generation_max` are taken. 0, -ENOMEM
 * or an error of get_found().
 */
int zf_leaves_collect(const struct zf_leaf_source *source, enum zf_tree_id tree,
		      const struct zf_node_expect *root, uint64_t generation_max,
		      struct zf_vector *ret_leaves);

/* Reads a node from the first copy that is as expected. 0 or -EUCLEAN. */
int zf_leaves_read_node(const struct zf_leaf_source *source, const struct zf_node_expect *expect,
			void *buf);

/*
 * Reads a leaf of a list. Where it is not at its address it is looked for among the nodes that were
 * found: its checksum tells which it is. False: it is nowhere, which is noted in the list.
 */
bool zf_leaves_read(const struct zf_leaf_source *source, enum zf_tree_id tree, struct zf_leaf *leaf,
		    void *buf);

/* ---- reading items ---- */

/* One pass over the items of a list. Owned by one thread. */
struct zf_leaf_cursor {
	const struct zf_leaf_source *source;
	enum zf_tree_id tree;
	struct zf_vector *leaves;
	struct zf_key from; /* sought last */
	struct zf_key min;  /* of the next item: a leaf may have keys that are not its own */
	size_t at;	    /* the leaf */
	unsigned int slot;  /* the next item in it */
	void *node;	    /* the leaf `loaded` */
	size_t loaded;	    /* SIZE_MAX: none */
	bool lost;	    /* a leaf that may have had some of the items asked for was not there */
	uint8_t scratch[ZF_PACKED_VALUE_MAX];
};

/* 0 or -ENOMEM. The list and the source outlive the cursor. */
int zf_leaf_cursor_init(struct zf_leaf_cursor *cursor, const struct zf_leaf_source *source,
			enum zf_tree_id tree, struct zf_vector *leaves);
void zf_leaf_cursor_deinit(struct zf_leaf_cursor *cursor);

/* To the first item whose key is not below `key`. */
void zf_leaf_cursor_seek(struct zf_leaf_cursor *cursor, const struct zf_key *key);
/* To the last item whose key is not above `key`; if there is none, to the first item of all. */
void zf_leaf_cursor_seek_back(struct zf_leaf_cursor *cursor, const struct zf_key *key);

/*
 * The next item below `end`, and goes on behind it; false: there is none. Keys ascend, and none is
 * below what was sought. The value is valid until the next call.
 */
bool zf_leaf_cursor_next(struct zf_leaf_cursor *cursor, const struct zf_key *end,
			 struct zf_key *ret_key, const void **ret_value, size_t *ret_len);

#endif
