/* SPDX-License-Identifier: MIT */
/*
 * The commit that makes a filesystem larger: its zone tree gets an item for each new zone, and its
 * superblock their number.
 *
 * Other commits change the items of the zone and root trees only in place, and insert at most the two
 * health items into the root tree's only leaf. So the size of these trees bounds the tail of a
 * commit. This commit makes the zone tree larger. So the bound is raised
 * before the commit, and set to the new size of the trees after it.
 */
#include <assert.h>
#include <errno.h>

#include "alloc/alloc.h"
#include "alloc/zone_format.h"
#include "btree/node_format.h"
#include "txn/system_nodes.h"
#include "txn/txn_internal.h"

/* An item of a zone with its key takes less than this; leaves are at least half full. */
#define ITEM_BYTES 128u
_Static_assert(sizeof(struct zf_disk_item) + sizeof(struct zf_disk_zone) < ITEM_BYTES, "see above");

/* The most nodes that `items` new items at the tree's end may add: leaves, and nodes above them. */
static unsigned int nodes_for(const struct zf_txn *txn, uint32_t items)
{
	unsigned int leaves = items / (txn->super.node_size / 2 / ITEM_BYTES) + 1;

	return leaves + leaves / 8 + 3;
}

/* Measures what commits need from now on. */
static void measure(struct zf_txn *txn)
{
	struct zf_node_ptr root;
	uint8_t level;

	zf_tree_get_root(txn->forest, ZF_TREE_ZONE, &root, &level);
	txn->path_nodes = level + 1u;
	/* If not all nodes can be read, the bound of this commit stays. */
	(void)zf_system_nodes_count(txn->forest, txn->alloc, false);
}

static int grow_locked(struct zf_txn *txn, uint32_t zone_count)
{
	int r = zf_alloc_grow(txn->alloc, zone_count,
			      nodes_for(txn, zone_count - txn->super.zone_count));

	if (r < 0)
		return r;
	/* Inserting an item may split each node on its path, and add a new root. */
	txn->path_nodes = 2 * txn->path_nodes + 1;
	r = zf_txn_freeze(txn);
	if (r == 0)
		r = zf_txn_write(txn);
	if (r == 0)
		r = zf_txn_finish(txn);
	if (r == 0)
		measure(txn);
	return r;
}

int zf_txn_grow(struct zf_txn *txn, uint32_t zone_count)
{
	int r;

	zf_txn_lock_commit(txn);
	r = zf_txn_error(txn) ? -EROFS : 0;
	if (r == 0 && zone_count > txn->super.zone_count)
		r = grow_locked(txn, zone_count);
	zf_mutex_unlock(&txn->commit_lock);
	return r;
}
