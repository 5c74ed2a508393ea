/* SPDX-License-Identifier: MIT */
/* What the files of src/alloc/ share. Everything here is under alloc->lock. */
#ifndef ZF_ALLOC_ALLOC_INTERNAL_H
#define ZF_ALLOC_ALLOC_INTERNAL_H

#include <bsd/sys/queue.h>
#include <stdatomic.h>

#include "alloc/alloc.h"
#include "base/bits.h"

#define NO_ZONE UINT32_MAX

/* Zones that are never given to data: see zf_alloc_reserve(). The log's, less those that it has. */
#define KEPT_FOR_LOG	 2u
#define KEPT_FOR_RECLAIM 3u

/* Zones that are the log's among those that may be active: two while it switches. */
#define ACTIVE_FOR_LOG 2u
/* What reclaim moves has one of its own, or nothing comes back when users have taken all others. */
#define ACTIVE_FOR_COLD 1u

/*
 * What one new item may cost in its leaf: the largest of a data block's items is a summary entry of
 * one block, or a name of shared bytes (21 + 32 bytes); twice that, because a leaf may be half
 * empty after a split, and some for the levels above.
 */
#define ITEM_BYTES 128u

/*
 * What recording a kept block costs at most in the end: an extent of one block and a summary entry
 * of one (21 + 24 and 21 + 32 bytes), in leaves that may be half empty, and some for the levels
 * above.
 */
#define KEPT_ITEM_BYTES 240u

/* A growing list of runs: where one copy of the running transaction's nodes go. */
struct runs {
	struct zf_meta_run *runs;
	unsigned int count, room;
};

/* Bytes of an OVERWRITE zone that no extent names any more, and that are not given out yet. */
struct zf_freed {
	STAILQ_ENTRY(zf_freed) link;
	uint64_t address, len;
	uint64_t generation; /* the transaction that freed them */
	uint64_t era;	     /* in which that was durable; 0: it is not */
};

/* See alloc/overwrite.h. */
struct zf_overwrite {
	struct zf_overwrite_map {
		uint8_t *bits; /* a bit a block that is not free; NULL: none is */
		uint32_t used; /* of them */
	} *maps;	       /* of the conventional zones */
	STAILQ_HEAD(, zf_freed) freed;
	uint64_t era;
	unsigned int holds[2];	/* taken in this era, and in the one before it; by number */
	bool distrusted;	/* maps are not what the tree says */
	atomic_uint zone_count; /* of the role; read without the lock */
};

/* Of all zones, for zf_alloc_reclaim_room(), which is asked too often to look at each of them. */
struct zf_tally {
	bool stale;	  /* to be counted anew */
	uint32_t zones;	  /* that data could be in */
	uint32_t coming;  /* nothing is live in them */
	uint32_t retired; /* and what is live can be moved out */
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
	uint32_t zones_coming;	     /* beyond those: from the next freeze on; see grow.c */
	uint32_t empty_count;	     /* zones that a stream can open */
	uint32_t search_next;	     /* where the search for an empty zone goes on */
	uint64_t running, committed; /* generations */
	uint64_t limit_events;
	struct zf_cond limits_eased; /* goes with limit_events */

	uint32_t meta_zone[ZF_COPIES_MAX]; /* the streams' zones; NO_ZONE: to be opened */
	struct runs meta_runs[ZF_COPIES_MAX];
	uint32_t data_zone[ZF_ROLE_COUNT]; /* of HOT and COLD */
	uint32_t log_named[2];	/* current, next: by the durable superblock; NO_ZONE: none */
	uint32_t log_chosen[2]; /* by the one that is being written; else the same */
	unsigned int tail_max;
	uint64_t nodes_kept;	   /* from the log, see zf_alloc_set_nodes_kept() */
	uint64_t promised_nodes;   /* to joins under way */
	uint64_t node_live_blocks; /* of all nodes but those of the root and zone trees, every copy
				    */

	uint64_t reserved_blocks, reserved_items;
	uint64_t data_nodes; /* that the last NORMAL one left room for */

	uint64_t cold_blocks;	 /* reserved for what reclaim moves */
	bool cold_zone;		 /* an empty zone is set aside for it: see reclaim.c */
	uint64_t cold_debt;	 /* blocks written there, of zones that have not come back */
	uint32_t reclaim_target; /* zones, besides the least */
	uint64_t commit_blocks;	 /* of nodes in a transaction: an average of the last ones */
	struct zf_tally tally;
	uint64_t appended[ZF_ROLE_COUNT]; /* bytes, by the role of the zone */
	uint64_t freed;			  /* counts what was freed in zones of data: see vain.h */
	uint32_t victim_gain; /* blocks of garbage of a victim: an average of the last ones */

	uint64_t kept_blocks; /* on behalf of the extents there are */
	uint64_t lent_blocks; /* of those, what dirty data that will replace them has reserved */
	uint64_t kept_spent;  /* of those, what was used: garbage is in its place */
	uint64_t kept_short;  /* and what gave way, or was lost to a crash */

	struct zf_overwrite overwrite;
};

/* Of the largest zone. */
static inline uint64_t capacity_blocks(const struct zf_alloc *alloc)
{
	return alloc->geometry->zone_capacity >> ZF_BLOCK_SHIFT;
}

static inline bool zone_is_empty(const struct zf_zone *zone)
{
	return zone->role == ZF_ROLE_NONE && zone->pointer == 0 && !zone->unusable &&
	       !zone->pointer_unknown && !zone->resetting;
}

static inline bool zone_is_partial(const struct zf_zone *zone)
{
	return zone->pointer > 0 && zone->pointer < zone->capacity;
}

static inline bool zone_is_conventional(const struct zf_alloc *alloc, uint32_t zone_no)
{
	return zone_no < alloc->geometry->conventional;
}

bool zf_alloc_is_stream_locked(const struct zf_alloc *alloc, uint32_t zone_no);

/* ---- log.c ---- */

/* A superblock that a mount may find names it as the log's, or soon will. */
bool zf_alloc_is_log_locked(const struct zf_alloc *alloc, uint32_t zone_no);
/* Empty zones that the log still wants: for those of its two that are full or missing. */
uint32_t zf_alloc_kept_for_log_locked(const struct zf_alloc *alloc);
/* What its zones have room for, in blocks. */
uint64_t zf_alloc_log_room_locked(const struct zf_alloc *alloc);
/* open.c: may the log write to this empty zone, as far as active zones go? */
bool zf_alloc_may_open_log_locked(const struct zf_alloc *alloc, uint32_t zone_no);

/* ---- limits.c ---- */

/* One zone fewer is active, or may be finished, or gone on with. */
void zf_alloc_limit_event_locked(struct zf_alloc *alloc);

/* The metadata zone that the node at `address` lies in; NULL if an image only claims that it does.
 */
struct zf_zone *zf_alloc_node_zone_locked(struct zf_alloc *alloc, uint64_t address);

/* Written, not in use, and nothing live in it. */
bool zf_alloc_holds_nothing_locked(const struct zf_alloc *alloc, uint32_t zone_no);

/* Nodes that the streams and the empty zones that metadata may open have room for. */
uint64_t zf_alloc_node_room_locked(const struct zf_alloc *alloc);
/* The same if there were so many empty zones. */
uint64_t zf_alloc_node_room_with_locked(const struct zf_alloc *alloc, uint32_t empty_count);
/*
 * Metadata's open streams have each that much garbage, in blocks, and when they are ended there is
 * room for a tail elsewhere, and for what is live in them.
 */
bool zf_alloc_can_close_streams_locked(const struct zf_alloc *alloc, uint64_t garbage_min,
				       uint32_t empty_count);
/* Ends them if that can be done. Returns whether it was. */
bool zf_alloc_close_streams_locked(struct zf_alloc *alloc, uint64_t garbage_min);
/* Nodes that the open streams have room for: as many as the shortest. */
uint64_t zf_alloc_nodes_in_streams_locked(const struct zf_alloc *alloc);
/* Blocks that emptying a metadata zone costs besides what is live in it. */
uint64_t zf_alloc_meta_move_costs_locked(const struct zf_alloc *alloc);

void zf_alloc_set_pointer_locked(struct zf_alloc *alloc, uint32_t zone_no, uint32_t pointer);

/*
 * A zone for a stream of `role`: one of that role that was left partly written, or else an empty
 * one if more than `keep_empty` are there. -ENOSPC; -EAGAIN, but never for metadata: no more zones
 * may be active now.
 */
int zf_alloc_open_zone_locked(struct zf_alloc *alloc, enum zf_role role, uint32_t keep_empty,
			      uint32_t *ret_zone_no);

/* Metadata has room for what is promised, a commit's tail, and for what frees things. */
bool zf_alloc_can_spare_locked(const struct zf_alloc *alloc);
/* The most blocks that emptying a zone of data would give back. */
uint32_t zf_alloc_best_gain_locked(const struct zf_alloc *alloc);
/* Notes when nothing in the zone is live any more; `generation`: the transaction that did it. */
void zf_alloc_note_emptied_locked(struct zf_alloc *alloc, uint32_t zone_no, uint64_t generation);

/* Empty zones that accepted data and kept space will need: nobody else may take them. */
uint32_t zf_alloc_claimed_zones_locked(const struct zf_alloc *alloc);

/* Empty zones that `wanted` blocks take, beside what the stream has. */
uint32_t zf_alloc_zones_for_locked(const struct zf_alloc *alloc, enum zf_role role,
				   uint64_t wanted);

/* What the open stream of this role has room for, in blocks. */
uint64_t zf_alloc_stream_room_locked(const struct zf_alloc *alloc, enum zf_role role);
/* Empty zones that a caller of this class leaves alone. */
uint32_t zf_alloc_kept_zones_locked(const struct zf_alloc *alloc, enum zf_reserve_class class);

/* Room for data, as it is or as it could be. */
struct zf_data_room {
	uint64_t hot, cold;  /* blocks that the streams have room for */
	uint32_t empty;	     /* zones */
	uint32_t cold_zones; /* of these: what metadata and users leave to reclaim */
	uint64_t nodes;	     /* that metadata's streams have room for */
};
/* The most blocks, items included, that a NORMAL caller could reserve there. */
uint64_t zf_alloc_normal_blocks_locked(const struct zf_alloc *alloc,
				       const struct zf_data_room *room);
/* The most blocks of data, as far as the room for nodes goes that has to be left. */
uint64_t zf_alloc_blocks_beside_nodes_locked(const struct zf_alloc *alloc,
					     const struct zf_data_room *room, uint64_t nodes);
uint64_t zf_alloc_item_blocks_locked(const struct zf_alloc *alloc, uint64_t items);
struct zf_data_room zf_alloc_data_room_locked(const struct zf_alloc *alloc);

/* ---- reclaim.c ---- */

/* Empty zones that metadata leaves alone, for what reclaim moves. */
uint32_t zf_alloc_cold_zones_locked(const struct zf_alloc *alloc);
/* Zones of the reserve for reclaim that are still empty: the others are the COLD stream's. */
uint32_t zf_alloc_kept_for_reclaim_locked(const struct zf_alloc *alloc);
/* A zone with so many blocks of data comes back. How many of these did not move elsewhere? */
uint64_t zf_alloc_cold_returned_locked(struct zf_alloc *alloc, uint64_t blocks);
/* The COLD stream has opened an empty zone. */
void zf_alloc_cold_opened_locked(struct zf_alloc *alloc);
/* Sets a zone aside for it again, if metadata can spare one. */
void zf_alloc_cold_rearm_locked(struct zf_alloc *alloc);
/* Could the stream do without its zone? What was promised in it needs another one then. */
bool zf_alloc_can_close_locked(struct zf_alloc *alloc, enum zf_role role);
/* A zone of data that can be emptied by moving what is live in it, if not just now. */
bool zf_alloc_is_movable_locked(const struct zf_alloc *alloc, uint32_t zone_no);
/* One that failed, and can be read: what is live in it can be moved. */
bool zf_alloc_is_rescuable_locked(const struct zf_alloc *alloc, uint32_t zone_no);
/* One that can be now, or is. */
bool zf_alloc_is_victim_locked(const struct zf_alloc *alloc, uint32_t zone_no);

/* ---- retire.c ---- */

/* What the device says of the zone's condition, before the zone is loaded. */
void zf_alloc_zone_from_info_locked(struct zf_zone *zone, const struct zf_zone_info *info);
/* Says so, if it is retired. */
void zf_alloc_tell_retired_locked(const struct zf_alloc *alloc, uint32_t zone_no);

/* ---- space.c ---- */

/* Zones that the background holds ready besides the least. */
uint32_t zf_alloc_default_target(uint32_t zone_count);

/* A zone's role, or what it holds, has changed otherwise than by the live bytes of a victim. */
void zf_alloc_recount_locked(struct zf_alloc *alloc);
/* Zones in which nothing is live: commits and resets alone give them back. */
uint32_t zf_alloc_coming_locked(struct zf_alloc *alloc);
/* What a user could still write, in blocks. */
uint64_t zf_alloc_available_locked(struct zf_alloc *alloc);
/* The live blocks of the zone are about to become `live`. */
void zf_alloc_note_live_locked(struct zf_alloc *alloc, uint32_t zone_no, uint32_t live);

/* ---- grow.c ---- */

/* An empty table that can grow. */
int zf_alloc_table_new(struct zf_alloc *alloc);
void zf_alloc_table_free(struct zf_alloc *alloc);
/* The zones that the superblock of this transaction names can be used. */
void zf_alloc_grown_locked(struct zf_alloc *alloc, const struct zf_alloc_frozen *frozen);

/* alloc.c: entries from the device's report. */
int zf_alloc_read_report(struct zf_alloc *alloc, uint32_t first, uint32_t end);

/* ---- kept.c ---- */

/* Kept blocks that nothing has reserved yet. */
static inline uint64_t kept_unlent(const struct zf_alloc *alloc)
{
	return alloc->kept_blocks > alloc->lent_blocks ? alloc->kept_blocks - alloc->lent_blocks
						       : 0;
}

/* What data must leave alone for them: the blocks, and what recording them may cost. */
uint64_t zf_alloc_kept_need_locked(const struct zf_alloc *alloc);
/* Those blocks that hold on to empty zones. */
uint64_t zf_alloc_kept_claim_locked(const struct zf_alloc *alloc);
/* What recording those may take in nodes, in blocks. */
uint64_t zf_alloc_kept_item_blocks_locked(const struct zf_alloc *alloc);
/* The mount has loaded everything: is what is kept there? */
void zf_alloc_kept_start_locked(struct zf_alloc *alloc);
/* A zone is gone for good. */
void zf_alloc_kept_lost_locked(struct zf_alloc *alloc);
/* A zone came back; `blocks` of it had been data. */
void zf_alloc_kept_regain_locked(struct zf_alloc *alloc, uint64_t blocks);

void zf_alloc_dirty_locked(struct zf_alloc *alloc, uint32_t zone_no);

/* ---- overwrite.c ---- */

int zf_alloc_overwrite_init(struct zf_alloc *alloc);
void zf_alloc_overwrite_deinit(struct zf_alloc *alloc);
/* No extent names these bytes any more, by the running transaction. */
void zf_alloc_overwrite_freed_locked(struct zf_alloc *alloc, uint64_t address, uint64_t len);
/* A replay makes bytes live that it may have freed before. */
void zf_alloc_overwrite_live_again_locked(struct zf_alloc *alloc, uint64_t address, uint64_t len);
/* Makes free what was freed long enough ago. */
void zf_alloc_overwrite_release_locked(struct zf_alloc *alloc, bool urgent);
/* Is anything in this zone not free? */
bool zf_alloc_overwrite_in_use_locked(const struct zf_alloc *alloc, uint32_t zone_no);
/* The zone gives up its role, if it is that one. */
void zf_alloc_overwrite_left_locked(struct zf_alloc *alloc, uint32_t zone_no);

#endif
