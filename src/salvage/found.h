/* SPDX-License-Identifier: MIT */
/*
 * Nodes that are found by reading the metadata zones, and not by following pointers: for a tree of
 * which a node above the leaves cannot be read.
 *
 * A node says for itself where it lies, to which filesystem and tree it belongs, and which
 * transaction wrote it; its checksum covers that. What it cannot say is whether it is still part of
 * its tree: leaves.h chooses.
 */
#ifndef ZF_SALVAGE_FOUND_H
#define ZF_SALVAGE_FOUND_H

#include "base/progress.h"
#include "btree/node.h"
#include "base/vector.h"
#include "io/dev.h"

struct zf_found {
	struct zf_node_ptr ptr;
	struct zf_key first, last; /* of an empty leaf: no sense */
	uint32_t count;		   /* entries */
	uint8_t owner;		   /* enum zf_tree_id */
	uint8_t level;
};

/*
 * Reads the zones behind the superblock's for which skip[zone] is false (NULL: all), up to the
 * pointer that the device has (whole, where pointers are lower bounds), and adds each valid node to `ret_found` (of struct zf_found) once,
 * however many copies it has. In the end they are ordered by owner, then level, then generation,
 * the newest first, then keys. Zones and blocks that cannot be read are passed over. 0, -ENOMEM, or -errno of
 * the device's zone report.
 */
int zf_found_scan(struct zf_dev *dev, const struct zf_node_shape *shape, const bool *skip,
		  const struct zf_progress *progress, struct zf_vector *ret_found);

/* What is known of a node that no pointer leads to. */
struct zf_found_place {
	uint8_t owner, level;
	uint64_t generation;
	struct zf_key first, end; /* its keys are in [first, end) */
};

/* The only one there of those that zf_found_scan() found, or NULL. */
const struct zf_found *zf_found_at(const struct zf_vector *found,
				   const struct zf_found_place *place);

/*
 * What a device tells of its filesystem when no superblock does: the shape of the first valid node.
 * ret_shape->geometry is the device's. -ENODEV: there is no node.
 */
int zf_found_identify(struct zf_dev *dev, struct zf_node_shape *ret_shape);

#endif
