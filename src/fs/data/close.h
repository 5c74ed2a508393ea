/* SPDX-License-Identifier: MIT */
/*
 * Closing a file that was truncated to nothing and written again (P2). The old content is lost when
 * the truncation becomes durable, and any fsync may make it durable. The new content should become
 * durable soon afterwards. So closing the file starts the writes of its dirty blocks. When all of
 * them have landed, the file's state is added to the operations for the next log record.
 */
#ifndef ZF_FS_CLOSE_H
#define ZF_FS_CLOSE_H

struct zf_inode;
struct zf_op;

/* Called after content landed and the item was stored. Inode locked exclusively, joined. */
void zf_close_landed(struct zf_inode *inode);
/* The same if the landing stored no item. No lock and no join held; may wait for a commit. */
int zf_close_landed_in_place(struct zf_inode *inode);
/*
 * Adds the inode's state to the log's operations now, before an operation that must not be durable
 * without that state. Inode locked exclusively, joined.
 */
void zf_close_announce(struct zf_inode *inode);

#endif
