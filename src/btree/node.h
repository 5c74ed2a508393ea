/* SPDX-License-Identifier: MIT */
/*
 * Access to the bytes of one node, and the one checker that guards every node read and written.
 *
 * A node is worked on as it lies on disk (node_format.h); these functions are the only ones that
 * know offsets. They do no I/O and no locking: the caller holds what protects the buffer.
 */
#ifndef ZF_BTREE_NODE_H
#define ZF_BTREE_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/report.h"
#include "btree/key.h"
#include "btree/node_format.h"
#include "superblock/super.h"

struct zf_node_shape {
	uint32_t node_size;
	uint8_t copies;
	uint8_t fsid[16];
};

/* What the parent, or the superblock, says that the node must be. */
struct zf_node_expect {
	struct zf_node_ptr ptr;
	enum zf_tree_id owner;
	uint8_t level;
	struct zf_key first_key; /* the parent's key for it; compared if check_first_key */
	bool check_first_key;
};

/* The largest value of an item: four of them, with headers, fit a leaf, so one split always suffices. */
static inline uint32_t zf_node_value_max(uint32_t node_size)
{
	return (node_size - (uint32_t)sizeof(struct zf_disk_node_header)) / 4 -
	       (uint32_t)sizeof(struct zf_disk_item);
}

/*
 * Checks every field: magic, filesystem, own addresses, owner, level, generation, count, key order,
 * item bounds and order, zero bytes, and (with check_csum) the checksum against header and pointer.
 * Every node passes here after it was read and before it is written. 0 or -EUCLEAN, reported.
 */
int zf_node_check(const struct zf_node_shape *shape, const void *node,
		  const struct zf_node_expect *expect, bool check_csum,
		  const struct zf_report *report);

/* Like zf_node_check() for a block found by scanning a zone: is this a whole, valid node at `address`? */
bool zf_node_is_valid_at(const struct zf_node_shape *shape, const void *node, uint64_t address,
			 unsigned int copy);

uint64_t zf_node_csum(const void *node, uint32_t node_size);

#endif
