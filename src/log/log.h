/* SPDX-License-Identifier: MIT */
/*
 * The intent log: what was acknowledged as durable since the last superblock.
 *
 * Two kinds of things are logged. *Operations* change names and attributes: each is kept in memory,
 * with its number, from the moment it is made until it is in a record or its transaction is
 * durable; a record takes along all that there are, in order. The *state of an inode* is logged by
 * that inode's own fsync; or among the operations, where one must not be durable without it
 * (fs/data/close.h). One record is one append with FUA (log_format.h), or on a conventional zone
 * one write; the data in it stays where it landed.
 *
 *      fsync: inode locked --zf_log_enter--> state described, number taken --zf_log_append: joins a
 *      record; one of those who wait submits it--> completed --its data is put into the trees-->
 *      zf_log_leave --zf_log_wait: all before it are durable too--> answered
 *
 * Group commit. At most ZF_LOG_IN_FLIGHT records are on their way; who comes meanwhile shares the
 * next one. It is written by one of those who wait for it: there is no thread of the log's own.
 *
 * With a commit. A freeze lets nobody enter, waits until all have left, and then notes S, the last
 * sequence number, and O, the last number: everything up to them is in the frozen transaction. So
 * between enter and leave nobody waits for a commit, nor for a lock that is held by somebody who
 * might. The inode's lock is held from before enter until after leave; for the device's write it is
 * kept (zf_rwlock_keep()): readers go on, and writes that only make blocks dirty.
 *
 * Failure. A record that could not be written stays a gap; nothing behind it is acknowledged from
 * the log, and until the superblock of a commit with a later S is durable, everybody commits
 * instead: zf_log_enter() says false, zf_log_append() and zf_log_wait() -EAGAIN. The same where
 * operations are missing (too many, or one that could not be described) until the transaction that
 * they belong to is durable, and as long as there is no log (a fresh filesystem gets one with its
 * first commit, a recovered one with its last). Without room in the two zones, or with too much for
 * one record, that one fsync commits.
 *
 * Locking: one mutex (ZF_RANK_LOG) inside, not held across I/O. Operations are added inside a join.
 */
#ifndef ZF_LOG_LOG_H
#define ZF_LOG_LOG_H

#include "alloc/zone.h"
#include "log/body.h"
#include "superblock/super.h"

struct zf_log;

/* Records on their way at once. */
#define ZF_LOG_IN_FLIGHT 2u
/* Operations kept in memory for a record: bytes. Beyond, an fsync commits. */
#define ZF_LOG_KEEP_BYTES (UINT64_C(1) << 20)

/* ---- life ---- */

/*
 * `super` is the one that was mounted; the log writes nothing before zf_log_start(). `want_commit`
 * is called, on any thread, with the log's mutex held, and does not wait: a commit would do the log
 * good (it has switched to its second zone, has no room in either, or a record failed). May be
 * NULL.
 */
int zf_log_new(struct zf_dev *dev, struct zf_alloc *alloc, const struct zf_super *super,
	       const struct zf_report *report, void (*want_commit)(void *arg), void *arg,
	       struct zf_log **ret_log);
void zf_log_free(struct zf_log *log); /* takes NULL */

/*
 * During recovery: all up to this number is in the trees (the next freeze's O). Sequence, epoch and
 * zones stay what they were.
 */
void zf_log_replayed(struct zf_log *log, uint64_t number);
/*
 * Recovery is over. With `new_epoch` (something was replayed, or lies behind a gap) the next commit
 * begins an epoch, and records are written once it is durable. The numbers are the highest seen.
 */
void zf_log_start(struct zf_log *log, uint64_t sequence, uint64_t number, bool new_epoch);

/* ---- operations ---- */

/* Is it worth describing operations now? Not once some are missing, until the next freeze. */
bool zf_log_wants_operations(struct zf_log *log);
/*
 * An operation of the running transaction, in the order in which they take effect; inside its join,
 * with the inodes that it changes locked. Or the state of one of those, without data of its own.
 * The body is copied, and gets the next number. NULL, or with an error: it could not be described,
 * so nothing is durable by the log before the transaction is. `mark`: what must be flushed before
 * it is written (zf_dev_write_mark()), 0: nothing. During recovery it does nothing.
 */
void zf_log_add(struct zf_log *log, struct zf_log_body *body, uint64_t mark);

/* ---- records ---- */

/* One fsync's part of a record; on the caller's stack. */
struct zf_log_part {
	struct zf_log_body *body; /* EXTENTS; NULL: only what operations there are */
	const struct iovec *iov;  /* its data, whole blocks */
	unsigned int iovcnt;
	uint32_t data_blocks; /* whose reservations the record uses up */

	/* Set by zf_log_append(). */
	uint64_t sequence;	      /* what to wait for */
	struct zf_append_grant grant; /* of the data: to be ended by the caller; len 0: none */
	uint64_t address;	      /* of the data */
	uint64_t traced;	      /* as zf_io.traced of the record */

	/* Private. */
	struct zf_log_part *next;
	const void *packed;  /* its first block, should the record carry it (carry.h) ... */
	uint32_t packed_len; /* ... bytes; 0: it does not get small enough */
	bool done;
	int result;
};

/* Is there an operation, added or written, that is not durable in the log? */
bool zf_log_is_behind(struct zf_log *log);
/*
 * What operations that wait to be written need flushed, or 0. Whoever is about to enter does that
 * first, so that it keeps no freeze waiting; what comes after is flushed by who writes the record.
 */
uint64_t zf_log_pending_mark(struct zf_log *log);

/*
 * Waits for a freeze to be over. False: there is no log to enter, commit. Everybody who entered
 * leaves. Inodes' locks may be held, a join not. docs/locking.md says what one who has entered may
 * wait for.
 */
bool zf_log_enter(struct zf_log *log);
void zf_log_leave(struct zf_log *log);

/*
 * Entered. Gives the body its number, writes it with the operations up to now, and waits for the
 * device, perhaps for the records before its own as well. 0: it completed, and part->sequence says
 * when it counts: to be given to zf_log_wait() after leaving. -EAGAIN: not written, part->grant is
 * empty: commit. Other errors: the device's; part->grant, if not empty, is to be ended with it.
 */
int zf_log_append(struct zf_log *log, struct zf_log_part *part);

/*
 * Until all records up to `sequence` are durable, or a superblock has what is in them. -EAGAIN: one
 * of them failed, commit. Not entered, no lock held.
 */
int zf_log_wait(struct zf_log *log, uint64_t sequence);

/* ---- with the commit (struct zf_txn_log in txn/txn.h) ---- */

struct zf_txn_log;
/* The functions that the transactions call. */
void zf_log_hooks(struct zf_log *log, struct zf_txn_log *ret_hooks);

struct zf_log_stats {
	uint64_t records, bodies, bytes; /* written; bytes with their data */
	uint64_t parts;			 /* fsyncs that they served */
	uint64_t commits_instead;	 /* fsyncs that were told to commit */
	uint64_t failures, switches;
};
void zf_log_get_stats(struct zf_log *log, struct zf_log_stats *ret_stats);

#endif
