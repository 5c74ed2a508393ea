/* SPDX-License-Identifier: MIT */
/*
 * Reclaim: which zones are emptied, where their live blocks may go, and which zones are reset.
 *
 * A zone can be reset when nothing in it is live. If some blocks of a zone are live and the others
 * are garbage, *reclaim* moves the live blocks out first; the zone is its *victim*. This header
 * tells which zone is the next victim. Layers above move the blocks (fs/space/reclaim.h for data,
 * txn/tidy.c for nodes).
 *
 * Live data moves to the COLD stream. User data may not open the last three empty zones
 * (KEPT_FOR_RECLAIM): live blocks of victims move to them, and writers use them up while commits
 * give others back. The zone of the COLD stream is one of the three.
 *
 * Invariants. A reset destroys nothing that a mount may need:
 *   - a zone that transaction N emptied is reset when N+1 is durable, so that a torn superblock N+1
 *     can be stepped over; when space is short, when N is durable;
 *   - the summary tree of a durable superblock has no entry of the zone, or a later mount would
 *     take old entries for those of new data;
 *   - no append to the zone is under way, and no read that looked up an address in it;
 *   - the zone is not the log's, and no record that a mount will replay names bytes in it.
 * A victim is not reset while its blocks are moved: it counts as having a reader.
 *
 * Locking: alloc.h. No call does I/O or waits. One thread at a time moves the blocks of data zones.
 */
#ifndef ZF_ALLOC_RECLAIM_H
#define ZF_ALLOC_RECLAIM_H

#include <stdbool.h>
#include <stdint.h>

struct zf_alloc;

/* ---- how many zones are ready (reclaim_room.c) ---- */

/*
 * Counts of zones, beyond those that metadata, the log and accepted data need. Reclaim works while
 * empty + coming < target. While empty < low, the zones that are coming are worth a commit.
 *
 * A commit gives zones back, and takes zones for its nodes. The larger commits are, the higher are
 * low and target, so that commits give back more than they take. The more garbage victims have, the
 * higher is target, because then it costs little to have many zones wait for one commit.
 */
struct zf_reclaim_room {
	uint32_t zones;	       /* for data: not those of super, metadata, log, OVERWRITE */
	uint32_t empty;	       /* zones that can be opened now */
	uint32_t coming;       /* zones without live bytes: commits and resets give them back */
	uint32_t target;       /* wanted value of empty + coming */
	uint32_t low;	       /* wanted least value of empty */
	uint64_t reclaimable;  /* bytes of garbage in zones that could be victims */
	uint32_t retired;      /* zones that failed, with data in them that can be moved out */
	uint64_t commit_bytes; /* metadata that a commit writes: an average of the last ones */
	uint32_t waiting;      /* zones that may wait for one commit: more would cost more */
	uint64_t victim_bytes; /* bytes that a victim gives back: an average of the last ones */
};
void zf_alloc_reclaim_room(struct zf_alloc *alloc, struct zf_reclaim_room *ret_room);

/* Mount option: how many zones the target is above low, at least. */
void zf_alloc_set_reclaim_target(struct zf_alloc *alloc, uint32_t zones);

/* ---- victims among zones of data (reclaim.c) ---- */

enum zf_reclaim_need {
	/* No writer waits for room: the victim with the best ratio of benefit to cost. */
	ZF_RECLAIM_IN_PEACE,
	/* A writer waits: the victim with the most garbage, however little that is. */
	ZF_RECLAIM_URGENT,
};

/*
 * Picks the next victim. The victim is never the zone of a stream or of the log, a zone with
 * appends under way, or a stuck zone. One caller at a time. -ENOENT: no victim would give anything
 * back.
 */
int zf_alloc_reclaim_begin(struct zf_alloc *alloc, enum zf_reclaim_need need,
			   uint32_t *ret_zone_no);
/* Takes this zone, however little it would give back. -EBUSY: it cannot be a victim now. */
int zf_alloc_reclaim_begin_zone(struct zf_alloc *alloc, uint32_t zone_no);
/*
 * Picks a retired zone that can still be read, if there is room for all its live data. The zone
 * gives no space back, but its data is saved before it cannot be read any more. -ENOENT.
 */
int zf_alloc_reclaim_begin_retired(struct zf_alloc *alloc, uint32_t *ret_zone_no);
/*
 * Ends what a zf_alloc_reclaim_begin*() call began. `stuck`: some live data could not be read. A
 * stuck zone is no victim again before it is reset. Another zone that still holds live data is no
 * victim again before the next commit.
 */
void zf_alloc_reclaim_end(struct zf_alloc *alloc, uint32_t zone_no, bool stuck);

/* ---- room that victims' data moves to (reclaim_cold.c) ---- */

/*
 * Reserves room in the COLD stream, which zf_alloc_append_begin(COLD) uses up or
 * zf_alloc_unreserve_cold() gives back. -ENOSPC: neither the stream's zone nor an empty zone has
 * the room.
 */
int zf_alloc_reserve_cold(struct zf_alloc *alloc, uint64_t blocks);
void zf_alloc_unreserve_cold(struct zf_alloc *alloc, uint64_t blocks);

/* ---- victims among zones of metadata (reclaim_meta.c) ---- */

/*
 * Picks the zone of metadata that is best emptied now, if metadata wants room: the zone with the
 * fewest live nodes that no stream has open. `urgent`: any zone that gives something back. If there
 * is none, an urgent call may instead close the streams' zones in the running transaction, and
 * returns ZF_META_CLOSED: the caller asks again after a commit. -ENOENT: no zone is worth it.
 *
 * The zone counts as having a reader until zf_alloc_read_end(). Otherwise another thread could
 * empty and reset it before the caller looks for its nodes.
 */
#define ZF_META_CLOSED 1
int zf_alloc_meta_victim(struct zf_alloc *alloc, bool urgent, uint32_t *ret_zone_no);
/*
 * Picks the zone of metadata with the most garbage. The garbage must be more than half of the zone,
 * and more than any zone of data has. The zone is not reset before zf_alloc_meta_victim_end(). If
 * it then still has live nodes, it is not picked again before the next commit. -ENOENT.
 */
int zf_alloc_meta_victim_begin(struct zf_alloc *alloc, uint32_t *ret_zone_no);
void zf_alloc_meta_victim_end(struct zf_alloc *alloc, uint32_t zone_no);
/*
 * No node of the zone could be moved, so it is no victim again before its reset. `reset_count`: the
 * zone's count when the move was tried. The call does nothing if another thread has moved all nodes
 * since, or has reset the zone.
 */
void zf_alloc_meta_stuck(struct zf_alloc *alloc, uint32_t zone_no, uint64_t reset_count);

/* ---- resets (release.c) ---- */

/*
 * Picks a zone in which nothing is live and which still has summary entries. Only the caller
 * removes them, in the running transaction, and calls zf_alloc_summary_dropped() there, with an
 * error if it could not. -ENOENT.
 */
int zf_alloc_next_unsummarise(struct zf_alloc *alloc, uint32_t *ret_zone_no);
void zf_alloc_summary_dropped(struct zf_alloc *alloc, uint32_t zone_no, int result);

/*
 * Picks a zone that may be reset now. The caller resets it on the device, without a lock, and
 * passes the result to zf_alloc_reset_done(). After an error the zone is not used before the next
 * mount. `urgent`: space is short. -ENOENT.
 */
int zf_alloc_next_reset(struct zf_alloc *alloc, bool urgent, uint32_t *ret_zone_no);
void zf_alloc_reset_done(struct zf_alloc *alloc, uint32_t zone_no, int result);

/* Returns how many zones commits and resets alone would give back. */
uint32_t zf_alloc_emptied_zones(struct zf_alloc *alloc);

#endif
