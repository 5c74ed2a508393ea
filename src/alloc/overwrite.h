/* SPDX-License-Identifier: MIT */
/*
 * Zones of role OVERWRITE: conventional zones whose data is overwritten in place
 * (fs/map/overwrite.h tells which data that is). Such a zone has no write pointer; a map of it
 * tells which of its blocks are free. The diagram shows the life of bytes in it; on the right is
 * the function that makes each change.
 *
 *      free
 *        |       zf_alloc_overwrite_take()
 *        v
 *      taken; zf_alloc_overwrite_give() makes them free again
 *        |       extents name the bytes: zf_alloc_live_add(), zf_alloc_overwrite_named()
 *        v
 *      live
 *        |       transaction N drops the extents: zf_alloc_live_sub()
 *        v
 *      freed
 *        |       N+1 is durable (N, when space is short), and all holds that were taken
 *        |       before that have ended
 *        v
 *      free
 *
 * Holds. A reader or writer in place takes a hold while it still has the lock that keeps the extent
 * in the tree (the inode's) or the block in flight (data->lock).
 *
 * Invariants.
 *   - Bytes that are freed after a hold was taken are not given out before that hold ends.
 *   - The map is in memory only. The summary tree is exact for these zones, and the mount loads the
 *     map from it.
 *   - A zone in which nothing is live or taken loses its role as any other emptied zone does
 *     (release.c).
 *
 * Locking: alloc.h; zf_alloc_has_overwrite() takes no lock. No call does I/O or waits.
 */
#ifndef ZF_ALLOC_OVERWRITE_H
#define ZF_ALLOC_OVERWRITE_H

#include <stdbool.h>
#include <stdint.h>

struct zf_alloc;

/* Returns whether any zone has this role. Callers ask before they look for extents there. */
bool zf_alloc_has_overwrite(struct zf_alloc *alloc);

/* A mount: marks bytes that an extent of the committed state names. -EUCLEAN, -ENOMEM. */
int zf_alloc_overwrite_load(struct zf_alloc *alloc, uint64_t address, uint64_t len);
/*
 * A mount: like zf_alloc_hold(), for bytes that a record of the log names as overwritable. Marks
 * the bytes as taken and gives their zone the role, whatever the committed state says, because the
 * zone may have got the role since. Until zf_alloc_let_go() extents may name the bytes, give them
 * up and name them again. -EUCLEAN, -ENOMEM.
 */
int zf_alloc_overwrite_claim(struct zf_alloc *alloc, uint64_t address, uint64_t len);
/* The map could not be loaded: no bytes are given out before the next mount. */
void zf_alloc_overwrite_distrust(struct zf_alloc *alloc);

/*
 * Takes at most `want` bytes, all in one zone. `urgent`: space is short. -ENOSPC. -EAGAIN: a commit
 * may make bytes free; or, if not `urgent`, only short runs are free. -ENOMEM.
 */
int zf_alloc_overwrite_take(struct zf_alloc *alloc, uint64_t want, bool urgent,
			    uint64_t *ret_address, uint64_t *ret_len);
/*
 * Gives one more zone the role. The caller has reserved the blocks of a whole zone, so no other
 * reservation counts on them. This call does not change the reservation. -ENOSPC.
 */
int zf_alloc_overwrite_open(struct zf_alloc *alloc);
/* Makes bytes free again that were taken and that no extent will name. */
void zf_alloc_overwrite_give(struct zf_alloc *alloc, uint64_t address, uint64_t len);
/* Extents now name these bytes, which were taken. Within the transaction that inserts them. */
void zf_alloc_overwrite_named(struct zf_alloc *alloc, uint64_t address, uint64_t len);

/*
 * Takes a hold, and ends it. zf_alloc_overwrite_hold() returns the number that
 * zf_alloc_overwrite_let_go() needs.
 */
unsigned int zf_alloc_overwrite_hold(struct zf_alloc *alloc);
void zf_alloc_overwrite_let_go(struct zf_alloc *alloc, unsigned int hold);

#endif
