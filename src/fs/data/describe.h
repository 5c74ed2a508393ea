/* SPDX-License-Identifier: MIT */
/* An inode's state as the body of a log record (log/log_format.h). */
#ifndef ZF_FS_DESCRIBE_H
#define ZF_FS_DESCRIBE_H

#include <stdint.h>

struct zf_append;
struct zf_inode;
struct zf_log_body;

/*
 * Begins the body and describes all that has changed in the inode since its last record or the last
 * durable superblock: its item, with the size that it has once `rider` has landed, the ranges in
 * inode->data.changes as the trees have them, and then the blocks of `rider` (whose checksums are
 * computed; may be NULL), which ride with the record. *ret_mark: what must be flushed before the
 * record is written (zf_dev_write_mark()), 0: nothing.
 *
 * Inode locked exclusively; with a rider, nothing of it is dirty or in flight but the rider's.
 * -E2BIG: too much for a record, or unknown: commit. -errno. The body is to be ended in any case.
 */
int zf_describe_inode(struct zf_inode *inode, const struct zf_append *rider,
		      struct zf_log_body *body, uint64_t *ret_mark);

#endif
