/* SPDX-License-Identifier: MIT */
/*
 * Requests to the background threads of a mount (fs/mount/background.h): a commit, a deletion, a
 * search for garbage, a look at the state of the scrub. A request is noted here and wakes the
 * thread that serves it, so the caller needs to know nothing of the threads. While no thread runs,
 * a request for a commit, for reclaim or for a scrub does nothing.
 *
 * Locking. zf_wake_commit(), zf_wake_reclaim() and zf_wake_scrub() may be called with any lock held
 * except one of ZF_RANK_DEV; zf_wake_deletion() with none.
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
	bool commit, reclaim, scrub; /* requested; cleared when work begins; under the lock */
	atomic_bool deletion;	     /* a deletion is requested; cleared likewise */
	atomic_bool idle;	     /* the committer sleeps for longer than a deletion may wait */
	/*
	 * Deletes the inodes on fs->doomed, in a filesystem that was mounted without threads. The
	 * mount sets this pointer, because deletion belongs to a higher layer than the inodes.
	 */
	int (*delete_doomed)(struct zf_fs *fs);
};
void zf_wake_init(struct zf_fs *fs, int (*delete_doomed)(struct zf_fs *fs));
void zf_wake_deinit(struct zf_fs *fs);

/* Asks for a commit now: much metadata is dirty, or the log asks for it (log/log.h). */
void zf_wake_commit(struct zf_fs *fs);
/*
 * Asks for the deletion of the inodes on fs->doomed. The committer deletes them soon; without
 * threads, the call deletes them itself.
 */
void zf_wake_deletion(struct zf_fs *fs);
/*
 * Wakes the reclaimer, because fewer zones are ready than its target, or because it was resumed. It
 * then passes over all zones once.
 */
void zf_wake_reclaim(struct zf_fs *fs);
/* Wakes the scrubber, because a scrub was started, paused, resumed or cancelled. */
void zf_wake_scrub(struct zf_fs *fs);

#endif
