/* SPDX-License-Identifier: MIT */
/*
 * The intent log: records of the changes that were acknowledged as durable since the last
 * superblock.
 *
 * Two kinds of things are logged. *Operations* change names and attributes. Each is kept in memory,
 * with its number, until it is in a record or its transaction is durable. A record contains all
 * operations that are kept, in the order of their numbers. The *state of an inode* is logged by
 * that inode's own fsync. It is also put among the operations if a later operation must not be
 * durable without it (fs/data/close.h). One record is one append with FUA (log_format.h), or one
 * write on a conventional zone. Data that is written with a record stays at that address.
 *
 *      fsync: inode locked --zf_log_enter--> state described, number taken --zf_log_append: joins a
 *      record; one of the waiting threads submits it--> completed --its data is put into the
 *      trees--> zf_log_leave --zf_log_wait: all records before it are durable, too--> answered
 *
 * Group commit. At most ZF_LOG_IN_FLIGHT records are in flight. Syncs that come meanwhile share the
 * next record. One of the waiting threads writes it: the log has no thread of its own.
 *
 * With a commit. A freeze lets no thread enter, waits until all that entered have left, and then
 * notes S, the last sequence number, and O, the last number of a body: all records up to S and all
 * bodies up to O are in the frozen transaction. So a thread that has entered must not wait for a
 * commit, nor for a lock whose holder may wait for one. The inode's lock is held from before enter
 * until after leave. While the device writes, the lock is *kept* (zf_rwlock_keep()): readers go on,
 * and so do writes that only make blocks dirty.
 *
 * Failure. A record that could not be written leaves a *gap* in the sequence numbers, and no record
 * behind the gap is acknowledged. Then every sync commits instead, until a superblock with a later
 * S is durable: zf_log_enter() returns false, zf_log_append() and zf_log_wait() return -EAGAIN. The
 * same holds in two more cases. First: operations are missing, because there were too many or one
 * could not be described; this ends when their transaction is durable. Second: there is no log yet;
 * a new filesystem gets a log with its first commit, a recovered one with the recovery's last
 * commit. If the two zones have no room, or one record is not enough, only that sync commits.
 *
 * Locking: one mutex (ZF_RANK_LOG), taken inside these calls and not held across I/O. Operations
 * are added inside a join.
 */
#ifndef ZF_LOG_LOG_H
#define ZF_LOG_LOG_H

#include "alloc/zone.h"
#include "base/turn.h"
#include "log/body.h"
#include "superblock/super.h"

struct zf_log;

/* Records on their way at once. */
#define ZF_LOG_IN_FLIGHT 2u
/* The most bytes of operations that are kept in memory. If there are more, an fsync commits. */
#define ZF_LOG_KEEP_BYTES (UINT64_C(1) << 20)

/* ---- life ---- */

/*
 * `super` is the one that was mounted. The log writes nothing before zf_log_start(). The log calls
 * `want_commit` to ask for a commit: it has switched to its second zone, neither zone has room, or
 * a record failed. The call comes on any thread, with the log's mutex held, and must not wait.
 * NULL: none.
 */
int zf_log_new(struct zf_dev *dev, struct zf_alloc *alloc, const struct zf_super *super,
	       const struct zf_report *report, void (*want_commit)(void *arg), void *arg,
	       struct zf_log **ret_log);
void zf_log_free(struct zf_log *log); /* takes NULL */

/*
 * During recovery: all bodies up to this number are in the trees, so it is O of the next freeze.
 * Sequence number, epoch and zones do not change.
 */
void zf_log_replayed(struct zf_log *log, uint64_t number);
/*
 * Recovery is over. `sequence` and `number` are the highest that were seen. `new_epoch`: something
 * was replayed, or lies behind a gap. Then the next commit begins a new epoch, and no record is
 * written before that commit is durable.
 */
void zf_log_start(struct zf_log *log, uint64_t sequence, uint64_t number, bool new_epoch);

/* ---- operations ---- */

/*
 * Returns whether operations should be described now. False from the moment when an operation is
 * missing until the next freeze.
 */
bool zf_log_wants_operations(struct zf_log *log);
/*
 * Adds an operation of the running transaction, or the state of an inode that it changes, without
 * data. The caller is inside the operation's join and has its inodes locked, so the calls come in
 * the order in which operations take effect. The body is copied, and gets the next number. NULL, or
 * a body with an error: the operation could not be described, so the log makes nothing durable
 * before this transaction is durable. `mark`: writes up to this one (zf_dev_write_mark()) must be
 * flushed before the body is written; 0: none. During recovery the call does nothing.
 */
void zf_log_add(struct zf_log *log, struct zf_log_body *body, uint64_t mark);

/* ---- records ---- */

/* One fsync's part of a record; on the caller's stack. */
struct zf_log_part {
	struct zf_log_body *body; /* EXTENTS; NULL: only the kept operations are written */
	const struct iovec *iov;  /* the part's data, whole blocks */
	unsigned int iovcnt;
	uint32_t data_blocks; /* whose reservations the record uses up */

	/* Set by zf_log_append(). */
	uint64_t sequence;	      /* for zf_log_wait() */
	struct zf_append_grant grant; /* of the data: to be ended by the caller; len 0: none */
	uint64_t address;	      /* of the data */
	uint64_t traced;	      /* as zf_io.traced of the record */

	/* Private. */
	struct zf_log_part *next;
	const void *packed;  /* its first block, packed for carrying (carry.h) */
	uint32_t packed_len; /* bytes; 0: packing does not make it small enough */
	struct zf_turn turn; /* to write the record */
	bool leads;	     /* its thread writes the record */
	int result;
};

/* Returns whether an operation was added that is not durable in the log. */
bool zf_log_is_behind(struct zf_log *log);
/*
 * Returns the mark up to which writes must be flushed for the operations that are kept, or 0. A
 * thread flushes that before it enters, so that no freeze has to wait for this flush. The thread
 * that writes the record flushes what operations have added since.
 */
uint64_t zf_log_pending_mark(struct zf_log *log);

/*
 * Enters the log's gate; waits for a freeze to be over. False: the log cannot be used, so the
 * caller commits. True: the caller must call zf_log_leave(). The caller may hold locks of inodes,
 * but no join. docs/locking.md says what a thread that has entered may wait for.
 */
bool zf_log_enter(struct zf_log *log);
void zf_log_leave(struct zf_log *log);

/*
 * Gives the body its number, writes it in a record with all operations up to now, and waits for the
 * device. It may also wait for the records before its own. The caller has entered. 0: the record
 * has completed; it counts once zf_log_wait(part->sequence) returns 0, which is called after
 * leaving. -EAGAIN: not written, and part->grant is empty; the caller commits. Other errors are the
 * device's; if part->grant is not empty, the caller ends it with the error.
 */
int zf_log_append(struct zf_log *log, struct zf_log_part *part);

/*
 * Waits until all records up to `sequence` are durable, or a durable superblock covers them.
 * -EAGAIN: one of them failed; the caller commits. The caller has not entered and holds no lock.
 */
int zf_log_wait(struct zf_log *log, uint64_t sequence);

/* ---- with the commit (struct zf_txn_log in txn/txn.h) ---- */

struct zf_txn_log;
/* The functions that the transactions call. */
void zf_log_hooks(struct zf_log *log, struct zf_txn_log *ret_hooks);

struct zf_log_stats {
	uint64_t records, bodies, bytes; /* written; bytes with their data */
	uint64_t parts;			 /* fsyncs that the records served */
	uint64_t commits_instead;	 /* fsyncs that were told to commit */
	uint64_t failures, switches;
};
void zf_log_get_stats(struct zf_log *log, struct zf_log_stats *ret_stats);

#endif
