/* SPDX-License-Identifier: MIT */
/*
 * What the committed state has begun and not ended, for a mount to finish. What is damaged is
 * reported and left. Both fail only if the filesystem as a whole does.
 */
#ifndef ZF_FS_UNFINISHED_H
#define ZF_FS_UNFINISHED_H

struct zf_fs;

/* Truncations under an intent item: before the log is replayed. */
int zf_unfinished_intents(struct zf_fs *fs);
/* Inodes without a name: once the log is replayed, which may name one again. */
int zf_unfinished_orphans(struct zf_fs *fs);

#endif
