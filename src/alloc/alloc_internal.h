/* SPDX-License-Identifier: MIT */
/*
 * The state that the files of src/alloc/ share, and the functions by which they use each other.
 *
 * Between these files there is no cycle of calls (tests/check-layers): the sections below are in an
 * order in which each file calls only files of the sections above its own.
 *
 * The caller of a function whose name ends in _locked holds alloc->lock, or no other thread uses
 * the state yet.
 */
#ifndef ZF_ALLOC_ALLOC_INTERNAL_H
#define ZF_ALLOC_ALLOC_INTERNAL_H

#include <bsd/sys/queue.h>
#include <errno.h>
#include <stdatomic.h>

#include "alloc/alloc.h"
#include "alloc/log_zone.h"
#include "alloc/overwrite.h"
#include "alloc/reclaim.h"
#include "alloc/reserve.h"
#include "alloc/stream.h"
#include "alloc/zone.h"
#include "base/bits.h"

#define NO_ZONE UINT32_MAX

/*
 * Empty zones that data never opens. Each log zone that still has room is subtracted from
 * KEPT_FOR_LOG: zf_alloc_kept_for_log_locked().
 */
#define KEPT_FOR_LOG	 2u
#define KEPT_FOR_RECLAIM 3u

/* Active zones that are set aside for the log: two while it switches. */
#define ACTIVE_FOR_LOG 2u
/* Set aside for the COLD stream: without it reclaim stops once users have taken all others. */
#define ACTIVE_FOR_COLD 1u

/* A growing list: the runs of one copy of the running transaction's nodes. */
struct runs {
	struct zf_meta_run *runs;
	unsigned int count, room;
};

/* Bytes of an OVERWRITE zone that no extent names any more, and that are not given out yet. */
struct zf_freed {
	STAILQ_ENTRY(zf_freed) link;
	uint64_t address, len;
	uint64_t generation; /* the transaction that freed them */
	uint64_t era; /* in which the wait for a commit ended: ..._release_locked(); 0: not yet */
};

/* See alloc/overwrite.h. */
struct zf_overwrite {
	struct zf_overwrite_map {
		uint8_t *bits; /* one per block, 1: not free; NULL: all blocks are free */
		uint32_t used; /* number of 1 bits */
	} *maps;	       /* one per conventional zone */
	STAILQ_HEAD(, zf_freed) freed;
	uint64_t era;
	unsigned int holds[2];	/* of this era and of the one before; index: era % 2 */
	bool distrusted;	/* the maps may differ from the summary tree */
	atomic_uint zone_count; /* zones of the role; read without the lock */
};

/* Sums over all zones: zf_alloc_reclaim_room() is called too often to visit each zone. */
struct zf_tally {
	bool stale;	  /* the sums must be counted again */
	uint32_t zones;	  /* zones that data could be in */
	uint32_t coming;  /* zones without live bytes */
	uint32_t retired; /* retired zones whose live bytes can be moved out */
	uint64_t garbage; /* blocks that emptying victims would give back */
};

struct zf_alloc {
	struct zf_dev *dev;
	const struct zf_geometry *geometry;
	const struct zf_report *report;
	uint32_t node_blocks;
	uint8_t copies;
	bool counts_resets;  /* the device tells how often each zone was reset */
	uint32_t active_max; /* zones that may be active at once; UINT32_MAX: no limit */

	struct zf_mutex lock;	     /* ZF_RANK_ALLOC; everything below */
	struct zf_zone *zones;	     /* never moves: pointers into it are taken without the lock */
	_Atomic uint32_t zone_count; /* read without the lock too; only grows */
	uint32_t zones_coming;	     /* new zones behind zone_count; see grow.c */
	uint32_t empty_count;	     /* zones that a stream can open */
	uint32_t search_next;	     /* where the search for an empty zone goes on */
	uint64_t running, committed; /* generations */
	uint64_t limit_events;
	struct zf_cond limits_eased; /* goes with limit_events */

	uint32_t meta_zone[ZF_COPIES_MAX]; /* the streams' zones; NO_ZONE: to be opened */
	struct runs meta_runs[ZF_COPIES_MAX];
	uint32_t data_zone[ZF_ROLE_COUNT]; /* the open zones of HOT and COLD */
	uint32_t log_named[2];	/* current, next: in the durable superblock; NO_ZONE: none */
	uint32_t log_chosen[2]; /* in the superblock being written; else equal to log_named */
	unsigned int tail_max;
	uint64_t nodes_kept;	   /* for removals: zf_alloc_set_nodes_kept() */
	uint64_t promised_nodes;   /* nodes promised to joins under way */
	uint64_t node_live_blocks; /* of all nodes but `system` ones, every copy */

	uint64_t reserved_blocks, reserved_items;
	/* Nodes that the last reservation of data left room for; [0]: NORMAL, [1]: OVERWRITE. */
	uint64_t data_nodes[2];

	uint64_t cold_blocks;	 /* reserved for data that reclaim moves */
	bool cold_zone;		 /* an empty zone is set aside: see reclaim_cold.c */
	uint32_t reclaim_target; /* zones above low: zf_alloc_set_reclaim_target() */
	uint64_t commit_blocks;	 /* blocks of nodes per transaction: an average of the last ones */
	struct zf_tally tally;
	uint64_t appended[ZF_ROLE_COUNT]; /* bytes, by the role of the zone */
	uint64_t freed;	      /* counts events that free bytes in zones of data: see vain.h */
	uint32_t victim_gain; /* blocks of garbage of a victim: an average of the last ones */

	/* See reserve.h. */
	uint64_t kept_blocks;		 /* of all extents */
	uint64_t lent_blocks;		 /* of kept_blocks */
	uint64_t kept_short;		 /* of kept_blocks */
	uint64_t guaranteed_blocks;	 /* of all extents */
	uint64_t kept_guaranteed_blocks; /* blocks that are kept and guaranteed */

	struct zf_overwrite overwrite;
};

/* Blocks of the largest zone. */
static inline uint64_t capacity_blocks(const struct zf_alloc *alloc)
{
	return alloc->geometry->zone_capacity >> ZF_BLOCK_SHIFT;
}

/* from - blocks, but never below 0. */
static inline uint64_t sub_blocks(uint64_t from, uint64_t blocks)
{
	return from > blocks ? from - blocks : 0;
}

static inline uint64_t blocks_to_nodes(const struct zf_alloc *alloc, uint64_t blocks)
{
	return blocks / alloc->node_blocks;
}

static inline bool zone_is_empty(const struct zf_zone *zone)
{
	return zone->role == ZF_ROLE_NONE && zone->pointer == 0 && !zone->unusable &&
	       !zone->pointer_unknown && !zone->resetting;
}

static inline uint64_t zone_live_bytes(const struct zf_zone *zone)
{
	return ((uint64_t)zone->live + zone->system_live) << ZF_BLOCK_SHIFT;
}

static inline bool zone_is_partial(const struct zf_zone *zone)
{
	return zone->pointer > 0 && zone->pointer < zone->capacity;
}

static inline bool zone_is_conventional(const struct zf_alloc *alloc, uint32_t zone_no)
{
	return zone_no < alloc->geometry->conventional;
}

/* Could this zone of the log take records, now or once a superblock names it? */
static inline bool log_zone_has_room(const struct zf_zone *zone)
{
	return !zone->log_closed && !zone->unusable && zone->pointer < zone->capacity;
}

static inline bool is_among(const uint32_t zones[2], uint32_t zone_no)
{
	return zones[0] == zone_no || zones[1] == zone_no;
}

/*
 * One zone for data, and one for each copy of metadata, which takes a whole zone when it opens one.
 */
static inline uint64_t slack_max(const struct zf_alloc *alloc)
{
	return (1 + alloc->copies) * capacity_blocks(alloc);
}

/*
 * Blocks that emptying a metadata zone costs besides its live ones: moving nodes writes new parents
 * and a tail, too, which are garbage a transaction later.
 */
static inline uint64_t meta_move_costs(const struct zf_alloc *alloc)
{
	return (4 + zf_min_u64(alloc->tail_max, 8)) * alloc->node_blocks +
	       capacity_blocks(alloc) / 16;
}

/* Kept blocks that are not lent. */
static inline uint64_t kept_unlent(const struct zf_alloc *alloc)
{
	return sub_blocks(alloc->kept_blocks, alloc->lent_blocks);
}

/* ---- zone.c ---- */

/* Is this the open zone of a stream of metadata or data? */
bool zf_alloc_is_stream_locked(const struct zf_alloc *alloc, uint32_t zone_no);
/*
 * Is this zone the log's: does a superblock that a mount may find, or the one being written, name it
 * as a log zone?
 */
bool zf_alloc_is_log_locked(const struct zf_alloc *alloc, uint32_t zone_no);
/*
 * The metadata zone that holds the node at `address`. NULL: no node can be there, although an image
 * claims so.
 */
struct zf_zone *zf_alloc_node_zone_locked(struct zf_alloc *alloc, uint64_t address);
/* Is the zone written, not in use, and without live bytes? A retired zone may be. */
bool zf_alloc_is_unneeded_locked(const struct zf_alloc *alloc, uint32_t zone_no);
/* The same, and the zone can be written again after a reset. */
bool zf_alloc_holds_nothing_locked(const struct zf_alloc *alloc, uint32_t zone_no);
/* Do commits and resets alone give the zone back? */
bool zf_alloc_is_coming_locked(const struct zf_alloc *alloc, uint32_t zone_no);
/* Can this zone of data be emptied by moving its live blocks, perhaps only later? */
bool zf_alloc_is_movable_locked(const struct zf_alloc *alloc, uint32_t zone_no);
/* Can this zone of data be emptied now by moving its live blocks? */
bool zf_alloc_is_victim_locked(const struct zf_alloc *alloc, uint32_t zone_no);
/* Is it a retired zone of data that can be read, so that its live blocks can be moved? */
bool zf_alloc_is_rescuable_locked(const struct zf_alloc *alloc, uint32_t zone_no);

/* The result of a search for a zone: 0 with the zone, -ENOENT for NO_ZONE. */
static inline int zf_alloc_found(uint32_t zone_no, uint32_t *ret_zone_no)
{
	if (zone_no == NO_ZONE)
		return -ENOENT;
	*ret_zone_no = zone_no;
	return 0;
}

void zf_alloc_set_role_locked(struct zf_alloc *alloc, uint32_t zone_no, enum zf_role role);
/* Traces that the zone's live blocks are about to be moved out. */
static inline void zf_alloc_trace_victim_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	const struct zf_zone *zone = &alloc->zones[zone_no];

	ZF_TRACE(victim_chosen, .address = zone_no * alloc->geometry->zone_size,
		 .live = zone_live_bytes(zone),
		 .written = (uint64_t)zone->pointer << ZF_BLOCK_SHIFT, .role = zone->role);
}

/* Traces that the zone's live blocks have changed. */
static inline void zf_alloc_trace_live_locked(const struct zf_alloc *alloc, uint32_t zone_no)
{
	ZF_TRACE(zone_live, .address = zone_no * alloc->geometry->zone_size,
		 .live = zone_live_bytes(&alloc->zones[zone_no]));
}

/* The zone's item is out of date. */
void zf_alloc_dirty_locked(struct zf_alloc *alloc, uint32_t zone_no);
void zf_alloc_set_pointer_locked(struct zf_alloc *alloc, uint32_t zone_no, uint32_t pointer);
/*
 * A zone's role or contents have changed, so alloc->tally is stale. Not needed for live bytes:
 * zf_alloc_note_live_locked() counts these.
 */
void zf_alloc_recount_locked(struct zf_alloc *alloc);
/* If nothing in the zone is live any more, notes `generation`, the transaction that emptied it. */
void zf_alloc_note_emptied_locked(struct zf_alloc *alloc, uint32_t zone_no, uint64_t generation);

/* ---- limits.c ---- */

/* One zone fewer is active, or one more may be finished or continued. */
void zf_alloc_limit_event_locked(struct zf_alloc *alloc);

/* ---- room.c ---- */

/* Blocks that the open zone of this stream has room for. */
uint64_t zf_alloc_stream_room_locked(const struct zf_alloc *alloc, enum zf_role role);
/* Empty zones that `wanted` blocks take, besides the stream's open zone. */
uint32_t zf_alloc_zones_for_locked(const struct zf_alloc *alloc, enum zf_role role,
				   uint64_t wanted);

/* Kept blocks that could be lent now: neither lent nor short. */
uint64_t zf_alloc_kept_claim_locked(const struct zf_alloc *alloc);
/* Blocks of nodes, in one copy, that recording these blocks may take. */
uint64_t zf_alloc_kept_item_blocks_locked(const struct zf_alloc *alloc);
/* Blocks of the slack. 0 while nothing is guaranteed. */
uint64_t zf_alloc_slack_locked(const struct zf_alloc *alloc);
/*
 * Blocks that NORMAL leaves alone and OVERWRITE may use: the slack, and the items of guaranteed
 * blocks that are not kept.
 */
uint64_t zf_alloc_overwrite_need_locked(const struct zf_alloc *alloc);

/* Empty zones that reserved and kept blocks will need: no other use may take them. */
uint32_t zf_alloc_claimed_zones_locked(const struct zf_alloc *alloc);
/* Empty zones that the log still needs: for each of its two zones that is full or missing. */
uint32_t zf_alloc_kept_for_log_locked(const struct zf_alloc *alloc);
/* Zones set aside for reclaim that the COLD stream has not opened. */
uint32_t zf_alloc_kept_for_reclaim_locked(const struct zf_alloc *alloc);
/* Empty zones that metadata leaves alone for the COLD stream. */
uint32_t zf_alloc_cold_zones_locked(const struct zf_alloc *alloc);
/* Empty zones that a caller of this class leaves alone. */
uint32_t zf_alloc_kept_zones_locked(const struct zf_alloc *alloc, enum zf_reserve_class class);

/* Blocks that `items` may take in leaves, in all copies. */
uint64_t zf_alloc_item_blocks_locked(const struct zf_alloc *alloc, uint64_t items);
/* Nodes that the open zones of metadata have room for: as many as the fullest has. */
uint64_t zf_alloc_nodes_in_streams_locked(const struct zf_alloc *alloc);

/* Room for data, as it is or as it could be. */
struct zf_data_room {
	uint64_t hot, cold;  /* blocks that the open zones of the streams have room for */
	uint32_t empty;	     /* zones */
	uint32_t cold_zones; /* of these: what metadata and users leave to reclaim */
	uint64_t nodes;	     /* that the open zones of metadata have room for */
};
/* The room as it is. */
struct zf_data_room zf_alloc_data_room_locked(const struct zf_alloc *alloc);
/* The most blocks, with their items, that class NORMAL or OVERWRITE could reserve in this room. */
uint64_t zf_alloc_user_blocks_locked(const struct zf_alloc *alloc, enum zf_reserve_class class,
				     const struct zf_data_room *room);
/* The most blocks of data that leave room for `nodes` nodes. */
uint64_t zf_alloc_blocks_beside_nodes_locked(const struct zf_alloc *alloc,
					     const struct zf_data_room *room, uint64_t nodes);

/* ---- node_room.c ---- */

/* Nodes that metadata has room for, in its open zones and in the empty ones that it may open. */
uint64_t zf_alloc_node_room_locked(const struct zf_alloc *alloc);
/* The same if there were `empty_count` empty zones. */
uint64_t zf_alloc_node_room_with_locked(const struct zf_alloc *alloc, uint32_t empty_count);
/* Empty zones that metadata leaves alone: for reserved and kept blocks, and for reclaim. */
uint32_t zf_alloc_meta_keeps_locked(const struct zf_alloc *alloc);
/* Does metadata have room for what is promised, for a commit's tail, and for removals? */
bool zf_alloc_can_spare_locked(const struct zf_alloc *alloc);
/*
 * Has each open zone of metadata at least `garbage_min` blocks of garbage, and is there room for a
 * tail and for the live nodes of these zones elsewhere, if there are `empty_count` empty zones?
 */
bool zf_alloc_can_close_streams_locked(const struct zf_alloc *alloc, uint64_t garbage_min,
				       uint32_t empty_count);
/*
 * Could this stream of data give up its open zone? Data that was reserved there would go to another
 * zone. The call leaves alloc unchanged.
 */
bool zf_alloc_can_close_locked(struct zf_alloc *alloc, enum zf_role role);

/* ---- kept.c ---- */

/* A mount has loaded everything: counts the kept blocks that are short. */
void zf_alloc_kept_start_locked(struct zf_alloc *alloc);
/* A zone has failed for good: counts again. */
void zf_alloc_kept_lost_locked(struct zf_alloc *alloc);
/* Room came back: lowers the number of short blocks to those that still lack room. */
void zf_alloc_kept_regain_locked(struct zf_alloc *alloc);

/* ---- retire.c ---- */

/* Stores the condition that the device reports, before the zone's item is loaded. */
void zf_alloc_zone_from_info_locked(struct zf_zone *zone, const struct zf_zone_info *info);
/* Reports the zone to the user, if it is retired. */
void zf_alloc_tell_retired_locked(const struct zf_alloc *alloc, uint32_t zone_no);

/* ---- open.c ---- */

/*
 * Opens a zone for a stream of `role`: one of that role that was left partly written, or else an
 * empty one if there are more than `keep_empty`. -ENOSPC. -EAGAIN, but never for metadata: no more
 * zones may be active now.
 */
int zf_alloc_open_zone_locked(struct zf_alloc *alloc, enum zf_role role, uint32_t keep_empty,
			      uint32_t *ret_zone_no);
/* Does the limit of active zones allow the log to write to this empty zone? */
bool zf_alloc_may_open_log_locked(const struct zf_alloc *alloc, uint32_t zone_no);

/* ---- overwrite.c ---- */

int zf_alloc_overwrite_init(struct zf_alloc *alloc);
void zf_alloc_overwrite_deinit(struct zf_alloc *alloc);
/* The running transaction drops the last extent that names these bytes. */
void zf_alloc_overwrite_freed_locked(struct zf_alloc *alloc, uint64_t address, uint64_t len);
/* A replay makes bytes live that it may have freed before. */
void zf_alloc_overwrite_live_again_locked(struct zf_alloc *alloc, uint64_t address, uint64_t len);
/*
 * Makes freed bytes free once the transaction after theirs is durable (`urgent`: once theirs is),
 * and the holds that were taken before that was found have ended.
 */
void zf_alloc_overwrite_release_locked(struct zf_alloc *alloc, bool urgent);
/* Is anything in this zone not free? */
bool zf_alloc_overwrite_in_use_locked(const struct zf_alloc *alloc, uint32_t zone_no);
/* Forgets the zone's map, if its role is OVERWRITE: the zone gets another role. */
void zf_alloc_overwrite_left_locked(struct zf_alloc *alloc, uint32_t zone_no);

/* ---- table.c ---- */

/* Reserves address space for the largest table, and memory for alloc->zone_count entries. */
int zf_alloc_table_new(struct zf_alloc *alloc);
void zf_alloc_table_free(struct zf_alloc *alloc);
/*
 * Gives the first `zone_count` entries memory. Entries that have memory already keep their bytes.
 */
int zf_alloc_table_extend(struct zf_alloc *alloc, uint32_t zone_count);
/* Fills entries [first, end) from the device's report. I/O. */
int zf_alloc_read_report(struct zf_alloc *alloc, uint32_t first, uint32_t end);

/* ---- grow.c ---- */

/* Makes the zones usable that the superblock of this transaction names. */
void zf_alloc_grown_locked(struct zf_alloc *alloc, const struct zf_alloc_frozen *frozen);

/* ---- reclaim_room.c ---- */

/* How many zones a filesystem of this size holds ready, unless a mount option sets it. */
uint32_t zf_alloc_default_target(uint32_t zone_count);
/* Zones in which nothing is live: commits and resets alone give them back. */
uint32_t zf_alloc_coming_locked(struct zf_alloc *alloc);
/* The live blocks of the zone are about to become `live`. */
void zf_alloc_note_live_locked(struct zf_alloc *alloc, uint32_t zone_no, uint32_t live);

/* ---- reclaim_cold.c ---- */

/* The COLD stream has opened an empty zone. */
void zf_alloc_cold_opened_locked(struct zf_alloc *alloc);
/* Sets an empty zone aside for the COLD stream again, if metadata can spare one. */
void zf_alloc_cold_rearm_locked(struct zf_alloc *alloc);

/* ---- space.c ---- */

/* Blocks that a user could still write. */
uint64_t zf_alloc_available_locked(struct zf_alloc *alloc);

/* ---- reclaim.c ---- */

/* The most blocks that emptying a zone of data would give back. */
uint32_t zf_alloc_best_gain_locked(const struct zf_alloc *alloc);

/* ---- stream.c ---- */

/*
 * Closes the open zones of metadata if zf_alloc_can_close_streams_locked() and each copy can be
 * prepared. Returns whether it has closed them.
 */
bool zf_alloc_close_streams_locked(struct zf_alloc *alloc, uint64_t garbage_min);

#endif
