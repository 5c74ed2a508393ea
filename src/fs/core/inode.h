/* SPDX-License-Identifier: MIT */
/*
 * Inodes in memory, and struct zf_fs, which the files of src/fs/ share.
 *
 * Life. zf_inode_get() finds an inode in the table or loads it from the fs tree, and counts a use;
 * zf_inode_put() gives it back. Unused clean inodes stay in the table until they take half as much
 * memory as the node cache may take (options.cache_bytes). Then the longest unused is dropped
 * first. Kernel references (zf_fs_lookup) are counted in a table of their own, so they do not keep
 * an inode in memory. An inode stays while it has an error that somebody must be told of
 * (fs/core/write_error.h), or an unfinished truncation. An inode with dirty or in-flight data holds
 * a use of its own.
 *
 *      (tree)
 *        |       zf_inode_get()
 *        v
 *      LOADING --cannot be loaded--> DEAD --last put--> freed
 *        |
 *        v
 *      LIVE --last put of one without a name, read-only--> freed, left to the next mount
 *        |       last put: no name, no kernel reference
 *        v
 *      DOOMED --deleted--> DEAD --last put--> freed
 *
 * Doomed inodes wait on fs->doomed for zf_delete_doomed(). The committer calls it; without threads
 * the put calls it. So with threads a put or forget on a request's queue never waits for a large
 * deletion.
 *
 * Size and times. item.* is what users see now. disk_size (the *landed size*) is the size up to
 * which all bytes are in the trees or are holes. zf_inode_store() writes disk_size, so that after a
 * crash a file never has a size whose data did not land. Landing moves disk_size up
 * (fs/data/data.h). An operation that changes attributes stores them in its own transaction. Times
 * that a write or a read changed are stored with the next extents, or by the flush (item_dirty).
 *
 * Locking. inode->lock protects item, disk_size, item_dirty, and the inode's items in the tree:
 * exclusively to change, shared to read. It is *kept* while a log record with the inode's state is
 * written (docs/locking.md). Several inodes are locked in ascending ino (zf_inode_lock_many). The
 * table is cut into shards by ino, each with a lock (ZF_RANK_FS) for its inodes' state and its
 * kernel references; fs->lock protects the lists that all share. inode->data has a lock of its own
 * (fs/data/data.h). zf_inode_put() may delete the inode (fs/core/wake.h) and then joins a
 * transaction, so its caller holds no lock and no join.
 */
#ifndef ZF_FS_INODE_H
#define ZF_FS_INODE_H

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>
#include <stdatomic.h>

#include "alloc/reserve.h"
#include "btree/tree.h"
#include "fs/core/data_memory.h"
#include "fs/core/fs.h"
#include "fs/core/sync_share.h"
#include "fs/core/wake.h"
#include "txn/health.h"
#include "txn/txn.h"

struct zf_inode_item {
	uint64_t generation, change, size, bytes, rdev, next_cookie;
	uint32_t mode, nlink, uid, gid, project, flags;
	struct zf_time atime, mtime, ctime, btime;
};

enum zf_inode_state {
	ZF_INODE_LOADING, /* the thread that made it reads its item */
	ZF_INODE_LIVE,
	ZF_INODE_DOOMED, /* without names and users: no get finds it any more */
	ZF_INODE_DEAD,	 /* deleted, or could not be loaded or made: freed by the last put */
};

/*
 * Extended attributes that an inode is known not to have. This saves a look-up in the tree for each
 * request.
 */
enum zf_absent {
	ZF_ABSENT_CAPABILITY = 1 << 0,	/* security.capability: looked up by every write */
	ZF_ABSENT_ACL_ACCESS = 1 << 1,	/* looked up by every chmod */
	ZF_ABSENT_ACL_DEFAULT = 1 << 2, /* of a directory: looked up when an inode is made in it */
};

struct zf_inode {
	uint64_t ino;
	struct zf_fs *fs;
	uint32_t type; /* S_IFMT of item.mode: never changes, so it needs no lock */

	struct zf_rwlock lock;
	struct zf_inode_item item;
	uint64_t disk_size;
	bool item_dirty;      /* item differs from what the tree holds (times, size) */
	bool essential_dirty; /* item_dirty, and more than times differs */
	bool lazy;	      /* item_dirty, by an access time only: fs/core/access.h */
	int64_t lazy_since_s; /* when it became lazy */
	uint64_t
		essential; /* not older than the transaction that last stored more than the times */
	uint64_t essential_record; /* not 0: this log record has that change, and essential is 0 */
	struct zf_data data;

	/* enum zf_absent. Look-ups set bits with the lock held shared; changes clear them with the
	 * lock held exclusively. */
	atomic_uint absent;
	atomic_uint uses; /* falls to 0 under the shard's lock only */

	/* Under the shard's lock. */
	enum zf_inode_state state;
	int load_error; /* when DEAD */
	bool unlinked;	/* item.nlink is 0 */
	bool idle;	/* on the shard's idle list */
	struct zf_sync_share sync_share;
	RB_ENTRY(zf_inode) table_link;
	TAILQ_ENTRY(zf_inode) idle_link;

	/* Under fs->lock. */
	TAILQ_ENTRY(zf_inode) dirty_link;
	bool on_dirty_list;
	TAILQ_ENTRY(zf_inode) doomed_link;
};

RB_HEAD(zf_inode_table, zf_inode);
TAILQ_HEAD(zf_inode_list, zf_inode);

/*
 * Kernel references, kept apart so that the inode itself may leave memory: 16 bytes each, in an
 * open hash table of 2^n slots, at most three quarters full.
 */
struct zf_kernel_ref {
	uint64_t ino; /* 0: free slot */
	uint64_t count;
};
struct zf_kernel_refs {
	struct zf_kernel_ref *slots;
	size_t slot_count, used;
};

#define ZF_INODE_SHARDS 64u

struct zf_inode_shard {
	struct zf_mutex lock;  /* ZF_RANK_FS */
	struct zf_cond loaded; /* an inode left LOADING */
	struct zf_inode_table inodes;
	struct zf_inode_list idle; /* oldest first */
	unsigned int idle_count;
	struct zf_kernel_refs kernel_refs;
};

struct zf_background;
struct zf_reclaim;
struct zf_room;
struct zf_scrubber;

/* What all scrubs (fs/space/scrub.h) together have done since the mount. */
struct zf_scrubbed {
	_Atomic uint64_t data_bytes, node_bytes, skipped;
	_Atomic uint64_t errors;   /* damaged places that were not repaired */
	_Atomic uint64_t repaired; /* nodes */
	/*
	 * When a scrub last came to its end (not: was cancelled), in this or an earlier mount:
	 * seconds since 1970; 0: never.
	 */
	_Atomic uint64_t finished_at;
};

struct zf_fs {
	struct zf_dev *dev;
	struct zf_ring *ring;
	struct zf_alloc *alloc;
	struct zf_forest *forest;
	struct zf_txn *txn;
	struct zf_log *log;    /* NULL on a read-only mount */
	struct zf_super super; /* as mounted */
	struct zf_mount_options options;
	struct zf_report report;
	_Atomic uint64_t commit_ms; /* between commits */
	atomic_bool read_only;	    /* mounted read-only, or remounted so (zf_fs_remount()) */
	/*
	 * A mount is replaying the log. An inode then leaves memory with its last use, because the
	 * replay edits items in the tree directly. An inode without a name is not deleted, because
	 * a later record may give it a name again.
	 */
	bool recovering;

	struct zf_inode_shard shards[ZF_INODE_SHARDS]; /* by ino */
	unsigned int idle_max;			       /* unused inodes in each shard */
	/* Held while a directory gets another parent: only its holder changes the ancestors of a
	 * directory. ZF_RANK_RENAME. */
	struct zf_mutex rename_lock;
	struct zf_mutex share_lock;  /* ZF_RANK_SHARE; fs/map/share.h */
	struct zf_mutex change_lock; /* ZF_RANK_CHANGE; fs/mount/change.h */

	struct zf_mutex lock;	     /* ZF_RANK_FS */
	struct zf_inode_list dirty;  /* inodes with dirty data or item_dirty, oldest first */
	unsigned int dirty_count;    /* inodes on that list */
	struct zf_inode_list doomed; /* to be deleted; the list holds a use of each */
	atomic_uint unlinked_count;  /* inodes without a name in memory: open or doomed */
	atomic_uint deleting;	     /* doomed inodes that some thread deletes now */
	_Atomic uint64_t deletions;  /* counts each inode twice: when it is doomed, and deleted */
	atomic_uint lazy_count;	     /* inodes that are lazy */
	/*
	 * Inodes that have left memory together with their lists of changes (fs/core/changes.h):
	 * the newest generation in which one of them changed.
	 */
	_Atomic uint64_t changes_lost;
	/*
	 * The newest write mark of these inodes: data that they wrote in place is not durable
	 * before a flush.
	 */
	_Atomic uint64_t marks_lost;
	/* The newest generation in which one of these inodes changed that had been truncated to
	 * nothing and not closed (fs/data/close.h).
	 */
	_Atomic uint64_t closings_lost;

	struct zf_write_errors errors;
	_Atomic uint64_t checksum_errors; /* blocks of data that did not match, in any reader */
	struct zf_scrubbed scrubbed;
	/*
	 * The base that is added to the counters of this mount, modulo 2^64 (fs/space/faults.h).
	 * Under health_lock, ZF_RANK_HEALTH.
	 */
	struct zf_faults faults_base;
	struct zf_mutex health_lock;
	struct zf_flush flush; /* what all inodes' data share; fs/data/data.h */
	struct zf_wake wake;
	/* Objects of higher layers, for the whole life of the mount. */
	struct zf_reclaim *reclaim;	  /* fs/space/reclaim.h */
	struct zf_room *room;		  /* fs/space/room.h */
	struct zf_scrubber *scrubber;	  /* fs/mount/scrubber.h */
	struct zf_background *background; /* NULL: no thread runs; fs/mount/background.h */
};

/* ---- the table (inode.c) ---- */

struct zf_inode_shard *zf_inode_shard(const struct zf_inode *inode);

/* Sets up the shards, lists, rename_lock and share_lock. The caller has set fs->options. */
void zf_inode_table_init(struct zf_fs *fs);
/* Frees every inode, used or not. Writes nothing; an unmount has done that before. */
void zf_inode_table_deinit(struct zf_fs *fs);

/* -ESTALE if there is no such inode; -EUCLEAN if its item is damaged. */
int zf_inode_get(struct zf_fs *fs, uint64_t ino, struct zf_inode **ret_inode);
/* The same, and locks the inode shared; zf_inode_put_read() gives up both. */
int zf_inode_get_read(struct zf_fs *fs, uint64_t ino, struct zf_inode **ret_inode);
void zf_inode_put_read(struct zf_inode *inode);
/* One more use of an inode that the caller has. */
struct zf_inode *zf_inode_ref(struct zf_inode *inode);
/* The last put of an inode with nlink 0 and without kernel references dooms it. Takes NULL. */
void zf_inode_put(struct zf_inode *inode);
/*
 * Makes a new inode with a new number in the table, with a use, and locked exclusively. Of its
 * item, generation and mode are set. The caller sets the rest and calls zf_inode_store_new(). If
 * that fails, the caller calls zf_inode_bury(), unlocks and puts the inode.
 */
int zf_inode_new(struct zf_fs *fs, struct zf_trans *trans, mode_t mode,
		 struct zf_inode **ret_inode);
/*
 * Marks an inode that is not in the tree, or not any more: no get finds it, and the last put frees
 * it.
 */
void zf_inode_bury(struct zf_inode *inode);
/* Called after item.nlink became 0, or became more than 0 again. Lock held exclusively. */
void zf_inode_set_unlinked(struct zf_inode *inode, bool unlinked);

/* One more kernel reference. -ENOMEM. */
int zf_inode_kernel_ref(struct zf_fs *fs, uint64_t ino);
/*
 * Takes back `count` kernel references. If none is left, and the inode has no name (*ret_unlinked)
 * or only an error keeps it in memory, the call returns the inode with a use. Otherwise it returns
 * NULL.
 */
struct zf_inode *zf_inode_kernel_unref(struct zf_fs *fs, uint64_t ino, uint64_t count,
				       bool *ret_unlinked);
/* Takes back every kernel reference of this shard. */
void zf_inode_kernel_unref_all(struct zf_inode_shard *shard);
/*
 * Returns, with a use, the first inode of the shard from `ino` on that has no name and is not
 * doomed; NULL: there is none.
 */
struct zf_inode *zf_inode_next_unlinked(struct zf_inode_shard *shard, uint64_t ino);

/*
 * Puts the inode on the list of inodes that a flush has to visit. The list holds a use. The caller
 * holds inode->lock.
 */
void zf_inode_mark_dirty(struct zf_inode *inode);
/*
 * Takes the inode off that list. True: it was on the list, and the caller has to put the list's
 * use.
 */
bool zf_inode_leave_dirty_list(struct zf_inode *inode);
/*
 * Notes that the item differs from the tree's, by more than an access time, so that the next flush
 * stores it. `essential`: by more than times. The caller holds inode->lock.
 */
void zf_inode_note_change(struct zf_inode *inode, bool essential);
/*
 * Notes that the tree has the same item, or that the item need not be stored. The next flush takes
 * the inode off the list.
 */
void zf_inode_mark_clean(struct zf_inode *inode);

/*
 * Writes the item to the tree: one tree edit. Caller holds inode->lock exclusively. Clears
 * item_dirty, and notes that the log has to describe the item (fs/core/changes.h).
 */
int zf_inode_store(struct zf_inode *inode, struct zf_trans *trans);
/* The same for a new inode: -EUCLEAN if its number is taken in the tree. */
int zf_inode_store_new(struct zf_inode *inode, struct zf_trans *trans);

void zf_inode_to_attr(struct zf_inode *inode, struct zf_attr *ret_attr); /* lock held */

/* The largest file, in bytes, whose content lives in its extent item. */
uint32_t zf_inode_inline_max(struct zf_fs *fs);

struct zf_time zf_fs_now(struct zf_fs *fs); /* clock.c */

/*
 * The class for edits that let a file grow. A replay uses the reserve, because it must find the
 * room that the operation had when it was made.
 */
static inline enum zf_reserve_class zf_fs_growing_class(const struct zf_fs *fs)
{
	return fs->recovering ? ZF_RESERVE_FREEING : ZF_RESERVE_NORMAL;
}

/*
 * False: another thread has the lock, perhaps while it waits for a commit, and may_wait is false.
 */
bool zf_inode_rdlock(struct zf_inode *inode, bool may_wait);
bool zf_inode_wrlock(struct zf_inode *inode, bool may_wait);

#define ZF_INODE_LOCKS_MAX 5u
/* Lock exclusively in ascending ino; the same inode twice, and NULL, are allowed. */
void zf_inode_lock_many(struct zf_inode *const *inodes, unsigned int count);
void zf_inode_unlock_many(struct zf_inode *const *inodes, unsigned int count);

/* ---- attributes that writes change (attr.c, xattr.c) ---- */

/*
 * What Linux does to a file whose content or owner changes: clears setuid, and also setgid if the
 * group may execute the file, or if the caller is not root and not in the group. Changes only the
 * memory: if it returns true, the mode has changed and the caller stores the item. Lock held
 * exclusively.
 */
bool zf_inode_kill_suidgid(struct zf_inode *inode, const struct zf_ctx *ctx);

/* ---- mkfs (root.c) ---- */

/*
 * Makes the root directory in an empty fs tree: inode ZF_INO_ROOT, mode 0755, owned by uid and gid,
 * its own parent. Two inserts. inode_count counts it: 1.
 */
int zf_fs_make_root(struct zf_forest *forest, struct zf_writer *writer, uint64_t dir_hash_seed,
		    struct zf_time now, uid_t uid, gid_t gid);

#endif
