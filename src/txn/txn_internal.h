/* SPDX-License-Identifier: MIT */
/* What the files of src/txn/ share. */
#ifndef ZF_TXN_TXN_INTERNAL_H
#define ZF_TXN_TXN_INTERNAL_H

#include "alloc/vain.h"
#include "txn/health.h"
#include "txn/txn.h"

struct zf_chunk;

struct zf_txn {
	struct zf_dev *dev;
	struct zf_ring *ring;
	struct zf_alloc *alloc;
	struct zf_forest *forest;
	const struct zf_report *report;
	struct zf_txn_options options;
	struct zf_txn_log log;	     /* functions NULL: there is no log */
	struct zf_txn_health health; /* collect NULL: there is no source */
	struct zf_counters counters;
	unsigned int path_nodes; /* nodes from the zone tree's root to a leaf; commit_lock */

	struct zf_vain no_nodes, no_data; /* make_room() in vain: for nodes; for data */

	/* Of the running transaction; `generation` changes only while no join is held. */
	struct zf_writer writer;
	_Atomic bool dirty; /* in the running transaction a node was copied, or is to be */
	_Atomic bool told;  /* options.much was called for this transaction */

	struct zf_mutex lock;	/* ZF_RANK_TRANS */
	struct zf_cond changed; /* a freeze or a commit ended, or a join left */
	bool freezing;
	atomic_bool writing; /* a frozen transaction is being written; changed under the lock */
	unsigned int joins;
	unsigned int waiting; /* threads that wait for a join to leave, which has the room */
	/* Changed under the lock, and read without it, because each read and write needs them. */
	_Atomic uint64_t running;
	_Atomic int error;
	uint64_t durable;
	const char *failed; /* what has failed, if that is the reason for the error */
	struct zf_txn_stats stats;

	/* Everything below belongs to the holder of commit_lock. */
	struct zf_mutex commit_lock; /* ZF_RANK_COMMIT */
	struct zf_super super; /* the next record; between commits, the committed one; its label
			        * is changed under the lock, too */
	bool clean;
	uint64_t first; /* generation that the mount began with */
	bool stands;	/* a record of this mount is durable */
	struct zf_alloc_frozen *frozen;
	struct zf_chunk *chunks; /* for writing the stream; allocated early, so that no commit
				  * fails between its copies for want of memory */
	bool written;		 /* the frozen transaction's nodes are written */
	uint64_t frozen_counters[3];
	struct zf_health health_stored; /* the items that the root tree has */
};

/*
 * Takes the commit lock. If a test has begun a commit by its phases (zf_txn_freeze() ...), this
 * call ends that commit first, as a thread that holds the lock would have done.
 */
void zf_txn_lock_commit(struct zf_txn *txn);

/* NULL: no memory. free() it. (stream_write.c) */
struct zf_chunk *zf_txn_chunks_new(void);
/* Writes the frozen transaction's node stream; every copy that can be written. (stream_write.c) */
int zf_txn_write_stream(struct zf_txn *txn);

/*
 * Makes a commit, unless the generation `wanted` is durable already, or nothing is dirty and
 * `force` is false. -ENOSPC: nothing is dirty, and there is no room for an empty commit.
 */
int zf_txn_commit_upto(struct zf_txn *txn, uint64_t wanted, bool force);

/*
 * Returns how many nodes NORMAL operations leave to operations that free space, and to the commit.
 */
uint64_t zf_txn_nodes_kept(struct zf_txn *txn);

/* Returns whether the running transaction has more dirty bytes than options.dirty_bytes_max. */
bool zf_txn_has_much(struct zf_txn *txn);
/* Makes a commit if zf_txn_has_much(). */
int zf_txn_commit_much(struct zf_txn *txn);

/*
 * Before the first reset of a mount: writes the superblock once more, with a generation of its own,
 * unless this mount has committed already. An earlier mount may have been cut while it wrote a
 * record R that names what is about to be reset. The write pointer did not cover R, so this mount
 * did not see R. But if a power cut then tears this mount's own first record at the same place, R
 * may be found there, whole, and R names a zone that was reset.
 */
int zf_txn_stand(struct zf_txn *txn);

/* Resets one zone, if one may be reset: 1, else 0. Commit lock held. (tidy.c) */
int zf_txn_reset_one_locked(struct zf_txn *txn, bool urgent);

/*
 * Moves the live nodes that have a copy in zone `of` elsewhere. Finds these nodes by reading the
 * first `end` bytes of zone `zone_no`, which is `of` or the zone of another copy. (tidy.c)
 */
int zf_txn_move_nodes_of(struct zf_txn *txn, uint32_t zone_no, uint64_t end, uint32_t of);

/*
 * Moves the live nodes of one failed metadata zone to another zone. ZF_TIDY_EMPTIED: done; 0: there
 * is no failed zone, or no room now. (scrub.c)
 */
int zf_txn_scrub_one(struct zf_txn *txn);

/* Turns the filesystem read-only, and reports that once. */
void zf_txn_fail(struct zf_txn *txn, int error, const char *what);

#endif
