/* SPDX-License-Identifier: MIT */
/*
 * The allocator's state: it is created, loaded from the committed zone tree, started, grown, freed.
 *
 * The allocator decides which zone is used for what, where the next node and the next append go,
 * how much room is left, and when a zone may be reset. What it offers is in one header per idea:
 *
 *      zone.h      the zone table, appends to zones, and zones that fail
 *      stream.h    addresses for metadata nodes, and what a commit takes over
 *      reserve.h   room that is asked for before it is used, and statistics of space
 *      reclaim.h   which zones are emptied and reset
 *      log_zone.h  the two zones of the intent log
 *      overwrite.h the conventional zones whose data is overwritten in place
 *      vain.h      attempts to make room that are not repeated
 *
 * Invariants. The table in memory is the truth of the running transaction. The zone tree holds the
 * table as of the last commit.
 *
 * Locking. One mutex per filesystem (ZF_RANK_ALLOC) protects the whole state; every call of these
 * headers takes and releases it. A call does I/O or waits only if its comment says so. The calls of
 * this header other than zf_alloc_running() and zf_alloc_grow() belong to mkfs, to a mount, or to
 * an unmount, when no other thread uses the state.
 */
#ifndef ZF_ALLOC_ALLOC_H
#define ZF_ALLOC_ALLOC_H

#include <stddef.h>
#include <stdint.h>

#include "io/dev.h"
#include "superblock/super.h"

struct zf_alloc;

/*
 * Reads the device's zone report (I/O). No zone has a role yet. mkfs calls zf_alloc_start() next; a
 * mount calls zf_alloc_load() for every zone item before that. The device and `report` must live as
 * long as *ret_alloc.
 */
int zf_alloc_new(struct zf_dev *dev, const struct zf_super *super, const struct zf_report *report,
		 struct zf_alloc **ret_alloc);
void zf_alloc_free(struct zf_alloc *alloc); /* takes NULL */

/* Loads one item of the committed zone tree and checks every field of it. -EUCLEAN. */
int zf_alloc_load(struct zf_alloc *alloc, uint32_t zone_no, const void *item, size_t len);
/*
 * Counts a node of the root or zone tree, which the mount has found at `address`: the live bytes of
 * zone items leave out these nodes. -EUCLEAN: no node can be there.
 */
int zf_alloc_load_system_node(struct zf_alloc *alloc, const uint64_t address[ZF_COPIES_MAX]);
/*
 * Ends the loading. `committed` is the generation of the superblock, `running` that of the
 * transaction that now begins. Chooses the zones in which the streams continue.
 */
void zf_alloc_start(struct zf_alloc *alloc, uint64_t committed, uint64_t running);
/*
 * On a device whose write pointers are lower bounds, tells the device (I/O) how far its zones are
 * written, and the reset count of each zone that the device has lost. Called after zf_alloc_start()
 * and before the mount writes anything. The caller must have mounted the newest state and must be
 * about to write to it: an older state knows less, and the device keeps what it is told.
 */
int zf_alloc_tell_device(struct zf_alloc *alloc);

/* The generation of the running transaction. Each freeze adds 1. */
uint64_t zf_alloc_running(struct zf_alloc *alloc);

/*
 * Grows the filesystem to the device's first `zone_count` zones, which must be more than it has.
 * The next freeze includes the items of the new zones. They can be used once the superblock of that
 * freeze is durable, and not before, because until then no mount knows of them. Bytes that a new
 * zone already contains are garbage, which is reclaimed like any other. The caller prevents other
 * commits until it has made this one, whose tail may need `nodes` more nodes. Reads the report of
 * the new zones (I/O).
 *
 * -ENOSPC: there is no room for those nodes. Another error: the report could not be read. After an
 * error nothing has changed.
 */
int zf_alloc_grow(struct zf_alloc *alloc, uint32_t zone_count, unsigned int nodes);

#endif
