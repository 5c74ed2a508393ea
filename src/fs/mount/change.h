/* SPDX-License-Identifier: MIT */
/*
 * What changes a mounted filesystem as a whole, one at a time: growing it, reclaim that a tool asks
 * for, and making it read-only or writable (zf_fs_remount()).
 */
#ifndef ZF_FS_CHANGE_H
#define ZF_FS_CHANGE_H

struct zf_fs;

/* Waits for the change that is under way. -EROFS, and nothing is to be ended. */
int zf_change_begin(struct zf_fs *fs);
void zf_change_end(struct zf_fs *fs);

/*
 * Lands all data and commits it with everything else, as a state that was left in order. Tries again
 * for a second where memory is short. The error of a commit; data that cannot be written is its
 * file's error (fs/core/write_error.h).
 */
int zf_change_store_all(struct zf_fs *fs);

#endif
