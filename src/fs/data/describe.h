/* SPDX-License-Identifier: MIT */
/* An inode's state as the body of a log record (log/log_format.h). */
#ifndef ZF_FS_DESCRIBE_H
#define ZF_FS_DESCRIBE_H

#include <stdint.h>

struct zf_append;
struct zf_inode;
struct zf_log_body;

/*
 * Begins the body and describes all changes of the inode since its last record or the last durable
 * superblock: first its item, with the size that the file has once `rider` has landed; then the
 * ranges in inode->data.changes as the trees have them; then the blocks of `rider`, which are
 * written with the record. `rider` may be NULL; its checksums are computed. *ret_mark: the mark up
 * to which the device must be flushed before the record is written (zf_dev_write_mark()); 0: no
 * flush.
 *
 * Inode locked exclusively. With a rider, no other block of the inode is dirty or in flight.
 * -E2BIG: the changes are too large for a record, or not all of them are listed: the caller
 * commits. -errno. The caller ends the body in any case.
 */
int zf_describe_inode(struct zf_inode *inode, const struct zf_append *rider,
		      struct zf_log_body *body, uint64_t *ret_mark);

#endif
