/* SPDX-License-Identifier: MIT */
/*
 * Upgrade: a mount computes counts that older versions lack, and the next commit stores them.
 */
#ifndef ZF_FS_UPGRADE_H
#define ZF_FS_UPGRADE_H

struct zf_fs;

/*
 * Adds ZF_INCOMPAT_GUARANTEE to fs->super, with the counts that go with it. If any block is kept,
 * the call reads the whole fs tree, so the trees must be loaded. Does nothing if the feature is
 * there already or the mount is read-only. -EUCLEAN, -EIO.
 */
int zf_upgrade_kept(struct zf_fs *fs);

#endif
