/* SPDX-License-Identifier: MIT */
/*
 * What the files of src/fs ask of the threads of a mount (fs/mount/background.h): a commit, a
 * deletion, a look for garbage, a look at the scrub. A request is noted here and wakes the thread that serves it, so
 * whoever asks knows nothing of the threads. While no thread runs, a request for a commit, for
 * reclaim or for a scrub does nothing.
 *
 * Locking. zf_wake_commit(), zf_wake_reclaim() and zf_wake_scrub() may be called with any lock held but one of
 * ZF_RANK_DEV; zf_wake_deletion() with none.
 */
#ifndef ZF_FS_WAKE_H
#define ZF_FS_WAKE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/lock.h"

struct zf_fs;

/* Embedded in struct zf_fs. */
struct zf_wake {
	struct zf_mutex lock; /* ZF_RANK_DEV */
	struct zf_cond committer, reclaimer, scrubber;
	bool commit, reclaim, scrub; /* asked for, and not yet taken up; under the lock */
	atomic_bool deletion;	     /* the same of a deletion */
	atomic_bool idle;	     /* the committer sleeps for longer than a deletion may wait */
	/*
	 * How a filesystem that was mounted without threads deletes what fs->doomed holds: a call
	 * upward, for deletion is a layer above the inodes. Set by the mount.
	 */
	int (*delete_doomed)(struct zf_fs *fs);
};
void zf_wake_init(struct zf_fs *fs, int (*delete_doomed)(struct zf_fs *fs));
void zf_wake_deinit(struct zf_fs *fs);

/* A commit is due, however long ago the last one was: much metadata is dirty. */
void zf_wake_commit(struct zf_fs *fs);
/*
 * Has the inodes on fs->doomed deleted: soon, by the committer; or, without threads, at once by the
 * caller.
 */
void zf_wake_deletion(struct zf_fs *fs);
/*
 * Wakes the reclaimer, because fewer zones are ready than its target, or because it was resumed. It
 * then passes over all zones once.
 */
void zf_wake_reclaim(struct zf_fs *fs);
/* A scrub was started, paused, resumed or cancelled. */
void zf_wake_scrub(struct zf_fs *fs);

#endif
