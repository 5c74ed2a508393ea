/* SPDX-License-Identifier: MIT */
/*
 * Zones that are written in place: conventional ones, of the role OVERWRITE (fs/map/overwrite.h
 * tells what for). They have no pointer: which bytes are free is known from a map.
 *
 *      free --_take--> taken --extents name them: zf_alloc_live_add, _named--> live
 *       ^               |                                                       |
 *       +----_give------+                                        zf_alloc_live_sub, in transaction
 * N |                                                                       v
 *       +--N+1 is durable (N, when space is short), and what may still be on its way is over--
 * freed
 *
 * The map is in memory only. On disk it is the summary tree, which is exact in these zones: the
 * mount loads it from there. A zone in which nothing is live or taken leaves the role like any
 * other emptied one leaves its own: alloc/release.c.
 *
 * Holds. Whoever reads or writes in place holds what was free of use when he began: a hold is taken
 * while what keeps the extent in the tree (the inode's lock) or the block in flight (data->lock) is
 * still held, and what is freed after that is not given out until the hold is let go.
 */
#ifndef ZF_ALLOC_OVERWRITE_H
#define ZF_ALLOC_OVERWRITE_H

#include "alloc/alloc.h"

/* Is any zone of this role? Without a lock: for those who would have to look for extents there. */
bool zf_alloc_has_overwrite(struct zf_alloc *alloc);

/* The mount: an extent of the committed state has these bytes. -EUCLEAN. */
int zf_alloc_overwrite_load(struct zf_alloc *alloc, uint64_t address, uint64_t len);
/*
 * The mount, as zf_alloc_hold() for bytes that a record of the log names as overwritable: they are
 * taken, whatever the committed state says, and their zone has the role, which it may have got
 * since then. Extents may name them, give them up and name them again, until zf_alloc_let_go().
 * -EUCLEAN.
 */
int zf_alloc_overwrite_claim(struct zf_alloc *alloc, uint64_t address, uint64_t len);
/* It could not be loaded: nothing is given out until the next mount. */
void zf_alloc_overwrite_distrust(struct zf_alloc *alloc);

/*
 * Takes at most `want` bytes, of one zone. -ENOSPC; -EAGAIN: a commit may give some back.
 * `urgent`: space is short.
 */
int zf_alloc_overwrite_take(struct zf_alloc *alloc, uint64_t want, bool urgent,
			    uint64_t *ret_address, uint64_t *ret_len);
/*
 * One more zone gets the role. The caller has reserved the blocks of a whole zone, which stay his
 * and which this leaves alone: so nobody misses it. -ENOSPC.
 */
int zf_alloc_overwrite_open(struct zf_alloc *alloc);
/* Of what was taken: no extent will name it. */
void zf_alloc_overwrite_give(struct zf_alloc *alloc, uint64_t address, uint64_t len);
/* Of what was taken: extents name it, it is counted live. Inside their transaction. */
void zf_alloc_overwrite_named(struct zf_alloc *alloc, uint64_t address, uint64_t len);

/* Returns what zf_alloc_overwrite_let_go() wants. */
unsigned int zf_alloc_overwrite_hold(struct zf_alloc *alloc);
void zf_alloc_overwrite_let_go(struct zf_alloc *alloc, unsigned int hold);

#endif
