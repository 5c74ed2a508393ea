/* SPDX-License-Identifier: MIT */
/*
 * Inodes without a name, from the last use on: their deletion.
 *
 * The orphan item is inserted by the transaction that takes the last name (fs/ops/orphan.h), and
 * deleted by the one that deletes the inode's item. In between its extents and attributes go in as
 * many transactions as it takes: a crash anywhere leaves an orphan that is a bit smaller, which the
 * next mount deletes (fs/mount/unfinished.h).
 */
#ifndef ZF_FS_DELETE_H
#define ZF_FS_DELETE_H

struct zf_fs;

/* Extents of one transaction that deletes or truncates: small, so that it finds room when there is
 * little. */
#define ZF_DELETE_EXTENTS 16u

/*
 * Deletes what fs->doomed holds: extents, attributes, items and orphan entries, each in as many
 * transactions as it takes. No lock and no join held. Returns how many were deleted; those that
 * there is no room or memory to delete now stay on the list.
 */
int zf_delete_doomed(struct zf_fs *fs);

/* The kernel is gone (unmount): takes back every reference; inodes without a name are doomed. */
void zf_delete_forget_all(struct zf_fs *fs);

#endif
