/* SPDX-License-Identifier: MIT */
/*
 * Inodes in memory, and struct zf_fs, which the files of src/fs/ share.
 *
 * Life. zf_inode_get() finds an inode in the table or loads it from the fs tree, and counts a use;
 * zf_inode_put() gives it back. Unused clean inodes stay in the table up to a bound and are then dropped:
 * kernel references (zf_fs_lookup) are counted in a table of their own, so that they do not
 * keep an inode in memory. An inode with dirty or in-flight data holds a use of its own.
 *
 * Size and times. item.* is what users see now. disk_size is the size as far as its bytes are in
 * the trees (or are holes): what zf_inode_store() writes, so that a crash never shows a size whose data did
 * not land. Data on its way to the device moves disk_size up as it lands (fs/data.h).
 * Attribute changes by an operation are stored by that operation's transaction at once; times that a
 * write or read changed are stored with the next extents, or by the flush (item_dirty).
 *
 * Locking. inode->lock protects item, disk_size, item_dirty, and the inode's items in the tree: exclusive to
 * change, shared to read. Several are locked in ascending ino (zf_inode_lock_pair, ...). fs->lock
 * protects the tables. inode->data has a lock of its own (fs/data.h).
 */
#ifndef ZF_FS_INODE_H
#define ZF_FS_INODE_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include "alloc/alloc.h"
#include "btree/tree.h"
#include "fs/data.h"
#include "fs/fs.h"
#include "txn/txn.h"

struct zf_inode_item {
	uint64_t generation, change, size, bytes, rdev, next_cookie;
	uint32_t mode, nlink, uid, gid, project, flags;
	struct zf_time atime, mtime, ctime, btime;
};

struct zf_inode {
	uint64_t ino;
	struct zf_fs *fs;

	struct zf_rwlock lock;
	struct zf_inode_item item;
	uint64_t disk_size;
	bool item_dirty; /* item differs from what the tree holds (times, size) */
	struct zf_data data;

	/* Under fs->lock. */
	unsigned int uses;
	RB_ENTRY(zf_inode) table_link;
	TAILQ_ENTRY(zf_inode) idle_link; /* when uses == 0 */
	TAILQ_ENTRY(zf_inode) dirty_link;
	bool on_dirty_list;
};

/* Kernel references to one inode, kept apart so that the inode itself may leave memory. */
struct zf_kernel_ref {
	uint64_t ino;
	uint64_t count;
	RB_ENTRY(zf_kernel_ref) link;
};

RB_HEAD(zf_inode_table, zf_inode);
RB_HEAD(zf_kernel_ref_table, zf_kernel_ref);
TAILQ_HEAD(zf_inode_list, zf_inode);

struct zf_background; /* the threads; fs/background.c */

struct zf_fs {
	struct zf_dev *dev;
	struct zf_ring *ring;
	struct zf_alloc *alloc;
	struct zf_forest *forest;
	struct zf_txn *txn;
	struct zf_super super; /* as mounted */
	struct zf_mount_options options;
	struct zf_report report;
	bool read_only;

	struct zf_mutex lock; /* ZF_RANK_FS */
	struct zf_inode_table inodes;
	struct zf_inode_list idle; /* oldest first */
	unsigned int idle_count;
	struct zf_inode_list dirty; /* inodes with dirty data or item_dirty, oldest first */
	struct zf_kernel_ref_table kernel_refs;

	struct zf_flush flush; /* what all inodes' data share; fs/data.h */
	struct zf_background *background;
};

/* ---- the table (inode.c) ---- */

/* -ESTALE if there is no such inode; -EUCLEAN if its item is damaged. */
int zf_inode_get(struct zf_fs *fs, uint64_t ino, struct zf_inode **ret_inode);
/* One more use of an inode that the caller has. */
struct zf_inode *zf_inode_ref(struct zf_inode *inode);
/* The last put of an inode with nlink 0 and without kernel references deletes it. Takes NULL. */
void zf_inode_put(struct zf_inode *inode);
/*
 * A new inode in the table, used and locked exclusively; its item is the caller's to store in `trans`.
 */
int zf_inode_new(struct zf_fs *fs, struct zf_trans *trans, mode_t mode, struct zf_inode **ret_inode);

void zf_inode_kernel_ref(struct zf_fs *fs, uint64_t ino);

/* On the list of inodes that a flush has to visit. Takes a use for as long. Caller holds inode->lock. */
void zf_inode_mark_dirty(struct zf_inode *inode);

/* Writes the item to the tree: one tree edit. Caller holds inode->lock exclusively. Clears item_dirty. */
int zf_inode_store(struct zf_inode *inode, struct zf_trans *trans);

void zf_inode_to_attr(const struct zf_inode *inode, struct zf_attr *ret_attr); /* lock held */

struct zf_time zf_fs_now(struct zf_fs *fs);

/* Locks exclusively in ascending ino; the same inode twice, and NULL, are allowed. */
void zf_inode_lock_many(struct zf_inode **inodes, unsigned int count);
void zf_inode_unlock_many(struct zf_inode **inodes, unsigned int count);

/* ---- orphans (orphan.c) ---- */

/* nlink became 0 in this transaction: deleted by the next mount unless zf_orphan_delete() does. One edit. */
int zf_orphan_add(struct zf_inode *inode, struct zf_trans *trans);
/*
 * Deletes all of an inode without names or users, in as many transactions as it takes: its extents, attributes,
 * item and orphan entry. Caller holds its only use, no lock and no join.
 */
int zf_orphan_delete(struct zf_fs *fs, uint64_t ino);
/* At mount: deletes every orphan and finishes every intent. */
int zf_orphan_recover(struct zf_fs *fs);

#endif
