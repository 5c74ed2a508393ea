/* SPDX-License-Identifier: MIT */
/*
 * Operations: the steps of every operation that changes names or attributes.
 *
 * An operation is a function that makes one try. It gets the inodes that it needs, locks them,
 * checks everything, joins, edits, and leaves. If it has to wait (for a commit, for room, for dirty
 * data), or if something that it looked up before it had the locks has changed, the try ends with a
 * positive outcome. zf_op_again() then releases all locks and waits, and the try is made again from
 * the start:
 *
 *      struct zf_op op = ZF_OP(fs, ctx);
 *
 *      do {
 *              r = unlink_once(&op, parent, name);
 *      } while (zf_op_again(&op, &r));
 *
 * So an operation waits for a commit without any inode's lock, and a lookup by another thread waits
 * only for edits in memory. The exception: an operation that has waited for room WAITS_MAX times
 * (op.c) waits in zf_op_join(), with its locks held.
 *
 * The log. Every edit goes through the functions below, which also collect the edits of a try. The
 * collected edits are what the intent log keeps of the operation until it is durable.
 *
 * Atomicity. Edits are counted. If the first edit fails, nothing has changed. If a later one fails,
 * the trees contradict each other, and the transaction is aborted. So everything that can fail is
 * checked before the join. After a failure the inodes' items in memory are set back.
 */
#ifndef ZF_FS_OP_H
#define ZF_FS_OP_H

#include "alloc/reserve.h"
#include "fs/core/inode.h"
#include "fs/space/room.h"
#include "log/body.h"

#define ZF_OP_INODES ZF_INODE_LOCKS_MAX

/* Outcomes of a try, beside 0 and -errno. */
enum zf_op_outcome {
	ZF_OP_CHANGED = 1,    /* what was looked up without locks has changed */
	ZF_OP_WAIT_ROOM = 2,  /* joining has to wait */
	ZF_OP_WAIT_FLUSH = 3, /* the inode op->flush_ino has data that must land first */
	ZF_OP_WAIT_TURN = 4,  /* a commit is falling behind: zf_txn_slow_down() */
};

struct zf_op {
	struct zf_fs *fs;
	const struct zf_ctx *ctx;
	struct zf_time now; /* the time of all changes of a try */

	struct zf_inode *inodes[ZF_OP_INODES]; /* each has a use; `locked`: each is locked */
	unsigned int inode_count;
	bool locked;
	bool rename_locked;

	struct zf_trans trans;
	bool content;		 /* changes only the content of files: the log gets no operation */
	bool logs;		 /* the edits are being collected ... */
	struct zf_log_body body; /* ... here */
	struct zf_inode_item saved[ZF_OP_INODES];
	unsigned int saved_count;
	unsigned int edits;    /* made in this join ... */
	unsigned int captured; /* ... and so many of them are in `body` */
	/* zf_dev_write_mark(): earlier writes are flushed before the log has the operation. */
	uint64_t mark;

	enum zf_reserve_class class; /* of the join that has to wait */
	unsigned int items;
	unsigned int waits;
	struct zf_room_search room_search;
	bool slowed; /* has waited for its turn */
	uint64_t flush_ino, flushed_ino;
	/*
	 * It lost its last name: zf_op_again() discards its dirty data if the kernel has no
	 * reference to it.
	 */
	uint64_t unlinked_ino;
	bool durable; /* it has to be durable when it is answered: flags, or sync_names */
};

#define ZF_OP(filesystem, context) {.fs = (filesystem), .ctx = (context)}

/* -EROFS if the filesystem takes no changes. */
int zf_op_check_writable(const struct zf_op *op);

/* Adds an inode to the operation. -ESTALE. */
int zf_op_get(struct zf_op *op, uint64_t ino, struct zf_inode **ret_inode);
/* Locks the operation's inodes exclusively. */
void zf_op_lock(struct zf_op *op);
/*
 * zf_op_check_writable(), zf_op_get() and zf_op_lock(), for an operation that changes one inode.
 * -EROFS, -ESTALE: nothing is locked.
 */
int zf_op_begin(struct zf_op *op, uint64_t ino, struct zf_inode **ret_inode);
/* Adds an inode that zf_inode_new() has made and locked. */
void zf_op_adopt(struct zf_op *op, struct zf_inode *inode);

/*
 * Joins, when the locks are held and everything is checked: 0, ZF_OP_WAIT_ROOM, ZF_OP_WAIT_TURN or
 * -errno. Sets op->now. If one of the inodes has ZF_INODE_SYNC, or a directory ZF_INODE_DIRSYNC,
 * the operation is durable when zf_op_again() returns false.
 */
int zf_op_join(struct zf_op *op, enum zf_reserve_class class, unsigned int items);
int zf_op_insert(struct zf_op *op, const struct zf_key *key, const void *value, size_t len);
int zf_op_set(struct zf_op *op, const struct zf_key *key, const void *value, size_t len);
int zf_op_delete(struct zf_op *op, const struct zf_key *key);
int zf_op_store(struct zf_op *op, struct zf_inode *inode);
int zf_op_store_new(struct zf_op *op, struct zf_inode *inode);
/*
 * Leaves the join. `result` is that of all edits. After a failure the call sets the inodes' items
 * back, and aborts the transaction if an edit was made. Returns `result`.
 */
int zf_op_leave(struct zf_op *op, int result, const char *what);

/*
 * Ends a try: releases locks and uses, and waits if *result is an outcome that says so. True: try
 * again.
 */
bool zf_op_again(struct zf_op *op, int *result);

#endif
