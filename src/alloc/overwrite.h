/* SPDX-License-Identifier: MIT */
/*
 * Zones that are written in place: conventional ones, of the role OVERWRITE (fs/map/overwrite.h
 * tells what for). They have no pointer: which bytes are free is known from a map.
 *
 *      free
 *        |  zf_alloc_overwrite_take()
 *        v
 *      taken, and free again after zf_alloc_overwrite_give()
 *        |  extents name the bytes: zf_alloc_live_add(), zf_alloc_overwrite_named()
 *        v
 *      live
 *        |  transaction N drops the extents: zf_alloc_live_sub()
 *        v
 *      freed
 *        |  N+1 is durable (N, when space is short), and the holds taken until then are let go
 *        v
 *      free
 *
 * The map is in memory only. The summary tree, which is exact for these zones, is its form on disk;
 * the mount loads the map from there. A zone in which nothing is live or taken loses its role as
 * any other emptied zone does: alloc/release.c.
 *
 * Holds. A reader or writer in place takes a hold while it still has the lock that keeps the extent
 * in the tree (the inode's) or the block in flight (data->lock). Bytes freed after that are not
 * given out until the hold is let go.
 */
#ifndef ZF_ALLOC_OVERWRITE_H
#define ZF_ALLOC_OVERWRITE_H

#include <stdbool.h>
#include <stdint.h>

struct zf_alloc;

/*
 * Does any zone have this role? Takes no lock: callers ask before they look for extents in such
 * zones.
 */
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
/* The map could not be loaded: no bytes are given out until the next mount. */
void zf_alloc_overwrite_distrust(struct zf_alloc *alloc);

/*
 * Takes at most `want` bytes, of one zone. -ENOSPC; -EAGAIN: a commit may give some back.
 * `urgent`: space is short.
 */
int zf_alloc_overwrite_take(struct zf_alloc *alloc, uint64_t want, bool urgent,
			    uint64_t *ret_address, uint64_t *ret_len);
/*
 * Gives one more zone the role. The caller has reserved the blocks of a whole zone, so nobody else
 * counts on them; this call leaves the reservation as it is. -ENOSPC.
 */
int zf_alloc_overwrite_open(struct zf_alloc *alloc);
/* Gives back bytes that were taken and that no extent will name. */
void zf_alloc_overwrite_give(struct zf_alloc *alloc, uint64_t address, uint64_t len);
/* Extents name these bytes, which were taken, and count as live. Inside their transaction. */
void zf_alloc_overwrite_named(struct zf_alloc *alloc, uint64_t address, uint64_t len);

/* Returns what zf_alloc_overwrite_let_go() wants. */
unsigned int zf_alloc_overwrite_hold(struct zf_alloc *alloc);
void zf_alloc_overwrite_let_go(struct zf_alloc *alloc, unsigned int hold);

#endif
