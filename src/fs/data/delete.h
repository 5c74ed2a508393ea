/* SPDX-License-Identifier: MIT */
/*
 * Deleting inodes without a name, after their last use.
 *
 * The transaction that removes the last name inserts an orphan item (fs/ops/orphan.h). The one that
 * deletes the inode's item deletes the orphan item. In between, the inode's extents and attributes
 * are deleted in as many transactions as needed. A crash in between leaves an orphan with fewer
 * extents, which the next mount deletes (fs/mount/unfinished.h).
 */
#ifndef ZF_FS_DELETE_H
#define ZF_FS_DELETE_H

struct zf_fs;

/* The most tree edits for dropping extents in one transaction that deletes or truncates: few, so
 * that it finds room when there is little. */
#define ZF_DELETE_EXTENTS 16u

/*
 * Deletes the inodes on fs->doomed with their extents, attributes and orphan items, each inode in
 * as many transactions as needed. No lock and no join held. Returns how many were deleted. Inodes
 * that cannot be deleted now for want of room or memory stay on the list.
 */
int zf_delete_doomed(struct zf_fs *fs);

/* For the unmount: takes back all kernel references, which dooms the inodes without a name. */
void zf_delete_forget_all(struct zf_fs *fs);

#endif
