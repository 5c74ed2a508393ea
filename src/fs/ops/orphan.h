/* SPDX-License-Identifier: MIT */
/*
 * The orphan item of an inode without a name. It comes and goes in the transaction that takes the
 * last name or gives one again, so that a mount after a crash finds what is still to be deleted.
 */
#ifndef ZF_FS_ORPHAN_H
#define ZF_FS_ORPHAN_H

struct zf_inode;
struct zf_op;

/* nlink became 0 in this transaction: fs/data/delete.h deletes the inode, or the next mount. One
 * edit. */
int zf_orphan_add(struct zf_op *op, struct zf_inode *inode);
/* It gets a name again (linkat of an O_TMPFILE). One edit. */
int zf_orphan_remove(struct zf_op *op, struct zf_inode *inode);

#endif
