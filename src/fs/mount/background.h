/* SPDX-License-Identifier: MIT */
/*
 * The threads of a mounted filesystem: one lands and flushes data, one commits and tidies, one
 * reclaims.
 */
#ifndef ZF_FS_BACKGROUND_H
#define ZF_FS_BACKGROUND_H

struct zf_fs;

int zf_background_start(struct zf_fs *fs);
/* Waits for what the threads are doing. Does nothing if they were not started. */
void zf_background_stop(struct zf_fs *fs);

/*
 * Returns when every thread rests: none writes anything until zf_background_resume(). To be called
 * by one thread at a time. Without threads no-op.
 */
void zf_background_pause(struct zf_fs *fs);
void zf_background_resume(struct zf_fs *fs);

/* A commit is due, however long ago the last one was: much metadata is dirty. Without threads
 * no-op. */
void zf_background_want_commit(struct zf_fs *fs);

/* An inode waits to be deleted (zf_orphan_run): soon, with those that follow. Without threads
 * no-op. */
void zf_background_want_deletion(struct zf_fs *fs);

/*
 * There is less room than reclaim wants, or it was resumed: the reclaimer looks what it can do,
 * which costs a pass over the zones. Any lock but the device's may be held. Without threads no-op.
 */
void zf_background_want_reclaim(struct zf_fs *fs);

#endif
