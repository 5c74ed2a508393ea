/* SPDX-License-Identifier: MIT */
/*
 * The orphan item of an inode without a name. The transaction that removes the last name inserts
 * it; the one that gives the inode a name again deletes it. So a mount after a crash finds the
 * inodes that are still to be deleted.
 */
#ifndef ZF_FS_ORPHAN_H
#define ZF_FS_ORPHAN_H

struct zf_inode;
struct zf_op;

/*
 * Called when nlink became 0 in this transaction. fs/data/delete.h or the next mount deletes the
 * inode. One edit.
 */
int zf_orphan_add(struct zf_op *op, struct zf_inode *inode);
/* Called when the inode gets a name again (linkat of an O_TMPFILE). One edit. */
int zf_orphan_remove(struct zf_op *op, struct zf_inode *inode);

#endif
