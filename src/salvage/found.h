/* SPDX-License-Identifier: MIT */
/*
 * Finds nodes by reading the metadata zones instead of following pointers. This serves a tree of
 * which a node above the leaves cannot be read.
 *
 * A node's header has the node's addresses, filesystem, tree and generation, and its checksum
 * covers them. The header does not show whether the node is still part of its tree: leaves.h
 * decides that.
 */
#ifndef ZF_SALVAGE_FOUND_H
#define ZF_SALVAGE_FOUND_H

#include "base/progress.h"
#include "btree/node.h"
#include "base/vector.h"
#include "io/dev.h"

struct zf_found {
	struct zf_node_ptr ptr;
	struct zf_key first, last; /* meaningless for an empty leaf */
	uint32_t count;		   /* entries */
	uint8_t owner;		   /* enum zf_tree_id */
	uint8_t level;
};

/*
 * Reads the zones behind the superblock ring for which skip[zone] is false (NULL: all). A zone is
 * read up to the device's write pointer, or whole if such pointers are lower bounds or the zone is
 * conventional. Unreadable zones and blocks are passed over. Each valid node is added to
 * `ret_found` (of struct zf_found) once, however many copies it has. Sorts `ret_found` by owner,
 * level, generation (newest first) and keys. 0, -ENOMEM, or -errno of the device's zone report.
 */
int zf_found_scan(struct zf_dev *dev, const struct zf_node_shape *shape, const bool *skip,
		  const struct zf_progress *progress, struct zf_vector *ret_found);

/* The known properties of a node whose address is unknown. */
struct zf_found_place {
	uint8_t owner, level;
	uint64_t generation;
	struct zf_key first, end; /* its keys are in [first, end) */
};

/* The node at `place` among those of zf_found_scan(). NULL: there is none, or more than one. */
const struct zf_found *zf_found_at(const struct zf_vector *found,
				   const struct zf_found_place *place);

/*
 * Learns the shape of a filesystem without a superblock from the first valid node on the device.
 * ret_shape->geometry is the device's. -ENODEV: there is no node.
 */
int zf_found_identify(struct zf_dev *dev, struct zf_node_shape *ret_shape);

#endif
