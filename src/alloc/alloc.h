/* SPDX-License-Identifier: MIT */
/*
 * Space: which zone is for what, where the next node and the next append go, how much is left,
 * and when a zone may be reset.
 *
 * What it knows. One struct zf_zone a zone: its pointer, its live bytes, its role. The table in
 * memory is the truth of the running transaction; the zone tree holds it as of the last commit.
 * Live bytes change inside a transaction only (the caller holds a join), so a freeze sees exact
 * numbers.
 *
 * The life of a zone, and the function at each edge:
 *
 *      empty
 *        |  zf_alloc_append_begin(), zf_alloc_node()
 *        v
 *      open stream of one role
 *        |  the stream has used up the zone's capacity
 *        v
 *      written
 *        |  transaction N frees the last live byte: zf_alloc_live_sub(), zf_alloc_node_free()
 *        v
 *      emptied
 *        |  N+1 is durable (N, when space is short), and the zone has no summary entry, reader
 *        |  or append any more: zf_alloc_next_reset()
 *        v
 *      reset, which makes it empty again
 *
 * Locking. One mutex (ZF_RANK_ALLOC) protects everything. A call does I/O or waits only if its
 * comment says so.
 *
 * Reservations. Before a writer answers, it reserves its data blocks and the worst-case metadata
 * for recording them, so that accepted data always finds room. Data never gets the empty zones that
 * metadata, log and reclaim need. See zf_alloc_reserve().
 */
#ifndef ZF_ALLOC_ALLOC_H
#define ZF_ALLOC_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/zone_format.h"
#include "io/dev.h"
#include "superblock/super.h"

/* May the summary tree hold entries of a zone? It must not, durably, when the zone is reset. */
enum zf_summary_state {
	ZF_SUMMARY_NONE, /* none, in the last durable superblock too */
	ZF_SUMMARY_PRESENT,
	ZF_SUMMARY_DROPPING, /* somebody is about it */
	ZF_SUMMARY_DROPPED,  /* by the running transaction */
	ZF_SUMMARY_FROZEN,   /* by the transaction that is being committed */
};

/* One zone in memory: at most 72 bytes, so that a 14 TB disk's table stays under 4 MB. */
struct zf_zone {
	uint64_t emptied_generation;
	uint64_t reset_generation;
	uint64_t write_generation;
	uint64_t reset_count;
	uint32_t capacity; /* blocks */
	uint32_t pointer;  /* blocks from the start: what is written or promised to a writer */
	uint32_t written;  /* blocks from the start: what is known to be written */
	uint32_t live;	   /* blocks that extents, or nodes of the fs, summary, share trees name */
	uint32_t system_live;	  /* blocks of root and zone tree nodes; recounted by a mount */
	uint32_t pending;	  /* blocks of appends whose extents are not inserted yet ... */
	uint32_t flight;	  /* ... and of these, those that the device has not written yet */
	uint32_t readers;	  /* reads under way that looked up an address in it */
	uint8_t role;		  /* enum zf_role */
	uint8_t summary;	  /* enum zf_summary_state */
	bool dirty : 1;		  /* its item in the zone tree is out of date */
	bool pointer_unknown : 1; /* a write failed: to be reported again before the next one */
	bool unusable : 1;	  /* retired: read-only, offline; or a reset failed */
	bool offline : 1;	  /* and cannot be read */
	bool suspect : 1;	  /* what the device says of it is to be asked again */
	bool pointer_asked : 1;	  /* and what it says of the pointer will hold */
	bool damaged : 1;	  /* of metadata: not all of what is live there could be written */
	bool resetting : 1;
	bool stuck : 1; /* some of what is live in it cannot be read, and so not be moved out */
	bool log_closed : 1;   /* the log's: full, or an append failed; takes no more records */
	bool held : 1;	       /* records that a mount will replay name bytes in it */
	bool warm : 1;	       /* empty: see struct zf_zone_info */
	bool reclaimed : 1;    /* what is live in it is being moved out */
	bool passed_over : 1;  /* something of it was left: no victim before the next commit */
	bool finishing : 1;    /* the device is about it */
	bool unfinishable : 1; /* it could not be finished: left as it is until it is reset */
	bool lost : 1;	       /* the device does not know it, and shows it as empty */
};

_Static_assert(sizeof(struct zf_zone) <= 72, "see above");

struct zf_alloc;

/* ---- life ---- */

/*
 * Reads the zone report. Zones have no role yet. mkfs calls zf_alloc_start() next; a mount calls
 * zf_alloc_load() for every zone item before that.
 */
int zf_alloc_new(struct zf_dev *dev, const struct zf_super *super, const struct zf_report *report,
		 struct zf_alloc **ret_alloc);
void zf_alloc_free(struct zf_alloc *alloc); /* takes NULL */

/* A zone item of the committed zone tree; checks every field. -EUCLEAN. */
int zf_alloc_load(struct zf_alloc *alloc, uint32_t zone_no, const void *item, size_t len);
/* The mount found a live node of the root or zone tree here (they are not in the items' live). */
int zf_alloc_load_system_node(struct zf_alloc *alloc, const uint64_t address[ZF_COPIES_MAX]);
/*
 * All is loaded: `committed` is the generation of the superblock, `running` the one that now
 * begins. Chooses the streams to go on with.
 */
void zf_alloc_start(struct zf_alloc *alloc, uint64_t committed, uint64_t running);
/*
 * After zf_alloc_start(), and before anything is written: where the device's pointers are lower
 * bounds it is told how far its zones are written, and which life those are in that it has lost.
 * Only of the newest state, and only if that will be written to: an older one knows less, and the
 * device keeps what it is told.
 */
int zf_alloc_tell_device(struct zf_alloc *alloc);

/* The generation of the running transaction: freezes count it on. */
uint64_t zf_alloc_running(struct zf_alloc *alloc);

uint32_t zf_alloc_zone_count(const struct zf_alloc *alloc);
/* A copy of one zone's entry. */
void zf_alloc_get_zone(struct zf_alloc *alloc, uint32_t zone_no, struct zf_zone *ret_zone);

static inline uint32_t zf_zone_of(const struct zf_geometry *geometry, uint64_t address)
{
	return (uint32_t)(address / geometry->zone_size);
}

/* ---- reservations ---- */

enum zf_reserve_class {
	ZF_RESERVE_NORMAL,
	ZF_RESERVE_FREEING, /* unlink, truncate, punch: may use what others may not, so it works
			       when full */
	ZF_RESERVE_SYSTEM,  /* the commit and reclaim themselves */
};

/*
 * Sets aside `data_blocks` of data and room for `items` new tree items (each with the worst-case
 * share of its leaf) until the trees record them. A reservation of data leaves room for `nodes`
 * more nodes than transactions were promised. -ENOSPC: there is too little room now. A commit might
 * free some, so the caller (txn) commits and tries again before a user sees the error.
 */
int zf_alloc_reserve(struct zf_alloc *alloc, enum zf_reserve_class class, uint64_t data_blocks,
		     uint64_t items, uint64_t nodes);
void zf_alloc_unreserve(struct zf_alloc *alloc, uint64_t data_blocks, uint64_t items);

/*
 * *Kept* blocks are space that belongs to one owner: the blocks of ZERO extents
 * (fs/core/fs_format.h), which are nowhere on the device yet, and spare blocks for overwriting existing data once more.
 * NORMAL reservations leave alone the kept blocks and the room for recording each of them by
 * itself. Metadata leaves alone the empty zones that the kept blocks need.
 *
 * On a full filesystem a write over such an extent reserves its block by *lending*: the block moves
 * from the kept ones to the reserved ones, so that no free block has to be found. The loan ends
 * when the data has landed or was dropped. If it replaced a ZERO extent, fewer blocks are kept.
 *
 * A spare block still counts as kept when the data has landed, but garbage is in its place. Such a
 * block is *spent*: it cannot be lent until a zone of data comes back. Blocks that come back
 * replace spent ones before anybody else gets them.
 */
struct zf_kept_change {
	uint64_t added, removed; /* blocks for which extents keep space now, or no longer */
	uint64_t reserved;	 /* by the caller: the `added` blocks are taken from these first */
	uint64_t lent;		 /* blocks lent to the data that the new extents name */
};

/* Applies the change in one step, inside a transaction. Returns how many `reserved` are left. */
uint64_t zf_alloc_kept_change(struct zf_alloc *alloc, const struct zf_kept_change *change);
/*
 * A caller that wants blocks kept reserves this many items with each block. They take at least the
 * room that is set aside for recording a kept block.
 */
#define ZF_KEPT_ITEMS 2u
/* Reserves `blocks` kept blocks, and `items`. -ENOSPC: too few kept blocks can be lent now. */
int zf_alloc_lend(struct zf_alloc *alloc, uint64_t blocks, uint64_t items);
/* After zf_alloc_unreserve() gave the reservation back: the blocks count as kept again. */
void zf_alloc_take_back(struct zf_alloc *alloc, uint64_t blocks);
/* Of the blocks that were taken back, `blocks` had been written to: they are spent. */
void zf_alloc_kept_spend(struct zf_alloc *alloc, uint64_t blocks);
bool zf_alloc_keeps_any(struct zf_alloc *alloc);
/*
 * After a mount has replayed the log: checks that the kept blocks are there, for nothing was
 * reserved for the ZERO extents of the records.
 */
void zf_alloc_kept_recount(struct zf_alloc *alloc);
/*
 * Gives one zone of kept blocks to metadata, which found no room even to free something. This
 * happens only after a crash or with a failing device: data that was written and not committed
 * then fills zones that cannot be reset, because they hold live data too. Returns false if no kept
 * block was left to give.
 */
bool zf_alloc_kept_give_way(struct zf_alloc *alloc);

/*
 * Bytes. Two sums:  total = live + in_place + unusable + reclaimable + free
 *                   free + reclaimable = reserved + available
 */
struct zf_space {
	uint64_t total;	   /* of the zones that can hold data or metadata */
	uint64_t live;	   /* named by extents and nodes */
	uint64_t in_place; /* not live, in zones for what is written in place: for such data only */
	uint64_t unusable; /* garbage that stays for now: the log's, metadata's, the streams' */
	uint64_t reclaimable; /* garbage that commits and reclaim give back */
	uint64_t free;	      /* not written yet */
	uint64_t reserved;    /* of free and reclaimable: promised and kept back */
	uint64_t kept;	      /* of reserved: for the owners of ZERO extents */
	uint64_t available;   /* what a user can still write, if he waits for reclaim */
	uint64_t allocatable; /* of that, what can be kept for an owner, with room for its items */
	uint64_t retired;     /* in none of these: of zones that failed, what is not live there */
};
void zf_alloc_get_space(struct zf_alloc *alloc, struct zf_space *ret_space);

/* ---- data ---- */

/* A piece of a zone, promised to one append. */
struct zf_append_grant {
	uint32_t zone_no;
	uint64_t zone_start; /* where the append is addressed to */
	uint64_t len;	     /* bytes, <= what was wanted, >= one block */
	/*
	 * 0: append to zone_start. In a conventional zone, which takes no appends, the address to
	 * write to.
	 */
	uint64_t address;
	bool written; /* by the device */
};

/*
 * Room for one append of at most `want` bytes (and the device's append limit) in a stream of `role`
 * (HOT or COLD). Uses up that much of the caller's reservation of data. -ENOSPC: no zone to be had;
 * -EAGAIN: there is one, but too many are active: zf_alloc_wait_limits().
 */
int zf_alloc_append_begin(struct zf_alloc *alloc, enum zf_role role, uint64_t want,
			  struct zf_append_grant *ret_grant);
/*
 * The device has written it, though its extents may have to wait: it no longer keeps the zone
 * active there. Without this call zf_alloc_append_end() says so. On the device's thread, too.
 */
void zf_alloc_append_written(struct zf_alloc *alloc, struct zf_append_grant *grant);
/*
 * The append's fate is settled: its extents are inserted (and counted live) or dropped. On failure
 * (result < 0) the room is lost with the zone's stream, and the zone's pointer is read again.
 * Until this call the zone is not reset.
 */
void zf_alloc_append_end(struct zf_alloc *alloc, const struct zf_append_grant *grant, int result);
/* Bytes of appends that have succeeded since the mount, by the role of their zone: HOT, COLD, LOG. */
void zf_alloc_get_appended(struct zf_alloc *alloc, uint64_t ret_bytes[ZF_ROLE_COUNT]);

/*
 * zf_alloc_append_begin() says -EAGAIN while as many zones are active as may be, and none of them
 * can be gone on with. That is over when the last of one is written, when one that is partly
 * written is finished or reset, when its pointer is known again after a failure, or when the log
 * leaves it. Here is how often that has happened; read before zf_alloc_append_begin().
 */
uint64_t zf_alloc_limit_events(struct zf_alloc *alloc);
/*
 * Waits, for the device, until it has happened again since `seen`. False: it has not, and nothing
 * is under way that could bring it about.
 */
bool zf_alloc_wait_limits(struct zf_alloc *alloc, uint64_t seen);

/* Extents name these bytes now, or no longer. Inside a transaction. Range within one zone. */
void zf_alloc_live_add(struct zf_alloc *alloc, uint64_t address, uint64_t len);
void zf_alloc_live_sub(struct zf_alloc *alloc, uint64_t address, uint64_t len);
/*
 * The summary tells of these bytes, though nobody names them yet. Inside the same transaction: a
 * conventional zone has no pointer but what its item says.
 */
void zf_alloc_note_written(struct zf_alloc *alloc, uint64_t address, uint64_t len);

/*
 * 0 if [address, address+len) is written data of one zone that extents may name, those that are
 * `in_place` or the others; else -EUCLEAN.
 */
int zf_alloc_check_extent(struct zf_alloc *alloc, uint64_t address, uint64_t len, bool in_place);

/*
 * A read looked up an address in this zone (while what protects the lookup was still held), and has
 * finished with it: in between the zone is not reset.
 */
void zf_alloc_read_begin(struct zf_alloc *alloc, uint64_t address);
void zf_alloc_read_end(struct zf_alloc *alloc, uint64_t address);

/* ---- reclaim (reclaim.c) ---- */

/*
 * A zone of data comes back when nothing in it is live. Where the rest of it is garbage, what is
 * live is moved out, to the COLD stream: that is reclaim (fs/space/reclaim.h). Here is which zone
 * is next, where there is room to move to, and how much of that is wanted.
 *
 * Room in zones, all of them beyond those that metadata, the log and accepted data need:
 *
 *      empty   can be opened now
 *      coming  nothing is live in them: commits and resets give them back
 *      target  of empty + coming: below that reclaim works
 *      low     of empty: below that, what is coming is worth a commit
 *
 * A commit gives zones back, and takes zones for its nodes. To give back more than they take,
 * larger commits raise both low and target. Victims with more garbage raise target: having many
 * zones wait for one commit costs little then.
 *
 * User data may not open the last KEPT_FOR_RECLAIM empty zones. Survivors move to them, and writers
 * use them up while commits give others back. The COLD stream's zone is one of them.
 */
enum zf_reclaim_need {
	ZF_RECLAIM_IN_PEACE, /* nobody waits: the best ratio of benefit to cost (design: ages) */
	ZF_RECLAIM_URGENT,   /* somebody waits for room: the most garbage, however little that is */
};

struct zf_reclaim_room {
	uint32_t zones; /* that data could be in: without super, metadata, log, in place */
	uint32_t empty, coming, target;
	uint32_t low; /* of empty ones: with fewer a commit is worth it for what is coming */
	uint64_t reclaimable;  /* bytes of garbage in zones that could be victims */
	uint32_t retired;      /* zones that failed, with data in them that can be moved out */
	uint64_t commit_bytes; /* of metadata that a commit has written lately */
	uint32_t waiting;      /* zones that may wait for one commit: more would cost more */
	uint64_t victim_bytes; /* that a victim has given back lately */
};
void zf_alloc_reclaim_room(struct zf_alloc *alloc, struct zf_reclaim_room *ret_room);

/* Mount option: zones of the target besides the least that there must be. */
void zf_alloc_set_reclaim_target(struct zf_alloc *alloc, uint32_t zones);

/*
 * The next victim: marked, and held as by a reader, until zf_alloc_reclaim_end(). Not a stream's,
 * the log's, one with appends in flight, nor one that is stuck. One caller at a time. -ENOENT: none
 * that would give anything back.
 */
int zf_alloc_reclaim_begin(struct zf_alloc *alloc, enum zf_reclaim_need need,
			   uint32_t *ret_zone_no);
/* Takes this zone, however little it would give back. -EBUSY: it cannot be a victim now. */
int zf_alloc_reclaim_begin_zone(struct zf_alloc *alloc, uint32_t zone_no);
/*
 * Takes a retired zone that can still be read, if there is room for all live data in it. The zone
 * gives no space back, but its data is saved before it cannot be read any more.
 */
int zf_alloc_reclaim_begin_retired(struct zf_alloc *alloc, uint32_t *ret_zone_no);
/* `blocks` were moved out of a retired zone, which gives no space back for them. */
void zf_alloc_reclaim_rescued(struct zf_alloc *alloc, uint64_t blocks);
/*
 * `stuck`: some of its live data could not be read. A stuck zone is no victim again before it is
 * reset. Any other zone that still holds live data is no victim again before the next commit.
 */
void zf_alloc_reclaim_end(struct zf_alloc *alloc, uint32_t zone_no, bool stuck);

/*
 * Sets room aside in the COLD stream for what is moved: used up by zf_alloc_append_begin(COLD), or
 * given back by zf_alloc_unreserve_cold(). -ENOSPC: neither its zone nor an empty one has it.
 */
int zf_alloc_reserve_cold(struct zf_alloc *alloc, uint64_t blocks);
void zf_alloc_unreserve_cold(struct zf_alloc *alloc, uint64_t blocks);

/*
 * Returns whether a caller that got -ENOSPC should wait for reclaim; else the device is full (P5).
 * It should if, with all garbage back, a NORMAL caller could reserve `data_blocks` and room for
 * `items`, or the owner of kept blocks could borrow those that are spent now.
 */
bool zf_alloc_could_reserve(struct zf_alloc *alloc, uint64_t data_blocks, uint64_t items);

/* ---- the log's zones (log.c) ---- */

/*
 * The intent log writes in two zones that the durable superblock names: the current one, and the
 * one that comes after it. Their role is LOG as long as a superblock names them, or the one that
 * is being written will; then HOT, to be filled up with data or finished, for data rests in them.
 * They are never reset, nor given to data, while they are the log's. Data leaves empty zones alone
 * for those of the two that the log does not have.
 */
struct zf_log_zones {
	uint32_t zone[2];    /* current, next; ZF_SUPER_NO_ZONE: none */
	uint64_t resets[2];  /* their reset counts */
	uint64_t pointer[2]; /* bytes in the zone: what lies below is in the trees, or garbage */
};

/*
 * Mount, after zf_alloc_load(), before zf_alloc_start(): the mounted superblock's. -EUCLEAN: they
 * are not the log's, were reset since, or are written less far; the log has none then.
 */
int zf_alloc_log_load(struct zf_alloc *alloc, const struct zf_super *super);
/*
 * Joins drained, no record in flight, before zf_alloc_freeze(): which zones the superblock of this
 * transaction is to name. Chooses empty ones (those that the device keeps warm first) where one
 * is full, failed or missing; a current one that is full gives way to the next. Without room for
 * them there is only one, or none; and one that was not written to is given back to metadata that
 * is short of room.
 */
void zf_alloc_log_choose(struct zf_alloc *alloc, struct zf_log_zones *ret_zones);
/* The superblock that names them is durable: records may go there, and no longer elsewhere. */
void zf_alloc_log_named(struct zf_alloc *alloc, const struct zf_log_zones *zones);
/* Those that the durable superblock names, with their pointers of now. */
void zf_alloc_log_get(struct zf_alloc *alloc, struct zf_log_zones *ret_zones);

/*
 * Room for one record in the current zone, or if it does not fit there in the next, which is the
 * current one from then on (*ret_switched). `reserved` of its blocks are covered by reservations,
 * which are used up. -ENOSPC: neither. The grant, cut as the caller likes, is ended block by block
 * with zf_alloc_append_end(); after a failure the zone takes no more records.
 */
int zf_alloc_log_begin(struct zf_alloc *alloc, uint64_t len, uint64_t reserved,
		       struct zf_append_grant *ret_grant, uint64_t *ret_resets, bool *ret_switched);

/*
 * Mount, before zf_alloc_start(): a record that is to be replayed names these bytes. Until
 * zf_alloc_let_go() their zone is not reset, and its pointer is behind them. -EUCLEAN: not bytes of
 * a zone that data can be in.
 */
int zf_alloc_hold(struct zf_alloc *alloc, uint64_t address, uint64_t len);
void zf_alloc_let_go(struct zf_alloc *alloc);
/*
 * Mount, before zf_alloc_start(): the records in the zone that the superblock names as log_zone
 * [which] end there; bytes in the zone. The device's pointer may be behind that after an unclean
 * stop of the host, and a conventional zone has none.
 */
void zf_alloc_raise_log(struct zf_alloc *alloc, unsigned int which, uint64_t pointer);

/* ---- nodes ---- */

/* `system`: a node of the root or zone tree, which zone items do not count. */

/* The next slot of the running transaction's stream, in each copy. -ENOSPC. */
int zf_alloc_node(struct zf_alloc *alloc, bool system, uint64_t ret_address[ZF_COPIES_MAX]);
/* The trees no longer use the node. */
void zf_alloc_node_free(struct zf_alloc *alloc, const uint64_t address[ZF_COPIES_MAX], bool system);

/*
 * Sets room for nodes aside for an operation of the running transaction, if `keep` more stay for
 * others, and the longest tail for its commit; until the promise is over. Neither data nor other
 * promises take it. -ENOSPC; -EBUSY: only other promises stand in the way.
 */
int zf_alloc_promise_nodes(struct zf_alloc *alloc, uint64_t nodes, uint64_t keep);
void zf_alloc_promise_over(struct zf_alloc *alloc, uint64_t nodes);
/* What the room for nodes is computed from, at one moment. */
struct zf_node_counts {
	uint64_t live;	      /* of all trees but the root and zone trees */
	uint64_t kept;	      /* that recording the kept blocks may need */
	uint64_t garbage_min; /* with fewer dead ones than this no zone is worth emptying */
};
struct zf_node_counts zf_alloc_count_nodes(struct zf_alloc *alloc);
/* Is there room for the longest tail? */
bool zf_alloc_can_freeze(struct zf_alloc *alloc);
/* The longest tail that a commit can need: every node of the zone and root trees. Before any join.
 */
void zf_alloc_set_tail_max(struct zf_alloc *alloc, unsigned int nodes);
/*
 * Room for nodes that what frees things may need, besides the tail: neither the log nor reclaim
 * takes a zone of it.
 */
void zf_alloc_set_nodes_kept(struct zf_alloc *alloc, uint64_t nodes);

/* ---- growing (grow.c) ---- */

/*
 * The filesystem is to have the device's first `zone_count` zones, which are more than it has now.
 * The next freeze has the items of the new ones; once its superblock is durable they can be used,
 * and not before: no superblock, and so no mount, knows of them until then. What is written in one
 * is garbage, and comes back like any other. Whoever calls it holds commits off and then
 * makes this one, which may need a tail longer by `nodes`.
 *
 * -ENOSPC: no room for that; or an error of the device's report. Nothing has changed.
 */
int zf_alloc_grow(struct zf_alloc *alloc, uint32_t zone_count, unsigned int nodes);

/* ---- commit ---- */

/* One piece of a transaction's metadata stream in one copy, within one zone; bytes. */
struct zf_meta_run {
	uint32_t zone_no;
	bool failed;	   /* set by whoever writes it */
	uint64_t from, to; /* addresses; [to of the last slot, zone's end) is filled with zeroes if
			      to is the end */
};

/* A zone item as of the freeze. */
struct zf_zone_snapshot {
	uint32_t zone_no;
	struct zf_disk_zone item;
};

/* What a freeze leaves to the commit. */
struct zf_alloc_frozen {
	uint64_t generation;
	unsigned int run_count[ZF_COPIES_MAX];
	struct zf_meta_run
		*runs[ZF_COPIES_MAX]; /* ascending in time: to be written in this order */
	uint32_t zone_count;
	struct zf_zone_snapshot *zones; /* the items that changed, by zone number; new ones last */
	uint32_t zones_total;		/* of the filesystem: for the superblock */
	unsigned int tail_used, tail_count;
	uint64_t (*tail)[ZF_COPIES_MAX];      /* the slots reserved for the commit's own edits */
	uint32_t meta_zone[ZF_COPIES_MAX];    /* the stream's place after this transaction ... */
	uint64_t meta_pointer[ZF_COPIES_MAX]; /* ... for the superblock */
	uint64_t kept_bytes;		      /* on behalf of the extents in this transaction ... */
	uint64_t spent_bytes;		      /* ... and what has been used of it */
};

/*
 * Called with all joins drained. Reserves the tail at the end of the stream (`path_nodes` for each
 * zone item that changed, but never more than the tail's maximum), takes the snapshot, and lets
 * transaction running+1 begin behind it. -ENOSPC, -ENOMEM: nothing is frozen.
 */
int zf_alloc_freeze(struct zf_alloc *alloc, unsigned int path_nodes,
		    struct zf_alloc_frozen **ret_frozen);
/* A slot of the tail, for the commit's writer; -ENOSPC when the bound was wrong. */
int zf_alloc_tail_node(struct zf_alloc *alloc, struct zf_alloc_frozen *frozen,
		       uint64_t ret_address[ZF_COPIES_MAX]);
/* The superblock of frozen->generation is durable. */
void zf_alloc_committed(struct zf_alloc *alloc, const struct zf_alloc_frozen *frozen);
void zf_alloc_frozen_free(struct zf_alloc_frozen *frozen); /* takes NULL */

/* A commit could not write its run in this zone: no more nodes are placed in it. */
void zf_alloc_stream_failed(struct zf_alloc *alloc, uint32_t zone_no);

/* The zone's item is to be written by the next commit, changed or not: moves its leaf. */
void zf_alloc_touch_zone(struct zf_alloc *alloc, uint32_t zone_no);

/*
 * The next zone that has been empty for long enough (see above) and still has summary entries: the
 * caller alone drops them in the running transaction and calls zf_alloc_summary_dropped() there, or
 * with an error when it could not. -ENOENT.
 */
int zf_alloc_next_unsummarise(struct zf_alloc *alloc, uint32_t *ret_zone_no);
void zf_alloc_summary_dropped(struct zf_alloc *alloc, uint32_t zone_no, int result);

/*
 * Picks a zone that may be reset now and marks it; the caller resets it on the device, without a
 * lock, and tells the result; after an error the zone is left alone until the next mount.
 * `urgent`: space is short. -ENOENT: none.
 */
int zf_alloc_next_reset(struct zf_alloc *alloc, bool urgent, uint32_t *ret_zone_no);
void zf_alloc_reset_done(struct zf_alloc *alloc, uint32_t zone_no, int result);
/* The device says so of an empty zone: the log gets it rather than others. */
void zf_alloc_set_warm(struct zf_alloc *alloc, uint32_t zone_no, bool warm);

/*
 * A partly written zone to be finished on the device, because no other zone can be opened while it
 * is active: crashes and failed writes leave such zones. Before the first write of a mount all of
 * them, so that metadata always gets the zone it needs. One that could not be finished is left
 * alone. -ENOENT: none, or no need.
 */
int zf_alloc_next_finish(struct zf_alloc *alloc, uint32_t *ret_zone_no);
void zf_alloc_finish_done(struct zf_alloc *alloc, uint32_t zone_no, int result);

/* Zones that commits and resets alone would give back: is it worth trying before -ENOSPC? */
uint32_t zf_alloc_emptied_zones(struct zf_alloc *alloc);

/*
 * The metadata zone that is best emptied now, if metadata wants room: the one with the fewest live
 * nodes that is no stream's. `urgent`: any that gives something back; and when there is none, the
 * open streams end in the running transaction if they are worth it: ZF_META_CLOSED, ask again after
 * a commit. -ENOENT: none worth it. The zone is held as by a reader, until zf_alloc_read_end():
 * other threads empty zones too, and one of them could reset it before its nodes are looked for.
 */
#define ZF_META_CLOSED 1
int zf_alloc_meta_victim(struct zf_alloc *alloc, bool urgent, uint32_t *ret_zone_no);
/*
 * The one with the most garbage, half of it at least, and more than there is in any zone of data.
 * No victim again before the next commit, if something is left. Held as by a reader in between: or
 * it could be reset, and written anew, while its nodes are looked for. -ENOENT.
 */
int zf_alloc_meta_victim_begin(struct zf_alloc *alloc, uint32_t *ret_zone_no);
void zf_alloc_meta_victim_end(struct zf_alloc *alloc, uint32_t zone_no);
/*
 * Nothing of it could be moved: no victim again, until it is reset. `reset_count`: the zone's when
 * that was tried. If another thread has moved everything since, or has even reset the zone, nothing
 * is wrong with it.
 */
void zf_alloc_meta_stuck(struct zf_alloc *alloc, uint32_t zone_no, uint64_t reset_count);

/* ---- zones that fail (retire.c) ---- */

/*
 * A zone that the device says is read-only or offline is *retired* for good: no stream goes on in
 * it, nor the log, it is never reset, and of its capacity only what is live in it counts. What is
 * live in one that can be read is moved out (zf_alloc_reclaim_begin_retired(),
 * zf_alloc_scrub_begin()).
 */

/* A read or a command failed there. Any thread. */
void zf_alloc_suspect(struct zf_alloc *alloc, uint32_t zone_no);
/*
 * A zone that the device must be asked about: it is suspect, or its pointer must be read again
 * with nothing in flight to it. -ENOENT.
 */
int zf_alloc_next_unknown(struct zf_alloc *alloc, uint32_t *ret_zone_no);
void zf_alloc_pointer_known(struct zf_alloc *alloc, uint32_t zone_no,
			    const struct zf_zone_info *info);
/*
 * A zone of metadata that was retired, or lacks some of its nodes, whose live nodes are to be
 * written elsewhere: held as by a reader. -ENOENT. `stuck`: they cannot be had. Not again before
 * the next commit, in any case.
 */
int zf_alloc_scrub_begin(struct zf_alloc *alloc, uint32_t *ret_zone_no);
void zf_alloc_scrub_end(struct zf_alloc *alloc, uint32_t zone_no, bool stuck);
/* How many there are, and how many bytes are live in those that are offline. */
uint32_t zf_alloc_retired_zones(struct zf_alloc *alloc, uint64_t *ret_lost);

#endif
