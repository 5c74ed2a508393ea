/* SPDX-License-Identifier: MIT */
/*
 * Zones: the role and condition of each zone, its counters, appends to it, and its failure.
 *
 * There is one struct zf_zone per zone. The diagram shows the life of a zone; on the right is the
 * function that makes each change.
 *
 *      empty
 *        |       zf_alloc_append_begin(), zf_alloc_node()
 *        v
 *      open zone of one stream
 *        |       an append or a node uses up its capacity
 *        v
 *      full
 *        |       transaction N frees the last live byte: zf_alloc_live_sub(), zf_alloc_node_free()
 *        v
 *      emptied
 *        |       zf_alloc_next_reset(), once N+1 is durable (N, when space is short) and the zone
 *        |       has no summary entry, reader or append any more
 *        v
 *      being reset
 *        |       zf_alloc_reset_done()
 *        v
 *      empty
 *
 * A *stream* is a sequence of writes that go to one zone after the other: one stream per copy of
 * metadata, one for new data (role HOT), one for data that reclaim moves (role COLD).
 *
 * Invariants.
 *   - live <= pointer <= capacity. (Counts of a hostile image are cut to these bounds.)
 *   - Live bytes change only within a transaction: the caller of zf_alloc_live_add(),
 *     zf_alloc_live_sub() or zf_alloc_note_written() holds a join. So a freeze sees exact numbers.
 *   - A zone with readers, or with appends that are not ended, is not reset.
 *
 * Locking: alloc.h. Only zf_alloc_wait_limits() waits. No call does I/O.
 */
#ifndef ZF_ALLOC_ZONE_H
#define ZF_ALLOC_ZONE_H

#include <stdbool.h>
#include <stdint.h>

#include "alloc/zone_format.h"
#include "io/dev.h"

struct zf_alloc;

/*
 * Whether the summary tree may hold entries of a zone. A zone is reset only when the tree of the
 * last durable superblock has none.
 */
enum zf_summary_state {
	ZF_SUMMARY_NONE,     /* no entries, in the last durable superblock too */
	ZF_SUMMARY_PRESENT,  /* there may be entries */
	ZF_SUMMARY_DROPPING, /* a thread is removing them */
	ZF_SUMMARY_DROPPED,  /* the running transaction has removed them */
	ZF_SUMMARY_FROZEN,   /* the transaction that is being committed has removed them */
};

/* One zone in memory: at most 72 bytes, so that a 14 TB disk's table stays under 4 MB. */
struct zf_zone {
	uint64_t emptied_generation; /* transaction that freed the last live byte; 0: none did */
	uint64_t reset_generation;   /* newest durable superblock at the last reset */
	uint64_t write_generation;   /* transaction that wrote the newest bytes */
	uint64_t reset_count;
	uint32_t capacity; /* blocks */
	uint32_t pointer;  /* blocks from the start: what is written or granted to a writer */
	uint32_t written;  /* blocks from the start: what is known to be written */
	uint32_t live;	   /* blocks that extents, or nodes of the fs, summary, share trees name */
	uint32_t system_live;	  /* blocks of root and zone tree nodes; recounted by a mount */
	uint32_t pending;	  /* blocks of appends whose extents are not inserted yet ... */
	uint32_t flight;	  /* ... and of these, those that the device has not written yet */
	uint32_t readers;	  /* reads under way that looked up an address in it */
	uint8_t role;		  /* enum zf_role */
	uint8_t summary;	  /* enum zf_summary_state */
	bool dirty : 1;		  /* its item in the zone tree is out of date */
	bool pointer_unknown : 1; /* a write failed: the device is asked before the next write */
	bool unusable : 1;	  /* retired: read-only or offline; or a reset failed */
	bool offline : 1;	  /* retired, and cannot be read */
	bool suspect : 1;	  /* the device is to be asked for its condition again */
	bool pointer_asked : 1;	  /* nothing is in flight: the pointer of the next report holds */
	bool damaged : 1;	  /* metadata: some live nodes could not be written here */
	bool resetting : 1;	  /* a thread is resetting it on the device */
	bool stuck : 1;		  /* some live blocks cannot be read, and so cannot be moved out */
	bool log_closed : 1;	  /* log zone that takes no more records: full, or a write failed */
	bool held : 1;		  /* records that a mount will replay name bytes in it */
	bool warm : 1;		  /* empty zone: see struct zf_zone_info */
	bool reclaimed : 1;	  /* a thread is moving its live blocks out */
	bool passed_over : 1;	  /* live blocks were left: no victim before the next commit */
	bool finishing : 1;	  /* a thread is finishing it on the device */
	bool unfinishable : 1;	  /* finishing failed: not tried again before its reset */
	bool lost : 1;		  /* the device has lost it, and shows it as empty */
};

_Static_assert(sizeof(struct zf_zone) <= 72, "see above");

uint32_t zf_alloc_zone_count(const struct zf_alloc *alloc);
/* Copies the zone's entry. */
void zf_alloc_get_zone(struct zf_alloc *alloc, uint32_t zone_no, struct zf_zone *ret_zone);
/*
 * Begins a trace (zf_trace_begin()). Its first events describe each zone that is not empty, but for
 * the superblock's. No zone changes in between.
 */
void zf_alloc_trace_begin(struct zf_alloc *alloc);
/* Makes the next commit write the zone's item, changed or not: so the item's leaf moves. */
void zf_alloc_touch_zone(struct zf_alloc *alloc, uint32_t zone_no);
/* Stores whether the device keeps this empty zone warm: the log then prefers it. */
void zf_alloc_set_warm(struct zf_alloc *alloc, uint32_t zone_no, bool warm);

static inline uint32_t zf_zone_of(const struct zf_geometry *geometry, uint64_t address)
{
	return (uint32_t)(address / geometry->zone_size);
}

/* ---- appends (append.c) ---- */

/* A piece of a zone, given to one append. */
struct zf_append_grant {
	uint32_t zone_no;
	uint64_t zone_start; /* where the append is addressed to */
	uint64_t len;	     /* bytes, <= what was wanted, >= one block */
	/*
	 * 0: append to zone_start. In a conventional zone, which takes no appends, the address to
	 * write to.
	 */
	uint64_t address;
	bool written; /* the device has written it */
};

/*
 * Grants room for one append of at most `want` bytes (and at most the device's append limit) in the
 * stream of `role` (HOT or COLD). The grant uses up that much of the caller's reservation of data.
 * -ENOSPC: there is no zone. -EAGAIN: there is a zone, but too many zones are active; call
 * zf_alloc_wait_limits().
 */
int zf_alloc_append_begin(struct zf_alloc *alloc, enum zf_role role, uint64_t want,
			  struct zf_append_grant *ret_grant);
/*
 * Notes that the device has written the grant, although its extents may not be inserted yet: the
 * grant no longer keeps the zone active on the device. Without this call zf_alloc_append_end()
 * notes it. The device's thread may call it.
 */
void zf_alloc_append_written(struct zf_alloc *alloc, struct zf_append_grant *grant);
/*
 * Ends the append: its extents were inserted (and counted live) or dropped. After a failure
 * (result < 0) the rest of the zone is lost to the stream, and the device is asked for the pointer.
 * The zone is not reset before this call.
 */
void zf_alloc_append_end(struct zf_alloc *alloc, const struct zf_append_grant *grant, int result);
/* Bytes of appends that have succeeded since the mount, by role of the zone: HOT, COLD, LOG. */
void zf_alloc_get_appended(struct zf_alloc *alloc, uint64_t ret_bytes[ZF_ROLE_COUNT]);

/*
 * Returns 0 if [address, address+len) is written data of one zone that extents may name: in a zone
 * of role OVERWRITE if `in_place`, else in another zone of data. Otherwise -EUCLEAN.
 */
int zf_alloc_check_extent(struct zf_alloc *alloc, uint64_t address, uint64_t len, bool in_place);

/* Extents begin, or cease, to name these bytes. Within a transaction; the range is in one zone. */
void zf_alloc_live_add(struct zf_alloc *alloc, uint64_t address, uint64_t len);
void zf_alloc_live_sub(struct zf_alloc *alloc, uint64_t address, uint64_t len);
/*
 * Notes that bytes are written which summary entries describe and no extent names yet. Called in
 * the transaction that inserts those entries, because the zone's item must cover them: a mount
 * knows the pointer of a conventional zone from its item only.
 */
void zf_alloc_note_written(struct zf_alloc *alloc, uint64_t address, uint64_t len);

/*
 * Between these calls the zone of `address` is not reset. A reader begins while it still holds the
 * lock under which it looked the address up, and ends after its I/O. The first call returns what
 * zf_alloc_resets() would.
 */
uint64_t zf_alloc_read_begin(struct zf_alloc *alloc, uint64_t address);
void zf_alloc_read_end(struct zf_alloc *alloc, uint64_t address);
/*
 * Returns how often the zone of `address` was reset. Bytes at an address are the same as long as
 * this number is, unless they are written in place. While a read or an append of the zone has begun
 * and not ended, the number does not change.
 */
uint64_t zf_alloc_resets(struct zf_alloc *alloc, uint64_t address);

/* ---- limits of active zones (limits.c, open.c) ---- */

/*
 * zf_alloc_append_begin() returns -EAGAIN while the device allows no further active zone, and no
 * active zone can be continued. An *event* may end that: the last append to a zone was written; a
 * partly written zone was finished or reset; a zone's pointer became known after a failure; the log
 * left a zone. The first call counts these events; call it before zf_alloc_append_begin().
 */
uint64_t zf_alloc_limit_events(struct zf_alloc *alloc);
/*
 * Waits until an event has occurred since `seen` was read. Returns false if no event occurred and
 * no command to the device is under way whose end would be an event.
 */
bool zf_alloc_wait_limits(struct zf_alloc *alloc, uint64_t seen);

/*
 * Picks a partly written zone that the caller must finish on the device, because no other zone can
 * be opened while this one is active. Crashes and failed writes leave such zones. A mount calls
 * this until -ENOENT before it writes anything, so that metadata always gets the zone it needs.
 * A zone that could not be finished is not picked again. -ENOENT: there is no such zone, or no
 * need.
 */
int zf_alloc_next_finish(struct zf_alloc *alloc, uint32_t *ret_zone_no);
void zf_alloc_finish_done(struct zf_alloc *alloc, uint32_t zone_no, int result);

/* ---- zones that fail (retire.c) ---- */

/*
 * A zone that the device reports as read-only or offline is *retired* for good. Neither a stream
 * nor the log continues in the zone. The zone is never reset. Only its live bytes count as
 * capacity. If the zone can be read, its live bytes are moved out:
 * zf_alloc_reclaim_begin_retired(), zf_alloc_scrub_begin().
 */

/* A read or a command failed in this zone, so the device is to be asked. Any thread. */
void zf_alloc_suspect(struct zf_alloc *alloc, uint32_t zone_no);
/*
 * Picks a zone that the device must be asked about: a suspect one, or one whose pointer is unknown
 * and to which nothing is in flight. -ENOENT.
 */
int zf_alloc_next_unknown(struct zf_alloc *alloc, uint32_t *ret_zone_no);
/* Takes the device's answer for a zone that zf_alloc_next_unknown() picked. */
void zf_alloc_pointer_known(struct zf_alloc *alloc, uint32_t zone_no,
			    const struct zf_zone_info *info);
/*
 * Picks a zone of metadata that is retired or damaged, whose live nodes are to be written
 * elsewhere. The zone is not reset before zf_alloc_scrub_end(). `stuck`: the nodes could not be
 * read. The zone is not picked again before the next commit, and a stuck one never. -ENOENT.
 */
int zf_alloc_scrub_begin(struct zf_alloc *alloc, uint32_t *ret_zone_no);
void zf_alloc_scrub_end(struct zf_alloc *alloc, uint32_t zone_no, bool stuck);
/* Returns the number of unusable zones; *ret_lost: live bytes in those that are offline. */
uint32_t zf_alloc_retired_zones(struct zf_alloc *alloc, uint64_t *ret_lost);

#endif
