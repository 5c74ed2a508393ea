/* SPDX-License-Identifier: MIT */
/*
 * Transactions: a transaction makes several tree edits one unit, and its commit makes them durable.
 *
 * An operation joins the running transaction, edits the trees through trans->writer, and leaves. An
 * operation that holds a join does no I/O and waits for no other thread. The one exception: the
 * tree calls read a node that is missing from the cache. Lock order: inode locks, then (inside the
 * join call) the commit lock, then the join.
 *
 *      running N --zf_txn_freeze--> frozen N --zf_txn_write--> written --superblock--> durable N
 *                                   running N+1 ...
 *
 * A freeze first lets no new record of the log begin, and waits for the records under way (struct
 * zf_txn_log), because their data belongs to N. Then the freeze holds back new joins, waits for the
 * current joins to leave, copies the counters and starts N+1. The duration of a freeze does not
 * depend on the number of dirty nodes. While the rest of the commit runs, new operations and new
 * records go on.
 *
 * Order of a commit, and why:
 *   1. the zone and root trees are edited, in the reserved tail: nothing names the new nodes yet;
 *      the root tree also gets the items of the filesystem's health (txn/health.h);
 *   2. the node stream is written, in address order, holes as zeroes;
 *   3. flush, if the device has a volatile cache: it covers the nodes and all data that landed
 *      before the freeze;
 *   4. the superblock, with FUA:  *** the commit point ***
 *   5. zones that an earlier transaction emptied may be reset from now on (alloc/reclaim.h).
 *
 * A failure of the freeze or in 1 to 4 turns the filesystem read-only until the next mount
 * (zf_txn_error()): the durable state stays that of the previous superblock, and no zone is reset
 * any more.
 *
 * A thread that needs a commit runs it itself, under the commit lock. Threads that wait for the
 * lock meanwhile may find their generation durable when they get it (group commit).
 */
#ifndef ZF_TXN_TXN_H
#define ZF_TXN_TXN_H

#include "alloc/reserve.h"
#include "alloc/vain.h"
#include "btree/tree.h"
#include "superblock/ring.h"

struct zf_txn;

struct zf_txn_options {
	uint64_t dirty_bytes_max; /* of the running transaction's nodes; a join beyond it commits */
	bool read_only;		  /* zf_txn_error() is -EROFS from the start */
	/*
	 * Called once in each transaction, by the first join that finds 3/4 of the bound dirty, on
	 * its thread: a commit is due now. May be NULL. The function does not wait.
	 */
	void (*much)(void *arg);
	void *much_arg;
};

/*
 * dev, ring, alloc and forest outlive the txn. `super` is the committed superblock; the txn keeps
 * its own copy.
 */
int zf_txn_new(struct zf_dev *dev, struct zf_ring *ring, struct zf_alloc *alloc,
	       struct zf_forest *forest, const struct zf_super *super,
	       const struct zf_txn_options *options, const struct zf_report *report,
	       struct zf_txn **ret_txn);
void zf_txn_free(struct zf_txn *txn); /* drops what is not committed; takes NULL */

/* The filesystem's counters that travel in the superblock; changed inside a join only. */
struct zf_counters {
	_Atomic uint64_t next_ino;
	_Atomic uint64_t inode_count;
	_Atomic uint64_t next_intent;
};
struct zf_counters *zf_txn_counters(struct zf_txn *txn);

/* ---- operations ---- */

/* A join; lives on the caller's stack. */
struct zf_trans {
	struct zf_txn *txn;
	struct zf_writer *writer;
	uint64_t generation; /* durable when zf_txn_durable() reaches it */
	uint64_t nodes;	     /* promised to this join */
};

/*
 * Joins the running transaction for at most `items` tree edits (inserts, updates, deletes; a
 * delete_range counts its max_nodes). If other joins were promised the room for them, the call
 * waits for those joins to leave. If the metadata zones have no room, or more than dirty_bytes_max
 * is dirty, the call commits first, several times if that helps; the dirty bound does not apply to
 * SYSTEM. -ENOSPC: commits gave no room. -EROFS: a commit failed, or the mount is read-only.
 * -EAGAIN: the call would have to commit or wait, and may_wait is false.
 */
int zf_trans_join(struct zf_txn *txn, enum zf_reserve_class class, unsigned int items,
		  bool may_wait, struct zf_trans *ret_trans);
void zf_trans_leave(struct zf_trans *trans);

/*
 * Finds room as zf_trans_join() does, but does not stay joined, and never makes kept blocks short
 * (zf_alloc_kept_give_way()). It is for callers that can reclaim garbage, which is better than
 * breaking the promise of fallocate. The caller holds no lock. -ENOSPC, -EROFS.
 */
int zf_txn_wait_for_room(struct zf_txn *txn, enum zf_reserve_class class, unsigned int items);

/*
 * The caller has tried all means to make room, and none gave any. So joins and reservations
 * remember their own efforts as in vain, too (alloc/vain.h): the commits that the caller made are
 * no reason to repeat those efforts.
 */
void zf_txn_room_was_sought(struct zf_txn *txn, const struct zf_vain_trial *trial);

/*
 * Commits if the running transaction has more dirty bytes than dirty_bytes_max. Callers use it
 * before a join that must not wait. -EAGAIN: the call would have to commit, and may_wait is false.
 */
int zf_txn_keep_bound(struct zf_txn *txn, bool may_wait);

/*
 * Returns whether a commit is being written and the next transaction already has more dirty bytes
 * than half of dirty_bytes_max. Each operation then waits a few milliseconds (zf_txn_slow_down()),
 * so that the commit ends before the bound is reached and all operations would have to wait for it.
 */
bool zf_txn_is_crowded(struct zf_txn *txn);
/*
 * Waits until the commit is over, but at most a few milliseconds: the more bytes are dirty, the
 * longer. The caller holds no lock and no join.
 */
void zf_txn_slow_down(struct zf_txn *txn);

/*
 * An edit failed after another edit of the same operation was made, so the trees contradict each
 * other, and this transaction must never be committed. The filesystem is read-only from now on.
 */
void zf_trans_abort(struct zf_trans *trans, int error, const char *what);

/*
 * Like zf_alloc_reserve(), but commits and resets zones as long as that may give space back.
 * -EAGAIN: the call would have to commit, and may_wait is false. The caller holds no join.
 */
int zf_txn_reserve(struct zf_txn *txn, enum zf_reserve_class class, uint64_t data_blocks,
		   uint64_t items, bool may_wait);

/* ---- commit ---- */

/*
 * When this call returns 0, everything that was in the trees before the call is durable. (Data that
 * has not landed is not in the trees.) The caller holds no join, and has not entered the log.
 */
int zf_txn_sync(struct zf_txn *txn);
/*
 * Calls zf_dev_flush_upto(). When it returns 0, all writes that completed before the mark are
 * durable. If the flush fails, the filesystem is read-only from now on.
 */
int zf_txn_flush(struct zf_txn *txn, uint64_t mark);
/* Makes one commit; with `force` also if nothing is dirty. */
int zf_txn_commit(struct zf_txn *txn, bool force);
/*
 * Gives the filesystem the device's first `zone_count` zones, by a commit: durable when the call
 * returns 0. -ENOSPC: the metadata zones have no room for the items of so many zones; fewer zones
 * may fit. Other errors as of zf_txn_commit(). The caller holds no join.
 */
int zf_txn_grow(struct zf_txn *txn, uint32_t zone_count);
/*
 * Gives the filesystem another label (zf_super_label_is_valid()), by a commit: durable when the
 * call returns 0. Errors as of zf_txn_commit(); then the label does not change. The caller holds no
 * join.
 */
int zf_txn_set_label(struct zf_txn *txn, const char label[ZF_SUPER_LABEL_SIZE]);
void zf_txn_get_label(struct zf_txn *txn, char ret_label[ZF_SUPER_LABEL_SIZE]);
/*
 * For an unmount: the superblock of the next commit says whether a mount has anything to recover.
 */
void zf_txn_set_clean(struct zf_txn *txn, bool clean);

uint64_t zf_txn_running(struct zf_txn *txn); /* generation */
uint64_t zf_txn_durable(struct zf_txn *txn); /* generation */
int zf_txn_error(struct zf_txn *txn);	     /* 0, or why the filesystem is read-only */
/* What has failed, in words: "writing the superblock". NULL: nothing. Not to be freed. */
const char *zf_txn_failed(struct zf_txn *txn);
bool zf_txn_is_dirty(struct zf_txn *txn); /* anything to commit */

/*
 * The phases of a commit, for tests that run operations between the phases. zf_txn_commit() runs
 * all three in this order under the commit lock. After a freeze the test must call write and
 * finish. The test must not call them if an operation between the phases needed a commit and has
 * run the phases itself: zf_txn_durable() tells that.
 */
int zf_txn_freeze(struct zf_txn *txn);
int zf_txn_write(struct zf_txn *txn);
int zf_txn_finish(struct zf_txn *txn);

/*
 * One step of housekeeping of space, for the background thread or a test: asks the device for an
 * unknown pointer, or resets a zone that may be reset, or finishes a zone, or drops the summary
 * entries of an emptied zone, or moves nodes out of a failed metadata zone, or empties a metadata
 * zone. Returns ZF_TIDY_DID: there may be more to do; ZF_TIDY_EMPTIED: a metadata zone was emptied,
 * and the next commits give it back; 0: there is nothing to do; or -errno. `urgent`: a thread waits
 * for room.
 */
enum zf_tidy {
	ZF_TIDY_DID = 1,
	ZF_TIDY_EMPTIED = 2,
};
int zf_txn_tidy(struct zf_txn *txn, bool urgent);

/*
 * For a caller that found too many zones active: finishes one of them, or asks the device for the
 * pointer of one. Returns whether there was such a zone. The caller holds no join.
 */
bool zf_txn_ease_limits(struct zf_txn *txn);

/*
 * Moves the live nodes out of the metadata zone that has the most garbage, if that gives back at
 * least as many blocks as the best zone of data would, for less work. The zone comes back once the
 * running transaction is durable. 1: *ret_gain blocks come back; 0: there is no such zone. The
 * caller holds no lock and no join.
 */
int zf_txn_move_nodes(struct zf_txn *txn, uint64_t *ret_gain);

/*
 * Makes the next commit write the node (tree, level, first key) again at another address, if the
 * node still lies at `address`. -EUCLEAN, -EIO: no copy of the node can be read. The caller holds
 * no lock and no join.
 */
int zf_txn_move_node(struct zf_txn *txn, enum zf_tree_id tree, uint8_t level,
		     const struct zf_key *first_key, uint64_t address);

/*
 * Makes the commit after which zones without live blocks can be reset: drops the summary entries of
 * these zones, as far as there is room for that, and commits. Afterwards each call of
 * zf_txn_reset_emptied() resets one of them, and returns > 0; 0: there is none.
 */
int zf_txn_commit_emptied(struct zf_txn *txn);
int zf_txn_reset_emptied(struct zf_txn *txn);

/*
 * Before the first write of a mount: finishes zones that a crash left partly written, until
 * metadata and data can open the zones that they need within the device's limit of active zones.
 */
void zf_txn_settle(struct zf_txn *txn);

/*
 * What the intent log has to do during a commit. The thread that commits calls these functions.
 * They are set once, before the first join.
 */
struct zf_txn_log {
	void *arg;
	/*
	 * Lets no thread begin a record until release(), and returns when the records under way are
	 * over: their extents are in the trees. Joins are still possible, because a record under
	 * way may still have to join.
	 */
	void (*hold)(void *arg);
	/*
	 * Called while no join is held, before the counters of the zones are copied: fills in the
	 * superblock's fields about the log. Not called if the transaction failed.
	 */
	void (*freeze)(void *arg, struct zf_super *super);
	/* The next transaction runs, or the freeze failed. */
	void (*release)(void *arg);
	/* The superblock that freeze() filled in is durable. */
	void (*durable)(void *arg);
};
void zf_txn_set_log(struct zf_txn *txn, const struct zf_txn_log *log);

/*
 * Between these two calls no commit is made and no zone is reset. A check of a mounted filesystem
 * uses them.
 */
void zf_txn_pause(struct zf_txn *txn);
void zf_txn_resume(struct zf_txn *txn);

struct zf_txn_stats {
	uint64_t commits, commit_ns, commit_ns_max, freeze_ns_max, nodes_written, holes_written;
	uint64_t stream_bytes; /* nodes and holes, every copy; failed writes too */
};
void zf_txn_get_stats(struct zf_txn *txn, struct zf_txn_stats *ret_stats);

#endif
