/* SPDX-License-Identifier: MIT */
/*
 * A file that was truncated to nothing and written again (P2): its old content is gone from the
 * moment at which the truncation is durable, which any fsync may make it. So that its new content
 * follows as soon as it is on the device, closing the file starts its way there, and when all of it
 * has landed the file's state joins the operations that the next record of the log takes along.
 */
#ifndef ZF_FS_CLOSE_H
#define ZF_FS_CLOSE_H

struct zf_inode;
struct zf_op;

/* Content landed and the item was stored. Inode locked exclusively, joined. */
void zf_close_landed(struct zf_inode *inode);
/* The same where nothing had to be stored. No lock and no join held; may wait for a commit. */
int zf_close_landed_in_place(struct zf_inode *inode);
/*
 * The inode's state joins the operations now, in front of one that must not be durable without it.
 * Locked exclusively, joined.
 */
void zf_close_announce(struct zf_inode *inode);

#endif
