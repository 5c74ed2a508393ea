/* SPDX-License-Identifier: MIT */
/*
 * Changes of a mounted filesystem as a whole, one at a time: growing it, reclaim for a tool, and
 * making it read-only or writable (zf_fs_remount()).
 */
#ifndef ZF_FS_CHANGE_H
#define ZF_FS_CHANGE_H

struct zf_fs;

/*
 * Begins a change; waits for the one that is under way. -EROFS: not begun, so zf_change_end() is
 * not called.
 */
int zf_change_begin(struct zf_fs *fs);
void zf_change_end(struct zf_fs *fs);

/*
 * Lands all data and commits everything; the superblock says that there is nothing to recover. If
 * there is no memory, it tries again for a second. Returns the error of the commit. Data that
 * cannot be written is an error of its file only (fs/core/write_error.h).
 */
int zf_change_store_all(struct zf_fs *fs);

#endif
