/* SPDX-License-Identifier: MIT */
/*
 * The threads of a mounted filesystem: one lands and flushes data, one commits and tidies, one
 * reclaims, one scrubs.
 */
#ifndef ZF_FS_BACKGROUND_H
#define ZF_FS_BACKGROUND_H

struct zf_fs;

int zf_background_start(struct zf_fs *fs);
/* Waits for what the threads are doing. Does nothing if they were not started. */
void zf_background_stop(struct zf_fs *fs);

/*
 * Returns when every thread rests; no thread writes anything until zf_background_resume(). Only one
 * caller at a time. Does nothing if there are no threads.
 */
void zf_background_pause(struct zf_fs *fs);
void zf_background_resume(struct zf_fs *fs);

#endif
