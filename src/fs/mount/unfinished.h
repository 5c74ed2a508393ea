/* SPDX-License-Identifier: MIT */
/*
 * Work that the committed state has begun and not finished; a mount finishes it. Damaged items are
 * reported and left. Both calls fail only if the whole filesystem has failed.
 */
#ifndef ZF_FS_UNFINISHED_H
#define ZF_FS_UNFINISHED_H

struct zf_fs;

/* Finishes truncations that have an intent item. Called before the log is replayed. */
int zf_unfinished_intents(struct zf_fs *fs);
/*
 * Deletes inodes without a name. Called after the log is replayed, because a record may give such
 * an inode a name.
 */
int zf_unfinished_orphans(struct zf_fs *fs);

#endif
