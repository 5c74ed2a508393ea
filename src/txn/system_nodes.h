/* SPDX-License-Identifier: MIT */
/*
 * The nodes of the root and zone trees: those that the zone items do not count, because the commit
 * that writes the items is still moving them. The code that opens the trees counts them.
 */
#ifndef ZF_TXN_SYSTEM_NODES_H
#define ZF_TXN_SYSTEM_NODES_H

#include <stdbool.h>

#include "btree/tree.h"

struct zf_alloc;

/*
 * Walks both trees and tells the allocator how many nodes they have, which is the longest tail that
 * a commit can need. (Their items change only in place, except in zf_txn_grow(), and except for the
 * two health items, which fit the root tree's only leaf.) With `loaded`, for trees that were read
 * from disk and not just made, each node is also counted in its zone. Returns 0, or the error of
 * the walk.
 */
int zf_system_nodes_count(struct zf_forest *forest, struct zf_alloc *alloc, bool loaded);

#endif
