/* SPDX-License-Identifier: MIT */
/*
 * Transactions: what makes several tree edits one, and the commit that makes them durable.
 *
 * An operation joins the running transaction, edits the trees through trans->writer, and leaves.
 * It never holds a join across I/O of its own or while it waits for another thread (a missing
 * node is read inside the tree calls; that is the one exception). Lock order: inode locks, then
 * (inside the join call) the commit lock, then the join.
 *
 *      running N --zf_txn_freeze--> frozen N --zf_txn_write--> written --superblock--> durable N
 *                                   running N+1 ...
 *
 * Freeze first lets no new record of the log begin, and waits for those under way (struct
 * zf_txn_log): their data belongs to N. Then it holds back new joins, waits for the current ones,
 * snapshots the counters and starts N+1. How long that takes does not depend on how much is dirty.
 * The rest of the commit runs beside new operations and new records.
 *
 * Order of a commit, and why:
 *   1. the zone and root trees are edited, in the reserved tail: nothing names the new nodes yet;
 *      the root tree also gets what is to be stored of the filesystem's health (txn/health.h);
 *   2. the node stream is written, in address order, holes as zeroes;
 *   3. flush, if the device has a volatile cache: data landed before the freeze is covered too;
 *   4. the superblock, with FUA:  *** the commit point ***
 *   5. what N freed is released: zones emptied long enough ago are reset.
 * A failure in 1 to 4 turns the filesystem read-only for good (zf_txn_error): the durable state is
 * the previous superblock's, and nothing is reset any more.
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
	 * Once in each transaction, by the join that finds 3/4 of the bound dirty, on its thread:
	 * now would be the time for a commit. May be NULL; does not wait.
	 */
	void (*much)(void *arg);
	void *much_arg;
};

/* All four outlive the txn. `super` is the committed superblock; the txn keeps its own copy. */
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
	uint64_t nodes;	     /* set aside for this join */
};

/*
 * Joins the running transaction for at most `items` tree edits (inserts, updates, deletes; a
 * delete_range counts its max_nodes). If other joins were promised the room for them, the call
 * waits for those joins to leave. If the metadata zones have no room, or more is dirty than may be,
 * it commits first, several times if that helps; the dirty bound does not apply to SYSTEM. -ENOSPC:
 * commits gave no room. -EROFS: a commit failed, or the mount is read-only. -EAGAIN: the call would
 * have to commit or wait, and may_wait is false.
 */
int zf_trans_join(struct zf_txn *txn, enum zf_reserve_class class, unsigned int items,
		  bool may_wait, struct zf_trans *ret_trans);
void zf_trans_leave(struct zf_trans *trans);

/*
 * Finds room as zf_trans_join() does, but does not stay joined, and takes no kept space
 * (zf_alloc_kept_give_way()). It is for callers that can reclaim garbage before kept space has to
 * give way. Caller holds no lock. -ENOSPC, -EROFS.
 */
int zf_txn_wait_for_room(struct zf_txn *txn, enum zf_reserve_class class, unsigned int items);

/*
 * The caller has tried everything else too, in vain: his commits are no reason to try what joins
 * and reservations do once more (alloc/vain.h).
 */
void zf_txn_room_was_sought(struct zf_txn *txn, const struct zf_vain_trial *trial);

/*
 * Commits if more is dirty than may be, on behalf of callers whose own joins must not wait.
 * -EAGAIN: it would have to commit, and may_wait is false.
 */
int zf_txn_keep_bound(struct zf_txn *txn, bool may_wait);

/*
 * Is more than half of the bound dirty again, while a commit is still being written? Operations
 * then slow down, each by a few milliseconds at most, so that the commit is over before they have
 * to stop for it.
 */
bool zf_txn_is_crowded(struct zf_txn *txn);
/*
 * Waits until the commit is over, but only a few milliseconds: the longer, the more is dirty.
 * Caller holds no lock and no join.
 */
void zf_txn_slow_down(struct zf_txn *txn);

/*
 * An edit failed after another one of the same operation was made: the trees are inconsistent with
 * each other, and this transaction must never be committed. Read-only from now on.
 */
void zf_trans_abort(struct zf_trans *trans, int error, const char *what);

/*
 * Like zf_alloc_reserve(), but commits and resets as long as that may give space back. -EAGAIN with
 * may_wait false. Caller holds no join.
 */
int zf_txn_reserve(struct zf_txn *txn, enum zf_reserve_class class, uint64_t data_blocks,
		   uint64_t items, bool may_wait);

/* ---- commit ---- */

/*
 * Everything done before this call is durable when it returns 0: what is in the trees, not data on
 * its way. Caller holds no join, and has not entered the log.
 */
int zf_txn_sync(struct zf_txn *txn);
/*
 * zf_dev_flush_upto(): what completed before the mark is durable when it returns 0. If the flush
 * fails, the filesystem is read-only from now on.
 */
int zf_txn_flush(struct zf_txn *txn, uint64_t mark);
/* One commit, even of nothing if `force`. */
int zf_txn_commit(struct zf_txn *txn, bool force);
/*
 * Gives the filesystem the device's first `zone_count` zones, by a commit: durable when it returns
 * 0. -ENOSPC: the metadata zones have no room for the items of so many; fewer may do. Other errors
 * as of zf_txn_commit(). Caller holds no join.
 */
int zf_txn_grow(struct zf_txn *txn, uint32_t zone_count);
/*
 * Gives the filesystem another label (zf_super_label_is_valid()), by a commit: durable when it
 * returns 0. Errors as of zf_txn_commit(); then the label stays what it was. Caller holds no join.
 */
int zf_txn_set_label(struct zf_txn *txn, const char label[ZF_SUPER_LABEL_SIZE]);
void zf_txn_get_label(struct zf_txn *txn, char ret_label[ZF_SUPER_LABEL_SIZE]);
/* The next commit says that there is nothing to recover (unmount). */
void zf_txn_set_clean(struct zf_txn *txn, bool clean);

uint64_t zf_txn_running(struct zf_txn *txn); /* generation */
uint64_t zf_txn_durable(struct zf_txn *txn); /* generation */
int zf_txn_error(struct zf_txn *txn);	     /* 0, or why it is read-only */
/* What failed then, in words: "writing the superblock". NULL: nothing. Not to be freed. */
const char *zf_txn_failed(struct zf_txn *txn);
bool zf_txn_is_dirty(struct zf_txn *txn); /* anything to commit */

/*
 * The phases of a commit, for tests that run operations between them; zf_txn_commit() is these
 * in order under the commit lock. After a freeze, write and finish must follow; unless
 * zf_txn_durable() says that an operation between them, which needed a commit, has taken them
 * itself.
 */
int zf_txn_freeze(struct zf_txn *txn);
int zf_txn_write(struct zf_txn *txn);
int zf_txn_finish(struct zf_txn *txn);

/*
 * Housekeeping of space, by the background thread or a test's step: drops summary entries of
 * emptied zones, resets zones that may be reset, empties metadata zones, and above all those that
 * have failed. Does one thing and returns
 * ZF_TIDY_DID when there may be more, ZF_TIDY_EMPTIED when it emptied a metadata zone (which the
 * next commits give back), 0 when there is nothing to do, or -errno.
 */
enum zf_tidy {
	ZF_TIDY_DID = 1,
	ZF_TIDY_EMPTIED = 2,
};
int zf_txn_tidy(struct zf_txn *txn, bool urgent);

/*
 * Too many zones are active: one of them is finished, or asked for its pointer. Returns whether
 * there was one. Caller holds no join.
 */
bool zf_txn_ease_limits(struct zf_txn *txn);

/*
 * Moves what is live out of the metadata zone that has the most garbage, if it gives at least as
 * much back as any zone of data would, for less: when the running transaction is durable. 1:
 * *ret_gain blocks; 0: there is none. Caller holds no lock and no join.
 */
int zf_txn_move_nodes(struct zf_txn *txn, uint64_t *ret_gain);

/*
 * Has the next commit write the node (tree, level, first key) anew, elsewhere, if it still lies at
 * `address`. -EUCLEAN, -EIO: it can be read nowhere. Caller holds no lock and no join.
 */
int zf_txn_move_node(struct zf_txn *txn, enum zf_tree_id tree, uint8_t level,
		     const struct zf_key *first_key, uint64_t address);

/*
 * One commit that brings the zones in which nothing is live any more: drops their summary entries,
 * as far as there is room for that, and commits. Afterwards zf_txn_reset_emptied() resets one of
 * them, and is > 0; 0: there is none.
 */
int zf_txn_commit_emptied(struct zf_txn *txn);
int zf_txn_reset_emptied(struct zf_txn *txn);

/*
 * Before the first write of a mount: finishes zones that a crash left partly written, until
 * metadata and data can have the active zones that they need.
 */
void zf_txn_settle(struct zf_txn *txn);

/*
 * What the intent log has to do with a commit; called by the thread that commits. Set once, before
 * the first join.
 */
struct zf_txn_log {
	void *arg;
	/* Nobody begins a record until release(), and those under way are over: their extents are
	 * in the trees. Joins can still be had, for these end with one. */
	void (*hold)(void *arg);
	/* No join is held: fills in what the superblock says of the log. Before the zones' counters
	 * are noted. Not called if the transaction failed. */
	void (*freeze)(void *arg, struct zf_super *super);
	/* The next transaction runs, or the freeze failed. */
	void (*release)(void *arg);
	/* The superblock that freeze() filled in is durable. */
	void (*durable)(void *arg);
};
void zf_txn_set_log(struct zf_txn *txn, const struct zf_txn_log *log);

/* Between the two no commit is made and no zone is reset: for a check of a mounted filesystem. */
void zf_txn_pause(struct zf_txn *txn);
void zf_txn_resume(struct zf_txn *txn);

struct zf_txn_stats {
	uint64_t commits, commit_ns, commit_ns_max, freeze_ns_max, nodes_written, holes_written;
	uint64_t stream_bytes; /* nodes and holes, every copy; failed writes too */
};
void zf_txn_get_stats(struct zf_txn *txn, struct zf_txn_stats *ret_stats);

#endif
