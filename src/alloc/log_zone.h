/* SPDX-License-Identifier: MIT */
/*
 * The zones of the intent log: which zones are the log's, room for its records, and the bytes that
 * records protect while a mount replays them.
 *
 * The log writes to two zones that the durable superblock names: the *current* one, and the *next*
 * one, which follows when the current one is full. The diagram shows the life of such a zone; on
 * the right is the function that makes each change.
 *
 *      empty
 *        |       zf_alloc_log_choose(), in a commit
 *        v
 *      chosen: the superblock that is being written names it
 *        |       zf_alloc_log_named(), once that superblock is durable
 *        v
 *      named: takes records
 *        |       zf_alloc_log_begin(), when it is full; or zf_alloc_append_end() of a failed write
 *        v
 *      closed: takes no more records
 *        |       zf_alloc_log_choose(), in the next commit
 *        v
 *      not chosen: role HOT, but still named by the durable superblock
 *        |       zf_alloc_log_named()
 *        v
 *      an ordinary zone of data: filled up, or finished
 *
 * Invariants.
 *   - A zone that a superblock names, or that the one being written will name, is the log's. It is
 *     neither reset nor given to data.
 *   - Recovery reads only zones that the durable superblock names. So records go to zones that both
 *     superblocks name: a record is found whichever of the two a crash leaves as the newest.
 *   - For each of the two zones that the log does not have, data leaves one empty zone alone.
 *
 * Locking: alloc.h. No call does I/O or waits.
 */
#ifndef ZF_ALLOC_LOG_ZONE_H
#define ZF_ALLOC_LOG_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "superblock/super.h"

struct zf_alloc;
struct zf_append_grant;

struct zf_log_zones {
	uint32_t zone[2];    /* current, next; ZF_SUPER_NO_ZONE: none */
	uint64_t resets[2];  /* their reset counts */
	uint64_t pointer[2]; /* bytes in the zone: what lies below is in the trees, or garbage */
};

/* ---- a commit's choice ---- */

/*
 * Chooses the zones that the superblock of this transaction will name. Called before
 * zf_alloc_freeze(), while no join is held and no record is in flight. Chooses empty zones (first
 * those that the device keeps warm) in the place of zones that are full, failed or missing; the
 * next zone becomes current when the current one is full. Without enough room it chooses one zone
 * or none. A chosen zone without records is given back when metadata is short of room.
 */
void zf_alloc_log_choose(struct zf_alloc *alloc, struct zf_log_zones *ret_zones);
/* The superblock that names `zones` is durable: records go to these zones only. */
void zf_alloc_log_named(struct zf_alloc *alloc, const struct zf_log_zones *zones);
/* Returns the zones that the durable superblock names, with their present pointers. */
void zf_alloc_log_get(struct zf_alloc *alloc, struct zf_log_zones *ret_zones);

/* ---- records ---- */

/*
 * Grants room for one record of `len` bytes in the current zone. If the record does not fit there,
 * the next zone becomes the current one and *ret_switched is set. `reserved` blocks of the record
 * are covered by reservations, which are used up. The caller ends the grant block by block with
 * zf_alloc_append_end(). After a failed write the zone takes no more records. -ENOSPC: the record
 * fits in neither zone.
 */
int zf_alloc_log_begin(struct zf_alloc *alloc, uint64_t len, uint64_t reserved,
		       struct zf_append_grant *ret_grant, uint64_t *ret_resets, bool *ret_switched);

/* ---- a mount: after zf_alloc_load(), before zf_alloc_start() ---- */

/*
 * Takes over the zones that the mounted superblock names. -EUCLEAN: one of them is not the log's,
 * was reset since, or is written less far than the superblock says; then the log has no zones.
 */
int zf_alloc_log_load(struct zf_alloc *alloc, const struct zf_super *super);
/*
 * Raises the pointer of the zone that the superblock names as log_zone[which] to the end of its
 * records, in bytes from the start of the zone. After an unclean stop of the host the device's
 * pointer may be lower than that, and a conventional zone has none.
 */
void zf_alloc_raise_log(struct zf_alloc *alloc, unsigned int which, uint64_t pointer);
/*
 * Holds bytes that are named by a record that is to be replayed. Until zf_alloc_let_go() their zone
 * is not reset, and its pointer is at least at their end. -EUCLEAN: no zone of data has these
 * bytes.
 */
int zf_alloc_hold(struct zf_alloc *alloc, uint64_t address, uint64_t len);
/* Lets go of everything that is held, after the replay. */
void zf_alloc_let_go(struct zf_alloc *alloc);

#endif
